#include "sample/sampler.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"
#include "math/scalar.h"

static struct {
    float temperature;
    float top_p;
    uint64_t random_state;
} sampler;

/* exp((logit - max) / temperature) of each token. */
static float weights[MODEL_VOCAB_SIZE] __attribute__((aligned(64)));

/* Token ids. order[0 .. n_left-1] is a heap whose root is drawn first; behind it stand the ids already taken from the
 * root, the first one last. */
static int32_t order[MODEL_VOCAB_SIZE];

void sampler_init(float temperature, float top_p, uint64_t seed) {
    sampler.temperature = temperature;
    sampler.top_p = top_p;
    sampler.random_state = seed;
}

/* splitmix64 */
static uint64_t next_random(void) {
    sampler.random_state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = sampler.random_state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static bool all_finite(const float *x, int n) {
    int finite = 1;
    for (int i = 0; i < n; i++) {
        finite &= is_finite(x[i]);
    }
    return finite != 0;
}

static int index_of_max(const float *x, int n) {
    int best = 0;
    for (int i = 1; i < n; i++) {
        if (x[i] > x[best]) {
            best = i;
        }
    }
    return best;
}

/* Whether token a is drawn before token b. */
static bool comes_before(const float *logits, int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* Lets order[at] sink to its place in the heap order[0 .. n-1]. */
static void sift_down(const float *logits, int at, int n) {
    int32_t token = order[at];
    for (int child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && comes_before(logits, order[child + 1], order[child])) {
            child++;
        }
        if (!comes_before(logits, order[child], token)) {
            break;
        }
        order[at] = order[child];
        at = child;
    }
    order[at] = token;
}

static void build_heap(const float *logits) {
    for (int i = 0; i < MODEL_VOCAB_SIZE; i++) {
        order[i] = i;
    }
    for (int i = MODEL_VOCAB_SIZE / 2 - 1; i >= 0; i--) {
        sift_down(logits, i, MODEL_VOCAB_SIZE);
    }
}

/* The j-th token of the draw: by falling logit below top_p 1 (taken from the heap), else by index. */
static int32_t token_at(int j) {
    return order[MODEL_VOCAB_SIZE - 1 - j];
}

/* Takes tokens from the heap until their weights reach `enough`; returns how many, their sum in kept_sum. */
static int take_largest(const float *logits, float enough, float *kept_sum) {
    build_heap(logits);
    float sum = 0.0f;
    int n_kept = 0;
    while (n_kept < MODEL_VOCAB_SIZE) {
        int last = MODEL_VOCAB_SIZE - 1 - n_kept;
        int32_t token = order[0];
        order[0] = order[last];
        order[last] = token;
        sift_down(logits, 0, last);
        sum += weights[token];
        n_kept++;
        if (sum >= enough) {
            break;
        }
    }
    *kept_sum = sum;
    return n_kept;
}

static int draw_from_largest(const float *logits, float total) {
    float kept_sum;
    int n_kept = take_largest(logits, sampler.top_p * total, &kept_sum);
    float target = (float)(next_random() >> 40) * 0x1p-24f * kept_sum;
    float sum = 0.0f;
    for (int j = 0; j < n_kept; j++) {
        sum += weights[token_at(j)];
        if (sum > target) {
            return token_at(j);
        }
    }
    return token_at(n_kept - 1);
}

static int draw_from_all(void) {
    float kept_sum = 0.0f;
    for (int i = 0; i < MODEL_VOCAB_SIZE; i++) {
        kept_sum += weights[i];
    }
    float target = (float)(next_random() >> 40) * 0x1p-24f * kept_sum;
    float sum = 0.0f;
    for (int i = 0; i < MODEL_VOCAB_SIZE; i++) {
        sum += weights[i];
        if (sum > target) {
            return i;
        }
    }
    return MODEL_VOCAB_SIZE - 1;
}

int sampler_pick(const float *logits) {
    if (!all_finite(logits, MODEL_VOCAB_SIZE)) {
        return COLIBRI_E_NOT_FINITE;
    }
    int largest = index_of_max(logits, MODEL_VOCAB_SIZE);
    if (sampler.temperature == 0.0f) {
        return largest;
    }
    memcpy(weights, logits, sizeof weights);
    float total = KERNEL(exp_shifted)(weights, logits[largest], 1.0f / sampler.temperature, MODEL_VOCAB_SIZE);
    return sampler.top_p < 1.0f ? draw_from_largest(logits, total) : draw_from_all();
}

uint64_t logits_hash_update(uint64_t hash, const float *logits, int n) {
    for (int i = 0; i < n; i++) {
        hash = hash * LOGITS_HASH_FACTOR + float_to_bits(logits[i]);
    }
    return hash;
}
