/* --serve: the firmware on a serial line, for a person and for a host program (runtime_c/link/PROTOCOL.md). */
#ifndef COLIBRI_SERVE_SERVE_H
#define COLIBRI_SERVE_SERVE_H

#include "app/lines.h"
#include "app/options.h"

/* Longest request: the longest line, and what GENERATE has before it. */
enum { SERVE_MESSAGE_BYTES = LINE_BYTES + 24 < 65535 ? LINE_BYTES + 24 : 65535 };

/* Serves until the host asks for the end, the input ends, or a signal comes. The report gets the sum of all answers. */
COLIBRI_MUST_CHECK colibri_status run_serve(const Options *options, Report *report);

#endif
