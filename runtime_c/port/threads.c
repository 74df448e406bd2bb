#include "port/threads.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "model_config.h"

/* Rounds of polling before a thread sleeps: long enough to bridge the gap between two matrices of one layer, short
 * enough that a thread whose core was taken by another process costs its neighbours microseconds, not time slices. */
enum { SPIN_ROUNDS = 2000, STACK_BYTES = 64 * 1024 };

/* One job at a time. `generation` numbers the jobs; a worker that sees a new number owns its share of that job. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t job_ready;
    pthread_cond_t job_done;
    ThreadWork work;
    void *argument;
    int n_items;
    int n_threads; /* the caller included */
    bool stopping;
    atomic_uint generation;
    atomic_int n_running; /* workers that have not finished the current job */
} team = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .job_ready = PTHREAD_COND_INITIALIZER,
          .job_done = PTHREAD_COND_INITIALIZER,
          .n_threads = 1};

static pthread_t workers[MODEL_MAX_THREADS];
static int worker_index[MODEL_MAX_THREADS];

static void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* First item of a thread's share; thread n_threads stands for the end. */
static int share_begin(int thread, int n_items, int n_threads) {
    return (int)((long long)n_items * thread / n_threads);
}

static void run_share(int thread) {
    int begin = share_begin(thread, team.n_items, team.n_threads);
    int end = share_begin(thread + 1, team.n_items, team.n_threads);
    if (begin < end) {
        team.work(team.argument, begin, end);
    }
}

/* Returns the number of the next job after `seen`. */
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

static void finish_share(void) {
    if (atomic_fetch_sub_explicit(&team.n_running, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_lock(&team.lock);
        pthread_cond_signal(&team.job_done);
        pthread_mutex_unlock(&team.lock);
    }
}

static void *worker_main(void *index) {
    int thread = *(const int *)index;
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_job(seen);
        if (team.stopping) {
            return NULL;
        }
        run_share(thread);
        finish_share();
    }
}

/* Publishes a new job number; the mutex orders it before any sleeper's check. */
static void announce(void) {
    pthread_mutex_lock(&team.lock);
    atomic_fetch_add_explicit(&team.generation, 1, memory_order_release);
    pthread_cond_broadcast(&team.job_ready);
    pthread_mutex_unlock(&team.lock);
}

static void wait_for_workers(void) {
    for (int round = 0; round < SPIN_ROUNDS; round++) {
        if (atomic_load_explicit(&team.n_running, memory_order_acquire) == 0) {
            return;
        }
        cpu_relax();
    }
    pthread_mutex_lock(&team.lock);
    while (atomic_load_explicit(&team.n_running, memory_order_acquire) != 0) {
        pthread_cond_wait(&team.job_done, &team.lock);
    }
    pthread_mutex_unlock(&team.lock);
}

void threads_run(ThreadWork work, void *argument, int n_items) {
    if (team.n_threads == 1 || n_items < team.n_threads) {
        work(argument, 0, n_items);
        return;
    }
    team.work = work;
    team.argument = argument;
    team.n_items = n_items;
    atomic_store_explicit(&team.n_running, team.n_threads - 1, memory_order_relaxed);
    announce();
    run_share(0);
    wait_for_workers();
}

colibri_status threads_start(int n_threads) {
    if (n_threads < 1 || n_threads > MODEL_MAX_THREADS) {
        return COLIBRI_E_USAGE;
    }
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return COLIBRI_E_THREADS;
    }
    size_t stack_bytes = STACK_BYTES < PTHREAD_STACK_MIN ? (size_t)PTHREAD_STACK_MIN : (size_t)STACK_BYTES;
    int failed = pthread_attr_setstacksize(&attributes, stack_bytes);
    team.stopping = false;
    atomic_store(&team.generation, 0);
    team.n_threads = 1;
    while (failed == 0 && team.n_threads < n_threads) {
        int thread = team.n_threads;
        worker_index[thread] = thread;
        failed = pthread_create(&workers[thread], &attributes, worker_main, &worker_index[thread]);
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
        team.stopping = true;
        announce();
    }
    for (int thread = 1; thread < team.n_threads; thread++) {
        pthread_join(workers[thread], NULL);
    }
    team.n_threads = 1;
}
