/* The feed-forward block of a layer: routed experts with or without shared ones, or one dense part. */
#ifndef COLIBRI_FFN_H
#define COLIBRI_FFN_H

#include "colibri.h"

/* Adds one layer's block to x of the n tokens of a batch. COLIBRI_E_NOT_FINITE from the router. */
COLIBRI_MUST_CHECK colibri_status ffn_block(int layer, int n);

#endif
