/* f32 and f16 matrix-vector products for AVX2: the bodies of matvec_float_lanes.h over the lanes of lanes_avx2.h. */
#include "kernels/lanes_avx2.h"

#include "kernels/matvec_float_lanes.h"
