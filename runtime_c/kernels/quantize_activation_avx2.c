/* Activation quantization for AVX2; quantize_activation_portable.c is the specification. */
#include <immintrin.h>

#include "kernels/activation_scale.h"
#include "kernels/inline.h"
#include "kernels/kernels.h"

/* Codes of one block: 4 x 8 int32, input 8*i + lane in element i. */
typedef struct {
    __m256i eights[4];
} BlockCodes;

ALWAYS_INLINE int32_t sum_of_lanes(__m256i v) {
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

/* Bits of the largest |x[k]|, k < n; n is a multiple of 8. */
static uint32_t largest_magnitude(const float *x, int n) {
    const __m256i no_sign = _mm256_set1_epi32(0x7fffffff);
    __m256i largest = _mm256_setzero_si256();
    for (int k = 0; k < n; k += 8) {
        const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + k));
        largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, no_sign));
    }
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
    four = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 1)));
}

/* 32 values in int8 range as bytes, in order of the inputs. */
ALWAYS_INLINE void store_bytes(int8_t *out, BlockCodes c) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* packing works in 128-bit halves */
    const __m256i front = _mm256_packs_epi32(c.eights[0], c.eights[1]);
    const __m256i back = _mm256_packs_epi32(c.eights[2], c.eights[3]);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(front, back), order);
    _mm256_storeu_si256((__m256i *)out, bytes);
}

/* 32 values in int16 range, in order of the inputs. */
ALWAYS_INLINE void store_words(int16_t *out, BlockCodes c) {
    for (int i = 0; i < 2; i++) {
        const __m256i words = _mm256_packs_epi32(c.eights[2 * i], c.eights[2 * i + 1]);
        _mm256_storeu_si256((__m256i *)(out + 16 * i), _mm256_permute4x64_epi64(words, 0xd8));
    }
}

#if MODEL_ACTIVATION_BITS == 16
/* Stores the planes of block k/32; *high_sums and *low_sums collect 8 partial sums each. */
ALWAYS_INLINE void store_planes(const Activation *out, int k, BlockCodes c, __m256i *high_sums, __m256i *low_sums) {
    BlockCodes high, low;
    for (int i = 0; i < 4; i++) {
        high.eights[i] = _mm256_srai_epi32(_mm256_add_epi32(c.eights[i], _mm256_set1_epi32(128)), 8);
        low.eights[i] = _mm256_sub_epi32(c.eights[i], _mm256_slli_epi32(high.eights[i], 8));
        *high_sums = _mm256_add_epi32(*high_sums, high.eights[i]);
        *low_sums = _mm256_add_epi32(*low_sums, low.eights[i]);
    }
    store_bytes(out->high + k, high);
    store_bytes(out->low + k, low);
}
#else
ALWAYS_INLINE void store_planes(const Activation *out, int k, BlockCodes c, __m256i *high_sums, __m256i *low_sums) {
    (void)low_sums;
    for (int i = 0; i < 4; i++)
        *high_sums = _mm256_add_epi32(*high_sums, c.eights[i]);
    store_bytes(out->high + k, c);
}
#endif

/* n inputs of one group, a multiple of 32; first: index of x[0] in the whole vector. */
static void quantize_group(const float *x, int n, int first, Activation *out) {
    const ActivationScale scale = activation_scale(largest_magnitude(x, n));
    const __m256 inverse = _mm256_set1_ps(scale.inverse);
    const __m256 live = _mm256_cmp_ps(inverse, _mm256_setzero_ps(), _CMP_GT_OQ);
    __m256i high_sums = _mm256_setzero_si256();
    __m256i low_sums = _mm256_setzero_si256();
    for (int k = 0; k < n; k += BLOCK_INPUTS) {
        BlockCodes c;
        for (int i = 0; i < 4; i++) {
            const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + k + 8 * i), inverse);
            c.eights[i] = _mm256_cvtps_epi32(_mm256_and_ps(scaled, live));
        }
        store_planes(out, first + k, c, &high_sums, &low_sums);
        if (MODEL_USES_W8)
            store_words(out->codes + first + k, c);
    }
    const int group = first / MODEL_GROUP_SIZE;
    out->scales[group] = scale.scale;
    out->high_sums[group] = (int16_t)sum_of_lanes(high_sums);
    if (MODEL_ACTIVATION_BITS == 16)
        out->low_sums[group] = (int16_t)sum_of_lanes(low_sums);
}

void quantize_activation_avx2(const float *x, int n, Activation *out) {
    int first = 0;
    for (; first + MODEL_GROUP_SIZE <= n; first += MODEL_GROUP_SIZE)
        quantize_group(x + first, MODEL_GROUP_SIZE, first, out);
    if (first < n) {
        float padded[MODEL_GROUP_SIZE] = {0};
        memcpy(padded, x + first, (size_t)(n - first) * sizeof *x);
        quantize_group(padded, (n - first + BLOCK_INPUTS - 1) / BLOCK_INPUTS * BLOCK_INPUTS, first, out);
    }
}
