/* The command line of colibri_inference. */
#ifndef COLIBRI_APP_OPTIONS_H
#define COLIBRI_APP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "app/report.h"
#include "app/tracing.h"
#include "app/tuning.h"

/* What the program is asked to do: exactly one. */
typedef enum {
    MODE_NONE,
    MODE_PROMPT,
    MODE_TOKENS,
    MODE_STDIN,
    MODE_INFO,
    MODE_SELFTEST,
    MODE_BENCH,
    MODE_SERVE,
    MODE_HELP,
    MODE_VERSION
} Mode;

typedef struct {
    Mode mode;
    const char *prompt; /* MODE_PROMPT: text; MODE_TOKENS: ids with commas between */
    int max_tokens;     /* 1 .. INT_MAX */
    int n_bench_tokens; /* MODE_BENCH */
    float temperature;  /* 0: greedy; else 0.01 .. 100 */
    float top_p;        /* 0 < top_p <= 1 */
    uint64_t seed;
    int n_threads;       /* 1 .. MODEL_MAX_THREADS */
    int context;         /* 1 .. MODEL_CONTEXT */
    bool prints_ids;     /* ids instead of text */
    bool is_raw;         /* prompts are not put into the chat form (MODEL_CHAT) */
    const char *console; /* MODE_SERVE: a terminal's name; NULL: the standard streams */
    int baud;            /* its speed; 0: as it is */
    int64_t deadline_us; /* of a token; 0: none */
    Tuning tuning;
#if TRACE_COMPILED
    TraceOptions trace;
#endif
} Options;

/* Fills options from the command line; the strings stay owned by argv. A fault is reported. */
COLIBRI_MUST_CHECK colibri_status options_parse(int argc, char **argv, Options *options, Report *report);

/* The ranges that Options states. */
bool temperature_is_valid(float temperature);
bool top_p_is_valid(float top_p);

void options_print_help(void);

#endif
