/* The virtual counter, which Linux lets programs read; the cycle counter pmccntr_el0 it does not. */
#ifndef COLIBRI_CLOCK_AARCH64_H
#define COLIBRI_CLOCK_AARCH64_H

#include <stdint.h>

static inline uint32_t clock_hz(void) {
    uint64_t hz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return (uint32_t)hz;
}

/* The barrier keeps an out-of-order processor from reading the counter before the work that it measures is done. */
static inline uint64_t clock_ticks(void) {
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
}

#endif
