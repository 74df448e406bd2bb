/* Scalar arithmetic of docs/numerics.md: only IEEE + - * / sqrt and integer operations, so that every compiler gives
 * the same bits under -ffp-contract=off. Callers never need libm. */
#ifndef COLIBRI_MATH_SCALAR_H
#define COLIBRI_MATH_SCALAR_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 1.5 * 2^23. Where |x| < 2^22, x + ROUND_MAGIC is x rounded to the nearest integer (ties to even) plus this number,
 * and that integer is the difference of the two bit patterns. */
#define ROUND_MAGIC 12582912.0f
#define ROUND_MAGIC_BITS 0x4b400000u

/* Nearest integer, ties to even; |x| < 2^22. */
static inline int32_t round_to_int(float x) {
    return (int32_t)(float_to_bits(x + ROUND_MAGIC) - ROUND_MAGIC_BITS);
}

/* Correctly rounded. -fno-math-errno turns it into one instruction; without it compilers add a call for errno. */
static inline float square_root(float x) {
    return __builtin_sqrtf(x);
}

/* 1 where x is neither NaN nor infinite. */
static inline int is_finite(float x) {
    return (float_to_bits(x) & 0x7f800000u) != 0x7f800000u;
}

/* Every fp16 value is a binary32 value. NaN keeps its payload and becomes quiet, as F16C and A64 do it. */
static inline float f16_to_f32(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    if (magnitude > 0x7c00u)
        return float_from_bits(sign | 0x7fc00000u | (magnitude & 0x3ffu) << 13);
    if (magnitude == 0x7c00u)
        return float_from_bits(sign | 0x7f800000u);
    if (magnitude >= 0x0400u) /* normal: exponent bias 15 becomes 127 */
        return float_from_bits(sign | ((magnitude << 13) + (112u << 23)));
    return float_from_bits(sign | float_to_bits((float)magnitude * 0x1p-24f));
}

/* Round to nearest even; 65520 and above become infinity; subnormal results are kept. */
static inline uint16_t f32_to_f16(float value) {
    const uint32_t bits = float_to_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        /* Below 2^-14 the results are multiples of 2^-24, which is the spacing of floats in [0.5, 1): the sum rounds.
         */
        const float rounded = float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (float_to_bits(rounded) - float_to_bits(0.5f)));
    }
    const uint32_t to_even = 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((magnitude - (112u << 23) + to_even) >> 13));
}

/* e^x, at most 1 ulp off in [-87, 88]; x is clamped to that range first. NaN gives NaN. */
static inline float exp_f32(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float t = x * 0x1.715476p+0f + ROUND_MAGIC;
    const float n = t - ROUND_MAGIC;
    float r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r;
    p = p + 1.0f;
    return p * float_from_bits((float_to_bits(t) - ROUND_MAGIC_BITS + 127u) << 23);
}

static inline float sigmoid_f32(float x) {
    return 1.0f / (1.0f + exp_f32(-x));
}

static inline float silu_f32(float x) {
    return x / (1.0f + exp_f32(-x));
}

/* Sine and cosine of an angle in radians, |angle| < 1e6, computed in binary64 and rounded once. */
static inline void sincos_f32(double angle, float *sine, float *cosine) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52, rounds as ROUND_MAGIC does */
    const double n = (angle * 0.63661977236758134308 + magic) - magic;
    double r = angle - n * 1.57079632673412561417e+00;
    r = r - n * 6.07710050650619224932e-11;
    const double z = r * r;
    double s = 1.58969099521155010221e-10;
    s = s * z + -2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z + -1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z + -1.66666666666666324348e-01;
    double c = -1.13596475577881948265e-11;
    c = c * z + 2.08757232129817482790e-09;
    c = c * z + -2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z + -1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    s = r + r * z * s;
    c = 1.0 - (0.5 * z - z * z * c);
    const int quadrant = (int)((int64_t)n & 3);
    const double swapped_s = quadrant & 1 ? c : s;
    const double swapped_c = quadrant & 1 ? s : c;
    *sine = (float)(quadrant >= 2 ? -swapped_s : swapped_s);
    *cosine = (float)(quadrant == 1 || quadrant == 2 ? -swapped_c : swapped_c);
}

/* The fixed tree that ends every lane sum. */
static inline float lane_tree(const float lanes[8]) {
    const float even = (lanes[0] + lanes[4]) + (lanes[2] + lanes[6]);
    const float odd = (lanes[1] + lanes[5]) + (lanes[3] + lanes[7]);
    return even + odd;
}

#endif
