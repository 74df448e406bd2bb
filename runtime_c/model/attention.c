#include "model/attention.h"

#include "math/scalar.h"
#include "model/adjust.h"
#include "model/arena.h"
#include "model/norm.h"
#include "model/product.h"
#include "model/qkv.h"
#include "model/residual.h"
#include "model/rotary.h"
#include "port/threads.h"
#include "store/model_tables.h"

_Static_assert(MODEL_N_HEADS % MODEL_N_KV_HEADS == 0, "each key-value head serves the same number of query heads");

/* What the threads of one job see. */
typedef struct {
    const Layer *layer;
    Input input;
    int layer_index;
    int position;
} AttentionJob;

static colibri_status store_in_cache(int layer, int position) {
    int overflow = 0;
    for (int head = 0; head < MODEL_N_KV_HEADS; head++) {
        const float *k = arena.k + head * MODEL_HEAD_DIM;
        const float *v = arena.v + head * MODEL_VALUE_DIM;
        overflow |= KERNEL(to_f16)(k, kv_cache.keys[layer][head][position], MODEL_HEAD_DIM);
        overflow |= KERNEL(to_f16)(v, kv_cache.values[layer][head][position], MODEL_VALUE_DIM);
    }
    return overflow ? COLIBRI_E_NOT_FINITE : COLIBRI_OK;
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

static float maximum_of(const float *x, int n) {
    float maximum = x[0];
    for (int i = 1; i < n; i++) {
        maximum = x[i] > maximum ? x[i] : maximum;
    }
    return maximum;
}

/* scores[n] = exp(scores - the largest logit); returns their sum, to which a sink adds its share alone. */
#ifdef MODEL_ATTENTION_SINKS
static float exponentials(const Layer *layer, int head, float *scores, int n) {
    float sink = layer->sinks[head];
    float most = maximum_of(scores, n);
    most = sink > most ? sink : most;
    float total = KERNEL(exp_shifted)(scores, most, 1.0f, n);
    return total + exp_f32(sink - most);
}
#else
static float exponentials(const Layer *layer, int head, float *scores, int n) {
    (void)layer;
    (void)head;
    return KERNEL(exp_shifted)(scores, maximum_of(scores, n), 1.0f, n);
}
#endif

static void attend_heads(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    int first = first_visible(job->layer, job->position);
    int n = job->position - first + 1;
    for (int head = begin; head < end; head++) {
        int kv_head = head / (MODEL_N_HEADS / MODEL_N_KV_HEADS);
        const uint16_t *keys = kv_cache.keys[job->layer_index][kv_head][first];
        const uint16_t *values = kv_cache.values[job->layer_index][kv_head][first];
        float *scores = arena.scores[head];
        const float *q = arena.q + head * MODEL_HEAD_DIM;
        KERNEL(attention_scores)(q, keys, MODEL_ATTENTION_SCALE, scores, MODEL_HEAD_DIM, n);
        float total = exponentials(job->layer, head, scores, n);
        KERNEL(attention_mix)(scores, values, total, arena.h + head * MODEL_VALUE_DIM, MODEL_VALUE_DIM, n);
    }
}

static void project_out(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    product(MODEL_ATTENTION_FORMAT, &job->layer->o, job->input, arena.mixed, begin, end);
}

colibri_status attention_block(int layer, int position) {
    Activation quantized = ACTIVATION_OF(arena.input);
    AttentionJob job = {&model_layers[layer], {arena.h, &quantized}, layer, position};
    NORMALISE_X(job.layer->attn_norm);
    KERNEL(quantize_activation)(arena.h, MODEL_DIM, &quantized);
    project_qkv(job.layer, job.input);
    adjust_qkv(job.layer);
    rotate_all(position);
    colibri_status status = store_in_cache(layer, position);
    if (status != COLIBRI_OK) {
        return status;
    }
    threads_run(attend_heads, &job, MODEL_N_HEADS);
    KERNEL(quantize_activation)(arena.h, OUT_DIM, &quantized);
    threads_run(project_out, &job, panels_of(MODEL_DIM));
    adjust_out(job.layer);
    residual_add(arena.mixed);
    return COLIBRI_OK;
}
