/* A fixed team of threads that splits rows. The split changes no result: each row has one owner and one accumulator. */
#ifndef COLIBRI_THREADS_H
#define COLIBRI_THREADS_H

#include <pthread.h>

#include "colibri.h"

/* Of each thread; the plan counts as much. glibc takes no less on AArch64. */
enum { THREAD_STACK_BYTES = 128 * 1024 };

/* Computes items begin .. end-1. Must not call threads_run. */
typedef void (*ThreadWork)(void *argument, int begin, int end);

/* Ends the team of before and starts n_threads - 1 workers, 1 <= n_threads <= MODEL_MAX_THREADS. COLIBRI_E_THREADS if
 * one cannot be started. */
COLIBRI_MUST_CHECK colibri_status threads_start(int n_threads);
void threads_stop(void);

/* The team's threads, the caller of threads_start, number 0, included. It must run already. */
int threads_count(void);
pthread_t threads_handle(int thread);

/* Runs work over 0 .. n_items-1, one share a thread; returns when all of it is done. Who gets no core soon enough loses
 * its share to another thread, the caller included. */
void threads_run(ThreadWork work, void *argument, int n_items);

#endif
