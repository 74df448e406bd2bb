#include "model/qkv.h"

#include "model/arena.h"
#include "model/joint.h"
#include "port/threads.h"

#ifndef MODEL_KV_RANK
typedef struct {
    const Layer *layer;
    Input h;
} QkvJob;

enum {
    Q_PANELS = (Q_DIM + PANEL_ROWS - 1) / PANEL_ROWS,
    K_PANELS = (K_DIM + PANEL_ROWS - 1) / PANEL_ROWS,
    V_PANELS = (V_DIM + PANEL_ROWS - 1) / PANEL_ROWS
};

static void qkv_panels(void *argument, int begin, int end) {
    const QkvJob *job = argument;
    joint_product(&job->layer->q, job->h, arena.q, 0, begin, end);
    joint_product(&job->layer->k, job->h, arena.k, Q_PANELS, begin, end);
    joint_product(&job->layer->v, job->h, arena.v, Q_PANELS + K_PANELS, begin, end);
}

void project_qkv(const Layer *layer, Input h) {
    QkvJob job = {layer, h};
    threads_run(qkv_panels, &job, Q_PANELS + K_PANELS + V_PANELS);
}
#endif
