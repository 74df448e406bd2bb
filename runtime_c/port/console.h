/* The terminal that the firmware speaks on. Each function leaves anything but a terminal alone. */
#ifndef COLIBRI_CONSOLE_H
#define COLIBRI_CONSOLE_H

/* For whole lines (--stdin): CR or LF ends a line, Ctrl-D the input; nothing is echoed, LF goes out as CR LF. No
 * XON/XOFF, and no key sends a signal. A line holds at most 4095 bytes. */
void console_set_lines(int fd);

/* For bytes (--serve): each one comes and goes as it is, as soon as it is there. */
void console_set_raw(int fd);

/* Waits until all that was written has left the machine: what a power off would cut off. */
void console_drain(int fd);

#endif
