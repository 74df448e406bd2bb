/* Runs the kernels of one ISA over a file of cases and writes back every buffer they could touch.
 *
 * usage: kernel_harness CASES RESULTS [count]      (format: kernel_protocol.py)
 *
 * count: a dot is written to standard output before and after each case, where QEMU's plugin notes its count.
 *
 * Each buffer ends as close to an inaccessible page as its alignment allows; the bytes around it hold a pattern. Exit
 * status 3: a kernel wrote outside a buffer; 4: it touched an inaccessible page; the message names case and buffer. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "math/scalar.h"

enum {
    MAX_BUFFERS = 64,
    MAX_COLUMNS = 40,
    SLOT_BYTES = 1 << 20,
    PAGE_BYTES = 1 << 16,
    GUARD_BYTES = 256,
    GUARD = 0xc9
};

typedef struct {
    int32_t op;
    int32_t ints[8];
    float floats[2];
    int32_t n_buffers;
} CaseHeader;

typedef struct {
    int32_t status;
    float result;
} CaseResult;

typedef struct {
    uint8_t *slot; /* SLOT_BYTES between two inaccessible pages */
    uint8_t *data;
    size_t bytes;
} Buffer;

static Buffer buffers[MAX_BUFFERS];
static volatile int current_case;

static void fail(int status, const char *what, int detail) {
    fprintf(stderr, "case %d: %s (%d)\n", current_case, what, detail);
    exit(status);
}

static void on_fault(int signal_number) {
    static const char message[] = "a kernel touched memory outside its buffers, case ";
    char digits[12];
    int n = 0;
    (void)signal_number;
    for (int value = current_case; n == 0 || value > 0; value /= 10)
        digits[11 - n++] = (char)('0' + value % 10);
    if (write(2, message, sizeof message - 1) < 0 || write(2, digits + 12 - n, (size_t)n) < 0)
        _exit(5);
    _exit(4);
}

