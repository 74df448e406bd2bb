#include "model/head.h"

#include "model/norm.h"
#include "model/product.h"
#include "port/threads.h"
#include "store/model_tables.h"

#if MODEL_LM_HEAD_FORMAT == FORMAT_F16
static void quantize_input(Token *token) {
    (void)token;
}

static void head_panels(void *argument, int begin, int end) {
    const Token *token = argument;
    int last_row = last_row_of(&model_lm_head, end);
    KERNEL(matvec_f16)(&model_lm_head, token->h, arena.logits, begin * PANEL_ROWS, last_row);
}
#else
static void quantize_input(Token *token) {
    QUANTIZE(token->h, MODEL_DIM, token->input);
}

static void head_panels(void *argument, int begin, int end) {
    const Token *token = argument;
    Column column = {&token->input.view, arena.logits};
    product(MODEL_LM_HEAD_FORMAT, &model_lm_head, &column, 1, begin, end);
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

/* Finite inputs have a finite sum of x - x; one NaN or infinity makes it NaN. */
static colibri_status check_finite(const float *x, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        sum += x[i] - x[i];
    }
    return sum == 0.0f ? COLIBRI_OK : COLIBRI_E_NOT_FINITE;
}

colibri_status output_head(Token *token) {
    NORMALISE_X(token, model_final_norm);
    quantize_input(token);
    threads_run(head_panels, token, panels_of(MODEL_VOCAB_SIZE));
    add_head_bias(arena.logits);
    divide_logits(arena.logits);
    return check_finite(arena.logits, MODEL_VOCAB_SIZE);
}
