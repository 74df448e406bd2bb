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
    KV_DIM = MODEL_N_KV_HEADS * MODEL_HEAD_DIM,
    INPUT_DIM = MAX_OF(MODEL_DIM, Q_DIM), /* widest input of attention, experts and head */
    CACHE_LINE = 64
};

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
    alignas(CACHE_LINE) float k[KV_DIM];
    alignas(CACHE_LINE) float v[KV_DIM];
    alignas(CACHE_LINE) float scores[MODEL_N_HEADS][MODEL_CONTEXT];
    alignas(CACHE_LINE) float gate[MODEL_TOP_K][MODEL_HIDDEN_DIM];
    alignas(CACHE_LINE) float up[MODEL_TOP_K][MODEL_HIDDEN_DIM];
    alignas(CACHE_LINE) float down[MODEL_TOP_K][MODEL_DIM];
    alignas(CACHE_LINE) float mixed[MODEL_DIM]; /* a block's addition to x */
    alignas(CACHE_LINE) float router_logits[MODEL_N_EXPERTS];
    alignas(CACHE_LINE) float logits[MODEL_VOCAB_SIZE];
    ACTIVATION_BUFFERS(INPUT_DIM) input;
    ACTIVATION_BUFFERS(MODEL_HIDDEN_DIM) hidden[MODEL_TOP_K];
    Routing routing;
} Arena;

/* fp16 keys (rotated) and values of every position. One head's positions are contiguous. */
typedef struct {
    alignas(CACHE_LINE) uint16_t keys[MODEL_N_LAYERS][MODEL_N_KV_HEADS][MODEL_CONTEXT][MODEL_HEAD_DIM];
    alignas(CACHE_LINE) uint16_t values[MODEL_N_LAYERS][MODEL_N_KV_HEADS][MODEL_CONTEXT][MODEL_HEAD_DIM];
} KvCache;

extern Arena arena;
extern KvCache kv_cache;

#endif
