#define _GNU_SOURCE /* CPU sets, pthread_getattr_np */
#include "port/schedule.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "model_config.h"
#include "port/threads.h"

/* Where thread i ran before. */
static cpu_set_t sets_before[MODEL_MAX_THREADS];

const char *schedule_pin(const int *cpus) {
    int error = 0;
    int n = 0;
    for (; n < threads_count() && error == 0; n++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)cpus[n], &set);
        error = pthread_getaffinity_np(threads_handle(n), sizeof set, &sets_before[n]);
        if (error == 0) {
            error = pthread_setaffinity_np(threads_handle(n), sizeof set, &set);
        }
    }
    for (int i = 0; i < n - 1 && error != 0; i++) { /* the last one failed */
        (void)pthread_setaffinity_np(threads_handle(i), sizeof sets_before[i], &sets_before[i]);
    }
    return error == 0 ? NULL : strerror(error);
}

/* All threads have the same rights: the first one is refused, or none. */
const char *schedule_realtime(int priority) {
    const struct sched_param first = {.sched_priority = priority};
    int error = 0;
    for (int i = 0; i < threads_count() && error == 0; i++) {
        error = pthread_setschedparam(threads_handle(i), SCHED_FIFO, &first);
    }
    return error == 0 ? NULL : strerror(error);
}

bool schedule_stack(int thread, uintptr_t *begin, uintptr_t *end) {
    pthread_attr_t attributes;
    void *stack = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(threads_handle(thread), &attributes) != 0) {
        return false;
    }
    bool is_known = pthread_attr_getstack(&attributes, &stack, &bytes) == 0;
    (void)pthread_attr_destroy(&attributes);
    *begin = (uintptr_t)stack;
    *end = *begin + bytes;
    return is_known;
}
