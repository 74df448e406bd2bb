/* Norms of the residual stream. */
#ifndef COLIBRI_NORM_H
#define COLIBRI_NORM_H

#include "math/scalar.h"
#include "model/arena.h"

/* arena.h = the norm of arena.x. `norm` is the weight [MODEL_DIM]; a LayerNorm's bias has its name with _bias behind.
 */
#ifdef MODEL_LAYER_NORM
#define NORMALISE_X(norm) layer_norm(norm, norm##_bias)

static inline float mean_of_x(void) {
    float lanes[8] = {0};
    for (int i = 0; i < MODEL_DIM; i++) {
        lanes[i % 8] += arena.x[i];
    }
    return lane_tree(lanes) / (float)MODEL_DIM;
}

static inline void layer_norm(const float *weight, const float *bias) {
    float mean = mean_of_x();
    for (int i = 0; i < MODEL_DIM; i++) {
        arena.h[i] = arena.x[i] - mean;
    }
    KERNEL(rms_norm)(arena.h, weight, arena.h, MODEL_DIM, MODEL_RMS_EPS);
    KERNEL(add)(arena.h, bias, MODEL_DIM);
}
#else
#define NORMALISE_X(norm) KERNEL(rms_norm)(arena.x, norm, arena.h, MODEL_DIM, MODEL_RMS_EPS)
#endif

#endif
