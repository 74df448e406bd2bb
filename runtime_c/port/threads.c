#define _GNU_SOURCE /* syscall, RUSAGE_THREAD */
#include "port/threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "model_config.h"
#include "port/clock.h"
#include "trace/hooks.h"

/* Rounds of polling before a thread sleeps: long enough to bridge the gap between two matrices of one layer, short
 * enough that a thread whose core was taken by another process costs its neighbours microseconds, not time slices. */
enum { SPIN_ROUNDS = 2000 };

/* Each thread's share of a job is cut, so that a thread whose core was taken holds back one cut. Small jobs are not:
 * every cut costs a call and loses some of a kernel's stride. */
enum { MOST_CUTS = 16, LEAST_CUT_ITEMS = 8 };

/* A worker whose core is wanted by another process, and which made the caller wait for that, rests for a while: the
 * others, the caller included, do its share. The rest is longer where the last one was of no use. Then it polls for
 * longer than a time slice before it takes a share again: who still wants the core takes it from nothing. */
enum { LEAST_REST_MS = 64, MOST_REST_MS = 1024, REST_FACTOR = 4, PROBE_MS = 10 };

/* A job that one thread does in less time is not worth dividing. A test divides all of them. */
#ifndef THREADS_LEAST_JOB_NS
#define THREADS_LEAST_JOB_NS 4000
#endif

/* From LONG_JOB times that on it is always worth it. Between, what waking and waiting cost decides, which differs
 * between machines and from one minute to the next: one of SOME jobs of a kind is timed, one of MANY is done the other
 * way. */
enum { LONG_JOB = 10, SOME = 16, MANY = 256, N_COSTS = 64 };

/* What threads sleep on: the kernel compares its 32 bits with what they have seen. */
typedef _Atomic uint32_t Futex;

/* One job at a time. A thread takes the cuts of its own share first, whose rows may still be in its core's cache, then
 * any that nobody has started: so a job never waits for a thread that has no core just now, unless in a cut. */
static struct {
    ThreadWork work;
    void *argument;
    int n_items;
    int n_threads;         /* the caller included */
    Futex job;             /* the job's number, above 8 bits for its cuts a share */
    Futex n_left;          /* cuts of the job that are not done */
    Futex stopping;        /* 1: workers end */
    atomic_int n_sleepers; /* workers that wait for a job in the kernel */
    atomic_int n_resting;  /* workers that leave their share to others */
    atomic_bool caller_sleeps;
    _Atomic uint64_t late_after; /* clock_ticks(): who keeps the sleeping caller waiting still then is late */
} team = {.n_threads = 1};

/* The last job of which cuts of this share were taken, above 8 bits for their number. Each on a cache line of its own.
 */
static struct { _Alignas(64) _Atomic uint32_t value; } taken[MODEL_MAX_THREADS];

typedef enum { WHOLE, DIVIDED } Way;

/* What jobs of a kind take each way, in ticks of clock_ticks() for n_items. Of long jobs the time as a whole is not
 * known, but no more than this. A team that was held up once says nothing: of its last two times the lesser counts. */
typedef struct {
    ThreadWork work;
    uint64_t ticks[2];
    uint64_t last_divided;
    uint64_t n_items;
    unsigned n_jobs; /* since the other way was tried */
} Cost;

static const uint64_t UNKNOWN_TICKS = UINT64_C(1) << 40; /* more than any job takes */

static Cost costs[N_COSTS]; /* more than kinds of jobs: at the work's hash or behind it; of the caller alone */
static uint64_t least_ticks;

/* Of one worker. */
typedef struct {
    int thread;
    long n_preemptions; /* at the last look */
    int rest_ms;
    uint64_t rested; /* clock_ticks() at the end of the last rest */
} Worker;

static pthread_t threads[MODEL_MAX_THREADS];
static Worker workers[MODEL_MAX_THREADS];

static void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps as long as *futex is `seen`, at most `timeout`, if there is one. May return early. */
static void sleep_on(Futex *futex, uint32_t seen, const struct timespec *timeout) {
    (void)syscall(SYS_futex, futex, FUTEX_WAIT_PRIVATE, seen, timeout, NULL, 0);
}

