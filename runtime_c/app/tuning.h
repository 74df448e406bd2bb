/* Options that make latency steady: memory that does not fault, threads that keep their cores. What the system refuses
 * is told on standard error and in the status line, and the run goes on without it. */
#ifndef COLIBRI_APP_TUNING_H
#define COLIBRI_APP_TUNING_H

#include "app/report.h"

enum { MOST_PRIORITY = 99 };

typedef struct {
    bool locks_memory;
    bool prefaults;
    bool uses_huge_pages;
    int priority;                /* of SCHED_FIFO, 1 .. MOST_PRIORITY; 0: as it is */
    int n_cpus;                  /* 0: threads are not pinned; else one CPU a thread */
    int cpus[MODEL_MAX_THREADS]; /* all different */
} Tuning;

/* Reads the value of --pin, numbers and ranges with commas between: 0,2-3. A fault is reported. */
COLIBRI_MUST_CHECK colibri_status pin_value(const char *text, Tuning *tuning, Report *report);

/* Whether the options fit together. */
COLIBRI_MUST_CHECK colibri_status tuning_check(const Tuning *tuning, int n_threads, Report *report);

/* Does what is to be done while there is one thread, and what is to be done to all. */
void tuning_before_threads(const Tuning *tuning, TuningReport *report);
void tuning_with_threads(const Tuning *tuning, TuningReport *report);

/* The members "huge_pages", "prefault" and "refused" of a status line, each where there is something to say. */
void tuning_write(Writer *writer, const TuningReport *report);

/* The names of the options that are compiled in, as a JSON list. */
void tuning_write_names(Writer *writer);

#endif
