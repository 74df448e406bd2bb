/* The decoder without tokenizer and command line: feeds the tokens of argv[2..], each argument a batch of ids with
 * commas between, then chooses argv[1] more, greedily; prints them and the hash of all logits that a token was chosen
 * from. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "colibri.h"
#include "model_config.h"

static uint64_t hash = UINT64_C(14695981039346656037);

static int choose(void) {
    const float *logits = colibri_logits();
    int best = 0;
    for (int i = 0; i < MODEL_VOCAB_SIZE; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        hash = hash * UINT64_C(6364136223846793005) + bits;
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

static colibri_status feed_batch(const char *text, bool want_logits) {
    int ids[MODEL_BATCH];
    int n = 0;
    for (const char *at = text; at != NULL && n < MODEL_BATCH; at = strchr(at, ',')) {
        at += at != text;
        ids[n++] = atoi(at);
    }
    return colibri_feed_batch(ids, n, want_logits);
}

int main(int argc, char **argv) {
    if (colibri_open(MODEL_MAX_THREADS) != COLIBRI_OK) {
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        if (feed_batch(argv[i], i == argc - 1) != COLIBRI_OK) {
            return 2;
        }
    }
    for (int i = 0; i < atoi(argv[1]); i++) {
        int token = choose();
        printf("%d ", token);
        if (colibri_feed(token, true) != COLIBRI_OK) {
            return 3;
        }
    }
    printf("%016" PRIx64 "\n", hash);
    colibri_close();
    return 0;
}
