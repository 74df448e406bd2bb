#include "router/router.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "router/weigh.h"

#ifdef MODEL_HAS_EXPERTS
static bool all_finite(const float *x, int n) {
    for (int i = 0; i < n; i++) {
        if (!(x[i] - x[i] == 0.0f)) {
            return false;
        }
    }
    return true;
}

/* The k largest scores, largest first; ties take the lower index. -inf is never chosen before a number. */
static void choose_largest(const float *scores, int n, int k, int *chosen) {
    bool taken[MODEL_N_EXPERTS] = {false};
    for (int rank = 0; rank < k; rank++) {
        int best = -1;
        for (int i = 0; i < n; i++) {
            if (!taken[i] && (best < 0 || scores[i] > scores[best])) {
                best = i;
            }
        }
        taken[best] = true;
        chosen[rank] = best;
    }
}

#ifdef MODEL_N_GROUPS
enum { GROUP_EXPERTS = MODEL_N_EXPERTS / MODEL_N_GROUPS };

static float largest_but(const float *scores, int n, int excluded) {
    float largest = -INFINITY;
    for (int i = 0; i < n; i++) {
        if (i != excluded && scores[i] > largest) {
            largest = scores[i];
        }
    }
    return largest;
}

#ifdef MODEL_GROUP_BEST_TWO
static float group_score(const float scores[GROUP_EXPERTS]) {
    int best = 0;
    choose_largest(scores, GROUP_EXPERTS, 1, &best);
    return scores[best] + largest_but(scores, GROUP_EXPERTS, best);
}
#else
static float group_score(const float scores[GROUP_EXPERTS]) {
    return largest_but(scores, GROUP_EXPERTS, -1);
}
#endif

/* Leaves only the experts of the best groups to be chosen. */
static void keep_best_groups(float scores[MODEL_N_EXPERTS]) {
    float groups[MODEL_N_GROUPS];
    int kept[MODEL_TOP_GROUPS];
    bool is_kept[MODEL_N_GROUPS] = {false};
    for (int group = 0; group < MODEL_N_GROUPS; group++) {
        groups[group] = group_score(scores + group * GROUP_EXPERTS);
    }
    choose_largest(groups, MODEL_N_GROUPS, MODEL_TOP_GROUPS, kept);
    for (int i = 0; i < MODEL_TOP_GROUPS; i++) {
        is_kept[kept[i]] = true;
    }
    for (int e = 0; e < MODEL_N_EXPERTS; e++) {
        scores[e] = is_kept[e / GROUP_EXPERTS] ? scores[e] : -INFINITY;
    }
}
#else
static void keep_best_groups(float scores[MODEL_N_EXPERTS]) {
    (void)scores;
}
#endif

#ifdef MODEL_SELECTION_BIAS
static void add_bias(float scores[MODEL_N_EXPERTS], const float *bias) {
    for (int e = 0; e < MODEL_N_EXPERTS; e++) {
        scores[e] += bias[e];
    }
}
#else
static void add_bias(float scores[MODEL_N_EXPERTS], const float *bias) {
    (void)scores;
    (void)bias;
}
#endif

#ifdef MODEL_ROUTED_SCALE
static void scale_weights(float weights[MODEL_TOP_K]) {
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        weights[rank] *= MODEL_ROUTED_SCALE;
    }
}
#else
static void scale_weights(float weights[MODEL_TOP_K]) {
    (void)weights;
}
#endif

colibri_status route(const float logits[MODEL_N_EXPERTS], const float *selection_bias, Routing *out) {
    float scores[MODEL_N_EXPERTS]; /* weigh the chosen experts */
    float judged[MODEL_N_EXPERTS]; /* decide which are chosen */
    if (!all_finite(logits, MODEL_N_EXPERTS)) {
        return COLIBRI_E_NOT_FINITE;
    }
    score_experts(logits, scores);
    memcpy(judged, scores, sizeof judged);
    add_bias(judged, selection_bias);
    keep_best_groups(judged);
    choose_largest(judged, MODEL_N_EXPERTS, MODEL_TOP_K, out->experts);
    weigh_experts(scores, out);
    scale_weights(out->weights);
    return COLIBRI_OK;
}
#endif
