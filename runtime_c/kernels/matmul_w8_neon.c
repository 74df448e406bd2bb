/* Products of 8-bit weights with several columns for NEON; matmul_w8_portable.c is the specification.
 *
 * 4 rows by 4 columns are multiplied at a time; a row and column has 4 partial sums of 32 bits, which together stay
 * below 128 * 127 * 32512 < 2^30 in a group. In the a8 class two products of bytes fit into 16 bits:
 * 2 * 128 * 127 = 32512 <= 32767; in a16 weights are widened and multiplied with whole activation codes. */
#include <arm_neon.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_neon.h"

enum { TILE_COLUMNS = 16, TILE_PANELS = 64, CODE_BYTES = W8_BLOCK_BYTES, SCALE_BYTES = W8_SCALE_BYTES };
enum { GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS, HALF_ROWS = PANEL_ROWS / 2, MAX_COLUMNS = 4, HALF_BLOCK = 16 };

#if MODEL_ACTIVATION_BITS == 16
typedef int16_t Input;
#else
typedef int8_t Input;
#endif

/* One column of a tile: its inputs of one group, and results. */
typedef struct {
    const Input *inputs;
    float scale; /* of the activations */
    float *y;    /* results of the band's first panel */
} TileColumn;

static void lay_out_group(TileColumn *out, const Activation *x, int group, int n_blocks) {
    (void)n_blocks;
#if MODEL_ACTIVATION_BITS == 16
    out->inputs = x->codes + group * MODEL_GROUP_SIZE;
#else
    out->inputs = x->high + group * MODEL_GROUP_SIZE;
#endif
    out->scale = x->scales[group];
}

/* Partial sums of 4 rows, one register a row and column. */
typedef struct {
    int32x4_t rows[HALF_ROWS][MAX_COLUMNS];
} HalfSums;

/* Keeps the compiler from mixing the products of several rows: it would run out of registers. */
ALWAYS_INLINE void finish_row(int32x4_t columns[MAX_COLUMNS], int n_columns) {
    for (int c = 0; c < n_columns; c++)
        __asm__ volatile("" : "+w"(columns[c]));
}

/* Adds the products of 16 inputs; weights: those of the first of the 4 rows; first: index of the first input. */
#if MODEL_ACTIVATION_BITS == 16
ALWAYS_INLINE void multiply_half_block(HalfSums *sums, const TileColumn *columns, int n_columns, const int8_t *weights,
                                       int first) {
    int16x8_t a[MAX_COLUMNS], b[MAX_COLUMNS];
    for (int c = 0; c < n_columns; c++) {
        a[c] = vld1q_s16(columns[c].inputs + first);
        b[c] = vld1q_s16(columns[c].inputs + first + 8);
    }
    for (int row = 0; row < HALF_ROWS; row++) {
        const int8x16_t bytes = vld1q_s8(weights + row * BLOCK_INPUTS);
        const int16x8_t front = vmovl_s8(vget_low_s8(bytes)), back = vmovl_high_s8(bytes);
        int32x4_t *s = sums->rows[row];
        for (int c = 0; c < n_columns; c++)
            s[c] = vmlal_s16(s[c], vget_low_s16(front), vget_low_s16(a[c]));
        for (int c = 0; c < n_columns; c++)
            s[c] = vmlal_high_s16(s[c], front, a[c]);
        for (int c = 0; c < n_columns; c++)
            s[c] = vmlal_s16(s[c], vget_low_s16(back), vget_low_s16(b[c]));
        for (int c = 0; c < n_columns; c++)
            s[c] = vmlal_high_s16(s[c], back, b[c]);
        finish_row(s, n_columns);
    }
}
#else
ALWAYS_INLINE void multiply_half_block(HalfSums *sums, const TileColumn *columns, int n_columns, const int8_t *weights,
                                       int first) {
    int8x16_t inputs[MAX_COLUMNS];
    for (int c = 0; c < n_columns; c++)
        inputs[c] = vld1q_s8(columns[c].inputs + first);
    for (int row = 0; row < HALF_ROWS; row++) {
        const int8x16_t bytes = vld1q_s8(weights + row * BLOCK_INPUTS);
        int16x8_t products[MAX_COLUMNS];
        for (int c = 0; c < n_columns; c++)
            products[c] = vmull_s8(vget_low_s8(bytes), vget_low_s8(inputs[c]));
        for (int c = 0; c < n_columns; c++)
            products[c] = vmlal_high_s8(products[c], bytes, inputs[c]);
        for (int c = 0; c < n_columns; c++)
            sums->rows[row][c] = vpadalq_s16(sums->rows[row][c], products[c]);
        finish_row(sums->rows[row], n_columns);
    }
}
#endif

/* Adds the products of 4 rows to the y of n_columns, a constant; codes: those of the first row. */
ALWAYS_INLINE void add_half(const TileColumn *columns, int n_columns, int first_row, const int8_t *codes,
                            const uint8_t *scales, int n_blocks) {
    HalfSums sums;
    for (int row = 0; row < HALF_ROWS; row++)
        for (int c = 0; c < n_columns; c++)
            sums.rows[row][c] = vdupq_n_s32(0);
#pragma GCC unroll 1
    for (int block = 0; block < n_blocks; block++)
        for (int half = 0; half < BLOCK_INPUTS; half += HALF_BLOCK)
            multiply_half_block(&sums, columns, n_columns, codes + block * W8_BLOCK_BYTES + half,
                                block * BLOCK_INPUTS + half);
    for (int c = 0; c < n_columns; c++) {
        const int32x4_t d = sum_four_rows(sums.rows[0][c], sums.rows[1][c], sums.rows[2][c], sums.rows[3][c]);
        float *y = columns[c].y + first_row;
        vst1q_f32(y, add_scaled_products(vld1q_f32(y), d, scales, columns[c].scale));
    }
}

/* The same for 8 rows, in two halves. */
ALWAYS_INLINE void add_columns(const TileColumn *columns, int n_columns, int first_row, const uint8_t *codes,
                               const uint8_t *scales, int n_blocks) {
#pragma GCC unroll 1
    for (int row = 0; row < PANEL_ROWS; row += HALF_ROWS)
        add_half(columns, n_columns, first_row + row, (const int8_t *)codes + row * BLOCK_INPUTS, scales + 2 * row,
                 n_blocks);
}

static void add_blocks(TileColumn *columns, int n_columns, int first_row, const uint8_t *codes, const uint8_t *scales,
                       int n_blocks) {
    for (; n_columns >= MAX_COLUMNS; n_columns -= MAX_COLUMNS, columns += MAX_COLUMNS)
        add_columns(columns, MAX_COLUMNS, first_row, codes, scales, n_blocks);
    if (n_columns == 3)
        add_columns(columns, 3, first_row, codes, scales, n_blocks);
    else if (n_columns == 2)
        add_columns(columns, 2, first_row, codes, scales, n_blocks);
    else if (n_columns == 1)
        add_columns(columns, 1, first_row, codes, scales, n_blocks);
}

#include "kernels/matmul_tiles.h"

void matmul_w8_neon(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    if (n_columns == 1)
        matvec_w8_neon(w, columns[0].x, columns[0].y, first_panel, last_panel);
    else
        multiply_tiles(w, columns, n_columns, first_panel, last_panel);
}
