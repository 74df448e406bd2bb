#include "model/adjust.h"

#include "model/arena.h"

#ifdef MODEL_QKV_BIAS
static void add_biases(const Layer *layer) {
    KERNEL(add)(arena.q, layer->q_bias, Q_DIM);
    KERNEL(add)(arena.k, layer->k_bias, K_DIM);
    KERNEL(add)(arena.v, layer->v_bias, V_DIM);
}
#else
static void add_biases(const Layer *layer) {
    (void)layer;
}
#endif

#if defined(MODEL_QK_NORM_HEAD)
static void normalise_heads(float *heads, int n_heads, const float *weight) {
    for (int head = 0; head < n_heads; head++) {
        float *x = heads + head * MODEL_HEAD_DIM;
        KERNEL(rms_norm)(x, weight, x, MODEL_HEAD_DIM, MODEL_RMS_EPS);
    }
}

static void normalise(const Layer *layer) {
    normalise_heads(arena.q, MODEL_N_HEADS, layer->q_norm);
    normalise_heads(arena.k, MODEL_N_KV_HEADS, layer->k_norm);
}
#elif defined(MODEL_QK_NORM_WHOLE)
static void normalise(const Layer *layer) {
    KERNEL(rms_norm)(arena.q, layer->q_norm, arena.q, Q_DIM, MODEL_RMS_EPS);
    KERNEL(rms_norm)(arena.k, layer->k_norm, arena.k, K_DIM, MODEL_RMS_EPS);
}
#else
static void normalise(const Layer *layer) {
    (void)layer;
}
#endif

#ifdef MODEL_CLIP_QKV
/* NaN stays NaN. */
static void clamp(float *x, int n) {
    for (int i = 0; i < n; i++) {
        float above = x[i] < -MODEL_CLIP_QKV ? -MODEL_CLIP_QKV : x[i];
        x[i] = above > MODEL_CLIP_QKV ? MODEL_CLIP_QKV : above;
    }
}

static void clamp_all(void) {
    clamp(arena.q, Q_DIM);
    clamp(arena.k, K_DIM);
    clamp(arena.v, V_DIM);
}
#else
static void clamp_all(void) {
}
#endif

void adjust_qkv(const Layer *layer) {
    add_biases(layer);
    normalise(layer);
    clamp_all();
}

#ifdef MODEL_O_BIAS
void adjust_out(const Layer *layer) {
    KERNEL(add)(arena.mixed, layer->o_bias, MODEL_DIM);
}
#else
void adjust_out(const Layer *layer) {
    (void)layer;
}
#endif
