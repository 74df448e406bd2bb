/* Queries, keys and values before they are adjusted and rotated. */
#ifndef COLIBRI_QKV_H
#define COLIBRI_QKV_H

#include "store/model_tables.h"

/* q, k and v of the n tokens of a batch from their `input`: by one projection each (qkv.c), or through latent vectors
 * where the model has them (qkv_latent.c). */
void project_qkv(const Layer *layer, int n);

#endif
