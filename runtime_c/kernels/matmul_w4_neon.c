/* Products of 4-bit weights with several columns for NEON; matmul_w4_portable.c is the specification.
 *
 * As in matvec_w4_neon.c a 16-byte granule of the layout (one row, one block) is one register, and a row has 8 partial
 * sums of 16 bits for each plane of a column. 4 rows by 4 planes (of 4 columns in the a8 class, of 2 in a16) are
 * multiplied at a time: that is 16 registers of sums, 8 of inputs and 2 of codes. */
#include <arm_neon.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_neon.h"

enum { TILE_COLUMNS = 16, TILE_PANELS = 64, CODE_BYTES = W4_BLOCK_BYTES, SCALE_BYTES = W4_SCALE_BYTES };
enum { GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS, HALF_ROWS = PANEL_ROWS / 2 };
enum { PLANES = MODEL_ACTIVATION_BITS / 8, MAX_PLANES = 4, MAX_COLUMNS = MAX_PLANES / PLANES };

/* One column of a tile: its inputs of one group, and results. */
typedef struct {
    const int8_t *planes[PLANES]; /* high, low */
    int32_t sum;                  /* of the codes */
    float scale;                  /* of the activations */
    float *y;                     /* results of the band's first panel */
} TileColumn;

static void lay_out_group(TileColumn *out, const Activation *x, int group, int n_blocks) {
    (void)n_blocks;
    out->planes[0] = x->high + group * MODEL_GROUP_SIZE;
    out->sum = x->high_sums[group];
    if (MODEL_ACTIVATION_BITS == 16) {
        out->planes[PLANES - 1] = x->low + group * MODEL_GROUP_SIZE;
        out->sum = 256 * out->sum + x->low_sums[group];
    }
    out->scale = x->scales[group];
}

/* Partial sums of 4 rows, one register a row and plane; plane p belongs to column p / PLANES. */
typedef struct {
    int16x8_t rows[HALF_ROWS][MAX_PLANES];
} PlaneSums;

/* The codes of 2 rows and one block: those of inputs 0-15 and of inputs 16-31. */
typedef struct {
    int8x16_t front[2];
    int8x16_t back[2];
} RowPair;

ALWAYS_INLINE RowPair unpack_rows(uint8x16_t a, uint8x16_t b) {
    const uint8x16_t mask = vdupq_n_u8(15);
    return (RowPair){{vreinterpretq_s8_u8(vandq_u8(a, mask)), vreinterpretq_s8_u8(vandq_u8(b, mask))},
                     {vreinterpretq_s8_u8(vshrq_n_u8(a, 4)), vreinterpretq_s8_u8(vshrq_n_u8(b, 4))}};
}

/* Adds the products of 16 codes of 2 rows with 16 inputs of each plane (first: starts with them). In this order a core
 * that executes in order waits for no sum, and the barrier keeps the compiler from mixing more products than there are
 * registers for. */
ALWAYS_INLINE void multiply_half_block(int16x8_t (*sums)[MAX_PLANES], const int8x16_t codes[2],
                                       const int8x16_t inputs[MAX_PLANES], int n_planes, int first) {
    for (int row = 0; row < 2; row++)
        for (int p = 0; p < n_planes; p++)
            sums[row][p] = first ? vmull_s8(vget_low_s8(codes[row]), vget_low_s8(inputs[p]))
                                 : vmlal_s8(sums[row][p], vget_low_s8(codes[row]), vget_low_s8(inputs[p]));
    for (int row = 0; row < 2; row++)
        for (int p = 0; p < n_planes; p++)
            sums[row][p] = vmlal_high_s8(sums[row][p], codes[row], inputs[p]);
    for (int row = 0; row < 2; row++)
        for (int p = 0; p < n_planes; p++)
            __asm__ volatile("" : "+w"(sums[row][p]));
}

