/* f32 and f16 matrix-vector products in plain C: the specification of matvec_float_avx2.c and matvec_float_neon.c. */
#include "kernels/kernels.h"
#include "math/scalar.h"

void matvec_f32_portable(const Matrix *w, const float *x, float *y, int first_row, int last_row) {
    for (int row = first_row; row < last_row; row++) {
        const float *weights = (const float *)w->codes + (size_t)row * (size_t)w->cols;
        float lanes[8] = {0};
        for (int i = 0; i < w->cols; i++)
            lanes[i % 8] = lanes[i % 8] + weights[i] * x[i];
        y[row] = lane_tree(lanes);
    }
}

void matvec_f16_portable(const Matrix *w, const float *x, float *y, int first_row, int last_row) {
    for (int row = first_row; row < last_row; row++) {
        const uint16_t *weights = (const uint16_t *)w->codes + (size_t)row * (size_t)w->cols;
        float lanes[8] = {0};
        for (int i = 0; i < w->cols; i++)
            lanes[i % 8] = lanes[i % 8] + f16_to_f32(weights[i]) * x[i];
        y[row] = lane_tree(lanes);
    }
}
