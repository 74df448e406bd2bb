/* Words of byte-level vocabularies: one piece a byte. */
#include "tokenizer/bpe.h"
#include "tokenizer/steps.h"
#include "tokenizer/vocabulary.h"

colibri_status bytes_merge_word(const uint8_t *word, size_t length, IdList *out) {
    if (length > bpe_max_word_bytes) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < length; i++) {
        bpe_add_piece(i, tokenizer_byte_ids[word[i]], &last);
    }
    return bpe_merge(word, length, last, out);
}

colibri_status bytes_encode_word(const uint8_t *word, size_t length, IdList *out) {
    const TokenId whole = length == 1 ? tokenizer_byte_ids[word[0]] : token_whole(word, length);
    return whole != NO_TOKEN ? id_list_put(out, whole) : bytes_merge_word(word, length, out);
}
