/* The forward pass: a batch of tokens at consecutive positions through every layer. Decoding is a batch of one. */
#include "colibri.h"

#include "model/arena.h"
#include "model/attention.h"
#include "model/embedding.h"
#include "model/ffn.h"
#include "model/head.h"
#include "model/rotary.h"
#include "port/threads.h"
#include "trace/hooks.h"

_Static_assert(MODEL_ABI == COLIBRI_ABI, "generated code and runtime are of different versions: build again");
_Static_assert(MODEL_BATCH >= 1 && MODEL_BATCH <= MODEL_CONTEXT, "a batch lies within the context");

Arena arena;
KvCache kv_cache;

enum { NO_LAYER = -1 };

static int position;
static int fault_layer = NO_LAYER;

/* Whether n tokens can be fed. */
static colibri_status check_tokens(const int *ids, int n) {
    for (int i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= MODEL_VOCAB_SIZE) {
            return COLIBRI_E_UNKNOWN_TOKEN;
        }
    }
    return position + n <= MODEL_CONTEXT ? COLIBRI_OK : COLIBRI_E_CONTEXT_FULL;
}

static void begin_token(Token *token, int id, int at) {
    token->position = at;
    token->status = COLIBRI_OK;
    set_angles(token);
    embed(id, token->x);
}

static colibri_status run_layers(int n) {
    for (int layer = 0; layer < MODEL_N_LAYERS; layer++) {
        colibri_status status = attention_block(layer, n);
        trace_stage(TRACE_ATTENTION, layer);
        if (status == COLIBRI_OK) {
            status = ffn_block(layer, n);
        }
        if (status != COLIBRI_OK) {
            fault_layer = layer;
            return status;
        }
    }
    return COLIBRI_OK;
}

/* All n tokens or, after a fault, none of them. Records are of one token: see feed_prompt. */
static colibri_status feed_together(const int *ids, int n, bool want_logits) {
    colibri_status status = check_tokens(ids, n);
    if (status != COLIBRI_OK) {
        return status;
    }
    trace_token_begin();
    for (int i = 0; i < n; i++) {
        begin_token(&arena.tokens[i], ids[i], position + i);
    }
    trace_stage(TRACE_EMBEDDING, 0);
    status = run_layers(n);
    if (status == COLIBRI_OK && want_logits) {
        status = output_head(&arena.tokens[n - 1]);
        trace_stage(TRACE_HEAD, 0);
        fault_layer = status == COLIBRI_OK ? NO_LAYER : MODEL_N_LAYERS;
    }
    trace_token_end(position, ids[0]);
    if (status == COLIBRI_OK) {
        position += n;
    }
    return status;
}

/* A batch with a fault starts again, one token at a time, which ends at the token whose fault it is. */
colibri_status colibri_feed_batch(const int *tokens, int n, bool want_logits) {
    if (n < 1 || n > MODEL_BATCH) {
        return COLIBRI_E_USAGE;
    }
    colibri_status status = feed_together(tokens, n, want_logits);
    if (status == COLIBRI_OK || n == 1) {
        return status;
    }
    status = COLIBRI_OK;
    for (int i = 0; i < n && status == COLIBRI_OK; i++) {
        status = feed_together(tokens + i, 1, want_logits && i == n - 1);
    }
    return status;
}

colibri_status colibri_feed(int token, bool want_logits) {
    return colibri_feed_batch(&token, 1, want_logits);
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
