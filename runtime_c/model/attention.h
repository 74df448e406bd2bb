/* Grouped-query attention with rotary positions and an fp16 cache. */
#ifndef COLIBRI_ATTENTION_H
#define COLIBRI_ATTENTION_H

#include "colibri.h"

/* Adds one layer's attention to x of the n tokens of a batch. COLIBRI_E_NOT_FINITE if a key or value exceeds fp16. */
COLIBRI_MUST_CHECK colibri_status attention_block(int layer, int n);

#endif
