/* The decoder without tokenizer and command line: argv[1] threads, then batches, each of ids with commas between; `-`
 * starts a new sequence. Prints for each batch: status, position, layer of a fault, and the hash of the logits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "colibri.h"
#include "model_config.h"

static uint64_t hash_of(const float *logits) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int i = 0; i < MODEL_VOCAB_SIZE; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        hash = hash * UINT64_C(6364136223846793005) + bits;
    }
    return hash;
}

static void feed(const char *text) {
    int ids[MODEL_BATCH + 1];
    int n = 0;
    for (const char *at = text; at != NULL && n <= MODEL_BATCH; at = strchr(at, ',')) {
        at += at != text;
        ids[n++] = atoi(at);
    }
    colibri_status status = colibri_feed_batch(ids, n, true);
    printf("%s %d %d %016" PRIx64 "\n", colibri_status_name(status), colibri_position(), colibri_fault_layer(),
           hash_of(colibri_logits()));
}

int main(int argc, char **argv) {
    if (argc < 2 || colibri_open(atoi(argv[1])) != COLIBRI_OK) {
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "-") == 0) {
            colibri_reset();
        } else {
            feed(argv[i]);
        }
    }
    colibri_close();
    return 0;
}
