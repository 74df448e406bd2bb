#include "trace/hooks.h"

#include <stdalign.h>

#include "port/clock.h"
#include "trace/ring.h"

enum { INFO_INTERVAL = 64 }; /* tokens */

static TracePhase phase;
static uint32_t n_tokens;
static uint32_t n_dropped_before; /* when the last token ended */

#if DEBUG_TIMING
/* What a thread has spent on the chosen experts of the current layer, by rank; each has its own cache lines. */
typedef struct {
    alignas(64) uint64_t ticks[MODEL_TOP_K];
} ThreadShares;

static ThreadShares shares[MODEL_MAX_THREADS];
static _Thread_local int thread;

static uint64_t token_start;
static uint64_t stage_start;

static uint32_t saturated(uint64_t ticks) {
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

static void push_time(TraceStage stage, int layer, int expert, uint64_t ticks) {
    TraceRecord record = {{RECORD_TIME, (uint8_t)layer, (uint8_t)expert, (uint8_t)stage}};
    put_u32(record.bytes + 4, saturated(stage_start - token_start));
    put_u32(record.bytes + 8, saturated(ticks));
    trace_push(&record);
}

void trace_stage(TraceStage stage, int layer) {
    if (trace_active & TRACE_TIMING) {
        push_time(stage, layer, 0, clock_ticks() - stage_start);
        stage_start = clock_ticks();
    }
}

uint64_t trace_ticks(void) {
    return trace_active & TRACE_TIMING ? clock_ticks() : 0;
}

void trace_add_share(int rank, uint64_t start) {
    if (trace_active & TRACE_TIMING) {
        shares[thread].ticks[rank] += clock_ticks() - start;
    }
}

void trace_experts(int layer, const int *experts) {
    for (int rank = 0; rank < MODEL_TOP_K && trace_active & TRACE_TIMING; rank++) {
        uint64_t ticks = 0;
        for (int i = 0; i < MODEL_MAX_THREADS; i++) {
            ticks += shares[i].ticks[rank];
            shares[i].ticks[rank] = 0;
        }
        push_time(TRACE_EXPERT, layer, experts[rank], ticks);
    }
}

void trace_thread(int index) {
    thread = index;
}
#endif

#if DEBUG_ROUTING
void trace_routing(int layer, const int *experts, const float *weights) {
    for (int first = 0; first < MODEL_TOP_K && trace_active & TRACE_ROUTING; first += RECORD_RANKS) {
        int n = MODEL_TOP_K - first < RECORD_RANKS ? MODEL_TOP_K - first : RECORD_RANKS;
        TraceRecord record = {{RECORD_ROUTING, (uint8_t)layer, (uint8_t)first, (uint8_t)n}};
        for (int i = 0; i < n; i++) {
            record.bytes[4 + i] = (uint8_t)experts[first + i];
            put_u16(record.bytes + 8 + 2 * i, (uint32_t)(weights[first + i] * 65535.0f + 0.5f));
        }
        trace_push(&record);
    }
}
#endif

void trace_phase(TracePhase next) {
    phase = next;
}

void trace_token_begin(void) {
    if (trace_active == 0) {
        return;
    }
    if (n_tokens > 0 && n_tokens % INFO_INTERVAL == 0) {
        trace_push_info();
    }
#if DEBUG_TIMING
    token_start = trace_ticks();
    stage_start = token_start;
#endif
}

static uint32_t ticks_of_token(void) {
#if DEBUG_TIMING
    return trace_active & TRACE_TIMING ? saturated(clock_ticks() - token_start) : TICKS_UNKNOWN;
#else
    return TICKS_UNKNOWN;
#endif
}

void trace_token_end(int position, int token) {
    if (trace_active == 0) {
        return;
    }
    TraceRecord record = {{RECORD_TOKEN, (uint8_t)phase}};
    uint32_t n_lost = trace_n_dropped() - n_dropped_before;
    n_dropped_before = trace_n_dropped();
    put_u16(record.bytes + 2, n_lost < UINT16_MAX ? n_lost : UINT16_MAX);
    put_u32(record.bytes + 4, (uint32_t)position);
    put_u32(record.bytes + 8, (uint32_t)token);
    put_u32(record.bytes + 12, ticks_of_token());
    trace_push(&record);
    n_tokens++;
}
