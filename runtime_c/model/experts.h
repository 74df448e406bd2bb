/* The routed part of the feed-forward block: router, MODEL_TOP_K SwiGLU experts, weighted sum. */
#ifndef COLIBRI_EXPERTS_H
#define COLIBRI_EXPERTS_H

#include "colibri.h"

/* For the n tokens of a batch: mixed = the weighted sum of one layer's chosen experts for h, which is quantized in
 * `input`; the choice stays in `routing`. COLIBRI_E_NOT_FINITE from the router. */
COLIBRI_MUST_CHECK colibri_status experts_forward(int layer, int n);

#endif
