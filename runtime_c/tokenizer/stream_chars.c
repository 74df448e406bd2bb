/* Tokens of characters, and byte tokens, as a stream of whole characters. */
#include <string.h>

#include "tokenizer/steps.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

/* The byte tokens that came one after the other; stream->n_pending of them. */
static uint8_t run[CHARS_RUN_BYTES];

/* The byte of a byte token, or -1. */
static int byte_of(int token) {
    for (int byte = 0; byte < 256; byte++) {
        if (tokenizer_byte_ids[byte] == (TokenId)token) {
            return byte;
        }
    }
    return -1;
}

size_t chars_finish(TokenStream *stream, char *out) {
    const size_t n = (size_t)stream->n_pending;
    stream->n_pending = 0;
    if (utf8_is_valid(run, n)) {
        memcpy(out, run, n);
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(out + 3 * i, "\xEF\xBF\xBD", 3);
    }
    return 3 * n;
}

size_t chars_push(TokenStream *stream, int token, char *out) {
    const int byte = byte_of(token);
    if (byte >= 0) {
        const size_t written = stream->n_pending == CHARS_RUN_BYTES ? chars_finish(stream, out) : 0;
        run[stream->n_pending++] = (uint8_t)byte;
        return written;
    }
    const TokenText text = token_text((uint32_t)token);
    if (text.length == 0 || token_is_silent((uint32_t)token)) {
        return 0; /* a run goes on behind a token that prints nothing */
    }
    const size_t written = chars_finish(stream, out);
    memcpy(out + written, text.bytes, text.length);
    return written + text.length;
}

/* Drops a space at the start of a stream's text. */
static size_t strip(TokenStream *stream, char *out, size_t n) {
    if (n == 0 || stream->started) {
        return n;
    }
    stream->started = true;
    if (out[0] != ' ') {
        return n;
    }
    memmove(out, out + 1, n - 1);
    return n - 1;
}

size_t chars_push_strip(TokenStream *stream, int token, char *out) {
    return strip(stream, out, chars_push(stream, token, out));
}

size_t chars_finish_strip(TokenStream *stream, char *out) {
    return strip(stream, out, chars_finish(stream, out));
}
