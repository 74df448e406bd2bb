#include "router/weigh.h"

#include "math/scalar.h"

#ifdef MODEL_SCORING_SIGMOID
void score_experts(const float logits[MODEL_N_EXPERTS], float scores[MODEL_N_EXPERTS]) {
    for (int e = 0; e < MODEL_N_EXPERTS; e++) {
        scores[e] = sigmoid_f32(logits[e]);
    }
}

#if MODEL_NORM_TOPK
static float normaliser(const float scores[MODEL_N_EXPERTS], const int experts[MODEL_TOP_K]) {
    float sum = 0.0f;
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        sum += scores[experts[rank]];
    }
    return sum + 1e-20f;
}
#else
static float normaliser(const float scores[MODEL_N_EXPERTS], const int experts[MODEL_TOP_K]) {
    (void)scores;
    (void)experts;
    return 1.0f; /* a division by 1 is exact */
}
#endif

void weigh_experts(const float scores[MODEL_N_EXPERTS], Routing *out) {
    float sum = normaliser(scores, out->experts);
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        out->weights[rank] = scores[out->experts[rank]] / sum;
    }
}
#endif
