/* Where each weight is. model_tables.c (generated) fills the tables with addresses inside the embedded arrays. */
#ifndef COLIBRI_MODEL_TABLES_H
#define COLIBRI_MODEL_TABLES_H

#include "kernels/kernels.h"

typedef struct {
    Matrix gate; /* [MODEL_HIDDEN_DIM, MODEL_DIM] */
    Matrix up;
    Matrix down; /* [MODEL_DIM, MODEL_HIDDEN_DIM] */
} Expert;

typedef struct {
    const float *attn_norm; /* [MODEL_DIM] */
    const float *ffn_norm;
    Matrix q; /* [MODEL_N_HEADS * MODEL_HEAD_DIM, MODEL_DIM] */
    Matrix k; /* [MODEL_N_KV_HEADS * MODEL_HEAD_DIM, MODEL_DIM] */
    Matrix v;
    Matrix o;      /* [MODEL_DIM, MODEL_N_HEADS * MODEL_HEAD_DIM] */
    Matrix router; /* f32 [MODEL_N_EXPERTS, MODEL_DIM] */
} Layer;

extern const Layer model_layers[MODEL_N_LAYERS];
extern const Expert model_experts[MODEL_N_LAYERS][MODEL_N_EXPERTS];
extern const Matrix model_embedding; /* [MODEL_VOCAB_SIZE, MODEL_DIM] */
extern const Matrix model_lm_head;   /* the same matrix where embeddings are tied */
extern const float *const model_final_norm;
extern const float model_inv_freq[MODEL_HEAD_DIM / 2]; /* RoPE frequencies */
extern const int model_eos_ids[MODEL_N_EOS];

/* Identity, shown by --info and checked by --selftest. */
extern const char model_name[];
extern const char model_digest[]; /* SHA-256 of the model folder's config.json */
extern const char model_builder_version[];
extern const char model_golden_prompt[]; /* UTF-8 */
extern const int model_golden_ids[MODEL_N_GOLDEN];
extern const uint64_t model_golden_hash;

#endif
