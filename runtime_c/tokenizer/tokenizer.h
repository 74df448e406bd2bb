/* Byte-pair encoding: UTF-8 text to token ids, and token ids back to a stream of whole UTF-8 characters. The tables are
 * generated (tokenizer_tables.c). No allocation: callers own every buffer. */
#ifndef COLIBRI_TOKENIZER_H
#define COLIBRI_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "colibri.h"

/* Encodes `length` bytes of UTF-8, special tokens in the text and the model's prefix ids included. Writes at most
 * `capacity` ids and their number to n_ids, 0 on an error. COLIBRI_E_INVALID_UTF8, COLIBRI_E_PROMPT_TOO_LONG (more than
 * capacity, or a single word of more than 65535 bytes: work memory is static). Not reentrant. */
COLIBRI_MUST_CHECK colibri_status tokenizer_encode(const char *text, size_t length, int *ids, int capacity, int *n_ids);

/* The same without the model's prefix and suffix ids. */
COLIBRI_MUST_CHECK colibri_status tokenizer_encode_bare(const char *text, size_t length, int *ids, int capacity,
                                                        int *n_ids);

/* Bytes that have not come out yet: up to 3 of a character whose end is missing, or a run of byte tokens, of which
 * there is one for all streams: use one stream at a time. Zero it at the start of a stream. */
typedef struct {
    unsigned char pending[4];
    int n_pending;
    bool started; /* some text has come out */
} TokenStream;

/* Size that any one token may need in `out`, pending bytes and replacement characters included. */
extern const size_t tokenizer_max_piece_bytes;

/* Writes the whole characters that `token` completes; returns their number of bytes. A special token writes nothing.
 * Bytes that can be no UTF-8 come out as U+FFFD, as the `tokenizers` library decodes them. 0 <= token <
 * MODEL_VOCAB_SIZE. */
size_t token_stream_push(TokenStream *stream, int token, char *out);

/* End of a stream: what is pending comes out, as U+FFFD if it is no character. */
size_t token_stream_finish(TokenStream *stream, char *out);

#endif
