/* Products with 8-bit weights for NEON; matvec_w8_portable.c is the specification.
 *
 * a16: weights are widened to int16 and multiplied with whole activation codes; a row has 4 partial sums of 32 bits,
 * which together stay below 128 * 127 * 32512 < 2^30 in a group. a8: products of two bytes each are added in 16 bits,
 * two at a time: at most 2 * 128 * 127 = 32512. */
#include <arm_neon.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_neon.h"

enum { GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS };

/* 16 codes of the input, and what adds their products with 16 weights to sums. */
#if MODEL_ACTIVATION_BITS == 8
typedef int8x16_t Inputs;

ALWAYS_INLINE Inputs load_inputs(const Activation *x, int at) {
    return vld1q_s8(x->high + at);
}

ALWAYS_INLINE int32x4_t add_products(int32x4_t sums, const int8_t *weights, Inputs inputs) {
    const int8x16_t bytes = vld1q_s8(weights);
    const int16x8_t front = vmull_s8(vget_low_s8(bytes), vget_low_s8(inputs));
    return vpadalq_s16(sums, vmlal_high_s8(front, bytes, inputs));
}
#else
typedef int16x8x2_t Inputs;

ALWAYS_INLINE Inputs load_inputs(const Activation *x, int at) {
    return (Inputs){{vld1q_s16(x->codes + at), vld1q_s16(x->codes + at + 8)}};
}

ALWAYS_INLINE int32x4_t add_products(int32x4_t sums, const int8_t *weights, Inputs inputs) {
    const int8x16_t bytes = vld1q_s8(weights);
    const int16x8_t front_weights = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t back_weights = vmovl_high_s8(bytes);
    sums = vmlal_s16(sums, vget_low_s16(front_weights), vget_low_s16(inputs.val[0]));
    sums = vmlal_high_s16(sums, front_weights, inputs.val[0]);
    sums = vmlal_s16(sums, vget_low_s16(back_weights), vget_low_s16(inputs.val[1]));
    return vmlal_high_s16(sums, back_weights, inputs.val[1]);
}
#endif

/* The products of one more group added; scales: the record of this panel and group. */
ALWAYS_INLINE PanelSums add_group(PanelSums y, const int8_t *codes, const uint8_t *scales, const Activation *x,
                                  int group, int n_blocks) {
    int at = group * MODEL_GROUP_SIZE;
    int32x4_t sums[PANEL_ROWS];
    for (int row = 0; row < PANEL_ROWS; row++)
        sums[row] = vdupq_n_s32(0);
    for (int block = 0; block < n_blocks; block++, codes += W8_BLOCK_BYTES, at += BLOCK_INPUTS) {
        const Inputs front = load_inputs(x, at);
        const Inputs back = load_inputs(x, at + 16);
        for (int row = 0; row < PANEL_ROWS; row++) {
            sums[row] = add_products(sums[row], codes + row * BLOCK_INPUTS, front);
            sums[row] = add_products(sums[row], codes + row * BLOCK_INPUTS + 16, back);
        }
    }
    const int32x4_t front = sum_four_rows(sums[0], sums[1], sums[2], sums[3]);
    const int32x4_t back = sum_four_rows(sums[4], sums[5], sums[6], sums[7]);
    y.front = add_scaled_products(y.front, front, scales, x->scales[group]);
    y.back = add_scaled_products(y.back, back, scales + 8, x->scales[group]);
    return y;
}

void matvec_w8_neon(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel) {
    const int n_blocks = (w->cols + BLOCK_INPUTS - 1) / BLOCK_INPUTS;
    const int full_groups = n_blocks / GROUP_BLOCKS;
    const int rest_blocks = n_blocks % GROUP_BLOCKS;
    const size_t n_groups = (size_t)(full_groups + (rest_blocks > 0));
    const int8_t *codes = (const int8_t *)w->codes + (size_t)first_panel * (size_t)n_blocks * W8_BLOCK_BYTES;
    const uint8_t *scales = (const uint8_t *)w->scales + (size_t)first_panel * n_groups * W8_SCALE_BYTES;
    for (int panel = first_panel; panel < last_panel; panel++) {
        PanelSums sums = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
        for (int group = 0; group < full_groups; group++) {
            sums = add_group(sums, codes, scales, x, group, GROUP_BLOCKS);
            codes += GROUP_BLOCKS * W8_BLOCK_BYTES;
            scales += W8_SCALE_BYTES;
        }
        if (rest_blocks > 0) {
            sums = add_group(sums, codes, scales, x, full_groups, rest_blocks);
            codes += rest_blocks * W8_BLOCK_BYTES;
            scales += W8_SCALE_BYTES;
        }
        store_panel(y, sums, panel, w->rows);
    }
}
