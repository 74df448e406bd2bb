/* Products of 8-bit weights with several columns for AVX2; matmul_w8_portable.c is the specification. */
#include "kernels/kernels.h"

void matmul_w8_avx2(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    for (int panel = first_panel; panel < last_panel; panel++)
        for (int c = 0; c < n_columns; c++)
            matvec_w8_avx2(w, columns[c].x, columns[c].y, panel, panel + 1);
}
