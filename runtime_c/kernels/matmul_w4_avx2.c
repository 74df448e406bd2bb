/* Products of 4-bit weights with several columns for AVX2; matmul_w4_portable.c is the specification.
 *
 * As in matvec_w4_avx2.c a 32-byte pair of the layout is one register: row i in its low half, row i + 4 in its high
 * half. The nibbles of a pair and group are unpacked once for all columns of a tile. The tile holds the inputs of one
 * group as the products read them, each 16 of them in both halves, and is laid out once for all panels of a band. */
#include <immintrin.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"
#include "kernels/panel_avx2.h"

enum { TILE_COLUMNS = 16, TILE_PANELS = 16, CODE_BYTES = W4_BLOCK_BYTES, SCALE_BYTES = W4_SCALE_BYTES };
enum { PAIRS = PANEL_ROWS / 2, GROUP_BLOCKS = MODEL_GROUP_SIZE / BLOCK_INPUTS, PLANES = MODEL_ACTIVATION_BITS / 8 };

/* One column of a tile: its inputs of one group, and results. */
typedef struct {
    __m256i inputs[PLANES][2 * GROUP_BLOCKS]; /* plane 0 is `high` */
    __m256i sums;                             /* what zero_factors() are multiplied with: pairs (low sum, high sum) */
    __m256 scale;                             /* of the activations */
    __m256i products[PAIRS];                  /* 4 partial sums of row i, then of row i + 4; products[0] is unused */
    float *y;                                 /* results of the band's first panel */
} TileColumn;

ALWAYS_INLINE void lay_out_plane(__m256i *out, const int8_t *plane, int n_blocks) {
    for (int i = 0; i < 2 * n_blocks; i++)
        out[i] = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)plane + i));
}

/* n_blocks: 1 .. GROUP_BLOCKS. */
static void lay_out_group(TileColumn *out, const Activation *x, int group, int n_blocks) {
    const int first = group * MODEL_GROUP_SIZE;
    lay_out_plane(out->inputs[0], x->high + first, n_blocks);
    out->sums = _mm256_set1_epi16(x->high_sums[group]);
    if (MODEL_ACTIVATION_BITS == 16) {
        lay_out_plane(out->inputs[PLANES - 1], x->low + first, n_blocks);
        out->sums = _mm256_blend_epi16(_mm256_set1_epi16(x->low_sums[group]), out->sums, 0xaa);
    }
    out->scale = _mm256_set1_ps(x->scales[group]);
}

/* The nibbles of one pair and group, in the order of TileColumn.inputs. */
ALWAYS_INLINE void unpack_pair(__m256i *nibbles, const uint8_t *codes, int n_blocks) {
    const __m256i mask = _mm256_set1_epi8(15);
    for (int block = 0; block < n_blocks; block++) {
        const __m256i bytes = _mm256_load_si256((const __m256i *)(codes + block * W4_BLOCK_BYTES));
        nibbles[2 * block] = _mm256_and_si256(bytes, mask);
        nibbles[2 * block + 1] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    }
}

/* 16 partial sums of 16 bits of one pair and plane; at most 16 products in each: 16 * 15 * 128 = 30720 <= 32767. */
ALWAYS_INLINE __m256i plane_products(const __m256i *nibbles, const __m256i *inputs, int n_blocks) {
    __m256i sums = _mm256_maddubs_epi16(nibbles[0], inputs[0]);
    for (int i = 1; i < 2 * n_blocks; i++)
        sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(nibbles[i], inputs[i]));
    return sums;
}

/* 8 partial sums of 32 bits of one pair: 256 * high + low. */
ALWAYS_INLINE __m256i pair_products(const __m256i *nibbles, const TileColumn *column, int n_blocks) {
    const __m256i high = plane_products(nibbles, column->inputs[0], n_blocks);
    if (MODEL_ACTIVATION_BITS == 8)
        return _mm256_madd_epi16(high, _mm256_set1_epi16(1));
    const __m256i low = plane_products(nibbles, column->inputs[PLANES - 1], n_blocks);
    return _mm256_add_epi32(_mm256_madd_epi16(high, _mm256_set1_epi16(256)),
                            _mm256_madd_epi16(low, _mm256_set1_epi16(1)));
}

/* Pairs of int16 for the zero points of 8 rows: (zero point, 256 * zero point); a8: (zero point, 0). */
ALWAYS_INLINE __m256i zero_factors(const uint8_t *zero_points) {
    const __m256i zeros = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)zero_points));
    return MODEL_ACTIVATION_BITS == 16 ? _mm256_or_si256(zeros, _mm256_slli_epi32(zeros, 24)) : zeros;
}

/* Adds the products of one panel with one group of n_blocks blocks, a constant, to rows first .. first+7 of each y. */
ALWAYS_INLINE void add_group(TileColumn *columns, int n_columns, int first, const uint8_t *codes, const uint8_t *scales,
                             int n_blocks) {
    __m256i nibbles[2 * GROUP_BLOCKS];
    for (int pair = PAIRS - 1; pair > 0; pair--) {
        unpack_pair(nibbles, codes + 32 * pair, n_blocks);
#pragma GCC unroll 2
        for (int c = 0; c < n_columns; c++)
            columns[c].products[pair] = pair_products(nibbles, &columns[c], n_blocks);
    }
    unpack_pair(nibbles, codes, n_blocks);
    const __m256 weight_scales = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)scales));
    const __m256i zeros = zero_factors(scales + 2 * PANEL_ROWS);
    for (int c = 0; c < n_columns; c++) {
        const __m256i *products = columns[c].products;
        const __m256i front = _mm256_hadd_epi32(pair_products(nibbles, &columns[c], n_blocks), products[1]);
        const __m256i rows = _mm256_hadd_epi32(front, _mm256_hadd_epi32(products[2], products[3]));
        const __m256i d = _mm256_sub_epi32(rows, _mm256_madd_epi16(zeros, columns[c].sums));
        const __m256 scale = _mm256_mul_ps(weight_scales, columns[c].scale);
        float *y = columns[c].y + first;
        _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), _mm256_mul_ps(_mm256_cvtepi32_ps(d), scale)));
    }
}

/* The same for any number of blocks up to a whole group. Asks for the panel's next group, whose turn comes after all
 * panels of the band: hardware prefetchers do not see that far. */
static void add_blocks(TileColumn *columns, int n_columns, int first, const uint8_t *codes, const uint8_t *scales,
                       int n_blocks) {
    prefetch_lines(codes, GROUP_BLOCKS * W4_BLOCK_BYTES, GROUP_BLOCKS * W4_BLOCK_BYTES);
    if (n_blocks == GROUP_BLOCKS)
        add_group(columns, n_columns, first, codes, scales, GROUP_BLOCKS);
    else if (n_blocks == 1)
        add_group(columns, n_columns, first, codes, scales, 1);
    else if (n_blocks == GROUP_BLOCKS - 1)
        add_group(columns, n_columns, first, codes, scales, GROUP_BLOCKS > 1 ? GROUP_BLOCKS - 1 : 1);
    else
        add_group(columns, n_columns, first, codes, scales, GROUP_BLOCKS > 2 ? 2 : 1);
}

#include "kernels/matmul_tiles.h"

void matmul_w4_avx2(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    if (n_columns == 1)
        matvec_w4_avx2(w, columns[0].x, columns[0].y, first_panel, last_panel);
    else
        multiply_tiles(w, columns, n_columns, first_panel, last_panel);
}
