#include "model/attention.h"

#include "math/scalar.h"
#include "model/arena.h"
#include "model/product.h"
#include "port/threads.h"
#include "store/model_tables.h"

_Static_assert(MODEL_HEAD_DIM % 2 == 0, "rotary positions pair the two halves of a head");
_Static_assert(MODEL_N_HEADS % MODEL_N_KV_HEADS == 0, "each key-value head serves the same number of query heads");

/* What the threads of one job see. */
typedef struct {
    const Layer *layer;
    Input input;
    int layer_index;
    int position;
} AttentionJob;

enum { Q_PANELS = (Q_DIM + PANEL_ROWS - 1) / PANEL_ROWS, KV_PANELS = (KV_DIM + PANEL_ROWS - 1) / PANEL_ROWS };

/* Of panels begin .. end-1 of q, k and v laid end to end, those that fall on the matrix that starts at panel `start`.
 */
static void project_slice(const Matrix *w, Input input, float *y, int start, int begin, int end) {
    int first = begin > start ? begin - start : 0;
    int last = end - start < panels_of(w->rows) ? end - start : panels_of(w->rows);
    if (first < last) {
        product(MODEL_ATTENTION_FORMAT, w, input, y, first, last);
    }
}

static void project_qkv(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    project_slice(&job->layer->q, job->input, arena.q, 0, begin, end);
    project_slice(&job->layer->k, job->input, arena.k, Q_PANELS, begin, end);
    project_slice(&job->layer->v, job->input, arena.v, Q_PANELS + KV_PANELS, begin, end);
}

static void rotate_head(float *head, const float *cosines, const float *sines) {
    for (int i = 0; i < MODEL_HEAD_DIM / 2; i++) {
        float first = head[i];
        float second = head[i + MODEL_HEAD_DIM / 2];
        head[i] = first * cosines[i] - second * sines[i];
        head[i + MODEL_HEAD_DIM / 2] = second * cosines[i] + first * sines[i];
    }
}

static void rotate_all(int position) {
    float cosines[MODEL_HEAD_DIM / 2];
    float sines[MODEL_HEAD_DIM / 2];
    for (int i = 0; i < MODEL_HEAD_DIM / 2; i++) {
        float angle = (float)position * model_inv_freq[i];
        sincos_f32((double)angle, &sines[i], &cosines[i]);
    }
    for (int head = 0; head < MODEL_N_HEADS; head++) {
        rotate_head(arena.q + head * MODEL_HEAD_DIM, cosines, sines);
    }
    for (int head = 0; head < MODEL_N_KV_HEADS; head++) {
        rotate_head(arena.k + head * MODEL_HEAD_DIM, cosines, sines);
    }
}

static colibri_status store_in_cache(int layer, int position) {
    int overflow = 0;
    for (int head = 0; head < MODEL_N_KV_HEADS; head++) {
        const float *k = arena.k + head * MODEL_HEAD_DIM;
        const float *v = arena.v + head * MODEL_HEAD_DIM;
        overflow |= KERNEL(to_f16)(k, kv_cache.keys[layer][head][position], MODEL_HEAD_DIM);
        overflow |= KERNEL(to_f16)(v, kv_cache.values[layer][head][position], MODEL_HEAD_DIM);
    }
    return overflow ? COLIBRI_E_NOT_FINITE : COLIBRI_OK;
}

/* First position that a token at `position` sees. */
static int first_visible(int position) {
    int first = MODEL_SLIDING_WINDOW > 0 ? position - MODEL_SLIDING_WINDOW + 1 : 0;
    return first > 0 ? first : 0;
}

static float maximum_of(const float *x, int n) {
    float maximum = x[0];
    for (int i = 1; i < n; i++) {
        maximum = x[i] > maximum ? x[i] : maximum;
    }
    return maximum;
}

static void attend_heads(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    int first = first_visible(job->position);
    int n = job->position - first + 1;
    for (int head = begin; head < end; head++) {
        int kv_head = head / (MODEL_N_HEADS / MODEL_N_KV_HEADS);
        const uint16_t *keys = kv_cache.keys[job->layer_index][kv_head][first];
        const uint16_t *values = kv_cache.values[job->layer_index][kv_head][first];
        float *scores = arena.scores[head];
        const float *q = arena.q + head * MODEL_HEAD_DIM;
        KERNEL(attention_scores)(q, keys, MODEL_ATTENTION_SCALE, scores, MODEL_HEAD_DIM, n);
        float total = KERNEL(exp_shifted)(scores, maximum_of(scores, n), 1.0f, n);
        KERNEL(attention_mix)(scores, values, total, arena.h + head * MODEL_HEAD_DIM, MODEL_HEAD_DIM, n);
    }
}

static void project_out(void *argument, int begin, int end) {
    const AttentionJob *job = argument;
    product(MODEL_ATTENTION_FORMAT, &job->layer->o, job->input, arena.mixed, begin, end);
    int first = begin * PANEL_ROWS;
    KERNEL(add)(arena.x + first, arena.mixed + first, last_row_of(&job->layer->o, end) - first);
}

colibri_status attention_block(int layer, int position) {
    Activation quantized = ACTIVATION_OF(arena.input);
    AttentionJob job = {&model_layers[layer], {arena.h, &quantized}, layer, position};
    KERNEL(rms_norm)(arena.x, job.layer->attn_norm, arena.h, MODEL_DIM, MODEL_RMS_EPS);
    KERNEL(quantize_activation)(arena.h, MODEL_DIM, &quantized);
    threads_run(project_qkv, &job, Q_PANELS + 2 * KV_PANELS);
    rotate_all(position);
    colibri_status status = store_in_cache(layer, position);
    if (status != COLIBRI_OK) {
        return status;
    }
    threads_run(attend_heads, &job, MODEL_N_HEADS);
    KERNEL(quantize_activation)(arena.h, Q_DIM, &quantized);
    threads_run(project_out, &job, panels_of(MODEL_DIM));
    return COLIBRI_OK;
}
