#include "model/ffn.h"

#include "math/scalar.h"
#include "model/arena.h"
#include "model/dense.h"
#include "model/experts.h"
#include "model/norm.h"
#include "model/residual.h"
#include "port/threads.h"
#include "store/model_tables.h"
#include "trace/hooks.h"

#ifdef MODEL_DENSE_HIDDEN_DIM
static bool is_dense(const Layer *layer) {
    return layer->dense.gate.codes != NULL;
}

static void dense_block(const Layer *layer, int n) {
    SET_COLUMNS(DENSE_COLUMNS, n, input, mixed);
    dense_forward(&layer->dense, n);
}
#else
static bool is_dense(const Layer *layer) {
    (void)layer;
    return false;
}

static void dense_block(const Layer *layer, int n) {
    (void)layer;
    (void)n;
}
#endif

#ifdef MODEL_SHARED_GATE
/* The router's kind of product: f32, not quantized. */
static float shared_weight(const Layer *layer, const Token *token) {
    float logit = 0.0f;
    KERNEL(matvec_f32)(&layer->shared_gate, token->h, &logit, 0, 1);
    return sigmoid_f32(logit);
}

static void add_shared(const Layer *layer, Token *token) {
    KERNEL(add_scaled)(token->mixed, token->shared, shared_weight(layer, token), MODEL_DIM);
}
#elif defined(MODEL_SHARED_HIDDEN_DIM)
static void add_shared(const Layer *layer, Token *token) {
    (void)layer;
    KERNEL(add)(token->mixed, token->shared, MODEL_DIM);
}
#endif

#ifdef MODEL_SHARED_HIDDEN_DIM
static void shared_block(const Layer *layer, int n) {
    SET_COLUMNS(DENSE_COLUMNS, n, input, shared);
    dense_forward(&layer->shared, n);
    for (int i = 0; i < n; i++) {
        add_shared(layer, &arena.tokens[i]);
    }
}
#elif defined(MODEL_HAS_EXPERTS)
static void shared_block(const Layer *layer, int n) {
    (void)layer;
    (void)n;
}
#endif

#ifdef MODEL_HAS_EXPERTS
static colibri_status expert_block(int layer, int n) {
    colibri_status status = experts_forward(layer, n);
    if (status == COLIBRI_OK) {
        shared_block(&model_layers[layer], n);
    }
    return status;
}
#else
/* Every layer is dense: never called. */
static colibri_status expert_block(int layer, int n) {
    (void)layer;
    (void)n;
    return COLIBRI_OK;
}
#endif

/* What the threads of the jobs see. */
typedef struct {
    const Layer *layer;
} FfnJob;

static void normalise_tokens(void *argument, int begin, int end) {
    const FfnJob *job = argument;
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        NORMALISE_X(token, job->layer->ffn_norm);
        QUANTIZE(token->h, MODEL_DIM, token->input);
    }
}

static void add_outputs(void *argument, int begin, int end) {
    (void)argument;
    for (int i = begin; i < end; i++) {
        residual_add(&arena.tokens[i]);
    }
}

colibri_status ffn_block(int layer, int n) {
    FfnJob job = {&model_layers[layer]};
    colibri_status status = COLIBRI_OK;
    threads_run(normalise_tokens, &job, n);
    if (is_dense(job.layer)) {
        dense_block(job.layer, n);
    } else {
        status = expert_block(layer, n);
    }
    if (status == COLIBRI_OK) {
        threads_run(add_outputs, &job, n);
        trace_stage(TRACE_EXPERTS, layer);
    }
    return status;
}
