/* Inside of the tracer: the ring, and how numbers lie in a record. */
#ifndef COLIBRI_TRACE_RING_H
#define COLIBRI_TRACE_RING_H

#include <string.h>

#include "trace/trace.h"

_Static_assert(MODEL_N_LAYERS <= 255 && MODEL_N_EXPERTS <= 256, "layers and experts have one byte in a record");

enum { RECORD_INFO = 1, RECORD_TOKEN, RECORD_ROUTING, RECORD_MEMORY, RECORD_TIME };
enum { RECORD_RANKS = 4 }; /* chosen experts in one ROUTING record */
#define TICKS_UNKNOWN UINT32_MAX

#define TRACE_ROUTING_RECORDS ((MODEL_TOP_K + RECORD_RANKS - 1) / RECORD_RANKS * DEBUG_ROUTING)
#define TRACE_TIME_RECORDS ((MODEL_TOP_K + 3) * DEBUG_TIMING)

/* The description of a run (INFO and each expert's place), and two tokens (INFO, TOKEN, embedding, head, layers). */
#define TRACE_RUN_RECORDS (1 + MODEL_N_LAYERS * MODEL_N_EXPERTS * DEBUG_MEMORY)
#define TRACE_TOKEN_RECORDS (2 + 2 * DEBUG_TIMING + MODEL_N_LAYERS * (TRACE_ROUTING_RECORDS + TRACE_TIME_RECORDS))

/* n filled with ones from its highest one on. */
#define ONES_2(n) ((n) | (n) >> 1)
#define ONES_4(n) (ONES_2(n) | ONES_2(n) >> 2)
#define ONES_8(n) (ONES_4(n) | ONES_4(n) >> 4)
#define ONES_16(n) (ONES_8(n) | ONES_8(n) >> 8)
#define ONES_32(n) (ONES_16(n) | ONES_16(n) >> 16)

/* Records in the ring: a power of two, at least 256. The last eighth is for TOKEN and INFO alone, so that a reader who
 * is late misses parts of tokens rather than their ends. */
enum {
    TRACE_WANTED = (TRACE_RUN_RECORDS + 2 * TRACE_TOKEN_RECORDS) * 8 / 7,
    TRACE_RING_RECORDS = ONES_32(TRACE_WANTED | 255) + 1,
    TRACE_RESERVED_RECORDS = TRACE_RING_RECORDS / 8
};

extern TraceRecord trace_ring[TRACE_RING_RECORDS];

/* What is recorded just now: the mask, or 0 while it is paused. */
extern unsigned trace_active;

/* Adds a record or counts it as dropped. */
void trace_push(const TraceRecord *record);

/* Drops everything that waits in the ring, and counts it. */
void trace_discard(void);

/* Counts records that left the ring and never arrived. */
void trace_count_dropped(uint32_t n);

void trace_push_info(void);

static inline void put_u16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void put_u32(uint8_t *at, uint32_t value) {
    put_u16(at, value);
    put_u16(at + 2, value >> 16);
}

static inline uint32_t get_u16(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t get_u32(const uint8_t *at) {
    return get_u16(at) | get_u16(at + 2) << 16;
}

#endif
