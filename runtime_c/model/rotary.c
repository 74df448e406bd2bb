#include "model/rotary.h"

#include <string.h>

#include "math/scalar.h"
#include "store/model_tables.h"

_Static_assert(MODEL_ROTARY_DIM % 2 == 0 && MODEL_ROTARY_DIM <= MODEL_HEAD_DIM, "rotary positions turn pairs");

/* Elements FIRST(i) and SECOND(i) of a head are pair i. */
#ifdef MODEL_ROPE_INTERLEAVED
#define FIRST(i) (2 * (i))
#define SECOND(i) (2 * (i) + 1)
#else
#define FIRST(i) (i)
#define SECOND(i) ((i) + ROTARY_PAIRS)
#endif

static void rotate_head(float *head, const float *cosines, const float *sines) {
    for (int i = 0; i < ROTARY_PAIRS; i++) {
        float first = head[FIRST(i)];
        float second = head[SECOND(i)];
        head[FIRST(i)] = first * cosines[i] - second * sines[i];
        head[SECOND(i)] = second * cosines[i] + first * sines[i];
    }
}

#ifdef MODEL_ROPE_FACTOR
static void scale(float *cosine, float *sine) {
    *cosine *= MODEL_ROPE_FACTOR;
    *sine *= MODEL_ROPE_FACTOR;
}
#else
static void scale(float *cosine, float *sine) {
    (void)cosine;
    (void)sine;
}
#endif

void set_angles(Token *token) {
    for (int i = 0; i < ROTARY_PAIRS; i++) {
        float angle = (float)token->position * model_inv_freq[i];
        sincos_f32((double)angle, &token->sines[i], &token->cosines[i]);
        scale(&token->cosines[i], &token->sines[i]);
    }
}

/* Copies of the angles, which no head overlaps: else compilers would not compute with vectors. */
void rotate_all(Token *token) {
    float cosines[ROTARY_PAIRS];
    float sines[ROTARY_PAIRS];
    memcpy(cosines, token->cosines, sizeof cosines);
    memcpy(sines, token->sines, sizeof sines);
    for (int head = 0; head < MODEL_N_HEADS; head++) {
        rotate_head(token->q + head * MODEL_HEAD_DIM, cosines, sines);
    }
    for (int head = 0; head < MODEL_N_KV_HEADS; head++) {
        rotate_head(token->k + head * MODEL_HEAD_DIM, cosines, sines);
    }
}
