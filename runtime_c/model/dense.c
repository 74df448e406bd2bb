#include "model/dense.h"

#include "model/arena.h"
#include "model/swiglu.h"
#include "port/threads.h"

#ifdef MODEL_DENSE_FORMAT
/* What the threads of the jobs see. */
typedef struct {
    const Ffn *ffn;
    int n;
    Column gate[MODEL_BATCH];
    Column up[MODEL_BATCH];
    Column down[MODEL_BATCH];
} DenseJob;

static void hidden_panels(void *argument, int begin, int end) {
    const DenseJob *job = argument;
    int row = begin * PANEL_ROWS;
    int n_rows = last_row_of(&job->ffn->gate, end) - row;
    product(MODEL_DENSE_FORMAT, &job->ffn->gate, job->gate, job->n, begin, end);
    product(MODEL_DENSE_FORMAT, &job->ffn->up, job->up, job->n, begin, end);
    for (int i = 0; i < job->n; i++) {
        gate_hidden(job->gate[i].y + row, job->up[i].y + row, n_rows);
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
    product(MODEL_DENSE_FORMAT, &job->ffn->down, job->down, job->n, begin, end);
}

void dense_forward(const Ffn *ffn, const Column *columns, int n) {
    DenseJob job;
    job.ffn = ffn;
    job.n = n;
    for (int i = 0; i < n; i++) {
        job.gate[i] = (Column){columns[i].x, arena.tokens[i].dense_gate};
        job.up[i] = (Column){columns[i].x, arena.tokens[i].dense_up};
        job.down[i] = (Column){&arena.tokens[i].dense_hidden.view, columns[i].y};
    }
    threads_run(hidden_panels, &job, panels_of(ffn->gate.rows));
    threads_run(quantize_hidden, &job, n);
    threads_run(output_panels, &job, panels_of(MODEL_DIM));
}
#endif
