/* Element-wise kernels over the 8 lanes. vector_avx2.c and vector_neon.c include this once, after their lanes_*.h, and
 * become the kernels of that ISA; vector_portable.c is the specification. Every loop is over whole lanes, then the
 * rest. */
#ifndef COLIBRI_VECTOR_LANES_H
#define COLIBRI_VECTOR_LANES_H

#include "kernels/kernels.h"

/* e^v, the operations of exp_f32() lane by lane. */
ALWAYS_INLINE Lanes lanes_exp(Lanes v) {
    static const float coefficients[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                                         5.0000001201e-1f};
    v = lanes_clamp(v, -87.0f, 88.0f);
    const Lanes t = lanes_add(lanes_mul(v, lanes_splat(0x1.715476p+0f)), lanes_splat(ROUND_MAGIC));
    const Lanes n = lanes_sub(t, lanes_splat(ROUND_MAGIC));
    Lanes r = lanes_sub(v, lanes_mul(n, lanes_splat(0.693359375f)));
    r = lanes_sub(r, lanes_mul(n, lanes_splat(-2.12194440e-4f)));
    Lanes p = lanes_splat(1.9875691500e-4f);
    for (int i = 0; i < 5; i++)
        p = lanes_add(lanes_mul(p, r), lanes_splat(coefficients[i]));
    p = lanes_add(lanes_mul(p, lanes_mul(r, r)), r);
    p = lanes_add(p, lanes_splat(1.0f));
    return lanes_mul(p, lanes_power_of_two(t));
}

ALWAYS_INLINE float sum_of_squares(const float *x, int n) {
    Lanes sum = lanes_splat(0.0f);
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const Lanes v = lanes_load(x + i);
        sum = lanes_add(sum, lanes_mul(v, v));
    }
    if (i < n) {
        const Lanes v = lanes_load_some(x + i, n - i);
        sum = lanes_add(sum, lanes_mul(v, v));
    }
    return lanes_tree(sum);
}

void LANES_KERNEL(rms_norm)(const float *x, const float *weight, float *out, int n, float eps) {
    const float mean = sum_of_squares(x, n) / (float)n;
    const Lanes scale = lanes_splat(1.0f / square_root(mean + eps));
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        lanes_store(out + i, lanes_mul(lanes_mul(lanes_load(x + i), scale), lanes_load(weight + i)));
    if (i < n) {
        const Lanes v = lanes_mul(lanes_load_some(x + i, n - i), scale);
        lanes_store_some(out + i, lanes_mul(v, lanes_load_some(weight + i, n - i)), n - i);
    }
}

ALWAYS_INLINE Lanes swiglu_step(Lanes gate, Lanes up) {
    const Lanes silu = lanes_div(gate, lanes_add(lanes_splat(1.0f), lanes_exp(lanes_negate(gate))));
    return lanes_mul(silu, up);
}

void LANES_KERNEL(swiglu)(float *gate, const float *up, int n) {
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        lanes_store(gate + i, swiglu_step(lanes_load(gate + i), lanes_load(up + i)));
    if (i < n) {
        const Lanes v = swiglu_step(lanes_load_some(gate + i, n - i), lanes_load_some(up + i, n - i));
        lanes_store_some(gate + i, v, n - i);
    }
}

void LANES_KERNEL(add_scaled)(float *y, const float *x, float weight, int n) {
    const Lanes factor = lanes_splat(weight);
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        lanes_store(y + i, lanes_add(lanes_load(y + i), lanes_mul(factor, lanes_load(x + i))));
    if (i < n) {
        const Lanes product = lanes_mul(factor, lanes_load_some(x + i, n - i));
        lanes_store_some(y + i, lanes_add(lanes_load_some(y + i, n - i), product), n - i);
    }
}

void LANES_KERNEL(add)(float *y, const float *x, int n) {
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        lanes_store(y + i, lanes_add(lanes_load(y + i), lanes_load(x + i)));
    if (i < n)
        lanes_store_some(y + i, lanes_add(lanes_load_some(y + i, n - i), lanes_load_some(x + i, n - i)), n - i);
}

/* The last 8 numbers may be looked at twice: that changes no maximum. */
float LANES_KERNEL(maximum)(const float *x, int n) {
    if (n < LANES) {
        float most = x[0];
        for (int i = 1; i < n; i++)
            most = x[i] > most ? x[i] : most;
        return most;
    }
    Lanes most = lanes_load(x + n - LANES);
    for (int i = 0; i + LANES <= n; i += LANES)
        most = lanes_max(most, lanes_load(x + i));
    return lanes_largest(most);
}

float LANES_KERNEL(exp_shifted)(float *x, float max, float factor, int n) {
    const Lanes shift = lanes_splat(max);
    const Lanes scale = lanes_splat(factor);
    Lanes sum = lanes_splat(0.0f);
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const Lanes e = lanes_exp(lanes_mul(lanes_sub(lanes_load(x + i), shift), scale));
        lanes_store(x + i, e);
        sum = lanes_add(sum, e);
    }
    if (i < n) {
        const Lanes e = lanes_exp(lanes_mul(lanes_sub(lanes_load_some(x + i, n - i), shift), scale));
        lanes_store_some(x + i, e, n - i);
        sum = lanes_add(sum, lanes_keep_first(e, n - i));
    }
    return lanes_tree(sum);
}

int LANES_KERNEL(to_f16)(const float *x, uint16_t *out, int n) {
    int status = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        status |= lanes_store_f16(out + i, lanes_load(x + i));
    if (i < n) {
        uint16_t rest[LANES];
        status |= lanes_store_f16(rest, lanes_load_some(x + i, n - i));
        memcpy(out + i, rest, (size_t)(n - i) * sizeof *out);
    }
    return status;
}

#endif
