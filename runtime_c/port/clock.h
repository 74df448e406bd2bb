/* A clock that a program reads without a system call: it counts on at one rate, whatever the processor's frequency. */
#ifndef COLIBRI_CLOCK_H
#define COLIBRI_CLOCK_H

#if defined(__aarch64__)
#include "port/clock_aarch64.h"
#else
#include "port/clock_portable.h"
#endif

#endif
