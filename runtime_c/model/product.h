/* Matrix-vector products by panels of 8 rows, whatever the storage format. `format` is a compile-time constant at every
 * call, so that a binary holds only the kernels it uses. */
#ifndef COLIBRI_PRODUCT_H
#define COLIBRI_PRODUCT_H

#include "kernels/kernels.h"

/* A vector as floats and, where the matrix is quantized, in codes. */
typedef struct {
    const float *values;
    const Activation *quantized;
} Input;

static inline int panels_of(int rows) {
    return (rows + PANEL_ROWS - 1) / PANEL_ROWS;
}

static inline int last_row_of(const Matrix *w, int last_panel) {
    int row = last_panel * PANEL_ROWS;
    return row < w->rows ? row : w->rows;
}

/* y[rows of panels first .. last-1] = W x */
static inline void product(int format, const Matrix *w, Input x, float *y, int first, int last) {
    switch (format) {
    case FORMAT_W4:
        KERNEL(matvec_w4)(w, x.quantized, y, first, last);
        break;
    case FORMAT_W8:
        KERNEL(matvec_w8)(w, x.quantized, y, first, last);
        break;
    case FORMAT_F16:
        KERNEL(matvec_f16)(w, x.values, y, first * PANEL_ROWS, last_row_of(w, last));
        break;
    default:
        KERNEL(matvec_f32)(w, x.values, y, first * PANEL_ROWS, last_row_of(w, last));
        break;
    }
}

#endif
