/* Element-wise kernels for AVX2: the bodies of vector_lanes.h over the lanes of lanes_avx2.h. */
#include "kernels/lanes_avx2.h"

#include "kernels/vector_lanes.h"
