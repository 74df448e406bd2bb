/* What a block adds to the residual stream. */
#ifndef COLIBRI_RESIDUAL_H
#define COLIBRI_RESIDUAL_H

#include "model/arena.h"

#ifdef MODEL_RESIDUAL_SCALE
static inline void residual_add(const float addition[MODEL_DIM]) {
    KERNEL(add_scaled)(arena.x, addition, MODEL_RESIDUAL_SCALE, MODEL_DIM);
}
#else
static inline void residual_add(const float addition[MODEL_DIM]) {
    KERNEL(add)(arena.x, addition, MODEL_DIM);
}
#endif

#endif
