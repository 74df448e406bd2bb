#include "model/experts.h"

#include <string.h>

#include "model/arena.h"
#include "model/product.h"
#include "model/swiglu.h"
#include "port/threads.h"
#include "store/model_tables.h"
#include "trace/hooks.h"

#ifdef MODEL_HAS_EXPERTS
_Static_assert(MODEL_TOP_K >= 1 && MODEL_TOP_K <= MODEL_N_EXPERTS, "top-k lies within the expert count");

enum { HIDDEN_PANELS = (MODEL_HIDDEN_DIM + PANEL_ROWS - 1) / PANEL_ROWS };

/* What the threads of one job see; experts[] is by rank. */
typedef struct {
    const Ffn *experts[MODEL_TOP_K];
    Input input;
    Activation hidden[MODEL_TOP_K];
} ExpertsJob;

/* y[row .. row + n - 1] += bias of a projection, where experts have biases. */
#ifdef MODEL_EXPERT_BIAS
#define ADD_BIAS(y, expert, part, row, n) KERNEL(add)((y) + (row), (expert)->part##_bias + (row), n)
#else
#define ADD_BIAS(y, expert, part, row, n) (void)0
#endif

/* Panels first .. last-1 of the hidden vector of one chosen expert. */
static void gate_and_up(const ExpertsJob *job, int rank, int first, int last) {
    const Ffn *expert = job->experts[rank];
    product(MODEL_EXPERT_FORMAT, &expert->gate, job->input, arena.gate[rank], first, last);
    product(MODEL_EXPERT_FORMAT, &expert->up, job->input, arena.up[rank], first, last);
    int row = first * PANEL_ROWS;
    int n = last_row_of(&expert->gate, last) - row;
    ADD_BIAS(arena.gate[rank], expert, gate, row, n);
    ADD_BIAS(arena.up[rank], expert, up, row, n);
    gate_hidden(arena.gate[rank] + row, arena.up[rank] + row, n);
}

/* The chosen experts' hidden panels laid end to end, so that the threads share one job a layer. */
static void hidden_panels(void *argument, int begin, int end) {
    const ExpertsJob *job = argument;
    for (int rank = begin / HIDDEN_PANELS; rank < MODEL_TOP_K && rank * HIDDEN_PANELS < end; rank++) {
        int start = rank * HIDDEN_PANELS;
        int first = begin > start ? begin - start : 0;
        int last = end - start < HIDDEN_PANELS ? end - start : HIDDEN_PANELS;
        trace_share_begin(start_ticks);
        gate_and_up(job, rank, first, last);
        trace_share_end(start_ticks, rank);
    }
}

static void output_panels(void *argument, int begin, int end) {
    const ExpertsJob *job = argument;
    int row = begin * PANEL_ROWS;
    int n = last_row_of(&job->experts[0]->down, end) - row;
    memset(arena.mixed + row, 0, (size_t)n * sizeof(float));
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        trace_share_begin(start_ticks);
        Input hidden = {arena.gate[rank], &job->hidden[rank]};
        product(MODEL_EXPERT_FORMAT, &job->experts[rank]->down, hidden, arena.down[rank], begin, end);
        ADD_BIAS(arena.down[rank], job->experts[rank], down, row, n);
        KERNEL(add_scaled)(arena.mixed + row, arena.down[rank] + row, arena.routing.weights[rank], n);
        trace_share_end(start_ticks, rank);
    }
}

#ifdef MODEL_ROUTER_BIAS
static void add_router_bias(const Layer *layer) {
    KERNEL(add)(arena.router_logits, layer->router_bias, MODEL_N_EXPERTS);
}
#else
static void add_router_bias(const Layer *layer) {
    (void)layer;
}
#endif

#ifdef MODEL_SELECTION_BIAS
static const float *selection_bias(const Layer *layer) {
    return layer->selection_bias;
}
#else
static const float *selection_bias(const Layer *layer) {
    (void)layer;
    return NULL;
}
#endif

colibri_status experts_forward(int layer, Activation *quantized) {
    const Layer *tables = &model_layers[layer];
    ExpertsJob job = {.input = {arena.h, quantized}};
    KERNEL(matvec_f32)(&tables->router, arena.h, arena.router_logits, 0, MODEL_N_EXPERTS);
    add_router_bias(tables);
    colibri_status status = route(arena.router_logits, selection_bias(tables), &arena.routing);
    if (status != COLIBRI_OK) {
        return status;
    }
    trace_stage(TRACE_ROUTER, layer);
    trace_routing(layer, arena.routing.experts, arena.routing.weights);
    KERNEL(quantize_activation)(arena.h, MODEL_DIM, quantized);
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        job.experts[rank] = &model_experts[layer][arena.routing.experts[rank]];
        job.hidden[rank] = ACTIVATION_OF(arena.hidden[rank]);
    }
    threads_run(hidden_panels, &job, MODEL_TOP_K * HIDDEN_PANELS);
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        trace_share_begin(start_ticks);
        KERNEL(quantize_activation)(arena.gate[rank], MODEL_HIDDEN_DIM, &job.hidden[rank]);
        trace_share_end(start_ticks, rank);
    }
    threads_run(output_panels, &job, panels_of(MODEL_DIM));
    trace_experts(layer, arena.routing.experts);
    return COLIBRI_OK;
}
#endif
