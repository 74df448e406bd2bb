/* The records of a debug build on the serial line: TRACE frames in a session, lines of text in the human mode. Without
 * --debug there are none. */
#ifndef COLIBRI_SERVE_RECORDS_H
#define COLIBRI_SERVE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/options.h"
#include "link/frame.h"
#include "serve/human.h"
#include "trace/trace.h"
#if TRACE_COMPILED
#include "trace/text.h"
#endif

/* Writes the next TRACE frame to wire[FRAME_WIRE_BYTES]; returns its length, 0: no record waits. */
static inline size_t records_next_frame(uint8_t *wire) {
#if TRACE_COMPILED
    uint8_t body[TRACE_BODY_BYTES];
    size_t n = trace_frame_body(body);
    return n > 0 ? frame_encode(body, n, wire) : 0;
#else
    (void)wire;
    return 0;
#endif
}

/* Writes what waits as text, on lines of their own within an answer. */
static inline void records_print(void) {
#if TRACE_COMPILED
    TraceRecord record;
    char line[TRACE_LINE_BYTES];
    while (trace_take(&record, 1) == 1) {
        human_leave();
        human_answer(line, trace_text(&record, line));
    }
#endif
}

/* Records these kinds from now on. Returns false for one that is not compiled in. */
static inline bool records_set(unsigned mask) {
    if ((mask & ~(unsigned)TRACE_COMPILED_MASK) != 0) {
        return false;
    }
#if TRACE_COMPILED
    trace_set_mask(mask);
#endif
    return true;
}

/* A new peer gets the records that the command line asks for, and none of those that wait. */
static inline void records_begin(const Options *options) {
#if TRACE_COMPILED
    TraceRecord record;
    trace_set_mask(0);
    while (trace_take(&record, 1) == 1) {
    }
    trace_set_mask(options->trace.mask);
#else
    (void)options;
#endif
}

typedef struct {
    int64_t n_records;
    int64_t n_dropped;
} RecordCounts;

static inline RecordCounts records_counts(void) {
#if TRACE_COMPILED
    return (RecordCounts){trace_n_records(), trace_n_dropped()};
#else
    return (RecordCounts){0, 0};
#endif
}

#endif
