/* Norms of the residual stream. */
#ifndef COLIBRI_NORM_H
#define COLIBRI_NORM_H

#include "math/scalar.h"
#include "model/arena.h"

/* token->h = the norm of token->x. `norm` is the weight [MODEL_DIM]; a LayerNorm's bias has its name with _bias behind.
 */
#ifdef MODEL_LAYER_NORM
#define NORMALISE_X(token, norm) layer_norm(token, norm, norm##_bias)

static inline float mean_of(const float x[MODEL_DIM]) {
    float lanes[8] = {0};
    for (int i = 0; i < MODEL_DIM; i++) {
        lanes[i % 8] += x[i];
    }
    return lane_tree(lanes) / (float)MODEL_DIM;
}

static inline void layer_norm(Token *token, const float *weight, const float *bias) {
    float mean = mean_of(token->x);
    for (int i = 0; i < MODEL_DIM; i++) {
        token->h[i] = token->x[i] - mean;
    }
    KERNEL(rms_norm)(token->h, weight, token->h, MODEL_DIM, MODEL_RMS_EPS);
    KERNEL(add)(token->h, bias, MODEL_DIM);
}
#else
#define NORMALISE_X(token, norm) KERNEL(rms_norm)((token)->x, norm, (token)->h, MODEL_DIM, MODEL_RMS_EPS)
#endif

#endif
