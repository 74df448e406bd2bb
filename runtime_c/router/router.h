/* Chooses MODEL_TOP_K of MODEL_N_EXPERTS experts for a token and weighs them in fixed point (docs/numerics.md). */
#ifndef COLIBRI_ROUTER_H
#define COLIBRI_ROUTER_H

#include "colibri.h"
#include "model_config.h"

typedef struct {
    int experts[MODEL_TOP_K];   /* by rank: largest logit first, ties take the lower index */
    float weights[MODEL_TOP_K]; /* 0..1 */
} Routing;

/* COLIBRI_E_NOT_FINITE if a logit is NaN or infinite; `out` is then undefined. */
COLIBRI_MUST_CHECK colibri_status route(const float logits[MODEL_N_EXPERTS], Routing *out);

#endif
