/* Where and when the team's threads run. Each function is for all of them, the caller included, and returns NULL or the
 * system's reason for a refusal; then none of them is changed. */
#ifndef COLIBRI_SCHEDULE_H
#define COLIBRI_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_CPUS = 1024 }; /* numbers that the C library's sets hold */

/* Thread i runs on CPU cpus[i] alone, each 0 .. MOST_CPUS-1; there are threads_count() of them. */
const char *schedule_pin(const int *cpus);

/* First in, first out: the threads run before every other program's, until they wait. priority: 1 .. 99. */
const char *schedule_realtime(int priority);

/* The stack of a thread, 1 .. threads_count()-1. Returns false if the C library does not tell. */
bool schedule_stack(int thread, uintptr_t *begin, uintptr_t *end);

#endif
