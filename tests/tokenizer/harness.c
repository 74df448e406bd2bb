/* Serves the tokenizer over pipes, so that one test can drive a native, a sanitized and an emulated build alike.
 * Request: 'e', capacity, n, n bytes | 'd', n, n ids (all numbers int32). Answer to e: status, n, n ids. Answer to d:
 * for each id and for the end of the stream, length and that many bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokenizer/tokenizer.h"

static void read_exactly(void *to, size_t n) {
    if (fread(to, 1, n, stdin) != n) {
        exit(2);
    }
}

static int32_t read_number(void) {
    int32_t number;
    read_exactly(&number, sizeof number);
    return number;
}

static void write_block(const void *from, int32_t n, size_t element_bytes) {
    fwrite(&n, sizeof n, 1, stdout);
    fwrite(from, element_bytes, (size_t)n, stdout);
}

/* Buffers of exactly the promised size, so that the sanitizer sees one byte too many. */
static void encode(void) {
    const int32_t capacity = read_number();
    const int32_t n = read_number();
    char *text = malloc((size_t)n);
    int *ids = malloc((size_t)capacity * sizeof *ids);
    int n_ids = -1;
    read_exactly(text, (size_t)n);
    const int32_t status = tokenizer_encode(text, (size_t)n, ids, capacity, &n_ids);
    fwrite(&status, sizeof status, 1, stdout);
    write_block(ids, n_ids, sizeof *ids);
    free(ids);
    free(text);
}

static void decode(void) {
    TokenStream stream = {.n_pending = 0};
    char *out = malloc(tokenizer_max_piece_bytes);
    const int32_t n = read_number();
    int32_t *ids = malloc((size_t)n * sizeof *ids); /* read at once: the other side writes before it reads */
    read_exactly(ids, (size_t)n * sizeof *ids);
    for (int32_t i = 0; i < n; i++) {
        write_block(out, (int32_t)token_stream_push(&stream, ids[i], out), 1);
    }
    write_block(out, (int32_t)token_stream_finish(&stream, out), 1);
    free(ids);
    free(out);
}

int main(void) {
    for (int command = getchar(); command != EOF; command = getchar()) {
        if (command == 'e') {
            encode();
        } else {
            decode();
        }
        fflush(stdout);
    }
    return 0;
}
