/* Byte-level tokens as a stream of whole characters. */
#include <string.h>

#include "tokenizer/steps.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

static size_t put_replacement(char *out) {
    memcpy(out, "\xEF\xBF\xBD", 3);
    return 3;
}

/* The character that `stream` holds the start of, with as many bytes of `piece` as belong to it. Returns their number;
 * what came out of it is added to *written. */
static size_t finish_pending(TokenStream *stream, const uint8_t *piece, size_t n, char *out, size_t *written) {
    size_t taken = 0;
    while (stream->n_pending > 0 && taken < n) {
        Utf8State state;
        stream->pending[stream->n_pending] = piece[taken];
        const size_t length = utf8_sequence(stream->pending, (size_t)stream->n_pending + 1, &state);
        if (state == UTF8_INVALID) { /* the new byte starts something else */
            *written += put_replacement(out + *written);
            stream->n_pending = 0;
            break;
        }
        stream->n_pending++;
        taken++;
        if (state == UTF8_VALID) {
            memcpy(out + *written, stream->pending, length);
            *written += length;
            stream->n_pending = 0;
        }
    }
    return taken;
}

size_t bytes_push(TokenStream *stream, int token, char *out) {
    if (token_is_silent((uint32_t)token)) {
        return 0;
    }
    const TokenText text = token_text((uint32_t)token);
    const uint8_t *piece = text.bytes;
    const size_t n = text.length;
    size_t written = 0;
    for (size_t at = finish_pending(stream, piece, n, out, &written); at < n;) {
        Utf8State state;
        const size_t length = utf8_sequence(piece + at, n - at, &state);
        if (state == UTF8_VALID) {
            memcpy(out + written, piece + at, length);
            written += length;
        } else if (state == UTF8_INVALID) {
            written += put_replacement(out + written);
        } else {
            memcpy(stream->pending, piece + at, length);
            stream->n_pending = (int)length;
        }
        at += length;
    }
    return written;
}

size_t bytes_finish(TokenStream *stream, char *out) {
    if (stream->n_pending == 0) {
        return 0;
    }
    stream->n_pending = 0;
    return put_replacement(out);
}
