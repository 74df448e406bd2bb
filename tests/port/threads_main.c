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
#include "port/threads.h"

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
    if (check_tasks(n_tasks) != 0) {
        puts("threads are left");
        return 1;
    }
    puts("ok");
    return 0;
}
