/* Queries, keys and values before they are adjusted and rotated. */
#ifndef COLIBRI_QKV_H
#define COLIBRI_QKV_H

#include "model/product.h"
#include "store/model_tables.h"

/* arena.q, arena.k, arena.v from h[MODEL_DIM], quantized: by one projection each (qkv.c), or through latent vectors
 * where the model has them (qkv_latent.c). */
void project_qkv(const Layer *layer, Input h);

#endif
