/* Encodes a file some times and prints the bytes a second of the fastest time, by this process's CPU time.
 *
 *     tokenizer_speed FILE TIMES */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tokenizer/tokenizer.h"

enum { MOST_BYTES = 1 << 20 };

static char text[MOST_BYTES];
static int ids[MOST_BYTES];

static double cpu_seconds(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: tokenizer_speed FILE TIMES\n");
        return 2;
    }
    const size_t n = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    double best = 1e9;
    for (long times = strtol(argv[2], NULL, 10); times > 0; times--) {
        int n_ids = 0;
        const double start = cpu_seconds();
        if (tokenizer_encode(text, n, ids, MOST_BYTES, &n_ids) != COLIBRI_OK) {
            fprintf(stderr, "tokenizer_speed: %s cannot be encoded\n", argv[1]);
            return 1;
        }
        const double seconds = cpu_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    printf("%.0f\n", (double)n / best);
    return 0;
}
