/* A record as one line of text. */
#ifndef COLIBRI_TRACE_TEXT_H
#define COLIBRI_TRACE_TEXT_H

#include "trace/trace.h"

enum { TRACE_LINE_BYTES = 128 }; /* no line is longer, its line end included */

/* Write a line; return its length. */
size_t trace_text(const TraceRecord *record, char line[TRACE_LINE_BYTES]);
size_t trace_text_dropped(uint32_t n, char line[TRACE_LINE_BYTES]);

#endif