static void wake_all(Futex *futex) {
    (void)syscall(SYS_futex, futex, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Takes the next cut of a share. All of a job's cuts are taken before it ends, so `taken` names this job, the one
 * before it, or a later one, if this thread comes too late. */
static bool take_cut(int share, uint32_t job, uint32_t *cut) {
    uint32_t n_cuts = job & 0xFF;
    uint32_t number = job >> 8;
    uint32_t before = atomic_load_explicit(&taken[share].value, memory_order_relaxed);
    do {
        if (before >> 8 == number) {
            *cut = before & 0xFF;
        } else if (before >> 8 == ((number - 1) & 0xFFFFFF)) {
            *cut = 0;
        } else {
            return false;
        }
        if (*cut == n_cuts) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&taken[share].value, &before, number << 8 | (*cut + 1),
                                                    memory_order_acq_rel, memory_order_relaxed));
    return true;
}

/* First item of a cut; the number of all cuts stands for the end. */
static int cut_begin(int cut, int n_cuts) {
    return (int)((long long)team.n_items * cut / n_cuts);
}

static void run_cut(int cut, int n_cuts) {
    int begin = cut_begin(cut, n_cuts);
    int end = cut_begin(cut + 1, n_cuts);
    if (begin < end) {
        team.work(team.argument, begin, end);
    }
}

/* Returns whether it did the last of the job's cuts. */
static bool run_cuts(int thread, uint32_t job) {
    int cuts_a_share = (int)(job & 0xFF);
    bool was_last = false;
    uint32_t cut = 0;
    for (int i = 0; i < team.n_threads; i++) {
        int share = (thread + i) % team.n_threads;
        while (take_cut(share, job, &cut)) {
            run_cut(share * cuts_a_share + (int)cut, team.n_threads * cuts_a_share);
            was_last = atomic_fetch_sub(&team.n_left, 1) == 1;
        }
    }
    return was_last;
}

/* Returns the job after `seen`. */
static uint32_t wait_for_job(uint32_t seen) {
    uint32_t now = seen;
    for (int round = 0; round < SPIN_ROUNDS; round++) {
        now = atomic_load_explicit(&team.job, memory_order_acquire);
        if (now != seen) {
            return now;
        }
        cpu_relax();
    }
    atomic_fetch_add(&team.n_sleepers, 1);
    while ((now = atomic_load(&team.job)) == seen) {
        sleep_on(&team.job, seen, NULL);
    }
    atomic_fetch_sub(&team.n_sleepers, 1);
    return now;
}

/* Whether another process has taken this thread's core since the last call. */
static bool was_preempted(Worker *worker) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) {
        return false;
    }
    bool was = usage.ru_nivcsw != worker->n_preemptions;
    worker->n_preemptions = usage.ru_nivcsw;
    return was;
}

static void rest(Worker *worker) {
    bool was_of_no_use = clock_ticks() - worker->rested < (uint64_t)clock_hz() * 2;
    worker->rest_ms = was_of_no_use ? worker->rest_ms * REST_FACTOR : LEAST_REST_MS;
    worker->rest_ms = worker->rest_ms < MOST_REST_MS ? worker->rest_ms : MOST_REST_MS;
    struct timespec time = {worker->rest_ms / 1000, worker->rest_ms % 1000 * 1000000L};
    sleep_on(&team.stopping, 0, &time);
    worker->rested = clock_ticks();
}

/* Returns whether another process has taken the core within PROBE_MS of polling. */
static bool is_core_wanted(Worker *worker) {
    uint64_t end = clock_ticks() + (uint64_t)clock_hz() * PROBE_MS / 1000;
    (void)was_preempted(worker);
    while (clock_ticks() < end && atomic_load(&team.stopping) == 0) {
        cpu_relax();
    }
    return was_preempted(worker);
}

static void leave_share_to_others(Worker *worker) {
    atomic_fetch_add(&team.n_resting, 1);
    do {
        rest(worker);
    } while (is_core_wanted(worker) && atomic_load(&team.stopping) == 0);
    atomic_fetch_sub(&team.n_resting, 1);
}

/* After the last cut of a job: wakes the caller, if it sleeps. Returns whether this worker kept it waiting too long. */
static bool wake_caller(void) {
    if (!atomic_load(&team.caller_sleeps)) {
        return false;
    }
    uint64_t late_after = atomic_load(&team.late_after);
    wake_all(&team.n_left);
    return clock_ticks() > late_after;
}

static void *worker_main(void *argument) {
    Worker *worker = argument;
    uint32_t seen = 0;
    trace_thread(worker->thread);
    (void)was_preempted(worker);
    for (;;) {
        seen = wait_for_job(seen);
        if (atomic_load(&team.stopping) != 0) {
            return NULL;
        }
        if (run_cuts(worker->thread, seen) && wake_caller() && was_preempted(worker)) {
            leave_share_to_others(worker);
        }
    }
}

/* Publishes a new job and returns it. */
static uint32_t announce(uint32_t n_cuts) {
    uint32_t number = (atomic_load_explicit(&team.job, memory_order_relaxed) >> 8) + 1;
    uint32_t job = number << 8 | n_cuts;
    atomic_store(&team.job, job);
    if (atomic_load(&team.n_sleepers) > 0) {
        wake_all(&team.job);
    }
    return job;
}

/* `start`: clock_ticks() when the job began. A worker is late that needs half as long again as the caller has worked.
 */
