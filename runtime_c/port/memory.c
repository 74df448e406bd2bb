#define _GNU_SOURCE /* madvise's populating, MAP_ANONYMOUS */
#include "port/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "port/kernel_file.h"
#include "port/schedule.h"
#include "port/segments.h"
#include "port/threads.h"

/* Linux 5.14; older C libraries do not name them. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { MAIN_STACK_BYTES = 64 * 1024 }; /* more than is used (elf/stack.py), less than the kernel maps from the start */

const char *memory_lock(void) {
    return mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? NULL : strerror(errno);
}

/* For kernels that cannot populate. Adding 0 writes a page and leaves what other threads write there. */
static void touch(const Segment *segment) {
    for (uintptr_t at = segment->begin; at < segment->end; at += page_bytes()) {
        if (segment->is_written) {
            (void)__atomic_fetch_add((unsigned char *)at, 0, __ATOMIC_RELAXED);
        } else {
            (void)*(volatile const unsigned char *)at;
        }
    }
}

/* Returns 0, or what the kernel refused it for: a page that it cannot map would end who touches it. */
static int populate(const Segment *segment, int64_t *n_bytes) {
    int advice = segment->is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    if (madvise((void *)segment->begin, segment->end - segment->begin, advice) != 0) {
        if (errno != EINVAL) {
            return errno;
        }
        touch(segment);
    }
    *n_bytes += (int64_t)(segment->end - segment->begin);
    return 0;
}

static int populate_stacks(int64_t *n_bytes) {
    int here = 0;
    uintptr_t end = round_down((uintptr_t)&here, page_bytes());
    int error = populate(&(Segment){.begin = end - MAIN_STACK_BYTES, .end = end, .is_written = true}, n_bytes);
    for (int thread = 1; thread < threads_count() && error == 0; thread++) {
        Segment stack = {.is_written = true};
        if (schedule_stack(thread, &stack.begin, &stack.end)) {
            error = populate(&stack, n_bytes);
        }
    }
    return error;
}

const char *memory_prefault(int64_t *n_bytes) {
    Segment segments[MOST_SEGMENTS];
    int n = segments_find(segments);
    int error = 0;
    if (n == 0) {
        return "the program's headers are not mapped";
    }
    for (int i = 0; i < n && error == 0; i++) {
        error = populate(&segments[i], n_bytes);
    }
    error = error != 0 ? error : populate_stacks(n_bytes);
    return error != 0 ? strerror(error) : NULL;
}

int64_t memory_peak_kib(void) {
    int64_t kib = kernel_file_sum_kib("/proc/self/status", "VmHWM:");
    return kib > 0 ? kib : 0;
}
