/* Chooses MODEL_TOP_K of MODEL_N_EXPERTS experts for a token and weighs them (docs/numerics.md). */
#ifndef COLIBRI_ROUTER_H
#define COLIBRI_ROUTER_H

#include "colibri.h"
#include "model_config.h"

#ifdef MODEL_HAS_EXPERTS
typedef struct {
    int experts[MODEL_TOP_K];   /* by rank: largest logit first, ties take the lower index */
    float weights[MODEL_TOP_K]; /* 0..1 */
} Routing;

/* `selection_bias` [MODEL_N_EXPERTS] moves the choice, not the weights; NULL without MODEL_SELECTION_BIAS.
 * COLIBRI_E_NOT_FINITE if a logit is NaN or infinite; `out` is then undefined. */
COLIBRI_MUST_CHECK colibri_status route(const float logits[MODEL_N_EXPERTS], const float *selection_bias, Routing *out);

#endif

#endif
