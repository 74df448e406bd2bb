/* What a block adds to the residual stream. */
#ifndef COLIBRI_RESIDUAL_H
#define COLIBRI_RESIDUAL_H

#include "model/arena.h"

/* Adds token->mixed to token->x. */
#ifdef MODEL_RESIDUAL_SCALE
static inline void residual_add(Token *token) {
    KERNEL(add_scaled)(token->x, token->mixed, MODEL_RESIDUAL_SCALE, MODEL_DIM);
}
#else
static inline void residual_add(Token *token) {
    KERNEL(add)(token->x, token->mixed, MODEL_DIM);
}
#endif

#endif
