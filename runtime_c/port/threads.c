#include "port/threads.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "model_config.h"
#include "trace/hooks.h"

/* Rounds of polling before a thread sleeps: long enough to bridge the gap between two matrices of one layer, short
 * enough that a thread whose core was taken by another process costs its neighbours microseconds, not time slices. */
enum { SPIN_ROUNDS = 2000, STACK_BYTES = 64 * 1024 };

/* One job at a time, cut into as many shares as there are threads. `generation` numbers the jobs. A thread takes its
 * own share first, whose rows may still be in its core's cache, then any that nobody has started: so a job never waits
 * for a thread that has no core just now. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t job_ready;
    pthread_cond_t job_done;
    ThreadWork work;
    void *argument;
    int n_items;
    int n_threads; /* the caller included */
    atomic_bool stopping;
    atomic_uint generation;
    atomic_int n_left; /* shares of the current job that are not done */
} team = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .job_ready = PTHREAD_COND_INITIALIZER,
          .job_done = PTHREAD_COND_INITIALIZER,
          .n_threads = 1};

static pthread_t threads[MODEL_MAX_THREADS];
static int worker_index[MODEL_MAX_THREADS];
static atomic_uint taken[MODEL_MAX_THREADS]; /* the last job of which this share was taken */

static void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* First item of a share; share n_threads stands for the end. */
static int share_begin(int share, int n_items, int n_threads) {
    return (int)((long long)n_items * share / n_threads);
}

static void run_share(int share) {
    int begin = share_begin(share, team.n_items, team.n_threads);
    int end = share_begin(share + 1, team.n_items, team.n_threads);
    if (begin < end) {
        team.work(team.argument, begin, end);
    }
}

/* Every share of job - 1 was taken before that job ended, so a thread that comes too late for `job` gets nothing. */
static bool take_share(int share, unsigned job) {
    unsigned before = job - 1;
    return atomic_compare_exchange_strong_explicit(&taken[share], &before, job, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* Returns whether it did the last of the job's shares. */
static bool run_shares(int thread, unsigned job) {
    bool was_last = false;
    for (int i = 0; i < team.n_threads; i++) {
        int share = (thread + i) % team.n_threads;
        if (take_share(share, job)) {
            run_share(share);
            was_last = atomic_fetch_sub_explicit(&team.n_left, 1, memory_order_acq_rel) == 1;
        }
    }
    return was_last;
}

/* Returns the number of a job after `seen`. */
static unsigned wait_for_job(unsigned seen) {
    for (int round = 0; round < SPIN_ROUNDS; round++) {
        unsigned now = atomic_load_explicit(&team.generation, memory_order_acquire);
        if (now != seen) {
            return now;
        }
        cpu_relax();
    }
    pthread_mutex_lock(&team.lock);
    while (atomic_load_explicit(&team.generation, memory_order_acquire) == seen) {
        pthread_cond_wait(&team.job_ready, &team.lock);
    }
    pthread_mutex_unlock(&team.lock);
    return atomic_load_explicit(&team.generation, memory_order_acquire);
}

static void wake_caller(void) {
    pthread_mutex_lock(&team.lock);
    pthread_cond_signal(&team.job_done);
    pthread_mutex_unlock(&team.lock);
}

static void *worker_main(void *index) {
    int thread = *(const int *)index;
    trace_thread(thread);
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_job(seen);
        if (atomic_load_explicit(&team.stopping, memory_order_acquire)) {
            return NULL;
        }
        if (run_shares(thread, seen)) {
            wake_caller();
        }
    }
}

/* Publishes a new job number and returns it; the mutex orders it before any sleeper's check. */
static unsigned announce(void) {
    pthread_mutex_lock(&team.lock);
    unsigned job = atomic_fetch_add_explicit(&team.generation, 1, memory_order_release) + 1;
    pthread_cond_broadcast(&team.job_ready);
    pthread_mutex_unlock(&team.lock);
    return job;
}

static void wait_for_workers(void) {
    for (int round = 0; round < SPIN_ROUNDS; round++) {
        if (atomic_load_explicit(&team.n_left, memory_order_acquire) == 0) {
            return;
        }
        cpu_relax();
    }
    pthread_mutex_lock(&team.lock);
    while (atomic_load_explicit(&team.n_left, memory_order_acquire) != 0) {
        pthread_cond_wait(&team.job_done, &team.lock);
    }
    pthread_mutex_unlock(&team.lock);
}

void threads_run(ThreadWork work, void *argument, int n_items) {
    if (team.n_threads == 1 || n_items < 2) {
        work(argument, 0, n_items);
        return;
    }
    team.work = work;
    team.argument = argument;
    team.n_items = n_items;
    atomic_store_explicit(&team.n_left, team.n_threads, memory_order_relaxed);
    if (!run_shares(0, announce())) {
        wait_for_workers();
    }
}

colibri_status threads_start(int n_threads) {
    if (n_threads < 1 || n_threads > MODEL_MAX_THREADS) {
        return COLIBRI_E_USAGE;
    }
    threads_stop();
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return COLIBRI_E_THREADS;
    }
    size_t stack_bytes = STACK_BYTES < PTHREAD_STACK_MIN ? (size_t)PTHREAD_STACK_MIN : (size_t)STACK_BYTES;
    int failed = pthread_attr_setstacksize(&attributes, stack_bytes);
    atomic_store(&team.stopping, false);
    atomic_store(&team.generation, 0);
    for (int share = 0; share < MODEL_MAX_THREADS; share++) {
        atomic_store(&taken[share], 0);
    }
    team.n_threads = 1;
    threads[0] = pthread_self();
    while (failed == 0 && team.n_threads < n_threads) {
        int thread = team.n_threads;
        worker_index[thread] = thread;
        failed = pthread_create(&threads[thread], &attributes, worker_main, &worker_index[thread]);
        if (failed == 0) {
            team.n_threads++;
        }
    }
    pthread_attr_destroy(&attributes);
    if (failed != 0) {
        threads_stop();
        return COLIBRI_E_THREADS;
    }
    return COLIBRI_OK;
}

void threads_stop(void) {
    if (team.n_threads > 1) {
        atomic_store(&team.stopping, true);
        (void)announce();
    }
    for (int thread = 1; thread < team.n_threads; thread++) {
        pthread_join(threads[thread], NULL);
    }
    team.n_threads = 1;
}

int threads_count(void) {
    return team.n_threads;
}

pthread_t threads_handle(int thread) {
    return threads[thread];
}
