/* From the gate and up projections to the input of the down projection. */
#ifndef COLIBRI_SWIGLU_H
#define COLIBRI_SWIGLU_H

#include <string.h>

#include "kernels/kernels.h"

#ifdef MODEL_SWIGLU_LIMIT
enum { SWIGLU_PIECE = 64 };

/* gate[i] = (u + 1) * g / (1 + exp(-alpha * g)), g and u the clamped gate and up. NaN stays NaN. n <= SWIGLU_PIECE. */
static inline void gate_piece(float *gate, const float *up, int n) {
    float e[SWIGLU_PIECE];
    for (int i = 0; i < n; i++) {
        gate[i] = gate[i] > MODEL_SWIGLU_LIMIT ? MODEL_SWIGLU_LIMIT : gate[i];
    }
    memcpy(e, gate, (size_t)n * sizeof *e);
    (void)KERNEL(exp_shifted)(e, 0.0f, -MODEL_SWIGLU_ALPHA, n);
    for (int i = 0; i < n; i++) {
        float above = up[i] < -MODEL_SWIGLU_LIMIT ? -MODEL_SWIGLU_LIMIT : up[i];
        float u = above > MODEL_SWIGLU_LIMIT ? MODEL_SWIGLU_LIMIT : above;
        gate[i] = (u + 1.0f) * (gate[i] / (1.0f + e[i]));
    }
}

static inline void gate_hidden(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i += SWIGLU_PIECE) {
        gate_piece(gate + i, up + i, n - i < SWIGLU_PIECE ? n - i : SWIGLU_PIECE);
    }
}
#else
static inline void gate_hidden(float *gate, const float *up, int n) {
    KERNEL(swiglu)(gate, up, n);
}
#endif

#endif
