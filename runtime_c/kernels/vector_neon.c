/* Element-wise kernels for NEON: the bodies of vector_lanes.h over the lanes of lanes_neon.h. */
#include "kernels/lanes_neon.h"

#include "kernels/vector_lanes.h"
