/* The routed feed-forward block: router, MODEL_TOP_K SwiGLU experts, weighted sum. */
#ifndef COLIBRI_EXPERTS_H
#define COLIBRI_EXPERTS_H

#include "colibri.h"

/* Adds one layer's experts to arena.x; the choice stays in arena.routing. COLIBRI_E_NOT_FINITE from the router. */
COLIBRI_MUST_CHECK colibri_status experts_block(int layer);

#endif
