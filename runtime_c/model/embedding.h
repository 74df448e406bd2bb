/* Token id to vector. */
#ifndef COLIBRI_EMBEDDING_H
#define COLIBRI_EMBEDDING_H

/* x[MODEL_DIM] = row `token` of the embedding, scaled where the model does so; 0 <= token < MODEL_VOCAB_SIZE. */
void embed(int token, float *x);

#endif
