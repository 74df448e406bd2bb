#include "model/experts.h"

#include <string.h>

#include "model/arena.h"
#include "model/batch.h"
#include "model/groups.h"
#include "model/product.h"
#include "model/swiglu.h"
#include "port/threads.h"
#include "store/model_tables.h"
#include "trace/hooks.h"

#ifdef MODEL_HAS_EXPERTS
_Static_assert(MODEL_TOP_K >= 1 && MODEL_TOP_K <= MODEL_N_EXPERTS, "top-k lies within the expert count");

enum { HIDDEN_PANELS = (MODEL_HIDDEN_DIM + PANEL_ROWS - 1) / PANEL_ROWS };

/* What the threads of the jobs see. The columns of group g are arena.by_expert.gate, .up, .down [groups[g].first ...].
 */
typedef struct {
    int layer;
    int n; /* tokens */
} ExpertsJob;

/* y[row .. row + n - 1] += bias of a projection, where experts have biases. */
#ifdef MODEL_EXPERT_BIAS
#define ADD_BIAS(y, expert, part, row, n) KERNEL(add)((y) + (row), (expert)->part##_bias + (row), n)
#else
#define ADD_BIAS(y, expert, part, row, n) (void)0
#endif

/* Panels first .. last-1 of the hidden vectors of all tokens that chose an expert. */
static void gate_and_up(const Ffn *expert, const ExpertGroup *group, int first, int last) {
    const Column *gate = arena.by_expert.gate + group->first;
    const Column *up = arena.by_expert.up + group->first;
    product(MODEL_EXPERT_FORMAT, &expert->gate, gate, group->n, first, last);
    product(MODEL_EXPERT_FORMAT, &expert->up, up, group->n, first, last);
    int row = first * PANEL_ROWS;
    int n_rows = last_row_of(&expert->gate, last) - row;
    for (int c = 0; c < group->n; c++) {
        ADD_BIAS(gate[c].y, expert, gate, row, n_rows);
        ADD_BIAS(up[c].y, expert, up, row, n_rows);
        gate_hidden(gate[c].y + row, up[c].y + row, n_rows);
    }
}

/* The groups' hidden panels laid end to end, so that the threads share one job a layer. A panel counts once for each
 * column, which is about what it costs: item -> the group's first panel that does not begin before it. */
static int panel_at(const ExpertGroup *group, int item) {
    int offset = item - group->first * HIDDEN_PANELS;
    int panel = offset > 0 ? (offset + group->n - 1) / group->n : 0;
    return panel < HIDDEN_PANELS ? panel : HIDDEN_PANELS;
}

static void hidden_items(void *argument, int begin, int end) {
    const ExpertsJob *job = argument;
    for (int g = 0; g < arena.by_expert.n_groups; g++) {
        const ExpertGroup *group = &arena.by_expert.groups[g];
        int first = panel_at(group, begin);
        int last = panel_at(group, end);
        if (first < last) {
            trace_share_begin(start_ticks);
            gate_and_up(&model_experts[job->layer][group->expert], group, first, last);
            trace_share_end(start_ticks, g);
        }
    }
}

/* One item for each token and rank. */
static void quantize_hidden(void *argument, int begin, int end) {
    (void)argument;
    for (int choice = begin; choice < end; choice++) {
        Token *token = &arena.tokens[choice / MODEL_TOP_K];
        int rank = choice % MODEL_TOP_K;
        trace_share_begin(start_ticks);
        QUANTIZE(token->gate[rank], MODEL_HIDDEN_DIM, token->hidden[rank]);
        trace_share_end(start_ticks, rank);
    }
}

static void add_weighted(Token *token, int row, int n_rows) {
    memset(token->mixed + row, 0, (size_t)n_rows * sizeof(float));
    for (int rank = 0; rank < MODEL_TOP_K; rank++) {
        KERNEL(add_scaled)(token->mixed + row, token->down[rank] + row, token->routing.weights[rank], n_rows);
    }
}

/* All experts' outputs for some rows, then each token's sum over them, in the order of its ranks. */
static void output_panels(void *argument, int begin, int end) {
    const ExpertsJob *job = argument;
    int row = begin * PANEL_ROWS;
    int n_rows = end * PANEL_ROWS < MODEL_DIM ? end * PANEL_ROWS - row : MODEL_DIM - row;
    for (int g = 0; g < arena.by_expert.n_groups; g++) {
        const ExpertGroup *group = &arena.by_expert.groups[g];
        const Ffn *expert = &model_experts[job->layer][group->expert];
        const Column *down = arena.by_expert.down + group->first;
        trace_share_begin(start_ticks);
        product(MODEL_EXPERT_FORMAT, &expert->down, down, group->n, begin, end);
        for (int c = 0; c < group->n; c++) {
            ADD_BIAS(down[c].y, expert, down, row, n_rows);
        }
        trace_share_end(start_ticks, g);
    }
    for (Token *token = arena.tokens; token < arena.tokens + job->n; token++) {
        add_weighted(token, row, n_rows);
    }
}

#ifdef MODEL_ROUTER_BIAS
static void add_router_bias(const Layer *layer, Token *token) {
    KERNEL(add)(token->router_logits, layer->router_bias, MODEL_N_EXPERTS);
}
#else
static void add_router_bias(const Layer *layer, Token *token) {
    (void)layer;
    (void)token;
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

static void route_tokens(void *argument, int begin, int end) {
    const ExpertsJob *job = argument;
    const Layer *layer = &model_layers[job->layer];
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        KERNEL(matvec_f32)(&layer->router, token->h, token->router_logits, 0, MODEL_N_EXPERTS);
        add_router_bias(layer, token);
        token->status = route(token->router_logits, selection_bias(layer), &token->routing);
    }
}

colibri_status experts_forward(int layer, int n) {
    ExpertsJob job = {layer, n};
    threads_run(route_tokens, &job, n);
    colibri_status status = batch_status(n);
    if (status != COLIBRI_OK) {
        return status;
    }
    trace_stage(TRACE_ROUTER, layer);
    trace_routing(layer, arena.tokens->routing.experts, arena.tokens->routing.weights);
    group_by_expert(n);
    threads_run(hidden_items, &job, n * MODEL_TOP_K * HIDDEN_PANELS);
    threads_run(quantize_hidden, &job, n * MODEL_TOP_K);
    threads_run(output_panels, &job, panels_of(MODEL_DIM));
    trace_experts(layer, arena.tokens->routing.experts);
    return COLIBRI_OK;
}
#endif
