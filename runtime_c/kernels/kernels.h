/* Every inner loop of the runtime. Each ISA file implements the functions below with its own suffix; board_config.h
 * picks one ISA, and the portable twin is the specification (docs/numerics.md). All results are the same bits. */
#ifndef COLIBRI_KERNELS_H
#define COLIBRI_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "board_config.h" /* BOARD_KERNELS_AVX2, BOARD_KERNELS_NEON or BOARD_KERNELS_PORTABLE */
#include "model_config.h" /* MODEL_GROUP_SIZE, MODEL_ACTIVATION_BITS, MODEL_USES_W4, MODEL_USES_W8, MODEL_USES_F16 */

enum {
    PANEL_ROWS = 8,
    BLOCK_INPUTS = 32,
    W4_BLOCK_BYTES = 128, /* PANEL_ROWS * BLOCK_INPUTS / 2 */
    W8_BLOCK_BYTES = 256,
    W4_SCALE_BYTES = 24, /* 8 fp16 scales, 8 zero points, for one panel and group */
    W8_SCALE_BYTES = 16
};

/* A weight matrix [rows, cols] in one of the storage formats of FORMAT.md. codes and scales are 64-byte aligned and
 * stay owned by the weight section. f32, f16: codes holds the values, scales is NULL. */
typedef struct {
    const void *codes;
    const void *scales;
    int rows;
    int cols;
} Matrix;

/* A quantized input vector. Owner: the arena. Buffers are 64-byte aligned; `high`, `low`, `codes` hold n rounded up to
 * BLOCK_INPUTS elements, the surplus zero; the others hold one element a group. a8 uses `high` for its codes and leaves
 * `low` and `low_sums` alone. */
typedef struct {
    int8_t *high;       /* a16: high plane, -127..127; a8: the codes */
    int8_t *low;        /* a16: low plane, -128..127 */
    int16_t *codes;     /* the whole code, for w8 products */
    float *scales;      /* one a group */
    int16_t *high_sums; /* sum of `high` over the group, |.| <= 16256 */
    int16_t *low_sums;
} Activation;

/* One quantized input vector, and where its product goes (see matmul; a kernel reads each weight once for several
 * columns). */
typedef struct {
    const Activation *x;
    float *y;
} Column;

#define KERNEL_DECLARE(isa)                                                                                            \
    void quantize_activation_##isa(const float *x, int n, Activation *out);                                            \
    /* y[rows of panels first_panel .. last_panel-1] = W x; y is indexed by absolute row */                            \
    void matvec_w4_##isa(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel);             \
    void matvec_w8_##isa(const Matrix *w, const Activation *x, float *y, int first_panel, int last_panel);             \
    /* columns[c].y[rows of the panels] = W columns[c].x, for every column the bits of matvec */                       \
    void matmul_w4_##isa(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel);      \
    void matmul_w8_##isa(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel);      \
    /* rows first_row .. last_row-1 of a row-major matrix, each a lane-sum dot product */                              \
    void matvec_f32_##isa(const Matrix *w, const float *x, float *y, int first_row, int last_row);                     \
    void matvec_f16_##isa(const Matrix *w, const float *x, float *y, int first_row, int last_row);                     \
    /* out may be x */                                                                                                 \
    void rms_norm_##isa(const float *x, const float *weight, float *out, int n, float eps);                            \
    /* gate[i] = silu(gate[i]) * up[i] */                                                                              \
    void swiglu_##isa(float *gate, const float *up, int n);                                                            \
    /* y[i] = y[i] + weight * x[i] */                                                                                  \
    void add_scaled_##isa(float *y, const float *x, float weight, int n);                                              \
    /* y[i] = y[i] + x[i] */                                                                                           \
    void add_##isa(float *y, const float *x, int n);                                                                   \
    /* the largest of n >= 1 finite numbers; among zeros only, of either sign */                                       \
    float maximum_##isa(const float *x, int n);                                                                        \
    /* x[i] = exp((x[i] - max) * factor); returns the lane sum of the results */                                       \
    float exp_shifted_##isa(float *x, float max, float factor, int n);                                                 \
    /* round to nearest even; returns 0 if every result is finite, else -1 */                                          \
    int to_f16_##isa(const float *x, uint16_t *out, int n);                                                            \
    /* scores[p] = dot(q, keys + p*head_dim) * scale, p < n_positions */                                               \
    void attention_scores_##isa(const float *q, const uint16_t *keys, float scale, float *scores, int head_dim,        \
                                int n_positions);                                                                      \
    /* out[i] = (sum over p ascending of weights[p] * values[p*head_dim + i]) / total */                               \
    void attention_mix_##isa(const float *weights, const uint16_t *values, float total, float *out, int head_dim,      \
                             int n_positions);

KERNEL_DECLARE(portable)
KERNEL_DECLARE(avx2)
KERNEL_DECLARE(neon)

#if defined(BOARD_KERNELS_AVX2)
#define KERNEL(name) name##_avx2
#elif defined(BOARD_KERNELS_NEON)
#define KERNEL(name) name##_neon
#elif defined(BOARD_KERNELS_PORTABLE)
#define KERNEL(name) name##_portable
#else
#error "board_config.h names no kernel set: define BOARD_KERNELS_AVX2, BOARD_KERNELS_NEON or BOARD_KERNELS_PORTABLE"
#endif

#endif
