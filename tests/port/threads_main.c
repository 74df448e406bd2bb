/* Runs many jobs of changing sizes on 1 .. MODEL_MAX_THREADS threads and counts every item exactly once. */
#include <stdio.h>
#include <string.h>

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

static int check_team(int n_threads) {
    memset(counts, 0, sizeof counts);
    if (threads_start(n_threads) != COLIBRI_OK) {
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

int main(void) {
    for (int round = 0; round < 3; round++) {
        for (int n = 1; n <= MODEL_MAX_THREADS; n++) {
            if (check_team(n) != 0) {
                printf("wrong counts with %d threads\n", n);
                return 1;
            }
        }
    }
    if (threads_start(0) != COLIBRI_E_USAGE || threads_start(MODEL_MAX_THREADS + 1) != COLIBRI_E_USAGE) {
        puts("thread count not checked");
        return 1;
    }
    puts("ok");
    return 0;
}
