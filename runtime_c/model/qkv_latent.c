/* Multi-head latent attention (DeepSeek-V2): keys and values, and where MODEL_Q_RANK is there queries, come from small
 * latent vectors. The part of a key that turns is the same for all heads. */
#include "model/qkv.h"

#include <string.h>

#include "model/arena.h"
#include "model/joint.h"
#include "port/threads.h"

#ifdef MODEL_KV_RANK
enum { STILL_DIM = MODEL_HEAD_DIM - MODEL_ROTARY_DIM };

/* What the threads of a job see. */
typedef struct {
    const Layer *layer;
    Input h;
    Input q_latent;
    Input kv_latent;
} LatentJob;

/* The queries' part in the job from h down to the latent vectors, and in the one up from them. Matrices lie end to end
 * from panel `start`. */
#ifdef MODEL_Q_RANK
enum { Q_DOWN_ROWS = MODEL_Q_RANK, Q_UP_ROWS = Q_DIM };

static void query_down(const LatentJob *job, int start, int begin, int end) {
    joint_product(&job->layer->q_a, job->h, arena.q_latent, start, begin, end);
}

static void query_up(const LatentJob *job, int start, int begin, int end) {
    joint_product(&job->layer->q, job->q_latent, arena.q, start, begin, end);
}

static Activation quantize_query_latent(const Layer *layer) {
    Activation quantized = ACTIVATION_OF(arena.q_quantized);
    KERNEL(rms_norm)(arena.q_latent, layer->q_a_norm, arena.q_latent, MODEL_Q_RANK, MODEL_LATENT_EPS);
    KERNEL(quantize_activation)(arena.q_latent, MODEL_Q_RANK, &quantized);
    return quantized;
}
#else
enum { Q_DOWN_ROWS = Q_DIM, Q_UP_ROWS = 0 };

static void query_down(const LatentJob *job, int start, int begin, int end) {
    joint_product(&job->layer->q, job->h, arena.q, start, begin, end);
}

static void query_up(const LatentJob *job, int start, int begin, int end) {
    (void)job;
    (void)start;
    (void)begin;
    (void)end;
}

static Activation quantize_query_latent(const Layer *layer) {
    (void)layer;
    return (Activation){NULL};
}
#endif

static void down_panels(void *argument, int begin, int end) {
    const LatentJob *job = argument;
    int k_rope = panels_of(MODEL_KV_RANK);
    joint_product(&job->layer->kv_a, job->h, arena.kv_latent, 0, begin, end);
    joint_product(&job->layer->k_rope, job->h, arena.k_rope, k_rope, begin, end);
    query_down(job, k_rope + panels_of(MODEL_ROTARY_DIM), begin, end);
}

static void up_panels(void *argument, int begin, int end) {
    const LatentJob *job = argument;
    int v = panels_of(MODEL_N_HEADS * STILL_DIM);
    joint_product(&job->layer->k, job->kv_latent, arena.k_still, 0, begin, end);
    joint_product(&job->layer->v, job->kv_latent, arena.v, v, begin, end);
    query_up(job, v + panels_of(V_DIM), begin, end);
}

/* Each key: the part that turns, then its own. */
static void assemble_keys(void) {
    for (int head = 0; head < MODEL_N_HEADS; head++) {
        float *key = arena.k + head * MODEL_HEAD_DIM;
        memcpy(key, arena.k_rope, MODEL_ROTARY_DIM * sizeof(float));
        memcpy(key + MODEL_ROTARY_DIM, arena.k_still + head * STILL_DIM, STILL_DIM * sizeof(float));
    }
}

void project_qkv(const Layer *layer, Input h) {
    Activation kv_quantized = ACTIVATION_OF(arena.kv_quantized);
    LatentJob job = {.layer = layer, .h = h};
    threads_run(down_panels, &job, panels_of(MODEL_KV_RANK) + panels_of(MODEL_ROTARY_DIM) + panels_of(Q_DOWN_ROWS));
    Activation q_quantized = quantize_query_latent(layer);
    KERNEL(rms_norm)(arena.kv_latent, layer->kv_a_norm, arena.kv_latent, MODEL_KV_RANK, MODEL_LATENT_EPS);
    KERNEL(quantize_activation)(arena.kv_latent, MODEL_KV_RANK, &kv_quantized);
    job.kv_latent = (Input){arena.kv_latent, &kv_quantized};
    job.q_latent = (Input){NULL, &q_quantized};
    threads_run(up_panels, &job, panels_of(MODEL_N_HEADS * STILL_DIM) + panels_of(V_DIM) + panels_of(Q_UP_ROWS));
    assemble_keys();
}
#endif
