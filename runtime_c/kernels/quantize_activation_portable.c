/* Activation quantization in plain C: the specification of quantize_activation_avx2.c and quantize_activation_neon.c.
 */
#include "kernels/activation_scale.h"
#include "kernels/kernels.h"

/* Stores the code of input k and adds its planes to the sums of the group. */
static void store_code(const Activation *out, int k, int32_t code, int32_t *high_sum, int32_t *low_sum) {
    if (MODEL_USES_W8)
        out->codes[k] = (int16_t)code;
    if (MODEL_ACTIVATION_BITS == 8) {
        out->high[k] = (int8_t)code;
        *high_sum += code;
        return;
    }
    const int32_t high = (code + 128) >> 8;
    const int32_t low = code - 256 * high;
    out->high[k] = (int8_t)high;
    out->low[k] = (int8_t)low;
    *high_sum += high;
    *low_sum += low;
}

/* Inputs first .. end-1 are one group; codes up to padded_end are written, the surplus zero. */
static void quantize_group(const float *x, int first, int end, int padded_end, Activation *out) {
    uint32_t largest = 0; /* bits of the largest magnitude: integers order floats, and NaN above all */
    for (int k = first; k < end; k++) {
        const uint32_t magnitude = float_to_bits(x[k]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    const int group = first / MODEL_GROUP_SIZE;
    const ActivationScale scale = activation_scale(largest);
    int32_t high_sum = 0;
    int32_t low_sum = 0;
    for (int k = first; k < padded_end; k++) {
        const int32_t code = k < end && scale.inverse > 0.0f ? round_to_int(x[k] * scale.inverse) : 0;
        store_code(out, k, code, &high_sum, &low_sum);
    }
    out->scales[group] = scale.scale;
    out->high_sums[group] = (int16_t)high_sum;
    if (MODEL_ACTIVATION_BITS == 16)
        out->low_sums[group] = (int16_t)low_sum;
}

void quantize_activation_portable(const float *x, int n, Activation *out) {
    const int padded_n = (n + BLOCK_INPUTS - 1) / BLOCK_INPUTS * BLOCK_INPUTS;
    for (int first = 0; first < n; first += MODEL_GROUP_SIZE) {
        const int end = first + MODEL_GROUP_SIZE;
        quantize_group(x, first, end < n ? end : n, end < padded_n ? end : padded_n, out);
    }
}
