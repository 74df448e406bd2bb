#include "model/attention.h"

#include "math/scalar.h"
#include "model/adjust.h"
#include "model/arena.h"
#include "model/batch.h"
#include "model/norm.h"
#include "model/product.h"
#include "model/qkv.h"
#include "model/residual.h"
#include "model/rotary.h"
#include "port/threads.h"
#include "store/model_tables.h"

_Static_assert(MODEL_N_HEADS % MODEL_N_KV_HEADS == 0, "each key-value head serves the same number of query heads");

/* What the threads of the jobs see. */
typedef struct {
    const Layer *layer;
    int index; /* of the layer */
    int n;     /* tokens */
} AttentionJob;

enum { OUT }; /* of arena.columns */

static void normalise_tokens(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        NORMALISE_X(token, job->layer->attn_norm);
        QUANTIZE(token->h, MODEL_DIM, token->input);
    }
}

static colibri_status store_in_cache(int layer, const Token *token) {
    int overflow = 0;
    for (int head = 0; head < MODEL_N_KV_HEADS; head++) {
        const float *k = token->k + head * MODEL_HEAD_DIM;
        const float *v = token->v + head * MODEL_VALUE_DIM;
        overflow |= KERNEL(to_f16)(k, kv_cache.keys[layer][head][token->position], MODEL_HEAD_DIM);
        overflow |= KERNEL(to_f16)(v, kv_cache.values[layer][head][token->position], MODEL_VALUE_DIM);
    }
    return overflow ? COLIBRI_E_NOT_FINITE : COLIBRI_OK;
}

/* From the projections to what the heads read: queries in place, keys and values in the cache. */
static void place_tokens(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        adjust_qkv(job->layer, token);
        rotate_all(token);
        token->status = store_in_cache(job->index, token);
    }
}

#ifdef MODEL_MIXED_WINDOWS
static int window_of(const Layer *layer) {
    return layer->window;
}
#else
static int window_of(const Layer *layer) {
    (void)layer;
    return MODEL_SLIDING_WINDOW;
}
#endif

/* First position that a token at `position` sees. */
static int first_visible(const Layer *layer, int position) {
    int window = window_of(layer);
    int first = window > 0 ? position - window + 1 : 0;
    return first > 0 ? first : 0;
}

/* scores[n] = exp(scores - the largest logit); returns their sum, to which a sink adds its share alone. */
#ifdef MODEL_ATTENTION_SINKS
static float exponentials(const Layer *layer, int head, float *scores, int n) {
    float sink = layer->sinks[head];
    float most = KERNEL(maximum)(scores, n);
    most = sink > most ? sink : most;
    float total = KERNEL(exp_shifted)(scores, most, 1.0f, n);
    return total + exp_f32(sink - most);
}
#else
static float exponentials(const Layer *layer, int head, float *scores, int n) {
    (void)layer;
    (void)head;
    return KERNEL(exp_shifted)(scores, KERNEL(maximum)(scores, n), 1.0f, n);
}
#endif

/* One head of one token, which sees the positions up to its own: those after it belong to later tokens of the batch. */
static void attend(const AttentionJob *job, int head, Token *token) {
    int first = first_visible(job->layer, token->position);
    int n = token->position - first + 1;
    int kv_head = head / (MODEL_N_HEADS / MODEL_N_KV_HEADS);
    const uint16_t *keys = kv_cache.keys[job->index][kv_head][first];
    const uint16_t *values = kv_cache.values[job->index][kv_head][first];
    float *scores = arena.scores[head];
    const float *q = token->q + head * MODEL_HEAD_DIM;
    KERNEL(attention_scores)(q, keys, MODEL_ATTENTION_SCALE, scores, MODEL_HEAD_DIM, n);
    float total = exponentials(job->layer, head, scores, n);
    KERNEL(attention_mix)(scores, values, total, token->h + head * MODEL_VALUE_DIM, MODEL_VALUE_DIM, n);
}

static void attend_heads(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    for (int head = begin; head < end; head++) {
        for (int i = 0; i < job->n; i++) {
            attend(job, head, &arena.tokens[i]);
        }
    }
}

static void quantize_outputs(void *argument, int begin, int end) {
    (void)argument;
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        QUANTIZE(token->h, OUT_DIM, token->input);
    }
}

static void project_out(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    product(MODEL_ATTENTION_FORMAT, &job->layer->o, arena.columns[OUT], job->n, begin, end);
}

static void add_outputs(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        adjust_out(job->layer, token);
        residual_add(token);
    }
}

colibri_status attention_block(int layer, int n) {
    AttentionJob job = {&model_layers[layer], layer, n};
    threads_run(normalise_tokens, &job, n);
    project_qkv(job.layer, n);
    threads_run(place_tokens, &job, n);
    colibri_status status = batch_status(n);
    if (status != COLIBRI_OK) {
        return status;
    }
    threads_run(attend_heads, &job, MODEL_N_HEADS);
    threads_run(quantize_outputs, &job, n);
    SET_COLUMNS(OUT, n, input, mixed);
    threads_run(project_out, &job, panels_of(MODEL_DIM));
    threads_run(add_outputs, &job, n);
    return COLIBRI_OK;
}
