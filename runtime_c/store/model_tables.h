/* Where each weight is. model_tables.c (generated) fills the tables with addresses inside the embedded arrays. */
#ifndef COLIBRI_MODEL_TABLES_H
#define COLIBRI_MODEL_TABLES_H

#include "kernels/kernels.h"

/* A gated feed-forward part of some hidden dimension H: an expert, the shared experts, or all of a dense layer. */
typedef struct {
    Matrix gate; /* [H, MODEL_DIM] */
    Matrix up;
    Matrix down; /* [MODEL_DIM, H] */
#ifdef MODEL_EXPERT_BIAS
    const float *gate_bias; /* [H]; all three NULL but in experts */
    const float *up_bias;
    const float *down_bias; /* [MODEL_DIM] */
#endif
} Ffn;

/* Vectors are f32. A member of a feature is there only where the model has the feature (model_config.h). */
typedef struct {
    const float *attn_norm; /* [MODEL_DIM] */
    const float *ffn_norm;
#ifdef MODEL_LAYER_NORM
    const float *attn_norm_bias; /* [MODEL_DIM] */
    const float *ffn_norm_bias;
#endif
    Matrix q; /* [MODEL_N_HEADS * MODEL_HEAD_DIM, MODEL_DIM, or MODEL_Q_RANK] */
    Matrix k; /* [MODEL_N_KV_HEADS * MODEL_HEAD_DIM, MODEL_DIM]; latent: without the part that turns, MODEL_KV_RANK */
    Matrix v; /* [MODEL_N_KV_HEADS * MODEL_VALUE_DIM, MODEL_DIM, or MODEL_KV_RANK] */
    Matrix o; /* [MODEL_DIM, MODEL_N_HEADS * MODEL_VALUE_DIM] */
#ifdef MODEL_KV_RANK
    Matrix kv_a;            /* [MODEL_KV_RANK, MODEL_DIM] */
    const float *kv_a_norm; /* [MODEL_KV_RANK] */
    Matrix k_rope;          /* [MODEL_ROTARY_DIM, MODEL_DIM]: the part of the keys that turns, for all heads */
#endif
#ifdef MODEL_Q_RANK
    Matrix q_a;            /* [MODEL_Q_RANK, MODEL_DIM] */
    const float *q_a_norm; /* [MODEL_Q_RANK] */
#endif
#ifdef MODEL_QKV_BIAS
    const float *q_bias; /* [rows of q] */
    const float *k_bias;
    const float *v_bias;
#endif
#ifdef MODEL_O_BIAS
    const float *o_bias; /* [MODEL_DIM] */
#endif
#if defined(MODEL_QK_NORM_HEAD) || defined(MODEL_QK_NORM_WHOLE)
    const float *q_norm; /* [MODEL_HEAD_DIM], or [rows of q] */
    const float *k_norm;
#endif
#ifdef MODEL_ATTENTION_SINKS
    const float *sinks; /* [MODEL_N_HEADS] */
#endif
#ifdef MODEL_MIXED_WINDOWS
    int window; /* positions that a token sees, itself included; 0: all */
#endif
#ifdef MODEL_DENSE_HIDDEN_DIM
    Ffn dense; /* of a layer without experts, else empty */
#endif
#ifdef MODEL_HAS_EXPERTS
    Matrix router; /* f32 [MODEL_N_EXPERTS, MODEL_DIM]; empty in a dense layer, as all that follows */
#endif
#ifdef MODEL_ROUTER_BIAS
    const float *router_bias; /* [MODEL_N_EXPERTS] */
#endif
#ifdef MODEL_SELECTION_BIAS
    const float *selection_bias; /* [MODEL_N_EXPERTS] */
#endif
#ifdef MODEL_SHARED_HIDDEN_DIM
    Ffn shared;
#endif
#ifdef MODEL_SHARED_GATE
    Matrix shared_gate; /* f32 [1, MODEL_DIM] */
#endif
} Layer;

extern const Layer model_layers[MODEL_N_LAYERS];
#ifdef MODEL_HAS_EXPERTS
extern const Ffn model_experts[MODEL_N_LAYERS][MODEL_N_EXPERTS];
#endif
extern const Matrix model_embedding; /* [MODEL_VOCAB_SIZE, MODEL_DIM] */
extern const Matrix model_lm_head;   /* the same matrix where embeddings are tied */
extern const float *const model_final_norm;
#ifdef MODEL_LAYER_NORM
extern const float *const model_final_norm_bias; /* [MODEL_DIM] */
#endif
#ifdef MODEL_HEAD_BIAS
extern const float *const model_lm_head_bias; /* [MODEL_VOCAB_SIZE] */
#endif
extern const float model_inv_freq[MODEL_ROTARY_DIM / 2]; /* RoPE frequencies */
extern const int model_eos_ids[MODEL_N_EOS];

/* Identity, shown by --info and checked by --selftest. */
extern const char model_name[];
extern const char model_digest[]; /* SHA-256 of the model folder's config.json */
extern const char model_builder_version[];
extern const char model_golden_prompt[]; /* UTF-8 */
extern const int model_golden_ids[MODEL_N_GOLDEN];
extern const uint64_t model_golden_hash;

#endif
