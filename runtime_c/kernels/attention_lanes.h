/* Attention over the fp16 cache over the 8 lanes; included once by attention_avx2.c and attention_neon.c. */
#ifndef COLIBRI_ATTENTION_LANES_H
#define COLIBRI_ATTENTION_LANES_H

#include "kernels/dot_lanes.h"
#include "kernels/kernels.h"

enum { MIX_VECTORS = 8 }; /* up to 64 elements of a head are accumulated in registers over all positions */

void LANES_KERNEL(attention_scores)(const float *q, const uint16_t *keys, float scale, float *scores, int head_dim,
                                    int n_positions) {
    const size_t stride = (size_t)head_dim;
    int p = 0;
    for (; p + DOT_ROWS <= n_positions; p += DOT_ROWS)
        dot_rows_f16(keys + (size_t)p * stride, q, head_dim, DOT_ROWS, scale, scores + p);
    for (; p < n_positions; p++)
        dot_rows_f16(keys + (size_t)p * stride, q, head_dim, 1, scale, scores + p);
}

/* Elements 0 .. n_vectors*LANES-1 of out; n_vectors is a constant, at most MIX_VECTORS. */
ALWAYS_INLINE void mix_vectors(const float *weights, const uint16_t *values, size_t stride, Lanes total, float *out,
                               int n_positions, int n_vectors) {
    Lanes sums[MIX_VECTORS];
    for (int v = 0; v < n_vectors; v++)
        sums[v] = lanes_splat(0.0f);
    for (int p = 0; p < n_positions; p++, values += stride) {
        const Lanes weight = lanes_splat(weights[p]);
        for (int v = 0; v < n_vectors; v++)
            sums[v] = lanes_add(sums[v], lanes_mul(weight, lanes_load_f16(values + v * LANES)));
    }
    for (int v = 0; v < n_vectors; v++)
        lanes_store(out + v * LANES, lanes_div(sums[v], total));
}

/* The last n < 8 elements of a head. */
static void mix_rest(const float *weights, const uint16_t *values, size_t stride, Lanes total, float *out,
                     int n_positions, int n) {
    Lanes sum = lanes_splat(0.0f);
    for (int p = 0; p < n_positions; p++, values += stride)
        sum = lanes_add(sum, lanes_mul(lanes_splat(weights[p]), lanes_load_f16_some(values, n)));
    lanes_store_some(out, lanes_div(sum, total), n);
}

void LANES_KERNEL(attention_mix)(const float *weights, const uint16_t *values, float total, float *out, int head_dim,
                                 int n_positions) {
    const size_t stride = (size_t)head_dim;
    const Lanes divisor = lanes_splat(total);
    int i = 0;
    for (; i + MIX_VECTORS * LANES <= head_dim; i += MIX_VECTORS * LANES)
        mix_vectors(weights, values + i, stride, divisor, out + i, n_positions, MIX_VECTORS);
    for (; i + MIX_VECTORS / 2 * LANES <= head_dim; i += MIX_VECTORS / 2 * LANES)
        mix_vectors(weights, values + i, stride, divisor, out + i, n_positions, MIX_VECTORS / 2);
    for (; i + LANES <= head_dim; i += LANES)
        mix_vectors(weights, values + i, stride, divisor, out + i, n_positions, 1);
    if (i < head_dim)
        mix_rest(weights, values + i, stride, divisor, out + i, n_positions, head_dim - i);
}

#endif
