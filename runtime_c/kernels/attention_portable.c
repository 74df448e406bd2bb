/* Attention over the fp16 cache in plain C: the specification of attention_avx2.c and attention_neon.c. */
#include "kernels/kernels.h"
#include "math/scalar.h"

void attention_scores_portable(const float *q, const uint16_t *keys, float scale, float *scores, int head_dim,
                               int n_positions) {
    for (int p = 0; p < n_positions; p++) {
        const uint16_t *key = keys + (size_t)p * (size_t)head_dim;
        float lanes[8] = {0};
        for (int i = 0; i < head_dim; i++)
            lanes[i % 8] = lanes[i % 8] + q[i] * f16_to_f32(key[i]);
        scores[p] = lane_tree(lanes) * scale;
    }
}

void attention_mix_portable(const float *weights, const uint16_t *values, float total, float *out, int head_dim,
                            int n_positions) {
    for (int i = 0; i < head_dim; i++) {
        float sum = 0.0f;
        for (int p = 0; p < n_positions; p++)
            sum = sum + weights[p] * f16_to_f32(values[(size_t)p * (size_t)head_dim + (size_t)i]);
        out[i] = sum / total;
    }
}
