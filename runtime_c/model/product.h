/* Matrix products by panels of 8 rows, whatever the storage format. `format` is a compile-time constant at every call,
 * so that a binary holds only the kernels it uses. */
#ifndef COLIBRI_PRODUCT_H
#define COLIBRI_PRODUCT_H

#include <stdbool.h>

#include "kernels/kernels.h"

/* arena.columns[matrix] of n tokens: from the member `input` of each, which is quantized, to its member `output`. */
#define SET_COLUMNS(matrix, n, input, output)                                                                          \
    do {                                                                                                               \
        for (int i_ = 0; i_ < (n); i_++) {                                                                             \
            arena.columns[matrix][i_] = (Column){&arena.tokens[i_].input.view, arena.tokens[i_].output};               \
        }                                                                                                              \
    } while (0)

static inline int panels_of(int rows) {
    return (rows + PANEL_ROWS - 1) / PANEL_ROWS;
}

static inline int last_row_of(const Matrix *w, int last_panel) {
    int row = last_panel * PANEL_ROWS;
    return row < w->rows ? row : w->rows;
}

/* y[rows of panels first .. last-1] = W x for each of n columns. A single one has a kernel of its own: decoding. */
static inline void product(int format, const Matrix *w, const Column *columns, int n, int first, int last) {
    bool is_single = MODEL_BATCH == 1 || n == 1;
    if (format == FORMAT_W4 && is_single) {
        KERNEL(matvec_w4)(w, columns->x, columns->y, first, last);
    } else if (format == FORMAT_W4) {
        KERNEL(matmul_w4)(w, columns, n, first, last);
    } else if (is_single) {
        KERNEL(matvec_w8)(w, columns->x, columns->y, first, last);
    } else {
        KERNEL(matmul_w8)(w, columns, n, first, last);
    }
}

#endif
