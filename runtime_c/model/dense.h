/* A feed-forward part that every token takes: a dense layer's, or the shared experts'. */
#ifndef COLIBRI_DENSE_H
#define COLIBRI_DENSE_H

#include "model/product.h"
#include "store/model_tables.h"

/* columns[i].y[MODEL_DIM] = W_down(gated(W_gate x, W_up x)), see swiglu.h, with x[MODEL_DIM] = columns[i].x, for the n
 * tokens of a batch. */
void dense_forward(const Ffn *ffn, const Column *columns, int n);

#endif
