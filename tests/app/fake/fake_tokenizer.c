/* One token a byte; ids from 256 on are special. */
#include <stdbool.h>
#include <string.h>

#include "model_config.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

static const char replacement[] = "\xEF\xBF\xBD";

const size_t tokenizer_max_piece_bytes = 16;

colibri_status tokenizer_encode(const char *text, size_t length, int *ids, int capacity, int *n_ids) {
    if (!utf8_is_valid((const uint8_t *)text, length)) {
        return COLIBRI_E_INVALID_UTF8;
    }
    if (length > (size_t)capacity) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    for (size_t i = 0; i < length; i++) {
        ids[i] = (unsigned char)text[i];
    }
    *n_ids = (int)length;
    return COLIBRI_OK;
}

colibri_status tokenizer_encode_bare(const char *text, size_t length, int *ids, int capacity, int *n_ids) {
    return tokenizer_encode(text, length, ids, capacity, n_ids);
}

#ifdef MODEL_CHAT
extern const char chat_prefix[]; /* as app/chat.h has them */
extern const char chat_suffix[];
const char chat_prefix[] = "A:";
const char chat_suffix[] = "";
#endif

size_t token_stream_push(TokenStream *stream, int token, char *out) {
    if (token >= 256) {
        return 0;
    }
    size_t written = 0;
    stream->pending[stream->n_pending++] = (unsigned char)token;
    while (stream->n_pending > 0) {
        Utf8State state = UTF8_VALID;
        size_t n = utf8_sequence(stream->pending, (size_t)stream->n_pending, &state);
        if (state == UTF8_INCOMPLETE) {
            break;
        }
        bool valid = state == UTF8_VALID;
        size_t n_out = valid ? n : 3;
        memcpy(out + written, valid ? (const char *)stream->pending : replacement, n_out);
        written += n_out;
        stream->n_pending -= (int)n;
        memmove(stream->pending, stream->pending + n, (size_t)stream->n_pending);
    }
    return written;
}

size_t token_stream_finish(TokenStream *stream, char *out) {
    if (stream->n_pending == 0) {
        return 0;
    }
    stream->n_pending = 0;
    memcpy(out, replacement, 3);
    return 3;
}
