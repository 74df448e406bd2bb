/* From prompt tokens to an answer. */
#ifndef COLIBRI_APP_GENERATE_H
#define COLIBRI_APP_GENERATE_H

#include <stdbool.h>

#include "app/prompt.h"

typedef struct {
    int max_tokens; /* >= 1 */
    int context;    /* prompt.n_ids .. MODEL_CONTEXT */
    /* Called with each chosen token but an end of sequence; NULL: nobody listens. */
    colibri_status (*on_token)(int token);
    /* Asked before each batch of prompt tokens and each token of the answer; NULL: after a signal (interrupted). With
     * one, batches stay short enough that it is asked about twice a second, or after each token on a slow board. */
    bool (*must_stop)(void);
} Generation;

/* Starts a new sequence, feeds the prompt and chooses tokens (sampler_init says how) until an end of sequence,
 * max_tokens, the end of the context, or must_stop. Fills ids, hash, counts and stop of the report; a fault is
 * reported.
 */
COLIBRI_MUST_CHECK colibri_status generate(const Prompt *prompt, const Generation *how, Report *report);

/* Starts a new sequence and feeds the prompt, with logits after its last token. must_stop as above. */
COLIBRI_MUST_CHECK colibri_status feed_prompt(const Prompt *prompt, bool (*must_stop)(void), Report *report);

/* Feeds one token and reports a fault. */
COLIBRI_MUST_CHECK colibri_status feed(int token, bool want_logits, Report *report);

/* Chooses a token from the last logits, adds it and their hash to the report. */
COLIBRI_MUST_CHECK colibri_status choose(int *token, Report *report);

/* Answers the embedded golden prompt. COLIBRI_E_SELFTEST unless tokens and logits are the reference's. */
COLIBRI_MUST_CHECK colibri_status selftest(int context, bool (*must_stop)(void), Report *report);

bool is_end_of_sequence(int token);

#endif
