/* SIGINT, SIGTERM and SIGHUP ask for an orderly end: the run stops before the next token and still reports. */
#ifndef COLIBRI_APP_INTERRUPT_H
#define COLIBRI_APP_INTERRUPT_H

#include <stdbool.h>

/* Installs the handlers; a closed pipe becomes a write error instead of a signal. */
void interrupts_catch(void);

/* Whether one of the signals has come. */
bool interrupted(void);

/* A descriptor that is readable, and stays so, once one of them has come: for poll. -1: there is none. */
int interrupt_wake_fd(void);

/* Waits until `fd` is ready for `events` (of poll), or broken, so that the next read or write does not block. Returns
 * false if a signal came first. */
bool interruptible_wait(int fd, short events);

#endif
