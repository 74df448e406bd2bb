/* Products with 4-bit weights in plain C: the specification of matvec_w4_avx2.c and matvec_w4_neon.c. */
#include "kernels/kernels.h"
#include "math/scalar.h"

/* The codes of one row and block in order of the inputs; int16, because that is what compilers multiply well. */
static void unpack_row(const uint8_t *bytes, int16_t codes[BLOCK_INPUTS]) {
    for (int t = 0; t < BLOCK_INPUTS / 2; t++) {
        codes[t] = (int16_t)(bytes[t] & 15);
        codes[t + BLOCK_INPUTS / 2] = (int16_t)(bytes[t] >> 4);
    }
}

/* sum of code * input over one block; |result| <= 32 * 15 * 128. */
static int32_t block_sum(const int16_t codes[BLOCK_INPUTS], const int8_t *plane) {
    int32_t sum = 0;
    for (int t = 0; t < BLOCK_INPUTS; t++)
        sum += codes[t] * plane[t];
    return sum;
}

/* d of every row for blocks first_block .. last_block-1, which are one group; codes: the panel's. */
static void group_products(const uint8_t *codes, const uint8_t *zero_points, const Activation *x, int first_block,
                           int last_block, int32_t d[PANEL_ROWS]) {
    const int group = first_block * BLOCK_INPUTS / MODEL_GROUP_SIZE;
    for (int row = 0; row < PANEL_ROWS; row++) {
        int32_t high = -zero_points[row] * x->high_sums[group];
        int32_t low = MODEL_ACTIVATION_BITS == 16 ? -zero_points[row] * x->low_sums[group] : 0;
        for (int block = first_block; block < last_block; block++) {
            int16_t row_codes[BLOCK_INPUTS];
            unpack_row(codes + (size_t)block * W4_BLOCK_BYTES + row % 4 * 32 + row / 4 * 16, row_codes);
            high += block_sum(row_codes, x->high + block * BLOCK_INPUTS);
            if (MODEL_ACTIVATION_BITS == 16)
                low += block_sum(row_codes, x->low + block * BLOCK_INPUTS);
        }
        d[row] = MODEL_ACTIVATION_BITS == 16 ? 256 * high + low : high;
    }
}

/* y[8] of one panel; scales: its records. */
static void panel_product(const uint8_t *codes, const uint8_t *scales, const Activation *x, int n_blocks,
                          float y[PANEL_ROWS]) {
    const int group_blocks = MODEL_GROUP_SIZE / BLOCK_INPUTS;
    for (int row = 0; row < PANEL_ROWS; row++)
        y[row] = 0.0f;
    for (int block = 0; block < n_blocks; block += group_blocks, scales += W4_SCALE_BYTES) {
        const int last_block = block + group_blocks < n_blocks ? block + group_blocks : n_blocks;
        int32_t d[PANEL_ROWS];
        group_products(codes, scales + 2 * PANEL_ROWS, x, block, last_block, d);
        for (int row = 0; row < PANEL_ROWS; row++) {
            uint16_t half;
            memcpy(&half, scales + 2 * row, sizeof half);
            const float scale = f16_to_f32(half) * x->scales[block / group_blocks];
            y[row] = y[row] + (float)d[row] * scale;
        }
    }
}

void matvec_w4_portable(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel) {
    const int n_blocks = (w->cols + BLOCK_INPUTS - 1) / BLOCK_INPUTS;
    const int n_groups = (w->cols + MODEL_GROUP_SIZE - 1) / MODEL_GROUP_SIZE;
    for (int panel = first_panel; panel < last_panel; panel++) {
        const size_t index = (size_t)panel;
        float rows[PANEL_ROWS];
        panel_product((const uint8_t *)w->codes + index * (size_t)n_blocks * W4_BLOCK_BYTES,
                      (const uint8_t *)w->scales + index * (size_t)n_groups * W4_SCALE_BYTES, x, n_blocks, rows);
        for (int row = 0; row < PANEL_ROWS && panel * PANEL_ROWS + row < w->rows; row++)
            y[panel * PANEL_ROWS + row] = rows[row];
    }
}
