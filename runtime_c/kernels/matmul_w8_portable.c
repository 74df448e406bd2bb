/* Products of 8-bit weights with several columns in plain C: the specification of matmul_w8_avx2.c and
 * matmul_w8_neon.c. One panel serves all columns while it is in the cache. */
#include "kernels/kernels.h"

void matmul_w8_portable(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    for (int panel = first_panel; panel < last_panel; panel++)
        for (int c = 0; c < n_columns; c++)
            matvec_w8_portable(w, columns[c].x, columns[c].y, panel, panel + 1);
}
