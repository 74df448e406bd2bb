/* The routed part of the feed-forward block: router, MODEL_TOP_K SwiGLU experts, weighted sum. */
#ifndef COLIBRI_EXPERTS_H
#define COLIBRI_EXPERTS_H

#include "colibri.h"
#include "kernels/kernels.h"

/* arena.mixed = the weighted sum of one layer's chosen experts for arena.h; the choice stays in arena.routing.
 * Quantizes arena.h. COLIBRI_E_NOT_FINITE from the router. */
COLIBRI_MUST_CHECK colibri_status experts_forward(int layer, Activation *quantized);

#endif
