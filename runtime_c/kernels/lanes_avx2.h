/* The 8 virtual lanes of docs/numerics.md as one AVX2 register. lanes_neon.h defines the same functions. */
#ifndef COLIBRI_LANES_AVX2_H
#define COLIBRI_LANES_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/inline.h"
#include "math/scalar.h"

#define LANES_KERNEL(name) name##_avx2

enum { LANES = 8 };

typedef __m256 Lanes;

ALWAYS_INLINE Lanes lanes_splat(float value) {
    return _mm256_set1_ps(value);
}

ALWAYS_INLINE Lanes lanes_load(const float *p) {
    return _mm256_loadu_ps(p);
}

ALWAYS_INLINE void lanes_store(float *p, Lanes v) {
    _mm256_storeu_ps(p, v);
}

/* All ones in lanes 0 .. n-1; 0 <= n <= 8. */
ALWAYS_INLINE __m256i lanes_mask(int n) {
    static const int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones_then_zeros + 8 - n));
}

/* The `some` functions touch only the first n elements of memory; the other lanes are 0. */
ALWAYS_INLINE Lanes lanes_load_some(const float *p, int n) {
    return _mm256_maskload_ps(p, lanes_mask(n));
}

ALWAYS_INLINE void lanes_store_some(float *p, Lanes v, int n) {
    _mm256_maskstore_ps(p, lanes_mask(n), v);
}

/* v with lanes n .. 7 set to 0. */
ALWAYS_INLINE Lanes lanes_keep_first(Lanes v, int n) {
    return _mm256_and_ps(v, _mm256_castsi256_ps(lanes_mask(n)));
}

ALWAYS_INLINE Lanes lanes_add(Lanes a, Lanes b) {
    return _mm256_add_ps(a, b);
}

ALWAYS_INLINE Lanes lanes_sub(Lanes a, Lanes b) {
    return _mm256_sub_ps(a, b);
}

ALWAYS_INLINE Lanes lanes_mul(Lanes a, Lanes b) {
    return _mm256_mul_ps(a, b);
}

ALWAYS_INLINE Lanes lanes_div(Lanes a, Lanes b) {
    return _mm256_div_ps(a, b);
}

ALWAYS_INLINE Lanes lanes_max(Lanes a, Lanes b) {
    return _mm256_max_ps(a, b);
}

ALWAYS_INLINE Lanes lanes_negate(Lanes v) {
    return _mm256_xor_ps(v, _mm256_set1_ps(-0.0f));
}

/* NaN stays NaN: the instructions return their second operand then. */
ALWAYS_INLINE Lanes lanes_clamp(Lanes v, float low, float high) {
    return _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), v));
}

/* 2^n where t = n + ROUND_MAGIC, -126 <= n <= 127. */
ALWAYS_INLINE Lanes lanes_power_of_two(Lanes t) {
    const __m256i bias = _mm256_set1_epi32((int32_t)(127 - ROUND_MAGIC_BITS));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(t), bias), 23));
}

/* The fixed tree that ends every lane sum. */
ALWAYS_INLINE float lanes_tree(Lanes v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

ALWAYS_INLINE float lanes_largest(Lanes v) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* p[r] = lanes_tree(v[r]) * factor, r < 4; the same additions. */
ALWAYS_INLINE void lanes_store_four_trees(float *p, const Lanes v[4], float factor) {
    __m128 four[4];
    for (int r = 0; r < 4; r++)
        four[r] = _mm_add_ps(_mm256_castps256_ps128(v[r]), _mm256_extractf128_ps(v[r], 1));
    const __m128 front = _mm_add_ps(_mm_movelh_ps(four[0], four[1]), _mm_movehl_ps(four[1], four[0]));
    const __m128 back = _mm_add_ps(_mm_movelh_ps(four[2], four[3]), _mm_movehl_ps(four[3], four[2]));
    _mm_storeu_ps(p, _mm_mul_ps(_mm_hadd_ps(front, back), _mm_set1_ps(factor)));
}

/* 8 fp16 values widened. */
ALWAYS_INLINE Lanes lanes_load_f16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

/* Rounds to fp16, to nearest even. Returns 0 if all 8 results are finite, else -1. */
ALWAYS_INLINE int lanes_store_f16(uint16_t *p, Lanes v) {
    const __m128i halves = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m128i exponent = _mm_set1_epi16(0x7c00);
    _mm_storeu_si128((__m128i *)p, halves);
    return -!!_mm_movemask_epi8(_mm_cmpeq_epi16(_mm_and_si128(halves, exponent), exponent));
}

#endif
