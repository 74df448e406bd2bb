/* For the pieces of a kernel: they must melt into its loop at every optimisation level, or vectors go through memory.
 */
#ifndef COLIBRI_INLINE_H
#define COLIBRI_INLINE_H

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#endif
