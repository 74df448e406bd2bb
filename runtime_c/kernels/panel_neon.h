/* What the NEON products of every weight format do with the exact sums of a panel. */
#ifndef COLIBRI_PANEL_NEON_H
#define COLIBRI_PANEL_NEON_H

#include <arm_neon.h>
#include <string.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"

/* y of the 8 rows of a panel. */
typedef struct {
    float32x4_t front; /* rows 0-3 */
    float32x4_t back;  /* rows 4-7 */
} PanelSums;

/* sums + float(d) * (weight scale * activation scale) of 4 rows; scales: 4 fp16. */
ALWAYS_INLINE float32x4_t add_scaled_products(float32x4_t sums, int32x4_t d, const uint8_t *scales,
                                              float activation_scale) {
    const float32x4_t weight_scales = vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(scales)));
    return vaddq_f32(sums, vmulq_f32(vcvtq_f32_s32(d), vmulq_n_f32(weight_scales, activation_scale)));
}

/* 4 rows with 4 partial sums -> one sum a row, rows in order. */
ALWAYS_INLINE int32x4_t sum_four_rows(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
    return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

/* y[rows of the panel], of which only those below n_rows exist. */
ALWAYS_INLINE void store_panel(float *y, PanelSums sums, int panel, int n_rows) {
    const int first = panel * PANEL_ROWS;
    if (first + PANEL_ROWS <= n_rows) {
        vst1q_f32(y + first, sums.front);
        vst1q_f32(y + first + 4, sums.back);
        return;
    }
    float rows[PANEL_ROWS];
    vst1q_f32(rows, sums.front);
    vst1q_f32(rows + 4, sums.back);
    memcpy(y + first, rows, (size_t)(n_rows - first) * sizeof *y);
}

#endif
