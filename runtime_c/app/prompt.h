/* From what the user gave to token ids that fit the context; every way in which that fails has its own message. */
#ifndef COLIBRI_APP_PROMPT_H
#define COLIBRI_APP_PROMPT_H

#include <stddef.h>

#include "app/report.h"

/* Owner: the caller. n_ids >= 1 once one of the functions below has returned COLIBRI_OK. */
typedef struct {
    int n_ids;
    int ids[MODEL_CONTEXT];
} Prompt;

/* Encodes `length` bytes of text for at most `context` positions. */
COLIBRI_MUST_CHECK colibri_status prompt_from_text(const char *text, size_t length, int context, Prompt *prompt,
                                                   Report *report);

/* Turns what the tokenizer said about a text into a report; the ids are in the prompt if it said COLIBRI_OK. */
COLIBRI_MUST_CHECK colibri_status prompt_judge(colibri_status status, const char *text, size_t length, int context,
                                               Prompt *prompt, Report *report);

/* Takes n_ids ids of four bytes each, little-endian. */
COLIBRI_MUST_CHECK colibri_status prompt_from_words(const unsigned char *words, size_t n_ids, int context,
                                                    Prompt *prompt, Report *report);

/* Reads ids with commas between. */
COLIBRI_MUST_CHECK colibri_status prompt_from_ids(const char *text, int context, Prompt *prompt, Report *report);

#endif
