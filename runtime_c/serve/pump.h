/* The bytes of the console: typed ones and frames come in, text and frames go out. Nothing here waits longer than its
 * caller says, whatever the other end does. */
#ifndef COLIBRI_SERVE_PUMP_H
#define COLIBRI_SERVE_PUMP_H

#include "app/report.h"
#include "link/link.h"

enum { KEY_INTERRUPT = 0x03 }; /* Ctrl-C */

extern Link serve_link;

/* Opens the terminal `path`, or the standard streams if it is NULL; baud 0: as it is. A fault is reported. */
COLIBRI_MUST_CHECK colibri_status pump_open(const char *path, int baud, Report *report);

/* Sends what is left, at most for 2 s, and puts the terminal's settings back. */
void pump_close(void);

/* Sends and receives what can be moved, after a wait of at most that long until something can. Stops behind a request
 * that has become whole (serve_link.has_message). Returns whether more bytes are there. */
bool pump_round(int milliseconds);

/* Milliseconds of a clock that never goes back. */
int64_t pump_now(void);

/* Who is there: a number that differs from one session, terminal or person to the next. 0: nobody. */
uint64_t pump_peer(void);

/* The input has ended for good, and so has the line's other end unless it was a pipe or file. */
bool pump_has_ended(void);
bool pump_is_connected(void);

/* Next typed byte, -1: none. Keys wait here while an answer is computed; Ctrl-C drops the ones before it. */
int pump_key(void);

/* Whether Ctrl-C was typed and not yet fetched by pump_key. */
bool pump_interrupt_waits(void);

void pump_forget_keys(void);

/* Writes text; LF goes out as CR LF, other control bytes as '?'. Waits as long as the line moves. What nobody takes
 * within 2 s is dropped, and so is all of it while a session is open. */
void pump_text(const char *bytes, size_t n);

#endif