static void wait_for_workers(uint64_t start) {
    uint32_t n_left = 0;
    for (int round = 0; round < SPIN_ROUNDS; round++) {
        if (atomic_load_explicit(&team.n_left, memory_order_acquire) == 0) {
            return;
        }
        cpu_relax();
    }
    uint64_t now = clock_ticks();
    atomic_store(&team.late_after, now + (now - start) / 2);
    atomic_store(&team.caller_sleeps, true);
    while ((n_left = atomic_load(&team.n_left)) != 0) {
        sleep_on(&team.n_left, n_left, NULL);
    }
    atomic_store(&team.caller_sleeps, false);
}

/* Of this kind of job, for n_items. */
static Cost *cost_of(ThreadWork work, uint64_t n_items) {
    size_t at = (uintptr_t)work >> 4;
    while (costs[at % N_COSTS].work != work && costs[at % N_COSTS].work != NULL) {
        at++;
    }
    Cost *cost = &costs[at % N_COSTS];
    if (cost->work == NULL) {
        *cost = (Cost){work, {UNKNOWN_TICKS, UNKNOWN_TICKS}, UNKNOWN_TICKS, n_items, 0};
    }
    for (Way way = WHOLE; cost->n_items != n_items && way <= DIVIDED; way++) {
        if (cost->ticks[way] < UNKNOWN_TICKS) {
            cost->ticks[way] = cost->ticks[way] * n_items / cost->n_items;
        }
    }
    cost->n_items = n_items;
    return cost;
}

static void run_team(ThreadWork work, void *argument, int n_items, uint64_t start) {
    int n_cuts = n_items / team.n_threads / LEAST_CUT_ITEMS;
    n_cuts = n_cuts < 1 ? 1 : n_cuts < MOST_CUTS ? n_cuts : MOST_CUTS;
    team.work = work;
    team.argument = argument;
    team.n_items = n_items;
    atomic_store_explicit(&team.n_left, (uint32_t)(team.n_threads * n_cuts), memory_order_relaxed);
    if (!run_cuts(0, announce((uint32_t)n_cuts))) {
        wait_for_workers(start);
    }
}

static void run_timed(Cost *cost, Way way, void *argument) {
    uint64_t start = clock_ticks();
    if (way == WHOLE) {
        cost->work(argument, 0, (int)cost->n_items);
        cost->ticks[WHOLE] = clock_ticks() - start;
        return;
    }
    run_team(cost->work, argument, (int)cost->n_items, start);
    uint64_t ticks = clock_ticks() - start;
    cost->ticks[DIVIDED] = ticks < cost->last_divided ? ticks : cost->last_divided;
    cost->last_divided = ticks;
}

static void run_short(Cost *cost, void *argument) {
    bool is_too_short = cost->ticks[WHOLE] < least_ticks;
    Way way = is_too_short || cost->ticks[WHOLE] <= cost->ticks[DIVIDED] ? WHOLE : DIVIDED;
    cost->n_jobs++;
    if (cost->n_jobs >= MANY && !is_too_short) {
        run_timed(cost, way == WHOLE ? DIVIDED : WHOLE, argument);
        cost->n_jobs = 0;
    } else if (cost->n_jobs % SOME == 0) {
        run_timed(cost, way, argument);
    } else if (way == DIVIDED) {
        run_team(cost->work, argument, (int)cost->n_items, clock_ticks());
    } else {
        cost->work(argument, 0, (int)cost->n_items);
    }
}

/* Without workers, cuts would only cost the caller some of its stride. */
static bool is_alone(void) {
    return atomic_load_explicit(&team.n_resting, memory_order_relaxed) == team.n_threads - 1;
}

void threads_run(ThreadWork work, void *argument, int n_items) {
    if (n_items < 2 || is_alone()) {
        work(argument, 0, n_items);
        return;
    }
    Cost *cost = cost_of(work, (uint64_t)n_items);
    if (cost->ticks[WHOLE] < LONG_JOB * least_ticks) {
        run_short(cost, argument);
        return;
    }
    run_timed(cost, DIVIDED, argument);
    cost->ticks[WHOLE] = cost->ticks[DIVIDED] * (uint64_t)team.n_threads;
    cost->n_jobs = MANY; /* should it turn out to be short, the next one is done whole */
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
    int failed = pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    least_ticks = (uint64_t)clock_hz() * THREADS_LEAST_JOB_NS / 1000000000u;
    atomic_store(&team.stopping, 0);
    atomic_store(&team.job, 0);
    for (int share = 0; share < MODEL_MAX_THREADS; share++) {
        atomic_store(&taken[share].value, 0);
    }
    team.n_threads = 1;
    threads[0] = pthread_self();
    while (failed == 0 && team.n_threads < n_threads) {
        int thread = team.n_threads;
        workers[thread] = (Worker){.thread = thread, .rest_ms = LEAST_REST_MS};
        failed = pthread_create(&threads[thread], &attributes, worker_main, &workers[thread]);
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
        atomic_store(&team.stopping, 1);
        wake_all(&team.stopping);
        (void)announce(0);
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
