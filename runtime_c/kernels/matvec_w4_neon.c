/* Products with 4-bit weights for NEON; matvec_w4_portable.c is the specification.
 *
 * A 16-byte granule of the layout (one row, one block) is one register. A row has 8 partial sums of 16 bits for each
 * plane; a group adds at most 16 products to one: 16 * 15 * 128 = 30720 <= 32767. With two planes (a16) the sums of 4
 * rows are kept at a time: 8 rows would need 16 registers for them, and compilers spill. */
#include <arm_neon.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_neon.h"

enum { HALF_ROWS = PANEL_ROWS / 2, GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS };

/* The codes of one row and block: those of inputs 0-15 and of inputs 16-31. */
typedef struct {
    int8x16_t front;
    int8x16_t back;
} Codes;

ALWAYS_INLINE Codes load_codes(const uint8_t *granule) {
    const uint8x16_t bytes = vld1q_u8(granule);
    return (Codes){vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4))};
}

#if MODEL_ACTIVATION_BITS == 16
/* sums (first: zero) + the products of the first 8 codes with the first 8 inputs. */
ALWAYS_INLINE int16x8_t add_low(int16x8_t sums, int8x16_t codes, int8x16_t inputs, int first) {
    return first ? vmull_s8(vget_low_s8(codes), vget_low_s8(inputs))
                 : vmlal_s8(sums, vget_low_s8(codes), vget_low_s8(inputs));
}

/* Partial sums of 4 rows, one register a row and plane. */
typedef struct {
    int16x8_t high[HALF_ROWS];
    int16x8_t low[HALF_ROWS];
} HalfSums;

/* Instructions behind this stay behind it: in the order below a core that executes in order waits for no sum. */
ALWAYS_INLINE void keep_order(HalfSums *sums) {
    for (int row = 0; row < HALF_ROWS; row++)
        __asm__ volatile("" : "+w"(sums->high[row]), "+w"(sums->low[row]));
}

/* Adds the products of one block (first: starts with them); codes: granule of the first of the 4 rows. */
ALWAYS_INLINE void multiply_block(HalfSums *sums, const uint8_t *codes, const int8_t *high, const int8_t *low,
                                  int first) {
    const int8x16_t high_front = vld1q_s8(high);
    const int8x16_t high_back = vld1q_s8(high + 16);
    const int8x16_t low_front = vld1q_s8(low);
    const int8x16_t low_back = vld1q_s8(low + 16);
    Codes c[HALF_ROWS];
    for (int row = 0; row < HALF_ROWS; row++)
        c[row] = load_codes(codes + 32 * row);
    for (int row = 0; row < HALF_ROWS; row++) {
        sums->high[row] = add_low(sums->high[row], c[row].front, high_front, first);
        sums->low[row] = add_low(sums->low[row], c[row].front, low_front, first);
    }
    keep_order(sums);
    for (int row = 0; row < HALF_ROWS; row++) {
        sums->high[row] = vmlal_high_s8(sums->high[row], c[row].front, high_front);
        sums->low[row] = vmlal_high_s8(sums->low[row], c[row].front, low_front);
    }
    keep_order(sums);
    for (int row = 0; row < HALF_ROWS; row++) {
        sums->high[row] = add_low(sums->high[row], c[row].back, high_back, 0);
        sums->low[row] = add_low(sums->low[row], c[row].back, low_back, 0);
    }
    keep_order(sums);
    for (int row = 0; row < HALF_ROWS; row++) {
        sums->high[row] = vmlal_high_s8(sums->high[row], c[row].back, high_back);
        sums->low[row] = vmlal_high_s8(sums->low[row], c[row].back, low_back);
    }
}

/* d of 4 rows for one group of n_blocks blocks; codes: granule of the first of them. */
ALWAYS_INLINE int32x4_t half_products(const uint8_t *codes, int16x4_t zeros, const Activation *x, int group,
                                      int n_blocks) {
    const int8_t *high = x->high + group * MODEL_GROUP_SIZE;
    const int8_t *low = x->low + group * MODEL_GROUP_SIZE;
    HalfSums sums;
    multiply_block(&sums, codes, high, low, 1);
    /* Not unrolled: gcc would mix the two halves of the panel, and spill. */
#pragma GCC unroll 1
    for (int block = 1; block < n_blocks; block++)
        multiply_block(&sums, codes + block * W4_BLOCK_BYTES, high + block * BLOCK_INPUTS, low + block * BLOCK_INPUTS,
                       0);
    int32x4_t wide[HALF_ROWS]; /* 256 * high + low, two partial sums of each */
    for (int row = 0; row < HALF_ROWS; row++)
        wide[row] = vpadalq_s16(vshlq_n_s32(vpaddlq_s16(sums.high[row]), 8), sums.low[row]);
    int32x4_t d = sum_four_rows(wide[0], wide[1], wide[2], wide[3]);
    d = vmlsl_n_s16(d, vshl_n_s16(zeros, 8), x->high_sums[group]);
    return vmlsl_n_s16(d, zeros, x->low_sums[group]);
}

