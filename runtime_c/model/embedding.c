#include "model/embedding.h"

#include <stdint.h>
#include <string.h>

#include "math/scalar.h"
#include "store/model_tables.h"

#if MODEL_EMBEDDING_FORMAT == FORMAT_F16
static void look_up(int token, float *x) {
    const uint16_t *row = (const uint16_t *)model_embedding.codes + (size_t)token * MODEL_DIM;
    for (int i = 0; i < MODEL_DIM; i++) {
        x[i] = f16_to_f32(row[i]);
    }
}
#else
enum {
    N_BLOCKS = (MODEL_DIM + BLOCK_INPUTS - 1) / BLOCK_INPUTS,
    N_GROUPS = (MODEL_DIM + MODEL_GROUP_SIZE - 1) / MODEL_GROUP_SIZE
};

/* Layout P8: the row's 32 codes of a block are contiguous, its scale is one of a panel's 8. */
static void look_up(int token, float *x) {
    size_t panel = (size_t)(token / PANEL_ROWS);
    size_t row = (size_t)(token % PANEL_ROWS);
    const int8_t *codes = (const int8_t *)model_embedding.codes + panel * N_BLOCKS * W8_BLOCK_BYTES;
    const uint8_t *scales = (const uint8_t *)model_embedding.scales + panel * N_GROUPS * W8_SCALE_BYTES;
    for (int i = 0; i < MODEL_DIM; i++) {
        size_t block = (size_t)(i / BLOCK_INPUTS);
        size_t group = (size_t)(i / MODEL_GROUP_SIZE);
        uint16_t scale;
        memcpy(&scale, scales + group * W8_SCALE_BYTES + 2 * row, sizeof scale);
        int8_t code = codes[block * W8_BLOCK_BYTES + row * BLOCK_INPUTS + (size_t)(i % BLOCK_INPUTS)];
        x[i] = (float)code * f16_to_f32(scale);
    }
}
#endif

#ifdef MODEL_EMBEDDING_SCALE
static void scale(float x[MODEL_DIM]) {
    for (int i = 0; i < MODEL_DIM; i++) {
        x[i] *= MODEL_EMBEDDING_SCALE;
    }
}
#else
static void scale(float x[MODEL_DIM]) {
    (void)x;
}
#endif

void embed(int token, float *x) {
    look_up(token, x);
    scale(x);
}
