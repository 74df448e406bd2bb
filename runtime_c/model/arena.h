/* All memory that a sequence needs, sized at compile time; owner: decoder.c. Nothing is allocated after start-up. */
#ifndef COLIBRI_ARENA_H
#define COLIBRI_ARENA_H

#include <stdalign.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "router/router.h"

#define ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

enum {
    Q_DIM = MODEL_N_HEADS * MODEL_HEAD_DIM,
    K_DIM = MODEL_N_KV_HEADS * MODEL_HEAD_DIM,
    V_DIM = MODEL_N_KV_HEADS * MODEL_VALUE_DIM,
    OUT_DIM = MODEL_N_HEADS * MODEL_VALUE_DIM,
    INPUT_DIM = MAX_OF(MODEL_DIM, OUT_DIM), /* widest input of attention, experts and head */
    CACHE_LINE = 64
};

/* Widest hidden vector of the parts that every token takes. */
#if defined(MODEL_DENSE_HIDDEN_DIM) && defined(MODEL_SHARED_HIDDEN_DIM)
enum { DENSE_DIM = MAX_OF(MODEL_DENSE_HIDDEN_DIM, MODEL_SHARED_HIDDEN_DIM) };
#elif defined(MODEL_DENSE_HIDDEN_DIM)
enum { DENSE_DIM = MODEL_DENSE_HIDDEN_DIM };
#elif defined(MODEL_SHARED_HIDDEN_DIM)
enum { DENSE_DIM = MODEL_SHARED_HIDDEN_DIM };
#endif

/* Buffers of one quantized vector of up to n inputs; see Activation. */
#define ACTIVATION_BUFFERS(n)                                                                                          \
    struct {                                                                                                           \
        alignas(CACHE_LINE) int8_t high[ROUND_UP(n, BLOCK_INPUTS)];                                                    \
        alignas(CACHE_LINE) int8_t low[ROUND_UP(n, BLOCK_INPUTS)];                                                     \
        alignas(CACHE_LINE) int16_t codes[ROUND_UP(n, BLOCK_INPUTS)];                                                  \
        alignas(CACHE_LINE) float scales[ROUND_UP(n, MODEL_GROUP_SIZE) / MODEL_GROUP_SIZE];                            \
        int16_t high_sums[ROUND_UP(n, MODEL_GROUP_SIZE) / MODEL_GROUP_SIZE];                                           \
        int16_t low_sums[ROUND_UP(n, MODEL_GROUP_SIZE) / MODEL_GROUP_SIZE];                                            \
    }

/* The Activation that looks at such buffers. */
#define ACTIVATION_OF(b)                                                                                               \
    ((Activation){.high = (b).high,                                                                                    \
                  .low = (b).low,                                                                                      \
                  .codes = (b).codes,                                                                                  \
                  .scales = (b).scales,                                                                                \
                  .high_sums = (b).high_sums,                                                                          \
                  .low_sums = (b).low_sums})

typedef struct {
    alignas(CACHE_LINE) float x[MODEL_DIM]; /* the residual stream */
    alignas(CACHE_LINE) float h[INPUT_DIM]; /* x normalised; then the attention heads' outputs */
    alignas(CACHE_LINE) float q[Q_DIM];
    alignas(CACHE_LINE) float k[K_DIM];
    alignas(CACHE_LINE) float v[V_DIM];
    alignas(CACHE_LINE) float scores[MODEL_N_HEADS][MODEL_CONTEXT];
    alignas(CACHE_LINE) float mixed[MODEL_DIM]; /* a block's addition to x */
    alignas(CACHE_LINE) float logits[MODEL_VOCAB_SIZE];
    ACTIVATION_BUFFERS(INPUT_DIM) input;
#ifdef MODEL_KV_RANK
    alignas(CACHE_LINE) float kv_latent[MODEL_KV_RANK];
    alignas(CACHE_LINE) float k_rope[MODEL_ROTARY_DIM];
    alignas(CACHE_LINE) float k_still[MODEL_N_HEADS * (MODEL_HEAD_DIM - MODEL_ROTARY_DIM)];
    ACTIVATION_BUFFERS(MODEL_KV_RANK) kv_quantized;
#endif
#ifdef MODEL_Q_RANK
    alignas(CACHE_LINE) float q_latent[MODEL_Q_RANK];
    ACTIVATION_BUFFERS(MODEL_Q_RANK) q_quantized;
#endif
#ifdef MODEL_HAS_EXPERTS
    alignas(CACHE_LINE) float gate[MODEL_TOP_K][MODEL_HIDDEN_DIM];
    alignas(CACHE_LINE) float up[MODEL_TOP_K][MODEL_HIDDEN_DIM];
    alignas(CACHE_LINE) float down[MODEL_TOP_K][MODEL_DIM];
    alignas(CACHE_LINE) float router_logits[MODEL_N_EXPERTS];
    ACTIVATION_BUFFERS(MODEL_HIDDEN_DIM) hidden[MODEL_TOP_K];
    Routing routing;
#endif
#ifdef MODEL_DENSE_FORMAT
    alignas(CACHE_LINE) float dense_gate[DENSE_DIM];
    alignas(CACHE_LINE) float dense_up[DENSE_DIM];
    ACTIVATION_BUFFERS(DENSE_DIM) dense_hidden;
#endif
#ifdef MODEL_SHARED_HIDDEN_DIM
    alignas(CACHE_LINE) float shared[MODEL_DIM]; /* the shared experts' output */
#endif
} Arena;

/* fp16 keys (rotated) and values of every position. One head's positions are contiguous. */
typedef struct {
    alignas(CACHE_LINE) uint16_t keys[MODEL_N_LAYERS][MODEL_N_KV_HEADS][MODEL_CONTEXT][MODEL_HEAD_DIM];
    alignas(CACHE_LINE) uint16_t values[MODEL_N_LAYERS][MODEL_N_KV_HEADS][MODEL_CONTEXT][MODEL_VALUE_DIM];
} KvCache;

extern Arena arena;
extern KvCache kv_cache;

#endif
