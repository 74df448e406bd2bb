/* The forward pass: one token through every layer. */
#include "colibri.h"

#include "model/arena.h"
#include "model/attention.h"
#include "model/embedding.h"
#include "model/ffn.h"
#include "model/norm.h"
#include "model/product.h"
#include "port/threads.h"
#include "store/model_tables.h"
#include "trace/hooks.h"

_Static_assert(MODEL_ABI == COLIBRI_ABI, "generated code and runtime are of different versions: build again");

Arena arena;
KvCache kv_cache;

enum { NO_LAYER = -1 };

static int position;
static int fault_layer = NO_LAYER;

static void head_panels(void *argument, int begin, int end) {
    const Input *input = argument;
    product(MODEL_LM_HEAD_FORMAT, &model_lm_head, *input, arena.logits, begin, end);
}

/* Finite inputs have a finite sum of x - x; one NaN or infinity makes it NaN. */
static colibri_status check_finite(const float *x, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        sum += x[i] - x[i];
    }
    return sum == 0.0f ? COLIBRI_OK : COLIBRI_E_NOT_FINITE;
}

#ifdef MODEL_EMBEDDING_SCALE
static void scale_embedding(float x[MODEL_DIM]) {
    for (int i = 0; i < MODEL_DIM; i++) {
        x[i] *= MODEL_EMBEDDING_SCALE;
    }
}
#else
static void scale_embedding(float x[MODEL_DIM]) {
    (void)x;
}
#endif

#ifdef MODEL_LOGITS_DIVISOR
static void divide_logits(float logits[MODEL_VOCAB_SIZE]) {
    for (int i = 0; i < MODEL_VOCAB_SIZE; i++) {
        logits[i] /= MODEL_LOGITS_DIVISOR;
    }
}
#else
static void divide_logits(float logits[MODEL_VOCAB_SIZE]) {
    (void)logits;
}
#endif

#ifdef MODEL_HEAD_BIAS
static void add_head_bias(float logits[MODEL_VOCAB_SIZE]) {
    KERNEL(add)(logits, model_lm_head_bias, MODEL_VOCAB_SIZE);
}
#else
static void add_head_bias(float logits[MODEL_VOCAB_SIZE]) {
    (void)logits;
}
#endif

static colibri_status output_head(void) {
    Activation quantized = ACTIVATION_OF(arena.input);
    Input input = {arena.h, &quantized};
    NORMALISE_X(model_final_norm);
    if (MODEL_LM_HEAD_FORMAT != FORMAT_F16) {
        KERNEL(quantize_activation)(arena.h, MODEL_DIM, &quantized);
    }
    threads_run(head_panels, &input, panels_of(MODEL_VOCAB_SIZE));
    add_head_bias(arena.logits);
    divide_logits(arena.logits);
    return check_finite(arena.logits, MODEL_VOCAB_SIZE);
}

static colibri_status run_layers(void) {
    for (int layer = 0; layer < MODEL_N_LAYERS; layer++) {
        colibri_status status = attention_block(layer, position);
        trace_stage(TRACE_ATTENTION, layer);
        if (status == COLIBRI_OK) {
            status = ffn_block(layer);
        }
        if (status != COLIBRI_OK) {
            fault_layer = layer;
            return status;
        }
    }
    return COLIBRI_OK;
}

colibri_status colibri_feed(int token, bool want_logits) {
    if (token < 0 || token >= MODEL_VOCAB_SIZE) {
        return COLIBRI_E_UNKNOWN_TOKEN;
    }
    if (position >= MODEL_CONTEXT) {
        return COLIBRI_E_CONTEXT_FULL;
    }
    trace_token_begin();
    embed(token, arena.x);
    scale_embedding(arena.x);
    trace_stage(TRACE_EMBEDDING, 0);
    colibri_status status = run_layers();
    if (status == COLIBRI_OK && want_logits) {
        status = output_head();
        trace_stage(TRACE_HEAD, 0);
        fault_layer = status == COLIBRI_OK ? NO_LAYER : MODEL_N_LAYERS;
    }
    trace_token_end(position, token);
    if (status == COLIBRI_OK) {
        position++;
    }
    return status;
}

colibri_status colibri_open(int n_threads) {
    colibri_reset();
    return threads_start(n_threads);
}

void colibri_close(void) {
    threads_stop();
}

void colibri_reset(void) {
    position = 0;
    fault_layer = NO_LAYER;
}

const float *colibri_logits(void) {
    return arena.logits;
}

int colibri_position(void) {
    return position;
}

int colibri_fault_layer(void) {
    return fault_layer;
}
