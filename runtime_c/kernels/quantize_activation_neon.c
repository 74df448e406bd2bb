/* Activation quantization for NEON; quantize_activation_portable.c is the specification. */
#include <arm_neon.h>

#include "kernels/activation_scale.h"
#include "kernels/inline.h"
#include "kernels/kernels.h"

/* Bits of the largest |x[k]|, k < n; n is a multiple of 8. */
static uint32_t largest_magnitude(const float *x, int n) {
    uint32x4_t largest = vdupq_n_u32(0);
    for (int k = 0; k < n; k += 4)
        largest = vmaxq_u32(largest, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + k))));
    return vmaxvq_u32(largest);
}

/* rint(x[k] * inverse) for 8 inputs; 0 in a group that is not live. */
ALWAYS_INLINE int16x8_t eight_codes(const float *x, float inverse, uint32x4_t live) {
    const int32x4_t front = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), inverse));
    const int32x4_t back = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4), inverse));
    const int32x4_t mask = vreinterpretq_s32_u32(live);
    return vcombine_s16(vmovn_s32(vandq_s32(front, mask)), vmovn_s32(vandq_s32(back, mask)));
}

#if MODEL_ACTIVATION_BITS == 16
/* Stores the planes of inputs k .. k+7; *high_sums and *low_sums collect 8 partial sums each, at most 16 terms a lane.
 */
ALWAYS_INLINE void store_planes(const Activation *out, int k, int16x8_t codes, int16x8_t *high_sums,
                                int16x8_t *low_sums) {
    const int8x8_t high = vshrn_n_s16(vaddq_s16(codes, vdupq_n_s16(128)), 8);
    const int8x8_t low = vmovn_s16(codes); /* codes - 256*high is the low byte, read as a signed one */
    vst1_s8(out->high + k, high);
    vst1_s8(out->low + k, low);
    *high_sums = vaddw_s8(*high_sums, high);
    *low_sums = vaddw_s8(*low_sums, low);
}
#else
ALWAYS_INLINE void store_planes(const Activation *out, int k, int16x8_t codes, int16x8_t *high_sums,
                                int16x8_t *low_sums) {
    (void)low_sums;
    vst1_s8(out->high + k, vmovn_s16(codes));
    *high_sums = vaddq_s16(*high_sums, codes);
}
#endif

/* n inputs of one group, a multiple of 32; first: index of x[0] in the whole vector. */
static void quantize_group(const float *x, int n, int first, Activation *out) {
    const ActivationScale scale = activation_scale(largest_magnitude(x, n));
    const uint32x4_t live = vdupq_n_u32(scale.inverse > 0.0f ? 0xffffffffu : 0u);
    int16x8_t high_sums = vdupq_n_s16(0);
    int16x8_t low_sums = vdupq_n_s16(0);
    for (int k = 0; k < n; k += 8) {
        const int16x8_t codes = eight_codes(x + k, scale.inverse, live);
        store_planes(out, first + k, codes, &high_sums, &low_sums);
        if (MODEL_USES_W8)
            vst1q_s16(out->codes + first + k, codes);
    }
    const int group = first / MODEL_GROUP_SIZE;
    out->scales[group] = scale.scale;
    out->high_sums[group] = vaddvq_s16(high_sums);
    if (MODEL_ACTIVATION_BITS == 16)
        out->low_sums[group] = vaddvq_s16(low_sums);
}

void quantize_activation_neon(const float *x, int n, Activation *out) {
    int first = 0;
    for (; first + MODEL_GROUP_SIZE <= n; first += MODEL_GROUP_SIZE)
        quantize_group(x + first, MODEL_GROUP_SIZE, first, out);
    if (first < n) {
        float padded[MODEL_GROUP_SIZE] = {0};
        memcpy(padded, x + first, (size_t)(n - first) * sizeof *x);
        quantize_group(padded, (n - first + BLOCK_INPUTS - 1) / BLOCK_INPUTS * BLOCK_INPUTS, first, out);
    }
}
