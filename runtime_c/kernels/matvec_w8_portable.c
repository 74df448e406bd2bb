/* Products with 8-bit weights in plain C: the specification of matvec_w8_avx2.c and matvec_w8_neon.c. */
#include "kernels/kernels.h"
#include "math/scalar.h"

/* d of one row for blocks first_block .. last_block-1, which are one group; codes: the panel's.
 * |d| <= 128 * 127 * 32512 < 2^30. */
static int32_t row_product(const int8_t *codes, const int16_t *x, int row, int first_block, int last_block) {
    int32_t d = 0;
    for (int block = first_block; block < last_block; block++) {
        const int8_t *bytes = codes + (size_t)block * W8_BLOCK_BYTES + row * BLOCK_INPUTS;
        for (int t = 0; t < BLOCK_INPUTS; t++)
            d += bytes[t] * x[block * BLOCK_INPUTS + t];
    }
    return d;
}

/* y[8] of one panel; scales: its records. */
static void panel_product(const int8_t *codes, const uint8_t *scales, const Activation *x, int n_blocks,
                          float y[PANEL_ROWS]) {
    const int group_blocks = MODEL_GROUP_SIZE / BLOCK_INPUTS;
    for (int row = 0; row < PANEL_ROWS; row++)
        y[row] = 0.0f;
    for (int block = 0; block < n_blocks; block += group_blocks, scales += W8_SCALE_BYTES) {
        const int last_block = block + group_blocks < n_blocks ? block + group_blocks : n_blocks;
        for (int row = 0; row < PANEL_ROWS; row++) {
            const int32_t d = row_product(codes, x->codes, row, block, last_block);
            uint16_t half;
            memcpy(&half, scales + 2 * row, sizeof half);
            const float scale = f16_to_f32(half) * x->scales[block / group_blocks];
            y[row] = y[row] + (float)d * scale;
        }
    }
}

void matvec_w8_portable(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel) {
    const int n_blocks = (w->cols + BLOCK_INPUTS - 1) / BLOCK_INPUTS;
    const int n_groups = (w->cols + MODEL_GROUP_SIZE - 1) / MODEL_GROUP_SIZE;
    for (int panel = first_panel; panel < last_panel; panel++) {
        const size_t index = (size_t)panel;
        float rows[PANEL_ROWS];
        panel_product((const int8_t *)w->codes + index * (size_t)n_blocks * W8_BLOCK_BYTES,
                      (const uint8_t *)w->scales + index * (size_t)n_groups * W8_SCALE_BYTES, x, n_blocks, rows);
        for (int row = 0; row < PANEL_ROWS && panel * PANEL_ROWS + row < w->rows; row++)
            y[panel * PANEL_ROWS + row] = rows[row];
    }
}
