#include "tokenizer/bpe.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/tables.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

/* An added token found in the text. */
typedef struct {
    size_t start; /* length of the text if there is none */
    const AddedToken *token;
} Match;

/* First of the tokens low .. high-1 whose byte at `depth` is not below `byte`; all of them are longer than depth. */
static uint32_t lower_bound(const AddedSet *set, uint32_t low, uint32_t high, size_t depth, unsigned byte) {
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if ((uint8_t)set->tokens[middle].content[depth] < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The longest token of `set` at the start of `text`, or NULL. Tokens low .. high-1 agree with the text so far; sorted
 * by content, the one that ends here comes first. */
static const AddedToken *longest_at(const AddedSet *set, const uint8_t *text, size_t length) {
    uint32_t low = set->starts[text[0]];
    uint32_t high = set->starts[text[0] + 1];
    const AddedToken *longest = NULL;
    for (size_t depth = 1; low < high; depth++) {
        if (set->tokens[low].length == depth) {
            longest = &set->tokens[low++];
        }
        if (depth == length) {
            break;
        }
        low = lower_bound(set, low, high, depth, text[depth]);
        high = lower_bound(set, low, high, depth, text[depth] + 1U);
    }
    return longest;
}

/* The leftmost added token, of several the longest. */
static Match find_added(const AddedSet *set, const uint8_t *text, size_t length) {
    for (size_t at = 0; at < length; at++) {
        const AddedToken *token = longest_at(set, text + at, length - at);
        if (token != NULL) {
            return (Match){at, token};
        }
    }
    return (Match){length, NULL};
}

/* Encodes text in which added tokens are no longer looked for. */
static colibri_status encode_words(const uint8_t *text, size_t length, IdList *out) {
    bool space_before = tokenizer_add_prefix_space && length > 0 && text[0] != ' ';
    for (size_t at = 0; at < length;) {
        const size_t n = pretokenize_word(text + at, length - at, space_before);
        const colibri_status status = bpe_encode(text + at, n, space_before, out);
        if (status != COLIBRI_OK) {
            return status;
        }
        at += n;
        space_before = false;
    }
    return COLIBRI_OK;
}

typedef colibri_status EncodeRest(const uint8_t *text, size_t length, IdList *out);

/* Encodes the added tokens of `set` itself, and what is between them with `rest`. */
static colibri_status encode_around(const AddedSet *set, EncodeRest *rest, const uint8_t *text, size_t length,
                                    IdList *out) {
    for (size_t at = 0; at < length;) {
        const Match match = find_added(set, text + at, length - at);
        colibri_status status = rest(text + at, match.start, out);
        if (status != COLIBRI_OK) {
            return status;
        }
        at += match.start;
        if (match.token != NULL) {
            status = id_list_put(out, match.token->id);
            if (status != COLIBRI_OK) {
                return status;
            }
            at += match.token->length;
        }
    }
    return COLIBRI_OK;
}

static colibri_status encode_second_set(const uint8_t *text, size_t length, IdList *out) {
    return encode_around(&tokenizer_added_sets[1], encode_words, text, length, out);
}

static colibri_status put_all(const TokenId *ids, int n, IdList *out) {
    colibri_status status = COLIBRI_OK;
    for (int i = 0; i < n && status == COLIBRI_OK; i++) {
        status = id_list_put(out, ids[i]);
    }
    return status;
}

colibri_status tokenizer_encode(const char *text, size_t length, int *ids, int capacity, int *n_ids) {
    const uint8_t *bytes = (const uint8_t *)text;
    IdList out = {ids, capacity, 0};
    *n_ids = 0;
    if (!utf8_is_valid(bytes, length)) {
        return COLIBRI_E_INVALID_UTF8;
    }
    colibri_status status = put_all(tokenizer_prefix_ids, tokenizer_n_prefix_ids, &out);
    if (status == COLIBRI_OK) {
        status = encode_around(&tokenizer_added_sets[0], encode_second_set, bytes, length, &out);
    }
    if (status == COLIBRI_OK) {
        status = put_all(tokenizer_suffix_ids, tokenizer_n_suffix_ids, &out);
    }
    if (status == COLIBRI_OK) {
        *n_ids = out.count;
    }
    return status;
}
