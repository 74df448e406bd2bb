/* Products of 8-bit weights with several columns for AVX2; matmul_w8_portable.c is the specification.
 *
 * The weights of a row and group are widened to int16 once for all columns of a tile and multiplied with whole
 * activation codes; a row has 8 partial sums of 32 bits, which together stay below 128 * 127 * 32512 < 2^30. */
#include <immintrin.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_avx2.h"

enum { TILE_COLUMNS = 8, TILE_PANELS = 16, CODE_BYTES = W8_BLOCK_BYTES, SCALE_BYTES = W8_SCALE_BYTES };
enum { GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS };

/* One column of a tile: its inputs of one group, and results. */
typedef struct {
    __m256i inputs[2 * GROUP_BLOCKS]; /* whole codes */
    float scale;                      /* of the activations */
    __m256i products[PANEL_ROWS];     /* 8 partial sums of each row */
    float *y;                         /* results of the band's first panel */
} TileColumn;

/* n_blocks: 1 .. GROUP_BLOCKS. */
static void lay_out_group(TileColumn *out, const Activation *x, int group, int n_blocks) {
    const __m256i *codes = (const __m256i *)(x->codes + group * MODEL_GROUP_SIZE);
    for (int i = 0; i < 2 * n_blocks; i++)
        out->inputs[i] = _mm256_load_si256(codes + i);
    out->scale = x->scales[group];
}

/* 8 partial sums of one row. */
ALWAYS_INLINE __m256i row_products(const __m256i *weights, const __m256i *inputs, int n_blocks) {
    __m256i sums = _mm256_madd_epi16(weights[0], inputs[0]);
    for (int i = 1; i < 2 * n_blocks; i++)
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(weights[i], inputs[i]));
    return sums;
}

/* Adds the products of one panel with one group of n_blocks blocks, a constant, to rows first .. first+7 of each y. */
ALWAYS_INLINE void add_group(TileColumn *columns, int n_columns, int first, const int8_t *codes, const uint8_t *scales,
                             int n_blocks) {
    for (int row = 0; row < PANEL_ROWS; row++) {
        __m256i weights[2 * GROUP_BLOCKS];
        for (int i = 0; i < 2 * n_blocks; i++) {
            const int8_t *bytes = codes + i / 2 * W8_BLOCK_BYTES + row * BLOCK_INPUTS + i % 2 * 16;
            weights[i] = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)bytes));
        }
#pragma GCC unroll 2
        for (int c = 0; c < n_columns; c++)
            columns[c].products[row] = row_products(weights, columns[c].inputs, n_blocks);
    }
    for (int c = 0; c < n_columns; c++) {
        float *y = columns[c].y + first;
        const __m256 products = scaled_products(sum_eight_rows(columns[c].products), scales, columns[c].scale);
        _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), products));
    }
}

/* The same for any number of blocks up to a whole group. Asks for the panel's next group, whose turn comes after all
 * panels of the band: hardware prefetchers do not see that far. */
static void add_blocks(TileColumn *columns, int n_columns, int first, const uint8_t *codes, const uint8_t *scales,
                       int n_blocks) {
    const int8_t *weights = (const int8_t *)codes;
    prefetch_lines(codes, GROUP_BLOCKS * W8_BLOCK_BYTES, GROUP_BLOCKS * W8_BLOCK_BYTES);
    if (n_blocks == GROUP_BLOCKS)
        add_group(columns, n_columns, first, weights, scales, GROUP_BLOCKS);
    else if (n_blocks == 1)
        add_group(columns, n_columns, first, weights, scales, 1);
    else if (n_blocks == GROUP_BLOCKS - 1)
        add_group(columns, n_columns, first, weights, scales, GROUP_BLOCKS > 1 ? GROUP_BLOCKS - 1 : 1);
    else
        add_group(columns, n_columns, first, weights, scales, GROUP_BLOCKS > 2 ? 2 : 1);
}

#include "kernels/matmul_tiles.h"

void matmul_w8_avx2(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    if (n_columns == 1)
        matvec_w8_avx2(w, columns[0].x, columns[0].y, first_panel, last_panel);
    else
        multiply_tiles(w, columns, n_columns, first_panel, last_panel);
}
