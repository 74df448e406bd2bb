/* The human mode: a person types a line at a terminal program and reads the answer (PROTOCOL.md section 5). */
#ifndef COLIBRI_SERVE_HUMAN_H
#define COLIBRI_SERVE_HUMAN_H

#include <stdbool.h>
#include <stddef.h>

#include "app/report.h"

/* The READY line and the first prompt. */
void human_greet(void);

void human_prompt(void);

/* Ends a line that was begun, if any: other text follows. */
void human_leave(void);

/* Edits the line with one typed byte and echoes it. Returns true if that ends a line that is not empty. */
bool human_type(unsigned char key);

/* The line that has ended; the next one begins. Static memory until the next human_type. */
const char *human_line(size_t *n);

/* Forgets the line, as when a session begins. */
void human_forget(void);

/* A piece of the answer as it comes. */
void human_answer(const char *text, size_t n);

/* Ends the answer: what went wrong, the line "-- STOP, N tokens, T ms", a new prompt. */
void human_end(const Report *report, long long milliseconds);

#endif