/* Adds the products of one block (first: starts with them); codes: granule of the first of the 4 rows. */
ALWAYS_INLINE void multiply_block(PlaneSums *sums, const TileColumn *columns, int n_planes, const uint8_t *codes,
                                  int block, int first) {
    int8x16_t front[MAX_PLANES], back[MAX_PLANES];
    for (int p = 0; p < n_planes; p++) {
        const int8_t *inputs = columns[p / PLANES].planes[p % PLANES] + block * BLOCK_INPUTS;
        front[p] = vld1q_s8(inputs);
        back[p] = vld1q_s8(inputs + 16);
    }
    codes += block * W4_BLOCK_BYTES;
    const RowPair a = unpack_rows(vld1q_u8(codes), vld1q_u8(codes + 32));
    const uint8x16_t third = vld1q_u8(codes + 64), fourth = vld1q_u8(codes + 96);
    multiply_half_block(sums->rows, a.front, front, n_planes, first);
    multiply_half_block(sums->rows, a.back, back, n_planes, 0);
    const RowPair b = unpack_rows(third, fourth);
    multiply_half_block(sums->rows + 2, b.front, front, n_planes, first);
    multiply_half_block(sums->rows + 2, b.back, back, n_planes, 0);
}

/* 4 partial sums of one row for the planes from p on, which are one column: 256 * high + low, or high. */
ALWAYS_INLINE int32x4_t wide_sums(const int16x8_t planes[MAX_PLANES], int p) {
    const int32x4_t high = vpaddlq_s16(planes[p]);
    return MODEL_ACTIVATION_BITS == 16 ? vpadalq_s16(vshlq_n_s32(high, 8), planes[p + PLANES - 1]) : high;
}

/* Adds the products of 4 rows to the y of n_columns, a constant; codes: granule of the first row. */
ALWAYS_INLINE void add_half(const TileColumn *columns, int n_columns, int first_row, const uint8_t *codes,
                            float32x4_t weight_scales, int32x4_t zeros, int n_blocks) {
    PlaneSums sums;
    multiply_block(&sums, columns, n_columns * PLANES, codes, 0, 1);
    /* n_blocks is no constant here: gcc allocates registers best where blocks end in a branch. */
#pragma GCC unroll 4
    for (int block = 1; block < n_blocks; block++)
        multiply_block(&sums, columns, n_columns * PLANES, codes, block, 0);
    for (int c = 0; c < n_columns; c++) {
        const int p = c * PLANES;
        int32x4_t d = sum_four_rows(wide_sums(sums.rows[0], p), wide_sums(sums.rows[1], p), wide_sums(sums.rows[2], p),
                                    wide_sums(sums.rows[3], p));
        d = vmlsq_n_s32(d, zeros, columns[c].sum);
        float *y = columns[c].y + first_row;
        const float32x4_t product = vmulq_f32(vcvtq_f32_s32(d), vmulq_n_f32(weight_scales, columns[c].scale));
        vst1q_f32(y, vaddq_f32(vld1q_f32(y), product));
    }
}

/* The same for 8 rows, in two halves. */
ALWAYS_INLINE void add_columns(const TileColumn *columns, int n_columns, int first_row, const uint8_t *codes,
                               const uint8_t *scales, int n_blocks) {
#pragma GCC unroll 1
    for (int half = 0; half < 2; half++) {
        const uint16x8_t zero_points = vmovl_u8(vld1_u8(scales + 2 * PANEL_ROWS));
        const uint16x4_t half_zeros = half ? vget_high_u16(zero_points) : vget_low_u16(zero_points);
        const float32x4_t weight_scales = vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(scales + 2 * HALF_ROWS * half)));
        add_half(columns, n_columns, first_row + HALF_ROWS * half, codes + 16 * half, weight_scales,
                 vreinterpretq_s32_u32(vmovl_u16(half_zeros)), n_blocks);
    }
}

static void add_blocks(TileColumn *columns, int n_columns, int first_row, const uint8_t *codes, const uint8_t *scales,
                       int n_blocks) {
    for (; n_columns >= MAX_COLUMNS; n_columns -= MAX_COLUMNS, columns += MAX_COLUMNS)
        add_columns(columns, MAX_COLUMNS, first_row, codes, scales, n_blocks);
    if (n_columns == 3)
        add_columns(columns, MAX_COLUMNS > 3 ? 3 : 1, first_row, codes, scales, n_blocks);
    else if (n_columns == 2)
        add_columns(columns, MAX_COLUMNS > 2 ? 2 : 1, first_row, codes, scales, n_blocks);
    else if (n_columns == 1)
        add_columns(columns, 1, first_row, codes, scales, n_blocks);
}

#include "kernels/matmul_tiles.h"

void matmul_w4_neon(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    if (n_columns == 1)
        matvec_w4_neon(w, columns[0].x, columns[0].y, first_panel, last_panel);
    else
        multiply_tiles(w, columns, n_columns, first_panel, last_panel);
}
