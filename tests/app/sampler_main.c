/* Runs sampler.c on logits from standard input. Record: float temperature, float top_p, uint64 seed, then int32 n and n
 * vectors of MODEL_VOCAB_SIZE floats. Answer: n int32 picks, uint64 hash over the vectors. */
#include <stdio.h>

#include "model_config.h"
#include "sample/sampler.h"

static float logits[MODEL_VOCAB_SIZE];

static int read_exactly(void *to, size_t n) {
    return fread(to, 1, n, stdin) == n;
}

int main(void) {
    float how[2];
    uint64_t seed;
    int32_t n;
    while (read_exactly(how, sizeof how) && read_exactly(&seed, sizeof seed) && read_exactly(&n, sizeof n)) {
        uint64_t hash = LOGITS_HASH_START;
        sampler_init(how[0], how[1], seed);
        for (int i = 0; i < n; i++) {
            if (!read_exactly(logits, sizeof logits)) {
                return 1;
            }
            int32_t picked = sampler_pick(logits);
            hash = logits_hash_update(hash, logits, MODEL_VOCAB_SIZE);
            (void)fwrite(&picked, sizeof picked, 1, stdout);
        }
        (void)fwrite(&hash, sizeof hash, 1, stdout);
    }
    return 0;
}
