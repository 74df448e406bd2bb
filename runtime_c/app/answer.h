/* The answer on standard output, token by token as it comes. */
#ifndef COLIBRI_APP_ANSWER_H
#define COLIBRI_APP_ANSWER_H

#include "app/report.h"

typedef enum {
    ANSWER_TEXT, /* as the model says it */
    ANSWER_LINE, /* line breaks in it come out as \n and \r, so that one answer is one line */
    ANSWER_IDS   /* 1,2,3 */
} AnswerStyle;

/* Most bytes that one token may write; main checks the tokenizer against it. */
enum { ANSWER_PIECE_BYTES = 4096 };

/* Write faults go to `report`, which is kept until the next answer begins. */
void answer_begin(AnswerStyle style, Report *report);

/* Writes what `token` completes. COLIBRI_E_IO if nobody can read it; a signal sets the report's stop instead. */
COLIBRI_MUST_CHECK colibri_status answer_token(int token);

/* Writes the rest and the line end, also after a fault. */
COLIBRI_MUST_CHECK colibri_status answer_end(void);

/* Empties standard output into whoever reads it, with the faults of answer_token. */
COLIBRI_MUST_CHECK colibri_status answer_flush(Report *report);

#endif
