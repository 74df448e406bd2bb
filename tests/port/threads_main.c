/* Runs many jobs of changing sizes on 1 .. MODEL_MAX_THREADS threads and counts every item exactly once. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model_config.h"
#include "port/threads.c" /* to see who rests */

enum { N_ITEMS = 1000, N_JOBS = 600 };

static unsigned counts[N_ITEMS];

static void count_items(void *argument, int begin, int end) {
    const int *step = argument;
    for (int i = begin; i < end; i++) {
        counts[i] += (unsigned)*step;
    }
}

static int count_tasks(void) {
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks != NULL && readdir(tasks) != NULL) {
        n++;
    }
    closedir(tasks);
    return n;
}

/* An emulator ends its own thread some time after the one that it emulates. */
static int check_tasks(int n_tasks) {
    for (int tries = 0; tries < 100; tries++) {
        if (count_tasks() == n_tasks) {
            return 0;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return 1;
}

/* n_tasks: threads of the process without a team. */
static int check_team(int n_threads, int n_tasks) {
    memset(counts, 0, sizeof counts);
    if (threads_start(MODEL_MAX_THREADS) != COLIBRI_OK || threads_start(n_threads) != COLIBRI_OK) {
        return 1;
    }
    if (check_tasks(n_tasks + n_threads - 1) != 0) {
        return 1;
    }
    unsigned expected[N_ITEMS] = {0};
    for (int job = 0; job < N_JOBS; job++) {
        int n_items = 1 + (job * 37) % N_ITEMS;
        int step = 1 + job % 3;
        threads_run(count_items, &step, n_items);
        for (int i = 0; i < n_items; i++) {
            expected[i] += (unsigned)step;
        }
    }
    threads_stop();
    return memcmp(counts, expected, sizeof counts) != 0;
}

/* The thread sanitizer delivers signals late. */
#if !defined(__SANITIZE_THREAD__)
static atomic_int stalled;
static atomic_int job_ended;

static void stall(int number) {
    (void)number;
    atomic_store(&stalled, 1);
    while (!atomic_load(&job_ended)) {
        sched_yield();
    }
}

/* A worker that sleeps and then has no core (it hangs in a signal handler) must not hold up a job. */
static int check_stalled_worker(void) {
    int step = 1;
    sigset_t signals;
    memset(counts, 0, sizeof counts);
    if (signal(SIGUSR1, stall) == SIG_ERR || threads_start(2) != COLIBRI_OK) {
        return 1;
    }
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    kill(getpid(), SIGUSR1);
    while (!atomic_load(&stalled)) {
        sched_yield();
    }
    threads_run(count_items, &step, N_ITEMS);
    atomic_store(&job_ended, 1);
    threads_stop();
    for (int i = 0; i < N_ITEMS; i++) {
        if (counts[i] != 1) {
            return 1;
        }
    }
    return 0;
}
#else
static int check_stalled_worker(void) {
    return 0;
}
#endif

/* A worker that another program takes the core from, so that the caller waits for it, has to leave its share to the
 * others for a while. Both are bound to one core; where there is only one, nothing is waited for. */
#if defined(CHECK_REST)
static void burn(void *argument, int begin, int end) {
    volatile unsigned *sink = argument;
    for (int i = begin; i < end; i++) {
        for (unsigned n = 0; n < 20000; n++) {
            *sink += n;
        }
    }
}

static void *burn_always(void *argument) {
    volatile unsigned sink = 0;
    while (!atomic_load((atomic_int *)argument)) {
        sink++;
    }
    return NULL;
}

static int check_preempted_worker(void) {
    cpu_set_t all;
    cpu_set_t last;
    CPU_ZERO(&last);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2 || threads_start(2) != COLIBRI_OK) {
        return 1;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_ZERO(&last);
            CPU_SET(cpu, &last);
        }
    }
    atomic_int is_over = 0;
    pthread_t other;
    if (pthread_setaffinity_np(threads_handle(1), sizeof last, &last) != 0 ||
        pthread_create(&other, NULL, burn_always, &is_over) != 0) {
        return 1;
    }
    (void)pthread_setaffinity_np(other, sizeof last, &last);
    unsigned sink = 0;
    int n_jobs = 0;
    while (n_jobs < 20000 && workers[1].rested == 0) {
        threads_run(burn, &sink, 64);
        n_jobs++;
    }
    atomic_store(&is_over, 1);
    pthread_join(other, NULL);
    int was_rested = workers[1].rested != 0;
    threads_stop();
    return !was_rested;
}
#else
static int check_preempted_worker(void) {
    return 0;
}
#endif

int main(void) {
    if (threads_start(2) != COLIBRI_OK) { /* an emulator or sanitizer starts a thread of its own with the first */
        return 1;
    }
    int n_tasks = count_tasks() - 1;
    threads_stop();
    for (int round = 0; round < 3; round++) {
        for (int n = 1; n <= MODEL_MAX_THREADS; n++) {
            if (check_team(n, n_tasks) != 0) {
                printf("wrong counts or threads with %d threads\n", n);
                return 1;
            }
        }
    }
    if (threads_start(0) != COLIBRI_E_USAGE || threads_start(MODEL_MAX_THREADS + 1) != COLIBRI_E_USAGE) {
        puts("thread count not checked");
        return 1;
    }
    if (check_stalled_worker() != 0) {
        puts("wrong counts with a stalled worker");
        return 1;
    }
    if (check_preempted_worker() != 0) {
        puts("a worker without a core does not rest");
        return 1;
    }
    if (check_tasks(n_tasks) != 0) {
        puts("threads are left");
        return 1;
    }
    puts("ok");
    return 0;
}
