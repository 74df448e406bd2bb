/* Lane sums of row-major rows with a vector, for matvec_float_lanes.h and attention_lanes.h. Include after lanes_*.h.
 * Four rows at a time hide the latency of the additions; each row still has one accumulator of 8 lanes. */
#ifndef COLIBRI_DOT_LANES_H
#define COLIBRI_DOT_LANES_H

enum { DOT_ROWS = 4 };

/* A loop over rows that stays a loop would keep their sums in memory. */
#define UNROLL_ROWS _Pragma("GCC unroll 4")

/* 1 <= n <= 7 fp16 values widened, the other lanes 0; touches only those values. */
ALWAYS_INLINE Lanes lanes_load_f16_some(const uint16_t *p, int n) {
    uint16_t padded[LANES] = {0};
    memcpy(padded, p, (size_t)n * sizeof *p);
    return lanes_load_f16(padded);
}

/* out[r] = the tree of sums[r] times factor, r < n_rows. */
ALWAYS_INLINE void store_dots(float *out, const Lanes sums[DOT_ROWS], int n_rows, float factor) {
    if (n_rows == DOT_ROWS)
        lanes_store_four_trees(out, sums, factor);
    else
        *out = lanes_tree(sums[0]) * factor;
}

/* out[r] = dot(rows + r*cols, x) * factor for r < n_rows; n_rows is a constant, 1 or DOT_ROWS; a constant factor of 1
 * costs nothing. */
ALWAYS_INLINE void dot_rows_f32(const float *rows, const float *x, int cols, int n_rows, float factor, float *out) {
    Lanes sums[DOT_ROWS];
    int i = 0;
    for (int r = 0; r < n_rows; r++)
        sums[r] = lanes_splat(0.0f);
    for (; i + LANES <= cols; i += LANES) {
        const Lanes inputs = lanes_load(x + i);
        for (int r = 0; r < n_rows; r++)
            sums[r] = lanes_add(sums[r], lanes_mul(lanes_load(rows + (size_t)r * (size_t)cols + i), inputs));
    }
    if (i < cols) {
        const Lanes inputs = lanes_load_some(x + i, cols - i);
        UNROLL_ROWS
        for (int r = 0; r < n_rows; r++) {
            const Lanes weights = lanes_load_some(rows + (size_t)r * (size_t)cols + i, cols - i);
            sums[r] = lanes_add(sums[r], lanes_mul(weights, inputs));
        }
    }
    store_dots(out, sums, n_rows, factor);
}

/* As dot_rows_f32, for fp16 rows. */
ALWAYS_INLINE void dot_rows_f16(const uint16_t *rows, const float *x, int cols, int n_rows, float factor, float *out) {
    Lanes sums[DOT_ROWS];
    int i = 0;
    for (int r = 0; r < n_rows; r++)
        sums[r] = lanes_splat(0.0f);
    for (; i + LANES <= cols; i += LANES) {
        const Lanes inputs = lanes_load(x + i);
        for (int r = 0; r < n_rows; r++)
            sums[r] = lanes_add(sums[r], lanes_mul(lanes_load_f16(rows + (size_t)r * (size_t)cols + i), inputs));
    }
    if (i < cols) {
        const Lanes inputs = lanes_load_some(x + i, cols - i);
        UNROLL_ROWS
        for (int r = 0; r < n_rows; r++) {
            const Lanes weights = lanes_load_f16_some(rows + (size_t)r * (size_t)cols + i, cols - i);
            sums[r] = lanes_add(sums[r], lanes_mul(weights, inputs));
        }
    }
    store_dots(out, sums, n_rows, factor);
}

#endif
