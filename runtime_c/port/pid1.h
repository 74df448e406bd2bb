/* The firmware as process 1: the only program of its system. As any other process it does nothing of this, and so does
 * the first process of a container, whose host has an init of its own. */
#ifndef COLIBRI_PID1_H
#define COLIBRI_PID1_H

#include <stdbool.h>

/* Where this process is the init of its system: mounts /proc, /sys, /dev and /run if they are missing, opens
 * /dev/console for standard streams that are not open, sets it for lines (console.h), lets the kernel reap orphans, and
 * has Ctrl-Alt-Del come as SIGINT. Returns whether it is. Call it once, before any file is opened. What fails is left
 * out: the firmware needs a console only. */
bool pid1_begin(void);

/* What pid1_begin returned. */
bool pid1_is_init(void);

/* Lets the console send all of its bytes, writes the disks' caches and switches the power off. */
_Noreturn void pid1_power_off(void);

#endif
