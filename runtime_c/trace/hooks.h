/* The places where a debug build records what it does (TRACE.md). In a firmware without --debug the hooks are no text
 * at all (an empty inline function would still sway a compiler's choices), and no .c file of this folder is part of it:
 * not one byte of the binary is theirs. */
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
#define trace_token_begin()
#define trace_token_end(position, token)
#define trace_phase(phase)
#define trace_flush()
#define trace_finish()
#endif

#if DEBUG_ROUTING
/* experts[MODEL_TOP_K] and their weights, by rank */
void trace_routing(int layer, const int *experts, const float *weights);
#else
#define trace_routing(layer, experts, weights)
#endif

#if DEBUG_TIMING
/* Ends a stage, which began where the one before it, or the token's begin, ended. */
void trace_stage(TraceStage stage, int layer);

/* Around a share of one chosen expert's work, on any thread: `start` is a new variable. */
#define trace_share_begin(start) uint64_t start = trace_ticks()
#define trace_share_end(start, rank) trace_add_share(rank, start)
uint64_t trace_ticks(void);
void trace_add_share(int rank, uint64_t start);

/* Records what the threads have spent on each chosen expert. Call it before the end of the stage TRACE_EXPERTS. */
void trace_experts(int layer, const int *experts);

/* Says which thread of the team, 1 .. MODEL_MAX_THREADS - 1, the caller is; without it, it is thread 0. */
void trace_thread(int index);
#else
#define trace_stage(stage, layer)
#define trace_share_begin(start)
#define trace_share_end(start, rank)
#define trace_experts(layer, experts)
#define trace_thread(index)
#endif

#endif
