/* --deadline-ms: every token of an answer is timed, and those that take too long are told. The time of a token runs
 * from where the one before it was handed out to where it is chosen itself. The first one belongs to the prompt. */
#ifndef COLIBRI_APP_DEADLINE_H
#define COLIBRI_APP_DEADLINE_H

#include "app/report.h"

/* Reads the value of the option, milliseconds with decimals; a fault is reported. */
COLIBRI_MUST_CHECK colibri_status deadline_value(const char *text, int64_t *limit_us, Report *report);

/* A new answer: no token is being timed. */
void deadline_reset(void);

/* A token's time begins, where the report has a deadline. */
void deadline_start(const Report *report);

/* Ends the time of the token that was chosen last, if one is being timed. */
void deadline_end(Report *report);

/* The same for who times by himself. */
void deadline_note(int64_t ns, Report *report);

/* Nanoseconds of a clock that never goes back. */
int64_t deadline_now_ns(void);

void deadline_add(DeadlineReport *sum, const DeadlineReport *one);

/* The member "deadline" of a status line, where there is a deadline. */
void deadline_write(Writer *writer, const DeadlineReport *deadline);

/* On standard error, a line for each late token, the first MOST_LATE_SHOWN of an answer. */
void deadline_print(const DeadlineReport *deadline);

#endif
