#include "model/adjust.h"

#ifdef MODEL_QKV_BIAS
static void add_biases(const Layer *layer, Token *token) {
    KERNEL(add)(token->q, layer->q_bias, Q_DIM);
    KERNEL(add)(token->k, layer->k_bias, K_DIM);
    KERNEL(add)(token->v, layer->v_bias, V_DIM);
}
#else
static void add_biases(const Layer *layer, Token *token) {
    (void)layer;
    (void)token;
}
#endif

#if defined(MODEL_QK_NORM_HEAD)
static void normalise_heads(float *heads, int n_heads, const float *weight) {
    for (int head = 0; head < n_heads; head++) {
        float *x = heads + head * MODEL_HEAD_DIM;
        KERNEL(rms_norm)(x, weight, x, MODEL_HEAD_DIM, MODEL_RMS_EPS);
    }
}

static void normalise(const Layer *layer, Token *token) {
    normalise_heads(token->q, MODEL_N_HEADS, layer->q_norm);
    normalise_heads(token->k, MODEL_N_KV_HEADS, layer->k_norm);
}
#elif defined(MODEL_QK_NORM_WHOLE)
static void normalise(const Layer *layer, Token *token) {
    KERNEL(rms_norm)(token->q, layer->q_norm, token->q, Q_DIM, MODEL_RMS_EPS);
    KERNEL(rms_norm)(token->k, layer->k_norm, token->k, K_DIM, MODEL_RMS_EPS);
}
#else
static void normalise(const Layer *layer, Token *token) {
    (void)layer;
    (void)token;
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

static void clamp_all(Token *token) {
    clamp(token->q, Q_DIM);
    clamp(token->k, K_DIM);
    clamp(token->v, V_DIM);
}
#else
static void clamp_all(Token *token) {
    (void)token;
}
#endif

void adjust_qkv(const Layer *layer, Token *token) {
    add_biases(layer, token);
    normalise(layer, token);
    clamp_all(token);
}

#ifdef MODEL_O_BIAS
void adjust_out(const Layer *layer, Token *token) {
    KERNEL(add)(token->mixed, layer->o_bias, MODEL_DIM);
}
#else
void adjust_out(const Layer *layer, Token *token) {
    (void)layer;
    (void)token;
}
#endif
