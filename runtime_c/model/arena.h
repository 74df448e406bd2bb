/* All memory that a sequence needs, sized at compile time; owner: decoder.c. Nothing is allocated after start-up. */
#ifndef COLIBRI_ARENA_H
#define COLIBRI_ARENA_H

#include <stdalign.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "router/router.h"

#define ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))

enum {
    Q_DIM = MODEL_N_HEADS * MODEL_HEAD_DIM,
    K_DIM = MODEL_N_KV_HEADS * MODEL_HEAD_DIM,
    V_DIM = MODEL_N_KV_HEADS * MODEL_VALUE_DIM,
    OUT_DIM = MODEL_N_HEADS * MODEL_VALUE_DIM,
    INPUT_DIM = MAX_OF(MODEL_DIM, OUT_DIM), /* widest input of attention, experts and head */
    ROTARY_PAIRS = MODEL_ROTARY_DIM / 2,
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

/* One quantized vector of up to n inputs: the buffers, and the Activation that looks at them once QUANTIZE has run. */
#define QUANTIZED(n)                                                                                                   \
    struct {                                                                                                           \
        alignas(CACHE_LINE) int8_t high[ROUND_UP(n, BLOCK_INPUTS)];                                                    \
        alignas(CACHE_LINE) int8_t low[ROUND_UP(n, BLOCK_INPUTS)];                                                     \
        alignas(CACHE_LINE) int16_t codes[ROUND_UP(n, BLOCK_INPUTS)];                                                  \
        alignas(CACHE_LINE) float scales[ROUND_UP(n, MODEL_GROUP_SIZE) / MODEL_GROUP_SIZE];                            \
        int16_t high_sums[ROUND_UP(n, MODEL_GROUP_SIZE) / MODEL_GROUP_SIZE];                                           \
        int16_t low_sums[ROUND_UP(n, MODEL_GROUP_SIZE) / MODEL_GROUP_SIZE];                                            \
        Activation view;                                                                                               \
    }

/* Quantizes the floats x[n] into q, a QUANTIZED of at least n inputs. */
#define QUANTIZE(x, n, q)                                                                                              \
    do {                                                                                                               \
        (q).view = (Activation){.high = (q).high,                                                                      \
                                .low = (q).low,                                                                        \
                                .codes = (q).codes,                                                                    \
                                .scales = (q).scales,                                                                  \
                                .high_sums = (q).high_sums,                                                            \
                                .low_sums = (q).low_sums};                                                             \
        KERNEL(quantize_activation)(x, n, &(q).view);                                                                  \
    } while (0)

/* What one token needs on its way through the layers. */
typedef struct {
    alignas(CACHE_LINE) int position; /* 0 .. MODEL_CONTEXT - 1 */
    colibri_status status;            /* what a job of the threads found; see batch_status */
    float cosines[ROTARY_PAIRS];      /* of the position's angles */
    float sines[ROTARY_PAIRS];
    alignas(CACHE_LINE) float x[MODEL_DIM]; /* the residual stream */
    alignas(CACHE_LINE) float h[INPUT_DIM]; /* x normalised; then the attention heads' outputs */
    QUANTIZED(INPUT_DIM) input;             /* h */
    alignas(CACHE_LINE) float q[Q_DIM];
    alignas(CACHE_LINE) float k[K_DIM];
    alignas(CACHE_LINE) float v[V_DIM];
    alignas(CACHE_LINE) float mixed[MODEL_DIM]; /* a block's addition to x */
#ifdef MODEL_KV_RANK
    alignas(CACHE_LINE) float kv_latent[MODEL_KV_RANK];
    alignas(CACHE_LINE) float k_rope[MODEL_ROTARY_DIM];
    alignas(CACHE_LINE) float k_still[MODEL_N_HEADS * (MODEL_HEAD_DIM - MODEL_ROTARY_DIM)];
    QUANTIZED(MODEL_KV_RANK) kv_quantized;
#endif
#ifdef MODEL_Q_RANK
    alignas(CACHE_LINE) float q_latent[MODEL_Q_RANK];
    QUANTIZED(MODEL_Q_RANK) q_quantized;
#endif
#ifdef MODEL_HAS_EXPERTS
    alignas(CACHE_LINE) float gate[MODEL_TOP_K][MODEL_HIDDEN_DIM]; /* by rank, as all of the chosen experts' */
    alignas(CACHE_LINE) float up[MODEL_TOP_K][MODEL_HIDDEN_DIM];
    alignas(CACHE_LINE) float down[MODEL_TOP_K][MODEL_DIM];
    alignas(CACHE_LINE) float router_logits[MODEL_N_EXPERTS];
    QUANTIZED(MODEL_HIDDEN_DIM) hidden[MODEL_TOP_K];
    Routing routing;
#endif
#ifdef MODEL_DENSE_FORMAT
    alignas(CACHE_LINE) float dense_gate[DENSE_DIM];
    alignas(CACHE_LINE) float dense_up[DENSE_DIM];
    QUANTIZED(DENSE_DIM) dense_hidden;
#endif
#ifdef MODEL_SHARED_HIDDEN_DIM
    alignas(CACHE_LINE) float shared[MODEL_DIM]; /* the shared experts' output */
#endif
} Token;

#ifdef MODEL_HAS_EXPERTS
enum { MAX_CHOICES = MODEL_BATCH * MODEL_TOP_K, MAX_GROUPS = MIN_OF(MODEL_N_EXPERTS, MAX_CHOICES) };

/* One expert and all tokens of a batch that chose it: columns first .. first + n - 1 of its three products. */
typedef struct {
    int expert;
    int first;
    int n; /* >= 1 */
} ExpertGroup;

/* A batch by expert; see groups.h. */
typedef struct {
    alignas(CACHE_LINE) int n_groups;
    ExpertGroup groups[MAX_GROUPS];
    Column gate[MAX_CHOICES];
    Column up[MAX_CHOICES];
    Column down[MAX_CHOICES];
} ExpertGroups;
#endif

enum { JOB_MATRICES = 6 };

typedef struct {
    Token tokens[MODEL_BATCH]; /* of the current batch: as many as it has, the others unused */
    /* Of the matrices that all tokens are multiplied by in the current part of a layer; each part numbers its own. */
    alignas(CACHE_LINE) Column columns[JOB_MATRICES][MODEL_BATCH];
#ifdef MODEL_HAS_EXPERTS
    ExpertGroups by_expert;
#endif
    alignas(CACHE_LINE) float scores[MODEL_N_HEADS][MODEL_CONTEXT]; /* a head's tokens take turns */
    alignas(CACHE_LINE) float logits[MODEL_VOCAB_SIZE];
} Arena;

/* fp16 keys (rotated) and values of every position. One head's positions are contiguous. */
typedef struct {
    alignas(CACHE_LINE) uint16_t keys[MODEL_N_LAYERS][MODEL_N_KV_HEADS][MODEL_CONTEXT][MODEL_HEAD_DIM];
    alignas(CACHE_LINE) uint16_t values[MODEL_N_LAYERS][MODEL_N_KV_HEADS][MODEL_CONTEXT][MODEL_VALUE_DIM];
} KvCache;

extern Arena arena;
extern KvCache kv_cache;

#endif
