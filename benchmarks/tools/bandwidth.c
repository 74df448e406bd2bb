/* Measures how fast threads read memory with AVX2 loads, and prints bytes a second of the fastest pass.
 *
 *     bandwidth THREADS MIB PASSES
 *
 * Each thread reads its own part, in four streams; nothing else than the loads and a sum that keeps them. */
#include <immintrin.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_THREADS = 64, STREAMS = 4, STEP = 32 };

typedef struct {
    const uint8_t *bytes;
    size_t n_bytes; /* a multiple of STREAMS * STEP */
    uint64_t sum;
    int64_t begin, end; /* of the pass, ns */
} Part;

static Part parts[MAX_THREADS];
static pthread_barrier_t line;
static int n_passes;

static int64_t now_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

__attribute__((target("avx2"))) static uint64_t read_part(const Part *part) {
    __m256i sums[STREAMS] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                             _mm256_setzero_si256()};
    size_t stride = part->n_bytes / STREAMS;
    for (size_t at = 0; at < stride; at += STEP) {
        for (int stream = 0; stream < STREAMS; stream++) {
            const uint8_t *from = part->bytes + (size_t)stream * stride + at;
            sums[stream] = _mm256_add_epi64(sums[stream], _mm256_loadu_si256((const __m256i *)(const void *)from));
        }
    }
    __m256i all = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    uint64_t lanes[4];
    memcpy(lanes, &all, sizeof lanes);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

static void *work(void *argument) {
    Part *part = argument;
    for (int pass = 0; pass < n_passes; pass++) {
        (void)pthread_barrier_wait(&line);
        part->begin = now_ns();
        part->sum += read_part(part);
        part->end = now_ns();
        (void)pthread_barrier_wait(&line);
    }
    return NULL;
}

/* From the first thread's begin to the last one's end. */
static int64_t taken_ns(int n_threads) {
    int64_t begin = parts[0].begin;
    int64_t end = parts[0].end;
    for (int i = 1; i < n_threads; i++) {
        begin = parts[i].begin < begin ? parts[i].begin : begin;
        end = parts[i].end > end ? parts[i].end : end;
    }
    return end - begin;
}

/* Bytes a second of the fastest pass. */
static double fastest(int n_threads, size_t n_bytes) {
    int64_t best = INT64_MAX;
    for (int pass = 0; pass < n_passes; pass++) {
        (void)pthread_barrier_wait(&line);
        (void)pthread_barrier_wait(&line);
        int64_t taken = taken_ns(n_threads);
        best = taken < best ? taken : best;
    }
    return (double)n_bytes / ((double)best / 1e9);
}

int main(int argc, char **argv) {
    int n_threads = argc == 4 ? atoi(argv[1]) : 0;
    size_t n_bytes = argc == 4 ? (size_t)atoi(argv[2]) << 20 : 0;
    n_passes = argc == 4 ? atoi(argv[3]) : 0;
    if (n_threads < 1 || n_threads > MAX_THREADS || n_bytes == 0 || n_passes < 1) {
        fputs("usage: bandwidth THREADS MIB PASSES\n", stderr);
        return 2;
    }
    uint8_t *bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) {
        perror("bandwidth");
        return 1;
    }
    memset(bytes, 1, n_bytes);
    (void)pthread_barrier_init(&line, NULL, (unsigned)n_threads + 1);
    pthread_t threads[MAX_THREADS];
    size_t share = n_bytes / (size_t)n_threads / (STREAMS * STEP) * (STREAMS * STEP);
    for (int i = 0; i < n_threads; i++) {
        parts[i] = (Part){.bytes = bytes + (size_t)i * share, .n_bytes = share};
        if (pthread_create(&threads[i], NULL, work, &parts[i]) != 0) {
            fputs("bandwidth: no thread\n", stderr);
            return 1;
        }
    }
    double speed = fastest(n_threads, share * (size_t)n_threads);
    uint64_t sum = 0;
    for (int i = 0; i < n_threads; i++) {
        (void)pthread_join(threads[i], NULL);
        sum += parts[i].sum;
    }
    printf("{\"bytes_per_s\":%.0f,\"sum\":%" PRIu64 "}\n", speed, sum);
    return 0;
}
