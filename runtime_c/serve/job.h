/* What is computed for the person or host at the other end: one answer, or the selftest, at a time. */
#ifndef COLIBRI_SERVE_JOB_H
#define COLIBRI_SERVE_JOB_H

#include "app/options.h"
#include "app/prompt.h"

typedef enum { JOB_NONE, JOB_HUMAN, JOB_GENERATE, JOB_SELFTEST } JobKind;

typedef struct {
    JobKind kind;
    uint16_t request; /* not for JOB_HUMAN */
    bool is_silent;   /* no TOKEN messages */
    int max_tokens;   /* 1 .. INT_MAX */
    float temperature;
    float top_p;
    uint64_t seed;
} Job;

/* `options` hold for the human mode; its context and threads for every job. Both stay with the caller. */
void job_init(const Options *options, Report *sum);

/* Takes a prompt: text, in the chat form unless is_raw, or ids of 4 bytes each. What is wrong with it becomes the
 * answer.
 */
void job_set_text(const char *text, size_t n, bool is_raw);
void job_set_ids(const uint8_t *ids, size_t n);

/* Accepts a job, which job_run then computes. One must not be there already (job_current). */
void job_start(const Job *job);

/* The job that waits or runs; its kind is JOB_NONE without one. */
const Job *job_current(void);

/* Asks it to stop before its next token. */
void job_cancel(void);

/* Computes the job that waits, if there is one, and answers it. Requests are read meanwhile. */
void job_run(void);

#endif
