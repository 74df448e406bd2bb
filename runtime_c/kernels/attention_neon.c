/* Attention over the fp16 cache for NEON: the bodies of attention_lanes.h over the lanes of lanes_neon.h. */
#include "kernels/lanes_neon.h"

#include "kernels/attention_lanes.h"
