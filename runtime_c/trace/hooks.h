/* The places where a debug build records what it does (TRACE.md). In a firmware without --debug the hooks are nothing,
 * and no .c file of this folder is part of it: not one byte of the binary is theirs. */
#ifndef COLIBRI_TRACE_HOOKS_H
#define COLIBRI_TRACE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "model_config.h" /* DEBUG_ROUTING, DEBUG_MEMORY, DEBUG_TIMING: 0 or 1 */

#define TRACE_COMPILED (DEBUG_ROUTING || DEBUG_MEMORY || DEBUG_TIMING)

typedef enum { TRACE_PREFILL, TRACE_DECODE } TracePhase;

typedef enum { TRACE_ATTENTION = 1, TRACE_ROUTER, TRACE_EXPERT, TRACE_HEAD, TRACE_EMBEDDING, TRACE_EXPERTS } TraceStage;

#if TRACE_COMPILED
/* Around one token; the end is recorded also after a fault. */
void trace_token_begin(void);
void trace_token_end(int position, int token);

/* What the tokens from here on are. */
void trace_phase(TracePhase phase);

/* Between two tokens: hands records to the output as far as it takes them without waiting; not while recording is
 * paused, so that a token without it does not pay for the ones before. */
void trace_flush(void);

/* Before other text goes to the same descriptor: the same, but waits as long as the output moves. What it does not take
 * within a second is dropped. */
void trace_finish(void);
#else
static inline void trace_token_begin(void) {
}
static inline void trace_token_end(int position, int token) {
    (void)position;
    (void)token;
}
static inline void trace_phase(TracePhase phase) {
    (void)phase;
}
static inline void trace_flush(void) {
}
static inline void trace_finish(void) {
}
#endif

#if DEBUG_ROUTING
/* experts[MODEL_TOP_K] and their weights, by rank */
void trace_routing(int layer, const int *experts, const float *weights);
#else
static inline void trace_routing(int layer, const int *experts, const float *weights) {
    (void)layer;
    (void)experts;
    (void)weights;
}
#endif

#if DEBUG_TIMING
/* Ends a stage, which began where the one before it, or the token's begin, ended. */
void trace_stage(TraceStage stage, int layer);

/* Adds the time since `start` (of trace_ticks) to the expert of that rank; any thread. */
uint64_t trace_ticks(void);
void trace_expert_share(int rank, uint64_t start);

/* Records what the threads have spent on each chosen expert. Call it before the end of the stage TRACE_EXPERTS. */
void trace_experts(int layer, const int *experts);

/* Says which thread of the team, 1 .. MODEL_MAX_THREADS - 1, the caller is; without it, it is thread 0. */
void trace_thread(int index);
#else
static inline void trace_stage(TraceStage stage, int layer) {
    (void)stage;
    (void)layer;
}
static inline uint64_t trace_ticks(void) {
    return 0;
}
static inline void trace_expert_share(int rank, uint64_t start) {
    (void)rank;
    (void)start;
}
static inline void trace_experts(int layer, const int *experts) {
    (void)layer;
    (void)experts;
}
static inline void trace_thread(int index) {
    (void)index;
}
#endif

#endif
