/* What some families do to queries, keys and values before they are rotated, and to the output of attention. */
#ifndef COLIBRI_ADJUST_H
#define COLIBRI_ADJUST_H

#include "model/arena.h"
#include "store/model_tables.h"

/* token->q, token->k, token->v: biases, then norms, then the clamp. */
void adjust_qkv(const Layer *layer, Token *token);

/* token->mixed: the bias of the output projection. */
void adjust_out(const Layer *layer, Token *token);

#endif
