#include "model/ffn.h"

#include "math/scalar.h"
#include "model/arena.h"
#include "model/dense.h"
#include "model/experts.h"
#include "model/norm.h"
#include "model/residual.h"
#include "store/model_tables.h"
#include "trace/hooks.h"

#ifdef MODEL_DENSE_HIDDEN_DIM
static bool is_dense(const Layer *layer) {
    return layer->dense.gate.codes != NULL;
}

static void dense_block(const Layer *layer, Activation *quantized) {
    KERNEL(quantize_activation)(arena.h, MODEL_DIM, quantized);
    dense_forward(&layer->dense, (Input){arena.h, quantized}, arena.mixed);
}
#else
static bool is_dense(const Layer *layer) {
    (void)layer;
    return false;
}

static void dense_block(const Layer *layer, Activation *quantized) {
    (void)layer;
    (void)quantized;
}
#endif

#ifdef MODEL_SHARED_GATE
/* The router's kind of product: f32, not quantized. */
static float shared_weight(const Layer *layer) {
    float logit = 0.0f;
    KERNEL(matvec_f32)(&layer->shared_gate, arena.h, &logit, 0, 1);
    return sigmoid_f32(logit);
}

static void add_shared(const Layer *layer) {
    KERNEL(add_scaled)(arena.mixed, arena.shared, shared_weight(layer), MODEL_DIM);
}
#elif defined(MODEL_SHARED_HIDDEN_DIM)
static void add_shared(const Layer *layer) {
    (void)layer;
    KERNEL(add)(arena.mixed, arena.shared, MODEL_DIM);
}
#endif

#ifdef MODEL_SHARED_HIDDEN_DIM
static void shared_block(const Layer *layer, Activation *quantized) {
    dense_forward(&layer->shared, (Input){arena.h, quantized}, arena.shared);
    add_shared(layer);
}
#elif defined(MODEL_HAS_EXPERTS)
static void shared_block(const Layer *layer, Activation *quantized) {
    (void)layer;
    (void)quantized;
}
#endif

#ifdef MODEL_HAS_EXPERTS
static colibri_status expert_block(int layer, Activation *quantized) {
    colibri_status status = experts_forward(layer, quantized);
    if (status == COLIBRI_OK) {
        shared_block(&model_layers[layer], quantized);
    }
    return status;
}
#else
/* Every layer is dense: never called. */
static colibri_status expert_block(int layer, Activation *quantized) {
    (void)layer;
    (void)quantized;
    return COLIBRI_OK;
}
#endif

colibri_status ffn_block(int layer) {
    const Layer *tables = &model_layers[layer];
    Activation quantized = ACTIVATION_OF(arena.input);
    colibri_status status = COLIBRI_OK;
    NORMALISE_X(tables->ffn_norm);
    if (is_dense(tables)) {
        dense_block(tables, &quantized);
    } else {
        status = expert_block(layer, &quantized);
    }
    if (status == COLIBRI_OK) {
        residual_add(arena.mixed);
        trace_stage(TRACE_EXPERTS, layer);
    }
    return status;
}
