/* Products with 8-bit weights for AVX2; matvec_w8_portable.c is the specification.
 *
 * Weights are widened to int16 and multiplied with whole activation codes; a row has 8 partial sums of 32 bits, which
 * together stay below 128 * 127 * 32512 < 2^30 in a group. */
#include <immintrin.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_avx2.h"

enum { GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS };

/* Products of 16 weights with 16 codes, neighbours added: 8 int32. */
ALWAYS_INLINE __m256i sixteen_products(const int8_t *weights, __m256i codes) {
    return _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)weights)), codes);
}

/* d of the 8 rows for one group of n_blocks blocks; x: its codes. */
ALWAYS_INLINE __m256i group_products(const int8_t *weights, const int16_t *x, int n_blocks) {
    __m256i sums[PANEL_ROWS];
    for (int row = 0; row < PANEL_ROWS; row++)
        sums[row] = _mm256_setzero_si256();
    for (int block = 0; block < n_blocks; block++, weights += W8_BLOCK_BYTES, x += BLOCK_INPUTS) {
        const __m256i front = _mm256_load_si256((const __m256i *)x);
        const __m256i back = _mm256_load_si256((const __m256i *)(x + 16));
        for (int row = 0; row < PANEL_ROWS; row++) {
            sums[row] = _mm256_add_epi32(sums[row], sixteen_products(weights + row * BLOCK_INPUTS, front));
            sums[row] = _mm256_add_epi32(sums[row], sixteen_products(weights + row * BLOCK_INPUTS + 16, back));
        }
    }
    return sum_eight_rows(sums);
}

/* y of the 8 rows with the products of one more group added; scales: the record of this panel and group. */
ALWAYS_INLINE __m256 add_group(__m256 y, const int8_t *codes, const uint8_t *scales, const Activation *x, int group,
                               int n_blocks) {
    prefetch_weights(codes, n_blocks * W8_BLOCK_BYTES);
    const __m256i d = group_products(codes, x->codes + group * MODEL_GROUP_SIZE, n_blocks);
    return _mm256_add_ps(y, scaled_products(d, scales, x->scales[group]));
}

void matvec_w8_avx2(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel) {
    const int n_blocks = (w->cols + BLOCK_INPUTS - 1) / BLOCK_INPUTS;
    const int full_groups = n_blocks / GROUP_BLOCKS;
    const int rest_blocks = n_blocks % GROUP_BLOCKS;
    const size_t n_groups = (size_t)(full_groups + (rest_blocks > 0));
    const int8_t *codes = (const int8_t *)w->codes + (size_t)first_panel * (size_t)n_blocks * W8_BLOCK_BYTES;
    const uint8_t *scales = (const uint8_t *)w->scales + (size_t)first_panel * n_groups * W8_SCALE_BYTES;
    for (int panel = first_panel; panel < last_panel; panel++) {
        __m256 sums = _mm256_setzero_ps();
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
