/* Tokens by id and by text. */
#ifndef COLIBRI_VOCABULARY_H
#define COLIBRI_VOCABULARY_H

#include "tokenizer/tables.h"

typedef struct {
    const uint8_t *bytes;
    size_t length;
} TokenText;

/* What the token merges from and prints, unless it is silent. id < MODEL_VOCAB_SIZE. */
TokenText token_text(uint32_t id);

/* Whether the token has a text that is not printed. */
bool token_is_silent(uint32_t id);

/* The token with this text among those that merges or whole words look up, or NO_TOKEN. length > 0. */
TokenId token_find(const uint8_t *bytes, size_t length);

/* The token that a word with this text becomes as a whole, or NO_TOKEN. */
TokenId token_whole(const uint8_t *bytes, size_t length);

/* As token_find, if it comes out of a merge whose left token has left_bytes bytes, or of one that is listed. */
TokenId token_find_merge(const uint8_t *bytes, size_t length, size_t left_bytes);

#endif
