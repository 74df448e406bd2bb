/* Rotary positions: the first MODEL_ROTARY_DIM elements of each head turn by an angle that grows with the position. */
#ifndef COLIBRI_ROTARY_H
#define COLIBRI_ROTARY_H

#include "model/arena.h"

/* token->cosines and token->sines of its position, the same in every layer. */
void set_angles(Token *token);

/* Turns every head of token->q and token->k in place. */
void rotate_all(Token *token);

#endif