static void reserve_slots(void) {
    for (int i = 0; i < MAX_BUFFERS; i++) {
        uint8_t *whole =
            mmap(NULL, SLOT_BYTES + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (whole == MAP_FAILED || mprotect(whole + PAGE_BYTES, SLOT_BYTES, PROT_READ | PROT_WRITE) != 0)
            fail(2, "no memory for buffer", i);
        buffers[i].slot = whole + PAGE_BYTES;
    }
}

static void read_exactly(FILE *file, void *out, size_t bytes) {
    if (fread(out, 1, bytes, file) != bytes)
        fail(2, "the case file ends early, bytes wanted", (int)bytes);
}

/* A buffer is stored as its size, its alignment and its bytes, padded to 4. */
static void read_buffer(FILE *file, Buffer *b) {
    int32_t head[2];
    uint8_t padding[4];
    read_exactly(file, head, sizeof head);
    b->bytes = (size_t)head[0];
    const size_t room = (b->bytes + (size_t)head[1] - 1) / (size_t)head[1] * (size_t)head[1];
    if (room + GUARD_BYTES > SLOT_BYTES)
        fail(2, "buffer too large", head[0]);
    b->data = b->slot + SLOT_BYTES - room;
    memset(b->data - GUARD_BYTES, GUARD, GUARD_BYTES + room);
    read_exactly(file, b->data, b->bytes);
    read_exactly(file, padding, (4 - b->bytes % 4) % 4);
}

static void check_guards(const Buffer *b, int index) {
    for (const uint8_t *p = b->data - GUARD_BYTES; p < b->slot + SLOT_BYTES; p++)
        if ((p < b->data || p >= b->data + b->bytes) && *p != GUARD)
            fail(3, "a byte outside this buffer was written, buffer", index);
}

static void write_buffer(FILE *file, const Buffer *b) {
    static const uint8_t padding[4];
    fwrite(b->data, 1, b->bytes, file);
    fwrite(padding, 1, (4 - b->bytes % 4) % 4, file);
}

#define DATA(i) ((void *)buffers[i].data)

/* The quantized vector in buffers i .. i+5. */
static Activation activation_at(int i) {
    return (Activation){DATA(i), DATA(i + 1), DATA(i + 2), DATA(i + 3), DATA(i + 4), DATA(i + 5)};
}

/* ints: rows, cols, number of cuts, cuts: the ranges between neighbouring cuts are computed one by one, last first. */
static void run_product(void (*kernel)(const Matrix *, const Activation *, float *, int, int), const int32_t *ints) {
    const Matrix w = {DATA(0), DATA(1), ints[0], ints[1]};
    const Activation x = activation_at(2);
    for (int i = ints[2] - 2; i >= 0; i--)
        kernel(&w, &x, DATA(8), ints[3 + i], ints[4 + i]);
}

/* ints: rows, cols, number of columns, of vectors, of cuts, cuts. Column c multiplies vector c mod their number. */
static void run_columns(void (*kernel)(const Matrix *, const Column *, int, int, int), const int32_t *ints) {
    const Matrix w = {DATA(0), DATA(1), ints[0], ints[1]};
    Activation vectors[MAX_COLUMNS];
    Column columns[MAX_COLUMNS];
    if (ints[2] > MAX_COLUMNS)
        fail(2, "too many columns", ints[2]);
    for (int i = 0; i < ints[3]; i++)
        vectors[i] = activation_at(2 + 6 * i);
    for (int c = 0; c < ints[2]; c++)
        columns[c] = (Column){&vectors[c % ints[3]], DATA(2 + 6 * ints[3] + c)};
    for (int i = ints[4] - 2; i >= 0; i--)
        kernel(&w, columns, ints[2], ints[5 + i], ints[6 + i]);
}

static void run_float_product(void (*kernel)(const Matrix *, const float *, float *, int, int), const int32_t *ints) {
    const Matrix w = {DATA(0), NULL, ints[0], ints[1]};
    for (int i = ints[2] - 2; i >= 0; i--)
        kernel(&w, DATA(1), DATA(2), ints[3 + i], ints[4 + i]);
}

static void run_quantize(int n) {
    Activation out = {DATA(1), DATA(2), DATA(3), DATA(4), DATA(5), DATA(6)};
    KERNEL(quantize_activation)(DATA(0), n, &out);
}

/* The functions of math/scalar.h, element by element: buffer 0 in, the others out. */
static void run_scalar(int which, int n) {
    for (int i = 0; i < n; i++) {
        if (which == 0)
            ((float *)DATA(1))[i] = f16_to_f32(((uint16_t *)DATA(0))[i]);
        else if (which == 1)
            ((uint16_t *)DATA(1))[i] = f32_to_f16(((float *)DATA(0))[i]);
        else if (which == 2)
            ((float *)DATA(1))[i] = exp_f32(((float *)DATA(0))[i]);
        else if (which == 3)
            ((float *)DATA(1))[i] = silu_f32(((float *)DATA(0))[i]);
        else if (which == 4)
            sincos_f32(((double *)DATA(0))[i], (float *)DATA(1) + i, (float *)DATA(2) + i);
        else if (which == 5)
            ((int32_t *)DATA(1))[i] = round_to_int(((float *)DATA(0))[i]);
        else if (which == 6)
            ((float *)DATA(1))[i] = square_root(((float *)DATA(0))[i]);
        else
            ((int32_t *)DATA(1))[i] = is_finite(((float *)DATA(0))[i]);
    }
}

static void run_case(const CaseHeader *c, CaseResult *r) {
    const int32_t *n = c->ints;
    switch (c->op) {
    case 0:
        run_quantize(n[0]);
        break;
    case 1:
        run_product(KERNEL(matvec_w4), n);
        break;
    case 2:
        run_product(KERNEL(matvec_w8), n);
        break;
    case 3:
        run_float_product(KERNEL(matvec_f32), n);
        break;
    case 4:
        run_float_product(KERNEL(matvec_f16), n);
        break;
    case 5:
        KERNEL(rms_norm)(DATA(0), DATA(1), DATA(2), n[0], c->floats[0]);
        break;
    case 6:
        KERNEL(rms_norm)(DATA(0), DATA(1), DATA(0), n[0], c->floats[0]);
        break;
    case 7:
        KERNEL(swiglu)(DATA(0), DATA(1), n[0]);
        break;
    case 8:
        KERNEL(add_scaled)(DATA(0), DATA(1), c->floats[0], n[0]);
        break;
    case 9:
        KERNEL(add)(DATA(0), DATA(1), n[0]);
        break;
    case 10:
        r->result = KERNEL(exp_shifted)(DATA(0), c->floats[0], c->floats[1], n[0]);
        break;
    case 11:
        r->status = KERNEL(to_f16)(DATA(0), DATA(1), n[0]);
        break;
    case 12:
        KERNEL(attention_scores)(DATA(0), DATA(1), c->floats[0], DATA(2), n[0], n[1]);
        break;
    case 13:
        KERNEL(attention_mix)(DATA(0), DATA(1), c->floats[0], DATA(2), n[0], n[1]);
        break;
    case 14:
        run_scalar(n[1], n[0]);
        break;
    case 15:
        run_columns(KERNEL(matmul_w4), n);
        break;
    case 16:
        run_columns(KERNEL(matmul_w8), n);
        break;
    case 17:
        r->result = KERNEL(maximum)(DATA(0), n[0]);
        break;
    /* Two faults that the harness itself has to notice. */
    case 18:
        buffers[0].data[-1] = 0;
        break;
    case 19:
        memset(DATA(0), 0, SLOT_BYTES + PAGE_BYTES);
        break;
    default:
        fail(2, "unknown operation", c->op);
    }
}

static void mark(void) {
    if (write(1, ".", 1) != 1)
        fail(2, "no standard output", 0);
}

int main(int argc, char **argv) {
    CaseHeader header;
    const int counting = argc == 4 && strcmp(argv[3], "count") == 0;
    FILE *cases = argc == 3 || counting ? fopen(argv[1], "rb") : NULL;
    FILE *results = argc == 3 || counting ? fopen(argv[2], "wb") : NULL;
    if (cases == NULL || results == NULL)
        fail(2, "usage: kernel_harness CASES RESULTS [count]", argc);
    signal(SIGSEGV, on_fault);
    reserve_slots();
    for (; fread(&header, 1, sizeof header, cases) == sizeof header; current_case++) {
        CaseResult result = {0, 0.0f};
        for (int i = 0; i < header.n_buffers; i++)
            read_buffer(cases, &buffers[i]);
        if (counting)
            mark();
        run_case(&header, &result);
        if (counting)
            mark();
        for (int i = 0; i < header.n_buffers; i++) {
            check_guards(&buffers[i], i);
            write_buffer(results, &buffers[i]);
        }
        fwrite(&result, 1, sizeof result, results);
    }
    if (fclose(results) != 0)
        fail(2, "results could not be written", 0);
    return 0;
}
