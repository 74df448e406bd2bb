#include "tokenizer/tables.h"
#include "tokenizer/tokenizer.h"

size_t token_stream_push(TokenStream *stream, int token, char *out) {
    return tokenizer_steps.push(stream, token, out);
}

size_t token_stream_finish(TokenStream *stream, char *out) {
    return tokenizer_steps.finish(stream, out);
}
