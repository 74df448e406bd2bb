/* Attention over the fp16 cache for AVX2: the bodies of attention_lanes.h over the lanes of lanes_avx2.h. */
#include "kernels/lanes_avx2.h"

#include "kernels/attention_lanes.h"
