/* The public C ABI of a colibri firmware: one model, one sequence, state in static memory. Not reentrant. */
#ifndef COLIBRI_H
#define COLIBRI_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when generated code and runtime no longer fit together; model_config.h carries the generator's number. */
#define COLIBRI_ABI 1

#define COLIBRI_MUST_CHECK __attribute__((warn_unused_result))

typedef enum {
    COLIBRI_OK = 0,
    COLIBRI_E_USAGE = -1,           /* an option or argument that is malformed or out of range */
    COLIBRI_E_EMPTY_PROMPT = -2,    /* nothing to start from */
    COLIBRI_E_PROMPT_TOO_LONG = -3, /* more tokens than the context holds */
    COLIBRI_E_UNKNOWN_TOKEN = -4,   /* a token id outside the vocabulary */
    COLIBRI_E_INVALID_UTF8 = -5,    /* the prompt is not UTF-8 */
    COLIBRI_E_NOT_FINITE = -6,      /* NaN or infinity; colibri_fault_layer() says where */
    COLIBRI_E_IO = -7,              /* input or output failed */
    COLIBRI_E_THREADS = -8,         /* worker threads could not be started */
    COLIBRI_E_SELFTEST = -9,        /* the embedded golden prompt gave another answer */
    COLIBRI_E_CONTEXT_FULL = -10    /* a token after the last position */
} colibri_status;

/* Starts n_threads - 1 workers; 1 <= n_threads <= MODEL_MAX_THREADS. Position is 0 afterwards. To open again, with
 * another number of threads, needs no close before. */
COLIBRI_MUST_CHECK colibri_status colibri_open(int n_threads);
void colibri_close(void);

/* Starts a new sequence at position 0. */
void colibri_reset(void);

/* Feeds one token at the next position. With want_logits, colibri_logits() is valid until the next call. After a fault
 * the position is as before. */
COLIBRI_MUST_CHECK colibri_status colibri_feed(int token, bool want_logits);

/* Feeds n tokens at the next positions, 1 <= n <= MODEL_BATCH (else COLIBRI_E_USAGE), with the logits of the last one:
 * faster than one by one, the same bits. After a fault the position is that of the token whose fault it is: those
 * before it are fed. */
COLIBRI_MUST_CHECK colibri_status colibri_feed_batch(const int *tokens, int n, bool want_logits);
const float *colibri_logits(void); /* [MODEL_VOCAB_SIZE] */
int colibri_position(void);        /* tokens fed so far */

/* Layer of the last COLIBRI_E_NOT_FINITE; MODEL_N_LAYERS stands for the output head; -1: none. */
int colibri_fault_layer(void);

/* Short lower-case name of a status for machine-readable output ("ok", "prompt_too_long" ...). Never NULL. */
const char *colibri_status_name(colibri_status status);

#ifdef __cplusplus
}
#endif
#endif
