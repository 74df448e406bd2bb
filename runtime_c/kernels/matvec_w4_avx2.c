/* Products with 4-bit weights for AVX2; matvec_w4_portable.c is the specification.
 *
 * A 32-byte pair of the layout is one register: row i in its low half, row i + 4 in its high half. Each row has 8
 * partial sums of 16 bits for each plane; a group adds at most 16 products to one: 16 * 15 * 128 = 30720 <= 32767. */
#include <immintrin.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_avx2.h"

enum { PAIRS = PANEL_ROWS / 2, GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS };

/* clang would mix the products of several pairs and run out of registers; gcc does better when left alone. */
#if defined(__clang__)
#define KEEP_APART(a, b) __asm__("" : "+x"(a), "+x"(b))
#else
#define KEEP_APART(a, b) ((void)0)
#endif

/* 16 inputs in both halves. */
ALWAYS_INLINE __m256i inputs_twice(const int8_t *plane) {
    return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)plane));
}

/* Adds the products of one pair of rows with one block (first: starts with them): low nibbles with inputs 0-15, high
 * nibbles with 16-31. */
ALWAYS_INLINE __m256i add_products(__m256i sums, __m256i low_nibbles, __m256i high_nibbles, __m256i front, __m256i back,
                                   int first) {
    const __m256i products = _mm256_maddubs_epi16(low_nibbles, front);
    sums = first ? products : _mm256_add_epi16(sums, products);
    return _mm256_add_epi16(sums, _mm256_maddubs_epi16(high_nibbles, back));
}

/* 4 pairs with 8 int32 partial sums -> one int32 a row, rows in order. */
ALWAYS_INLINE __m256i sum_rows(const __m256i pairs[PAIRS]) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(pairs[0], pairs[1]), _mm256_hadd_epi32(pairs[2], pairs[3]));
}

ALWAYS_INLINE __m256i low_nibbles_of(__m256i bytes) {
    return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
}

ALWAYS_INLINE __m256i high_nibbles_of(__m256i bytes) {
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
}

#if MODEL_ACTIVATION_BITS == 16
/* d of the 8 rows for one group of n_blocks blocks. */
ALWAYS_INLINE __m256i group_products(const uint8_t *codes, const uint8_t *zero_points, const Activation *x, int group,
                                     int n_blocks) {
    const int8_t *high = x->high + group * MODEL_GROUP_SIZE;
    const int8_t *low = x->low + group * MODEL_GROUP_SIZE;
    __m256i high_sums[PAIRS], low_sums[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        high_sums[i] = low_sums[i] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int block = 0; block < n_blocks; block++) {
        const __m256i high_front = inputs_twice(high + block * BLOCK_INPUTS);
        const __m256i high_back = inputs_twice(high + block * BLOCK_INPUTS + 16);
        const __m256i low_front = inputs_twice(low + block * BLOCK_INPUTS);
        const __m256i low_back = inputs_twice(low + block * BLOCK_INPUTS + 16);
        for (int i = 0; i < PAIRS; i++) {
            const __m256i bytes = _mm256_load_si256((const __m256i *)(codes + block * W4_BLOCK_BYTES + 32 * i));
            const __m256i low_nibbles = low_nibbles_of(bytes);
            const __m256i high_nibbles = high_nibbles_of(bytes);
            high_sums[i] = add_products(high_sums[i], low_nibbles, high_nibbles, high_front, high_back, block == 0);
            low_sums[i] = add_products(low_sums[i], low_nibbles, high_nibbles, low_front, low_back, block == 0);
            KEEP_APART(high_sums[i], low_sums[i]);
        }
    }
    /* 256 * high + low in int32: two partial sums of each plane, at most 2 * 257 * 30720. */
    __m256i wide[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        wide[i] = _mm256_add_epi32(_mm256_madd_epi16(high_sums[i], _mm256_set1_epi16(256)),
                                   _mm256_madd_epi16(low_sums[i], _mm256_set1_epi16(1)));
    /* Pairs of int16: (zero point, 256 * zero point) times (low sum, high sum). */
    const __m256i zeros = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)zero_points));
    const __m256i zero_pairs = _mm256_or_si256(zeros, _mm256_slli_epi32(zeros, 24));
    const __m256i plane_sums =
        _mm256_blend_epi16(_mm256_set1_epi16(x->low_sums[group]), _mm256_set1_epi16(x->high_sums[group]), 0xaa);
    return _mm256_sub_epi32(sum_rows(wide), _mm256_madd_epi16(zero_pairs, plane_sums));
}
#else
/* d of the 8 rows for one group of n_blocks blocks. */
ALWAYS_INLINE __m256i group_products(const uint8_t *codes, const uint8_t *zero_points, const Activation *x, int group,
                                     int n_blocks) {
    const int8_t *inputs = x->high + group * MODEL_GROUP_SIZE;
    __m256i sums[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        sums[i] = _mm256_setzero_si256();
    for (int block = 0; block < n_blocks; block++) {
        const __m256i front = inputs_twice(inputs + block * BLOCK_INPUTS);
        const __m256i back = inputs_twice(inputs + block * BLOCK_INPUTS + 16);
        for (int i = 0; i < PAIRS; i++) {
            const __m256i bytes = _mm256_load_si256((const __m256i *)(codes + block * W4_BLOCK_BYTES + 32 * i));
            sums[i] = add_products(sums[i], low_nibbles_of(bytes), high_nibbles_of(bytes), front, back, block == 0);
        }
    }
    for (int i = 0; i < PAIRS; i++)
        sums[i] = _mm256_madd_epi16(sums[i], _mm256_set1_epi16(1));
    /* The upper int16 of each zero point is 0, so what the sum's upper int16 holds does not count. */
    const __m256i zeros = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)zero_points));
    return _mm256_sub_epi32(sum_rows(sums), _mm256_madd_epi16(zeros, _mm256_set1_epi16(x->high_sums[group])));
}
#endif

/* y of the 8 rows with the products of one more group added; scales: the record of this panel and group. */
ALWAYS_INLINE __m256 add_group(__m256 y, const uint8_t *codes, const uint8_t *scales, const Activation *x, int group,
                               int n_blocks) {
    prefetch_weights(codes, n_blocks * W4_BLOCK_BYTES);
    const __m256i d = group_products(codes, scales + 2 * PANEL_ROWS, x, group, n_blocks);
    return _mm256_add_ps(y, scaled_products(d, scales, x->scales[group]));
}

void matvec_w4_avx2(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel) {
    const int n_blocks = (w->cols + BLOCK_INPUTS - 1) / BLOCK_INPUTS;
    const int full_groups = n_blocks / GROUP_BLOCKS;
    const int rest_blocks = n_blocks % GROUP_BLOCKS;
    const size_t n_groups = (size_t)(full_groups + (rest_blocks > 0));
    const uint8_t *codes = (const uint8_t *)w->codes + (size_t)first_panel * (size_t)n_blocks * W4_BLOCK_BYTES;
    const uint8_t *scales = (const uint8_t *)w->scales + (size_t)first_panel * n_groups * W4_SCALE_BYTES;
    for (int panel = first_panel; panel < last_panel; panel++) {
        __m256 sums = _mm256_setzero_ps();
        for (int group = 0; group < full_groups; group++) {
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
