/* Words of SentencePiece vocabularies: one piece a character, or one a byte of a character that is no token. */
#include "tokenizer/bpe.h"
#include "tokenizer/steps.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

static colibri_status merge_chars(const uint8_t *word, size_t length, IdList *out) {
    if (length > bpe_max_word_bytes) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    size_t last = SIZE_MAX;
    size_t n = 0;
    for (size_t at = 0; at < length; at += n) {
        (void)utf8_decode(word + at, &n);
        const TokenId id = token_find(word + at, n);
        if (id != NO_TOKEN) {
            bpe_add_piece(at, id, &last);
            continue;
        }
        for (size_t i = at; i < at + n; i++) {
            bpe_add_piece(i, tokenizer_byte_ids[word[i]] | BPE_ALONE, &last);
        }
    }
    return bpe_merge(word, length, last, out);
}

colibri_status chars_encode_word(const uint8_t *word, size_t length, IdList *out) {
    const TokenId whole = token_whole(word, length);
    return whole != NO_TOKEN ? id_list_put(out, whole) : merge_chars(word, length, out);
}
