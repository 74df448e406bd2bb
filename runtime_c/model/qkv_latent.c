/* Multi-head latent attention (DeepSeek-V2): keys and values, and where MODEL_Q_RANK is there queries, come from small
 * latent vectors. The part of a key that turns is the same for all heads. */
#include "model/qkv.h"

#include <string.h>

#include "model/arena.h"
#include "model/joint.h"
#include "port/threads.h"

#ifdef MODEL_KV_RANK
enum { STILL_DIM = MODEL_HEAD_DIM - MODEL_ROTARY_DIM };
enum { KV_LATENT, K_ROPE, K_STILL, V, Q, Q_LATENT }; /* of arena.columns */

/* What the threads of the jobs see. */
typedef struct {
    const Layer *layer;
    int n; /* tokens */
} LatentJob;

/* The queries' part in the job from h down to the latent vectors, and in the one up from them. Matrices lie end to end
 * from panel `start`. */
#ifdef MODEL_Q_RANK
enum { Q_DOWN_ROWS = MODEL_Q_RANK, Q_UP_ROWS = Q_DIM };

static void set_query_columns(int n) {
    SET_COLUMNS(Q_LATENT, n, input, q_latent);
    SET_COLUMNS(Q, n, q_quantized, q);
}

static void query_down(const LatentJob *job, int start, int begin, int end) {
    joint_product(&job->layer->q_a, arena.columns[Q_LATENT], job->n, start, begin, end);
}

static void query_up(const LatentJob *job, int start, int begin, int end) {
    joint_product(&job->layer->q, arena.columns[Q], job->n, start, begin, end);
}

static void quantize_query_latent(const Layer *layer, Token *token) {
    KERNEL(rms_norm)(token->q_latent, layer->q_a_norm, token->q_latent, MODEL_Q_RANK, MODEL_LATENT_EPS);
    QUANTIZE(token->q_latent, MODEL_Q_RANK, token->q_quantized);
}
#else
enum { Q_DOWN_ROWS = Q_DIM, Q_UP_ROWS = 0 };

static void set_query_columns(int n) {
    SET_COLUMNS(Q, n, input, q);
}

static void query_down(const LatentJob *job, int start, int begin, int end) {
    joint_product(&job->layer->q, arena.columns[Q], job->n, start, begin, end);
}

static void query_up(const LatentJob *job, int start, int begin, int end) {
    (void)job;
    (void)start;
    (void)begin;
    (void)end;
}

static void quantize_query_latent(const Layer *layer, Token *token) {
    (void)layer;
    (void)token;
}
#endif

static void down_panels(void *argument, int begin, int end) {
    const LatentJob *job = argument;
    int k_rope = panels_of(MODEL_KV_RANK);
    joint_product(&job->layer->kv_a, arena.columns[KV_LATENT], job->n, 0, begin, end);
    joint_product(&job->layer->k_rope, arena.columns[K_ROPE], job->n, k_rope, begin, end);
    query_down(job, k_rope + panels_of(MODEL_ROTARY_DIM), begin, end);
}

static void quantize_latents(void *argument, int begin, int end) {
    const LatentJob *job = argument;
    for (Token *token = arena.tokens + begin; token < arena.tokens + end; token++) {
        quantize_query_latent(job->layer, token);
        KERNEL(rms_norm)(token->kv_latent, job->layer->kv_a_norm, token->kv_latent, MODEL_KV_RANK, MODEL_LATENT_EPS);
        QUANTIZE(token->kv_latent, MODEL_KV_RANK, token->kv_quantized);
    }
}

static void up_panels(void *argument, int begin, int end) {
    const LatentJob *job = argument;
    int v = panels_of(MODEL_N_HEADS * STILL_DIM);
    joint_product(&job->layer->k, arena.columns[K_STILL], job->n, 0, begin, end);
    joint_product(&job->layer->v, arena.columns[V], job->n, v, begin, end);
    query_up(job, v + panels_of(V_DIM), begin, end);
}

/* Each key: the part that turns, then its own. */
static void assemble_keys(Token *token) {
    for (int head = 0; head < MODEL_N_HEADS; head++) {
        float *key = token->k + head * MODEL_HEAD_DIM;
        memcpy(key, token->k_rope, MODEL_ROTARY_DIM * sizeof(float));
        memcpy(key + MODEL_ROTARY_DIM, token->k_still + head * STILL_DIM, STILL_DIM * sizeof(float));
    }
}

void project_qkv(const Layer *layer, int n) {
    LatentJob job = {layer, n};
    SET_COLUMNS(KV_LATENT, n, input, kv_latent);
    SET_COLUMNS(K_ROPE, n, input, k_rope);
    SET_COLUMNS(K_STILL, n, kv_quantized, k_still);
    SET_COLUMNS(V, n, kv_quantized, v);
    set_query_columns(n);
    threads_run(down_panels, &job, panels_of(MODEL_KV_RANK) + panels_of(MODEL_ROTARY_DIM) + panels_of(Q_DOWN_ROWS));
    threads_run(quantize_latents, &job, n);
    threads_run(up_panels, &job, panels_of(MODEL_N_HEADS * STILL_DIM) + panels_of(V_DIM) + panels_of(Q_UP_ROWS));
    for (int i = 0; i < n; i++) {
        assemble_keys(&arena.tokens[i]);
    }
}
#endif
