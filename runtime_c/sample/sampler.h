/* Chooses the next token, and hashes the logits that it was chosen from (docs/numerics.md, "Sampling", "Logits hash").
 * One sampler a program: its scratch space is static. */
#ifndef COLIBRI_SAMPLER_H
#define COLIBRI_SAMPLER_H

#include <stdint.h>

#include "colibri.h"

#define LOGITS_HASH_START UINT64_C(14695981039346656037)
#define LOGITS_HASH_FACTOR UINT64_C(6364136223846793005)

/* Sets how to choose: temperature 0 is greedy, else it is such that 1/temperature is finite; 0 < top_p <= 1. Restarts
 * the random numbers at `seed`. */
void sampler_init(float temperature, float top_p, uint64_t seed);

/* A token for logits [MODEL_VOCAB_SIZE], or COLIBRI_E_NOT_FINITE if one of them is NaN or infinite. */
COLIBRI_MUST_CHECK int sampler_pick(const float *logits);

/* The hash after one more vector of n logits. */
uint64_t logits_hash_update(uint64_t hash, const float *logits, int n);

#endif
