/* The line that --serve speaks on: a terminal, or the standard streams whatever they are. Reads and writes never wait.
 */
#ifndef COLIBRI_TTY_H
#define COLIBRI_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

/* Zero it at the start; in and out are -1 while it is closed. */
typedef struct {
    int in;
    int out; /* may be `in` */
    bool is_terminal;
    int shared_flags;     /* of a standard output that could not be opened anew; -1: none to put back */
    struct termios saved; /* the terminal's settings before */
} Tty;

/* Whether a serial line can have this speed. */
bool tty_has_speed(int baud);

/* Opens a terminal by its name and sets it for bytes (console.h); baud 0: its speed stays. Returns 0 or errno; ENOTTY:
 * it is no terminal. */
int tty_open(Tty *tty, const char *path, int baud);

/* The same with standard input and output, which need be no terminal unless baud is given. */
int tty_open_streams(Tty *tty, int baud);

/* Waits until the terminal has sent what was written, at most that long. */
void tty_drain(const Tty *tty, int milliseconds);

/* Puts the settings back. The standard streams stay open. */
void tty_close(Tty *tty);

#endif
