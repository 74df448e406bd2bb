#include "trace/ring.h"

#include "port/clock.h"
#include "store/model_tables.h"

TraceRecord trace_ring[TRACE_RING_RECORDS];
unsigned trace_active;

/* Counts that run on; the place in the ring is their remainder. */
static uint32_t n_pushed; /* into the ring */
static uint32_t n_taken;
static uint32_t n_made; /* with the dropped ones */
static uint32_t n_dropped;
static unsigned mask;

void trace_push(const TraceRecord *record) {
    uint32_t room = TRACE_RING_RECORDS - (n_pushed - n_taken);
    bool has_reserve = record->bytes[0] == RECORD_TOKEN || record->bytes[0] == RECORD_INFO;
    n_made++;
    if (room <= (has_reserve ? 0 : TRACE_RESERVED_RECORDS)) {
        n_dropped++;
        return;
    }
    trace_ring[n_pushed % TRACE_RING_RECORDS] = *record;
    n_pushed++;
}

size_t trace_take(TraceRecord *records, size_t max) {
    size_t n = 0;
    for (; n < max && n_taken != n_pushed; n++) {
        records[n] = trace_ring[n_taken % TRACE_RING_RECORDS];
        n_taken++;
    }
    return n;
}

void trace_discard(void) {
    n_dropped += n_pushed - n_taken;
    n_pushed = n_taken;
}

void trace_count_dropped(uint32_t n) {
    n_dropped += n;
}

uint32_t trace_n_records(void) {
    return n_made;
}

uint32_t trace_n_dropped(void) {
    return n_dropped;
}

static uint8_t hex_digit(char c) {
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void trace_push_info(void) {
    TraceRecord record = {{RECORD_INFO, 1, MODEL_N_LAYERS, MODEL_N_EXPERTS - 1}};
    put_u32(record.bytes + 4, clock_hz());
    for (int i = 0; i < 8; i++) {
        record.bytes[8 + i] = (uint8_t)(hex_digit(model_digest[2 * i]) << 4 | hex_digit(model_digest[2 * i + 1]));
    }
    trace_push(&record);
}

#if DEBUG_MEMORY
static void push_memory(void) {
    for (int layer = 0; layer < MODEL_N_LAYERS; layer++) {
        for (int expert = 0; expert < MODEL_N_EXPERTS; expert++) {
            TraceRecord record = {{RECORD_MEMORY, (uint8_t)layer, (uint8_t)expert}};
            uint64_t address = (uint64_t)(uintptr_t)model_experts[layer][expert].gate.codes; /* the file's first byte */
            if (address == 0) { /* a layer without experts */
                continue;
            }
            put_u32(record.bytes + 4, MODEL_EXPERT_BYTES);
            put_u32(record.bytes + 8, (uint32_t)address);
            put_u32(record.bytes + 12, (uint32_t)(address >> 32));
            trace_push(&record);
        }
    }
}
#endif

void trace_set_mask(unsigned wanted) {
    mask = wanted & TRACE_COMPILED_MASK;
    trace_active = mask;
    if (mask == 0) {
        return;
    }
    trace_push_info();
#if DEBUG_MEMORY
    if (mask & TRACE_MEMORY) {
        push_memory();
    }
#endif
}

unsigned trace_mask(void) {
    return mask;
}

void trace_pause(bool pause) {
    trace_active = pause ? 0 : mask;
}
