/* f32 and f16 matrix-vector products for NEON: the bodies of matvec_float_lanes.h over the lanes of lanes_neon.h. */
#include "kernels/lanes_neon.h"

#include "kernels/matvec_float_lanes.h"
