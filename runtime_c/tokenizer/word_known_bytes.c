/* Words of byte-level vocabularies that lack a token for some byte. */
#include "tokenizer/bpe.h"
#include "tokenizer/steps.h"
#include "tokenizer/vocabulary.h"

static colibri_status merge_known(const uint8_t *word, size_t length, IdList *out) {
    static uint8_t known[UINT16_MAX];
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (tokenizer_byte_ids[word[i]] == NO_TOKEN) {
            continue;
        }
        if (n == sizeof known) {
            return COLIBRI_E_PROMPT_TOO_LONG;
        }
        known[n++] = word[i];
    }
    return n > 0 ? bytes_merge_word(known, n, out) : COLIBRI_OK;
}

colibri_status bytes_encode_word_known(const uint8_t *word, size_t length, IdList *out) {
    const TokenId whole = token_whole(word, length);
    return whole != NO_TOKEN ? id_list_put(out, whole) : merge_known(word, length, out);
}
