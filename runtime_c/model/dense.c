#include "model/dense.h"

#include "model/arena.h"
#include "model/swiglu.h"
#include "port/threads.h"

#ifdef MODEL_DENSE_FORMAT
/* What the threads of the jobs see. */
typedef struct {
    const Ffn *ffn;
    int n; /* tokens */
} DenseJob;

enum { GATE, UP, DOWN }; /* of arena.columns */

static void hidden_panels(void *argument, int begin, int end) {
    const DenseJob *job = argument;
    int row = begin * PANEL_ROWS;
    int n_rows = last_row_of(&job->ffn->gate, end) - row;
    product(MODEL_DENSE_FORMAT, &job->ffn->gate, arena.columns[GATE], job->n, begin, end);
    product(MODEL_DENSE_FORMAT, &job->ffn->up, arena.columns[UP], job->n, begin, end);
    for (int i = 0; i < job->n; i++) {
        gate_hidden(arena.tokens[i].dense_gate + row, arena.tokens[i].dense_up + row, n_rows);
    }
}

static void quantize_hidden(void *argument, int begin, int end) {
    const DenseJob *job = argument;
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        QUANTIZE(token->dense_gate, job->ffn->gate.rows, token->dense_hidden);
    }
}

static void output_panels(void *argument, int begin, int end) {
    const DenseJob *job = argument;
    product(MODEL_DENSE_FORMAT, &job->ffn->down, arena.columns[DOWN], job->n, begin, end);
}

void dense_forward(const Ffn *ffn, int n) {
    DenseJob job = {ffn, n};
    for (int i = 0; i < n; i++) {
        const Column *whole = &arena.columns[DENSE_COLUMNS][i];
        arena.columns[GATE][i] = (Column){whole->x, arena.tokens[i].dense_gate};
        arena.columns[UP][i] = (Column){whole->x, arena.tokens[i].dense_up};
        arena.columns[DOWN][i] = (Column){&arena.tokens[i].dense_hidden.view, whole->y};
    }
    threads_run(hidden_panels, &job, panels_of(ffn->gate.rows));
    threads_run(quantize_hidden, &job, n);
    threads_run(output_panels, &job, panels_of(MODEL_DIM));
}
#endif
