/* The scale of one activation group, shared by every quantize_activation_*.c. */
#ifndef COLIBRI_ACTIVATION_SCALE_H
#define COLIBRI_ACTIVATION_SCALE_H

#include "math/scalar.h"
#include "model_config.h" /* MODEL_ACTIVATION_BITS */

#define ACTIVATION_MAX (MODEL_ACTIVATION_BITS == 8 ? 127.0f : 32512.0f)

typedef struct {
    float scale;   /* what one unit of a code is worth */
    float inverse; /* codes are rint(x * inverse); 0: every code of the group is 0 */
} ActivationScale;

/* largest: bits of the largest |x| of the group, NaN counting as larger than infinity. A group with NaN or infinity
 * gets the scale NaN, so every product with it is NaN and the run stops at the next check instead of computing on. */
static inline ActivationScale activation_scale(uint32_t largest) {
    if (largest >= 0x7f800000u)
        return (ActivationScale){float_from_bits(0x7fc00000u), 0.0f};
    const float amax = float_from_bits(largest);
    if (amax < 1e-30f)
        return (ActivationScale){0.0f, 0.0f};
    return (ActivationScale){amax / ACTIVATION_MAX, ACTIVATION_MAX / amax};
}

#endif
