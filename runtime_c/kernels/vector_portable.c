/* Element-wise kernels in plain C: the specification of vector_avx2.c and vector_neon.c. */
#include "kernels/kernels.h"
#include "math/scalar.h"

void rms_norm_portable(const float *x, const float *weight, float *out, int n, float eps) {
    float lanes[8] = {0};
    for (int i = 0; i < n; i++)
        lanes[i % 8] = lanes[i % 8] + x[i] * x[i];
    const float mean = lane_tree(lanes) / (float)n;
    const float scale = 1.0f / square_root(mean + eps);
    for (int i = 0; i < n; i++)
        out[i] = (x[i] * scale) * weight[i];
}

void swiglu_portable(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i++)
        gate[i] = silu_f32(gate[i]) * up[i];
}

void add_scaled_portable(float *y, const float *x, float weight, int n) {
    for (int i = 0; i < n; i++)
        y[i] = y[i] + weight * x[i];
}

void add_portable(float *y, const float *x, int n) {
    for (int i = 0; i < n; i++)
        y[i] = y[i] + x[i];
}

float maximum_portable(const float *x, int n) {
    float most = x[0];
    for (int i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

float exp_shifted_portable(float *x, float max, float factor, int n) {
    float lanes[8] = {0};
    for (int i = 0; i < n; i++) {
        x[i] = exp_f32((x[i] - max) * factor);
        lanes[i % 8] = lanes[i % 8] + x[i];
    }
    return lane_tree(lanes);
}

int to_f16_portable(const float *x, uint16_t *out, int n) {
    int status = 0;
    for (int i = 0; i < n; i++) {
        out[i] = f32_to_f16(x[i]);
        if ((out[i] & 0x7c00u) == 0x7c00u)
            status = -1;
    }
    return status;
}
