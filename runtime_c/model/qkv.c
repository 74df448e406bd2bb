#include "model/qkv.h"

#include "model/arena.h"
#include "model/joint.h"
#include "port/threads.h"

#ifndef MODEL_KV_RANK
/* What the threads of one job see. */
typedef struct {
    const Layer *layer;
    int n; /* tokens */
} QkvJob;

enum { Q, K, V }; /* of arena.columns */
enum {
    Q_PANELS = (Q_DIM + PANEL_ROWS - 1) / PANEL_ROWS,
    K_PANELS = (K_DIM + PANEL_ROWS - 1) / PANEL_ROWS,
    V_PANELS = (V_DIM + PANEL_ROWS - 1) / PANEL_ROWS
};

static void qkv_panels(void *argument, int begin, int end) {
    const QkvJob *job = argument;
    joint_product(&job->layer->q, arena.columns[Q], job->n, 0, begin, end);
    joint_product(&job->layer->k, arena.columns[K], job->n, Q_PANELS, begin, end);
    joint_product(&job->layer->v, arena.columns[V], job->n, Q_PANELS + K_PANELS, begin, end);
}

void project_qkv(const Layer *layer, int n) {
    QkvJob job = {layer, n};
    SET_COLUMNS(Q, n, input, q);
    SET_COLUMNS(K, n, input, k);
    SET_COLUMNS(V, n, input, v);
    threads_run(qkv_panels, &job, Q_PANELS + K_PANELS + V_PANELS);
}
#endif
