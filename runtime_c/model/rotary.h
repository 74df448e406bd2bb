/* Rotary positions: the first MODEL_ROTARY_DIM elements of each head turn by an angle that grows with the position. */
#ifndef COLIBRI_ROTARY_H
#define COLIBRI_ROTARY_H

/* Turns every head of arena.q and arena.k in place. */
void rotate_all(int position);

#endif
