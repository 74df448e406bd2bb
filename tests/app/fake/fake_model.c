/* colibri.h without a network, for tests of the program around it: after byte t comes byte t+1, after 'z' the end of
 * sequence. The environment variable FAKE says which fault to show:
 *   nan-layer   layer 1 is not finite at position 3        nan-logits  so are the logits, unnoticed by the model
 *   no-threads  worker threads cannot be started           slow        20 ms a token
 *   wrong       the third answer token is another one      drift       right tokens from other logits */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "colibri.h"
#include "port/threads.h"
#include "store/model_tables.h"

const int model_eos_ids[MODEL_N_EOS] = {257, 258};
const char model_name[] = "fake \"mod\xC3\xA9l\"\n\\";
const char model_digest[] = "00000000000000000000000000000000000000000000000000000000000000ff";
const char model_builder_version[] = "0.0.1";
const char model_golden_prompt[] = "golden";
const int model_golden_ids[MODEL_N_GOLDEN] = {'o', 'p', 'q', 'r', 's', 't'};
const uint64_t model_golden_hash = FAKE_GOLDEN_HASH;

static float logits[MODEL_VOCAB_SIZE];
static int position;
static int fault_layer = -1;

static bool fakes(const char *what) {
    const char *fault = getenv("FAKE");
    return fault != NULL && strcmp(fault, what) == 0;
}

colibri_status colibri_open(int n_threads) {
    colibri_reset();
    return fakes("no-threads") && n_threads > 1 ? COLIBRI_E_THREADS : threads_start(n_threads);
}

void colibri_close(void) {
    threads_stop();
}

void colibri_reset(void) {
    position = 0;
    fault_layer = -1;
}

static int successor(int token) {
    return token == 'z' || token >= 256 ? 257 : token + 1;
}

/* Multiples of 2^-10 in [-2, 2), exact in binary32; 8 more for the token to choose. */
static void fill_logits(int token) {
    for (int i = 0; i < MODEL_VOCAB_SIZE; i++) {
        uint32_t mixed = (uint32_t)(i * 7919 + position * 104729 + token * 1299709) * 2654435761u;
        logits[i] = (float)((int)(mixed >> 20) - 2048) * 0x1p-10f;
    }
    logits[successor(token)] += 8.0f;
}

colibri_status colibri_feed(int token, bool want_logits) {
    if (token < 0 || token >= MODEL_VOCAB_SIZE) {
        return COLIBRI_E_UNKNOWN_TOKEN;
    }
    if (position >= MODEL_CONTEXT) {
        return COLIBRI_E_CONTEXT_FULL;
    }
    if (fakes("slow")) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    if (fakes("nan-layer") && position == 3) {
        fault_layer = 1;
        return COLIBRI_E_NOT_FINITE;
    }
    position++;
    if (want_logits) {
        fill_logits(token);
        if (fakes("nan-logits") && position == 3) {
            logits[5] = NAN;
        }
        if (fakes("wrong") && token == 'p') {
            logits['!'] += 20.0f;
        }
        if (fakes("drift")) {
            logits[0] -= 0x1p-10f;
        }
    }
    return COLIBRI_OK;
}

colibri_status colibri_feed_batch(const int *tokens, int n, bool want_logits) {
    colibri_status status = COLIBRI_OK;
    for (int i = 0; i < n && status == COLIBRI_OK; i++) {
        status = colibri_feed(tokens[i], want_logits && i == n - 1);
    }
    return status;
}

const float *colibri_logits(void) {
    return logits;
}

int colibri_position(void) {
    return position;
}

int colibri_fault_layer(void) {
    return fault_layer;
}
