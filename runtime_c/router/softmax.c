#include "router/weigh.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(MODEL_HAS_EXPERTS) && !defined(MODEL_SCORING_SIGMOID)
enum { Q30_LN2 = 744261118, TABLE_BITS = 6 };

static const uint32_t ONE_Q30 = 1u << 30;
static const float LOG2_E_Q20 = 1512775.375f; /* log2(e) * 2^20, the nearest binary32 */

/* Q30 of 2^(-i/64). */
static const uint32_t EXP2_TABLE[1 << TABLE_BITS] = {
    1073741824u, 1062175491u, 1050733751u, 1039415261u, 1028218693u, 1017142735u, 1006186087u, 995347464u,
    984625594u,  974019220u,  963527098u,  953147997u,  942880699u,  932724001u,  922676710u,  912737649u,
    902905651u,  893179563u,  883558244u,  874040567u,  864625413u,  855311680u,  846098274u,  836984114u,
    827968132u,  819049271u,  810226483u,  801498734u,  792865000u,  784324269u,  775875538u,  767517817u,
    759250125u,  751071493u,  742980960u,  734977579u,  727060411u,  719228525u,  711481005u,  703816941u,
    696235434u,  688735596u,  681316545u,  673977412u,  666717336u,  659535466u,  652430958u,  645402981u,
    638450708u,  631573326u,  624770026u,  618040012u,  611382493u,  604796689u,  598281827u,  591837143u,
    585461881u,  579155293u,  572916640u,  566745190u,  560640218u,  554601009u,  548626854u,  542717053u,
};

/* Q30 of 2^-t, t in Q12.20. */
static uint32_t exp2_negative(uint32_t t) {
    uint32_t n = t >> 20;
    if (n > 30) {
        return 0;
    }
    uint64_t f = t & 16383u; /* t = n + i/64 + f/2^20 */
    uint64_t y = (f * (uint64_t)Q30_LN2) >> 20;
    uint64_t y2 = (y * y) >> 31;
    uint64_t y3 = ((y2 * y) / 3) >> 30;
    uint64_t m = ONE_Q30 - y + y2 - y3; /* 2^-f by its series to the cubic term */
    uint64_t e = (EXP2_TABLE[(t >> 14) & 63u] * m + (1u << 29)) >> 30;
    return (uint32_t)((e + ((UINT64_C(1) << n) >> 1)) >> n);
}

/* Distance below the maximum in Q12.20, in units of log2. */
static uint32_t distance(float maximum, float logit) {
    float d = maximum - logit;
    if (d > 24.0f) {
        return 0x7fffffffu;
    }
    float scaled = d * LOG2_E_Q20;
    return (uint32_t)(int32_t)(scaled + 0.5f);
}

/* A softmax keeps the order of the logits: they are the scores. */
void score_experts(const float logits[MODEL_N_EXPERTS], float scores[MODEL_N_EXPERTS]) {
    memcpy(scores, logits, MODEL_N_EXPERTS * sizeof(float));
}

#ifdef MODEL_SCORING_SPARSEMIXER
_Static_assert(MODEL_TOP_K == 2, "the sparse mixer chooses two experts");

/* Whether a logit falls short of the best one by too large a part of the larger magnitude. 0 / 0 does not. */
static bool is_far(float best, float logit) {
    float magnitude = logit < 0.0f ? -logit : logit;
    float size = magnitude > best ? magnitude : best;
    return (best - logit) / size > MODEL_ROUTER_THRESHOLD;
}

/* Each expert's share among those that are not chosen before it and come close to it. */
void weigh_experts(const float logits[MODEL_N_EXPERTS], Routing *out) {
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        float best = logits[out->experts[rank]];
        uint64_t sum = 0; /* >= 2^30: the expert itself is close */
        for (int e = 0; e < MODEL_N_EXPERTS; e++) {
            bool is_taken = rank > 0 && e == out->experts[0];
            sum += is_taken || is_far(best, logits[e]) ? 0 : exp2_negative(distance(best, logits[e]));
        }
        uint64_t p = (((uint64_t)ONE_Q30 << 30) + sum / 2) / sum;
        out->weights[rank] = (float)(uint32_t)p * 0x1p-30f;
    }
}
#else
/* What the weights are normalised over, and the largest logit of it: the chosen experts, or all of them. */
#if MODEL_NORM_TOPK
static uint64_t normaliser(const float logits[MODEL_N_EXPERTS], const int experts[MODEL_TOP_K], float *maximum) {
    uint64_t sum = 0;
    *maximum = logits[experts[0]];
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        sum += exp2_negative(distance(*maximum, logits[experts[rank]]));
    }
    return sum;
}
#else
static uint64_t normaliser(const float logits[MODEL_N_EXPERTS], const int experts[MODEL_TOP_K], float *maximum) {
    uint64_t sum = 0;
    (void)experts;
    *maximum = logits[0];
    for (int e = 1; e < MODEL_N_EXPERTS; e++) {
        *maximum = logits[e] > *maximum ? logits[e] : *maximum;
    }
    for (int e = 0; e < MODEL_N_EXPERTS; e++) {
        sum += exp2_negative(distance(*maximum, logits[e]));
    }
    return sum;
}
#endif

void weigh_experts(const float logits[MODEL_N_EXPERTS], Routing *out) {
    float maximum = 0.0f;
    uint64_t sum = normaliser(logits, out->experts, &maximum); /* >= 2^30: the maximum is among the terms */
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        uint64_t e = exp2_negative(distance(maximum, logits[out->experts[rank]]));
        uint64_t p = ((e << 30) + sum / 2) / sum;
        out->weights[rank] = (float)(uint32_t)p * 0x1p-30f;
    }
}
#endif
#endif
