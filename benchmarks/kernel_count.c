/* Calls one kernel a given number of times, for counting instructions (kernel_count.py).
 *
 * usage: kernel_count KERNEL TIMES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { ROWS = 512, COLS = 1024, HEAD_DIM = 64 };

static _Alignas(64) uint8_t codes[ROWS * COLS * 2];
static _Alignas(64) uint8_t scales[ROWS / PANEL_ROWS * COLS / BLOCK_INPUTS * W4_SCALE_BYTES];
static _Alignas(64) int8_t high[COLS];
static _Alignas(64) int8_t low[COLS];
static _Alignas(64) int16_t whole[COLS];
static _Alignas(64) float activation_scales[COLS / BLOCK_INPUTS];
static _Alignas(64) int16_t high_sums[COLS / BLOCK_INPUTS];
static _Alignas(64) int16_t low_sums[COLS / BLOCK_INPUTS];
static float inputs[COLS];
static float results[ROWS * 2];

/* Returns 0 for a name that is unknown. */
static int call(const char *name) {
    static Activation x = {high, low, whole, activation_scales, high_sums, low_sums};
    static const Matrix w = {codes, scales, ROWS, COLS};
    const uint16_t *cache = (const uint16_t *)(const void *)codes;
    if (strcmp(name, "matvec_w4") == 0)
        KERNEL(matvec_w4)(&w, &x, results, 0, ROWS / PANEL_ROWS);
    else if (strcmp(name, "matvec_w8") == 0)
        KERNEL(matvec_w8)(&w, &x, results, 0, ROWS / PANEL_ROWS);
    else if (strcmp(name, "matvec_f16") == 0)
        KERNEL(matvec_f16)(&w, inputs, results, 0, ROWS);
    else if (strcmp(name, "quantize_activation") == 0)
        KERNEL(quantize_activation)(inputs, COLS, &x);
    else if (strcmp(name, "swiglu") == 0)
        KERNEL(swiglu)(results, inputs, COLS);
    else if (strcmp(name, "attention_scores") == 0)
        KERNEL(attention_scores)(inputs, cache, 0.125f, results, HEAD_DIM, ROWS);
    else if (strcmp(name, "attention_mix") == 0)
        KERNEL(attention_mix)(inputs, cache, 1.0f, results, HEAD_DIM, ROWS);
    else
        return 0;
    return 1;
}

int main(int argc, char **argv) {
    const int times = argc == 3 ? atoi(argv[2]) : 0;
    for (int i = 0; i < COLS; i++)
        inputs[i] = (float)(i % 37 - 18);
    for (int i = 0; i < times; i++)
        if (!call(argv[1]))
            return 2;
    return times > 0 ? 0 : 2;
}
