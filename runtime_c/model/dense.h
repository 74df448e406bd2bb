/* A feed-forward part that every token takes: a dense layer's, or the shared experts'. */
#ifndef COLIBRI_DENSE_H
#define COLIBRI_DENSE_H

#include "model/product.h"
#include "store/model_tables.h"

enum { DENSE_COLUMNS = 3 }; /* of arena.columns: what goes in and comes out, set by the caller */

/* y[MODEL_DIM] = W_down(gated(W_gate x, W_up x)), see swiglu.h, for the n tokens of a batch. */
void dense_forward(const Ffn *ffn, int n);

#endif
