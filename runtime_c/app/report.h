/* What a run tells its caller: one human line for each fault, the status line that ends every run, the exit code. */
#ifndef COLIBRI_APP_REPORT_H
#define COLIBRI_APP_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "app/output.h"
#include "colibri.h"
#include "model_config.h"
#include "trace/hooks.h"

typedef enum { STOP_NONE, STOP_EOS, STOP_LENGTH, STOP_CONTEXT, STOP_INTERRUPTED } Stop;

/* Latencies of the decode tokens of --bench, in microseconds. */
typedef struct {
    int n_tokens; /* 0: nothing was measured */
    int64_t prefill_us;
    int64_t major_faults; /* page faults while the tokens were computed */
    int64_t minor_faults;
    int64_t max_rss_kib; /* memory_peak_kib() */
    int64_t total_us;
    int64_t median_us;
    int64_t p99_us;
    int64_t max_us;
    int64_t std_us;
#if TRACE_COMPILED
    int n_traced; /* tokens that were recorded; the figures above are of the others */
    int64_t traced_median_us;
#endif
} Timing;

enum { MOST_REFUSED = 8, MOST_LATE_SHOWN = 16 };

/* An option that the system refused; the run went on without it. */
typedef struct {
    const char *option; /* without its dashes */
    const char *reason;
} Refusal;

/* What the options of a run's start did (app/tuning.h). */
typedef struct {
    int n_refused;
    Refusal refused[MOST_REFUSED];
    bool uses_huge_pages;
    int64_t huge_copied_bytes; /* of weights, from the file into memory of their own */
    int64_t huge_bytes;        /* of these, in pages that are really huge */
    int64_t huge_us;           /* what that took */
    bool is_prefaulted;
    int64_t prefault_bytes;
    int64_t prefault_us;
} TuningReport;

typedef struct {
    int position; /* where the token before it was fed, from 0 */
    int64_t us;
} LateToken;

/* The tokens that took longer than --deadline-ms. */
typedef struct {
    int64_t limit_us; /* 0: there is no deadline */
    int64_t n_late;
    int64_t worst_us; /* of the late ones */
    int n_shown;
    LateToken shown[MOST_LATE_SHOWN]; /* the first ones */
} DeadlineReport;

/* One prompt's outcome, or with several prompts (--stdin) their sum, which has no ids and no stop of its own. */
typedef struct {
    colibri_status status; /* of the first fault */
    Stop stop;
    int threads; /* 0: the model was not opened */
    int context;
    int64_t n_prompts;
    int64_t n_failed;
    int64_t n_prompt_tokens;
    int64_t n_tokens;     /* chosen, an end-of-sequence token included */
    uint64_t logits_hash; /* over every logits vector that a token was chosen from */
    int fault_layer;      /* of COLIBRI_E_NOT_FINITE, else -1 */
    bool has_expected_hash;
    uint64_t expected_hash; /* --selftest */
    Timing timing;
    TuningReport tuning; /* empty but in the report of a whole run */
    DeadlineReport deadline;
    int64_t major_faults_before; /* page faults of the process when report_init was called */
    int64_t minor_faults_before;
    char message[240]; /* of the first fault, printable ASCII; "" without one */
    bool message_was_shown;
    int n_ids;
    int ids[MODEL_CONTEXT]; /* every chosen token */
} Report;

void report_init(Report *report);

/* The same for one answer of a run that gives many. */
void report_init_answer(Report *answer, const Report *run);

/* Every status line from now on says how many page faults there were since its report_init, as that of --bench does
 * anyway. They depend on what else the machine does, so other runs leave them out. */
void report_show_page_faults(void);

/* Page faults of this process so far: with a read from the storage, and without. */
void report_count_page_faults(int64_t *major, int64_t *minor);

/* Writes ,"key":value */
void report_write_integer(Writer *writer, const char *key, int64_t value);

/* Keeps a fault and its message, if it is the first one. Returns `status`. */
colibri_status report_fault(Report *report, colibri_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds one prompt's outcome, already printed, to the sum. The sum's hash is over the hashes of the prompts. */
void report_add(Report *sum, const Report *one);

/* The JSON object of the status line. */
void report_write(Writer *writer, const Report *report);

/* On standard error: the message as one line for a person, then "PREFIX {...}". */
void report_print(const Report *report, const char *prefix);

/* "eos", "length" ... */
const char *report_stop_name(Stop stop);

int report_exit_code(const Report *report);

#endif
