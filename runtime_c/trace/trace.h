/* Control of the records of a debug build, and what becomes of them. TRACE.md states every byte. */
#ifndef COLIBRI_TRACE_H
#define COLIBRI_TRACE_H

#include <stddef.h>

#include "trace/hooks.h"

/* What can be recorded, as bits of a mask. */
enum { TRACE_ROUTING = 1, TRACE_MEMORY = 2, TRACE_TIMING = 4 };

#if TRACE_COMPILED
#define TRACE_COMPILED_MASK (TRACE_ROUTING * DEBUG_ROUTING | TRACE_MEMORY * DEBUG_MEMORY | TRACE_TIMING * DEBUG_TIMING)
#else
#define TRACE_COMPILED_MASK 0
#endif

#if TRACE_COMPILED
typedef struct {
    uint8_t bytes[16];
} TraceRecord;

enum { TRACE_FRAME_RECORDS = 14, TRACE_BODY_BYTES = 8 + TRACE_FRAME_RECORDS * (int)sizeof(TraceRecord) };

/* Everything here is called between two tokens, from the thread that feeds them. */

/* Records these kinds from now on, as far as they are compiled in; 0: nothing. Starts with what describes the run. */
void trace_set_mask(unsigned mask);
unsigned trace_mask(void);

/* Nothing is recorded until it is lifted; nothing describes the run anew. */
void trace_pause(bool pause);

/* Moves up to `max` records, oldest first, out of the ring; returns how many. */
size_t trace_take(TraceRecord *records, size_t max);

/* Fills the body of a frame with the next records; returns its length, 0: there are none. */
size_t trace_frame_body(uint8_t body[TRACE_BODY_BYTES]);

/* Since the start: records made, and of them those that found no room or no reader. */
uint32_t trace_n_records(void);
uint32_t trace_n_dropped(void);

typedef enum { TRACE_OUTPUT_OFF, TRACE_OUTPUT_TEXT, TRACE_OUTPUT_BINARY } TraceOutput;

/* From now on trace_flush writes to a descriptor. It never waits for it and leaves its flags alone. Without it the
 * records wait for trace_take or trace_frame_body. */
void trace_output_open(int fd, TraceOutput encoding);

/* errno of the write that ended the output; 0: it is well. */
int trace_output_error(void);
#endif

#endif