/* The products of one more group added; scales: the record of this panel and group. */
ALWAYS_INLINE PanelSums add_group(PanelSums y, const uint8_t *codes, const uint8_t *scales, const Activation *x,
                                  int group, int n_blocks) {
    const int16x8_t zeros = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(scales + 2 * PANEL_ROWS)));
    const int32x4_t front = half_products(codes, vget_low_s16(zeros), x, group, n_blocks);
    y.front = add_scaled_products(y.front, front, scales, x->scales[group]);
    const int32x4_t back = half_products(codes + 16, vget_high_s16(zeros), x, group, n_blocks);
    y.back = add_scaled_products(y.back, back, scales + 2 * HALF_ROWS, x->scales[group]);
    return y;
}
#else
/* sums + the products of 32 codes with the 32 inputs (front, back) of one plane. */
ALWAYS_INLINE int16x8_t add_products(int16x8_t sums, Codes codes, int8x16_t front, int8x16_t back) {
    sums = vmlal_s8(sums, vget_low_s8(codes.front), vget_low_s8(front));
    sums = vmlal_high_s8(sums, codes.front, front);
    sums = vmlal_s8(sums, vget_low_s8(codes.back), vget_low_s8(back));
    return vmlal_high_s8(sums, codes.back, back);
}

/* As add_products, from zero. */
ALWAYS_INLINE int16x8_t first_products(Codes codes, int8x16_t front, int8x16_t back) {
    int16x8_t sums = vmull_s8(vget_low_s8(codes.front), vget_low_s8(front));
    sums = vmlal_high_s8(sums, codes.front, front);
    sums = vmlal_s8(sums, vget_low_s8(codes.back), vget_low_s8(back));
    return vmlal_high_s8(sums, codes.back, back);
}

/* Partial sums of the 8 rows of a panel, one register a row. */
typedef struct {
    int16x8_t rows[PANEL_ROWS];
} BlockSums;

/* Adds the products of one block (first: starts with them). */
ALWAYS_INLINE void multiply_block(BlockSums *sums, const uint8_t *codes, const int8_t *inputs, int first) {
    const int8x16_t front = vld1q_s8(inputs);
    const int8x16_t back = vld1q_s8(inputs + 16);
    for (int i = 0; i < PANEL_ROWS; i++) {
        const Codes c = load_codes(codes + 16 * i); /* rows 0 4 1 5 2 6 3 7 */
        const int row = i / 2 + i % 2 * HALF_ROWS;
        sums->rows[row] = first ? first_products(c, front, back) : add_products(sums->rows[row], c, front, back);
    }
}

/* The sums of 4 rows over their partial sums. */
ALWAYS_INLINE int32x4_t sum_half(const int16x8_t sums[HALF_ROWS]) {
    return sum_four_rows(vpaddlq_s16(sums[0]), vpaddlq_s16(sums[1]), vpaddlq_s16(sums[2]), vpaddlq_s16(sums[3]));
}

/* The products of one more group added; scales: the record of this panel and group. */
ALWAYS_INLINE PanelSums add_group(PanelSums y, const uint8_t *codes, const uint8_t *scales, const Activation *x,
                                  int group, int n_blocks) {
    const int8_t *inputs = x->high + group * MODEL_GROUP_SIZE;
    BlockSums sums;
    multiply_block(&sums, codes, inputs, 1);
    /* Not unrolled: gcc would spill two of the sums. */
#pragma GCC unroll 1
    for (int block = 1; block < n_blocks; block++) {
        codes += W4_BLOCK_BYTES;
        inputs += BLOCK_INPUTS;
        multiply_block(&sums, codes, inputs, 0);
    }
    const int16x8_t zeros = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(scales + 2 * PANEL_ROWS)));
    const int16x8_t input_sum = vld1q_dup_s16(x->high_sums + group);
    const int32x4_t front = vmlsl_s16(sum_half(sums.rows), vget_low_s16(zeros), vget_low_s16(input_sum));
    const int32x4_t back = vmlsl_high_s16(sum_half(sums.rows + HALF_ROWS), zeros, input_sum);
    y.front = add_scaled_products(y.front, front, scales, x->scales[group]);
    y.back = add_scaled_products(y.back, back, scales + 2 * HALF_ROWS, x->scales[group]);
    return y;
}
#endif

void matvec_w4_neon(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel) {
    const int n_blocks = (w->cols + BLOCK_INPUTS - 1) / BLOCK_INPUTS;
    const int full_groups = n_blocks / GROUP_BLOCKS;
    const int rest_blocks = n_blocks % GROUP_BLOCKS;
    const size_t n_groups = (size_t)(full_groups + (rest_blocks > 0));
    const uint8_t *codes = (const uint8_t *)w->codes + (size_t)first_panel * (size_t)n_blocks * W4_BLOCK_BYTES;
    const uint8_t *scales = (const uint8_t *)w->scales + (size_t)first_panel * n_groups * W4_SCALE_BYTES;
    for (int panel = first_panel; panel < last_panel; panel++) {
        PanelSums sums = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
        const uint8_t *full_end = scales + full_groups * W4_SCALE_BYTES;
        for (int group = 0; scales < full_end; group++) {
            sums = add_group(sums, codes, scales, x, group, GROUP_BLOCKS);
            codes += GROUP_BLOCKS * W4_BLOCK_BYTES;
            scales += W4_SCALE_BYTES;
        }
        if (rest_blocks > 0) {
            sums = add_group(sums, codes, scales, x, full_groups, rest_blocks);
            codes += rest_blocks * W4_BLOCK_BYTES;
            scales += W4_SCALE_BYTES;
        }
        store_panel(y, sums, panel, w->rows);
    }
}
