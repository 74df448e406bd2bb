/* What the AVX2 products of every weight format do with the exact sums of a panel. */
#ifndef COLIBRI_PANEL_AVX2_H
#define COLIBRI_PANEL_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"

/* Distance in bytes at which weights are asked for. Hardware prefetchers stop at the end of a page of 4 KiB and start
 * slowly behind it; measured from 512 B to 16 KiB. */
enum { PREFETCH_AHEAD = 8192, LINE_BYTES = 64 };

/* Asks for n_bytes of weights, whole cache lines, that follow `ahead` bytes later; an address behind the weights does
 * no harm. */
ALWAYS_INLINE void prefetch_lines(const void *codes, size_t ahead, int n_bytes) {
    for (int i = 0; i < n_bytes; i += LINE_BYTES)
        _mm_prefetch((const char *)((uintptr_t)codes + ahead + (size_t)i), _MM_HINT_T1);
}

/* Asks for what a product that reads weights in their order needs PREFETCH_AHEAD bytes later. Stands outside of the
 * inner loops, where it would cost gcc registers. */
ALWAYS_INLINE void prefetch_weights(const void *codes, int n_bytes) {
    prefetch_lines(codes, PREFETCH_AHEAD, n_bytes);
}

/* float(d) * (weight scale * activation scale) of 8 rows; scales: 8 fp16. */
ALWAYS_INLINE __m256 scaled_products(__m256i d, const uint8_t *scales, float activation_scale) {
    const __m256 weight_scales = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)scales));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(d), _mm256_mul_ps(weight_scales, _mm256_set1_ps(activation_scale)));
}

/* 8 rows with 8 int32 partial sums -> one int32 a row, rows in order. */
ALWAYS_INLINE __m256i sum_eight_rows(const __m256i rows[PANEL_ROWS]) {
    const __m256i front = _mm256_hadd_epi32(_mm256_hadd_epi32(rows[0], rows[1]), _mm256_hadd_epi32(rows[2], rows[3]));
    const __m256i back = _mm256_hadd_epi32(_mm256_hadd_epi32(rows[4], rows[5]), _mm256_hadd_epi32(rows[6], rows[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(front, back, 0x20), _mm256_permute2x128_si256(front, back, 0x31));
}

/* y[rows of the panel], of which only those below n_rows exist. */
ALWAYS_INLINE void store_panel(float *y, __m256 sums, int panel, int n_rows) {
    const int first = panel * PANEL_ROWS;
    if (first + PANEL_ROWS <= n_rows) {
        _mm256_storeu_ps(y + first, sums);
        return;
    }
    float rows[PANEL_ROWS];
    _mm256_storeu_ps(rows, sums);
    memcpy(y + first, rows, (size_t)(n_rows - first) * sizeof *y);
}

#endif
