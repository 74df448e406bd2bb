/* A feed-forward part that every token takes: a dense layer's, or the shared experts'. */
#ifndef COLIBRI_DENSE_H
#define COLIBRI_DENSE_H

#include "model/product.h"
#include "store/model_tables.h"

/* out[MODEL_DIM] = W_down(gated(W_gate h, W_up h)), see swiglu.h; `input` is h[MODEL_DIM], quantized. */
void dense_forward(const Ffn *ffn, Input input, float *out);

#endif
