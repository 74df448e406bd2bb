/* The 8 virtual lanes of docs/numerics.md as two NEON registers. lanes_avx2.h defines the same functions.
 * Products and sums stay separate instructions: vmlaq_f32 and vfmaq_f32 would round once instead of twice. */
#ifndef COLIBRI_LANES_NEON_H
#define COLIBRI_LANES_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "kernels/inline.h"
#include "math/scalar.h"

#define LANES_KERNEL(name) name##_neon

enum { LANES = 8 };

typedef struct {
    float32x4_t low;  /* lanes 0-3 */
    float32x4_t high; /* lanes 4-7 */
} Lanes;

ALWAYS_INLINE Lanes lanes_splat(float value) {
    return (Lanes){vdupq_n_f32(value), vdupq_n_f32(value)};
}

ALWAYS_INLINE Lanes lanes_load(const float *p) {
    return (Lanes){vld1q_f32(p), vld1q_f32(p + 4)};
}

ALWAYS_INLINE void lanes_store(float *p, Lanes v) {
    vst1q_f32(p, v.low);
    vst1q_f32(p + 4, v.high);
}

/* The `some` functions touch only the first n elements of memory; the other lanes are 0. */
ALWAYS_INLINE Lanes lanes_load_some(const float *p, int n) {
    float padded[LANES] = {0};
    memcpy(padded, p, (size_t)n * sizeof *p);
    return lanes_load(padded);
}

ALWAYS_INLINE void lanes_store_some(float *p, Lanes v, int n) {
    float all[LANES];
    lanes_store(all, v);
    memcpy(p, all, (size_t)n * sizeof *p);
}

/* v with lanes n .. 7 set to 0. */
ALWAYS_INLINE Lanes lanes_keep_first(Lanes v, int n) {
    float all[LANES];
    lanes_store(all, v);
    return lanes_load_some(all, n);
}

ALWAYS_INLINE Lanes lanes_add(Lanes a, Lanes b) {
    return (Lanes){vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}

ALWAYS_INLINE Lanes lanes_sub(Lanes a, Lanes b) {
    return (Lanes){vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}

ALWAYS_INLINE Lanes lanes_mul(Lanes a, Lanes b) {
    return (Lanes){vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}

ALWAYS_INLINE Lanes lanes_div(Lanes a, Lanes b) {
    return (Lanes){vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}

ALWAYS_INLINE Lanes lanes_max(Lanes a, Lanes b) {
    return (Lanes){vmaxq_f32(a.low, b.low), vmaxq_f32(a.high, b.high)};
}

ALWAYS_INLINE Lanes lanes_negate(Lanes v) {
    return (Lanes){vnegq_f32(v.low), vnegq_f32(v.high)};
}

/* NaN stays NaN. */
ALWAYS_INLINE Lanes lanes_clamp(Lanes v, float low, float high) {
    const float32x4_t least = vdupq_n_f32(low);
    const float32x4_t most = vdupq_n_f32(high);
    return (Lanes){vminq_f32(vmaxq_f32(v.low, least), most), vminq_f32(vmaxq_f32(v.high, least), most)};
}

/* 2^n where t = n + ROUND_MAGIC, -126 <= n <= 127. */
ALWAYS_INLINE Lanes lanes_power_of_two(Lanes t) {
    const uint32x4_t bias = vdupq_n_u32(127 - ROUND_MAGIC_BITS);
    return (Lanes){
        vreinterpretq_f32_u32(vshlq_n_u32(vaddq_u32(vreinterpretq_u32_f32(t.low), bias), 23)),
        vreinterpretq_f32_u32(vshlq_n_u32(vaddq_u32(vreinterpretq_u32_f32(t.high), bias), 23)),
    };
}

/* The fixed tree that ends every lane sum. */
ALWAYS_INLINE float lanes_tree(Lanes v) {
    const float32x4_t four = vaddq_f32(v.low, v.high);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

ALWAYS_INLINE float lanes_largest(Lanes v) {
    return vmaxvq_f32(vmaxq_f32(v.low, v.high));
}

/* Elements 0, 1 of a and of b plus their elements 2, 3. */
ALWAYS_INLINE float32x4_t add_halves(float32x4_t a, float32x4_t b) {
    const float64x2_t wide_a = vreinterpretq_f64_f32(a);
    const float64x2_t wide_b = vreinterpretq_f64_f32(b);
    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(wide_a, wide_b)),
                     vreinterpretq_f32_f64(vzip2q_f64(wide_a, wide_b)));
}

/* p[r] = lanes_tree(v[r]) * factor, r < 4; the same additions. */
ALWAYS_INLINE void lanes_store_four_trees(float *p, const Lanes v[4], float factor) {
    float32x4_t four[4];
    for (int r = 0; r < 4; r++)
        four[r] = vaddq_f32(v[r].low, v[r].high);
    const float32x4_t sums = vpaddq_f32(add_halves(four[0], four[1]), add_halves(four[2], four[3]));
    vst1q_f32(p, vmulq_n_f32(sums, factor));
}

/* 8 fp16 values widened. */
ALWAYS_INLINE Lanes lanes_load_f16(const uint16_t *p) {
    const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(p));
    return (Lanes){vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}

/* Rounds to fp16, to nearest even. Returns 0 if all 8 results are finite, else -1. */
ALWAYS_INLINE int lanes_store_f16(uint16_t *p, Lanes v) {
    const uint16x8_t halves = vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(v.low), v.high));
    const uint16x8_t magnitudes = vandq_u16(halves, vdupq_n_u16(0x7fff));
    vst1q_u16(p, halves);
    return vmaxvq_u16(magnitudes) >= 0x7c00u ? -1 : 0;
}

#endif
