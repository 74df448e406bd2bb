/* f32 and f16 matrix-vector products over the 8 lanes; included once by matvec_float_avx2.c and matvec_float_neon.c. */
#ifndef COLIBRI_MATVEC_FLOAT_LANES_H
#define COLIBRI_MATVEC_FLOAT_LANES_H

#include "kernels/dot_lanes.h"
#include "kernels/kernels.h"

void LANES_KERNEL(matvec_f32)(const Matrix *w, const float *x, float *y, int first_row, int last_row) {
    const float *weights = w->codes;
    const size_t cols = (size_t)w->cols;
    int row = first_row;
    for (; row + DOT_ROWS <= last_row; row += DOT_ROWS)
        dot_rows_f32(weights + (size_t)row * cols, x, w->cols, DOT_ROWS, 1.0f, y + row);
    for (; row < last_row; row++)
        dot_rows_f32(weights + (size_t)row * cols, x, w->cols, 1, 1.0f, y + row);
}

void LANES_KERNEL(matvec_f16)(const Matrix *w, const float *x, float *y, int first_row, int last_row) {
    const uint16_t *weights = w->codes;
    const size_t cols = (size_t)w->cols;
    int row = first_row;
    for (; row + DOT_ROWS <= last_row; row += DOT_ROWS)
        dot_rows_f16(weights + (size_t)row * cols, x, w->cols, DOT_ROWS, 1.0f, y + row);
    for (; row < last_row; row++)
        dot_rows_f16(weights + (size_t)row * cols, x, w->cols, 1, 1.0f, y + row);
}

#endif
