/* Nanoseconds of the monotonic clock. */
#ifndef COLIBRI_CLOCK_PORTABLE_H
#define COLIBRI_CLOCK_PORTABLE_H

#include <stdint.h>
#include <time.h>

static inline uint32_t clock_hz(void) {
    return 1000000000u;
}

static inline uint64_t clock_ticks(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
