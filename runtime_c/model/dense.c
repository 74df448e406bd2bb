#include "model/dense.h"

#include "model/arena.h"
#include "model/swiglu.h"
#include "port/threads.h"

#ifdef MODEL_DENSE_FORMAT
/* What the threads of one job see. */
typedef struct {
    const Ffn *ffn;
    Input input;
    Input hidden;
    float *out;
} DenseJob;

static void hidden_panels(void *argument, int begin, int end) {
    const DenseJob *job = argument;
    int row = begin * PANEL_ROWS;
    product(MODEL_DENSE_FORMAT, &job->ffn->gate, job->input, arena.dense_gate, begin, end);
    product(MODEL_DENSE_FORMAT, &job->ffn->up, job->input, arena.dense_up, begin, end);
    gate_hidden(arena.dense_gate + row, arena.dense_up + row, last_row_of(&job->ffn->gate, end) - row);
}

static void output_panels(void *argument, int begin, int end) {
    const DenseJob *job = argument;
    product(MODEL_DENSE_FORMAT, &job->ffn->down, job->hidden, job->out, begin, end);
}

void dense_forward(const Ffn *ffn, Input input, float *out) {
    Activation quantized = ACTIVATION_OF(arena.dense_hidden);
    DenseJob job = {ffn, input, {arena.dense_gate, &quantized}, out};
    threads_run(hidden_panels, &job, panels_of(ffn->gate.rows));
    KERNEL(quantize_activation)(arena.dense_gate, ffn->gate.rows, &quantized);
    threads_run(output_panels, &job, panels_of(MODEL_DIM));
}
#endif
