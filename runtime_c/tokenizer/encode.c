#include "tokenizer/split.h"
#include "tokenizer/tables.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer/white_space.h"

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
        if (set->starts[text[at]] == set->starts[text[at] + 1]) {
            continue;
        }
        const AddedToken *token = longest_at(set, text + at, length - at);
        if (token != NULL) {
            return (Match){at, token};
        }
    }
    return (Match){length, NULL};
}

/* Where the white space that ends at `end` starts, not before `from`. */
static size_t space_start(const uint8_t *text, size_t from, size_t end) {
    while (end > from) {
        size_t at = end - 1;
        size_t length;
        while ((text[at] & 0xC0) == 0x80) {
            at--;
        }
        if (!is_white_space(utf8_decode(text + at, &length))) {
            break;
        }
        end = at;
    }
    return end > from ? end : from;
}

/* Where the white space from `at` on ends. */
static size_t space_end(const uint8_t *text, size_t at, size_t length) {
    while (at < length) {
        size_t n;
        if (!is_white_space(utf8_decode(text + at, &n))) {
            break;
        }
        at += n;
    }
    return at;
}

/* Encodes text in which added tokens are no longer looked for. */
static colibri_status encode_words(Stretch stretch, IdList *out) {
    if (tokenizer_steps.prepare != NULL) {
        const colibri_status status = tokenizer_steps.prepare(&stretch);
        if (status != COLIBRI_OK) {
            return status;
        }
    }
    Splitter splitter = {.text = stretch.bytes, .length = stretch.length};
    while (splitter.at < splitter.length) {
        const uint8_t *word = splitter.text + splitter.at;
        const colibri_status status = tokenizer_steps.encode_word(word, split_next(&splitter), out);
        if (status != COLIBRI_OK) {
            return status;
        }
    }
    return COLIBRI_OK;
}

typedef colibri_status EncodeRest(Stretch stretch, IdList *out);

/* Encodes the added tokens of `set` itself, and what is between them with `rest`. A token looks for its neighbours'
 * white space, but the search for the next one goes on right behind its content, as the `tokenizers` library does it.
 */
static colibri_status encode_around(const AddedSet *set, EncodeRest *rest, Stretch stretch, IdList *out) {
    const uint8_t *text = stretch.bytes;
    colibri_status status = COLIBRI_OK;
    size_t at = 0;
    for (size_t search = 0; status == COLIBRI_OK && (at < stretch.length || search < stretch.length);) {
        const Match match = find_added(set, text + search, stretch.length - search);
        size_t start = search + match.start;
        size_t end = start;
        if (match.token != NULL) {
            end += match.token->length;
            search = end;
            start = (match.token->strip & ADDED_LSTRIP) != 0 ? space_start(text, at, start) : start;
            end = (match.token->strip & ADDED_RSTRIP) != 0 ? space_end(text, end, stretch.length) : end;
        } else {
            search = stretch.length;
        }
        if (at < start) {
            status = rest((Stretch){text + at, start - at, stretch.at_start && at == 0}, out);
        }
        if (status == COLIBRI_OK && match.token != NULL) {
            status = id_list_put(out, match.token->id);
        }
        at = end;
    }
    return status;
}

static colibri_status encode_normalized(Stretch stretch, IdList *out) {
    if (tokenizer_steps.normalize != NULL) {
        const colibri_status status = tokenizer_steps.normalize(&stretch);
        if (status != COLIBRI_OK) {
            return status;
        }
    }
    return encode_around(&tokenizer_added_sets[1], encode_words, stretch, out);
}

static colibri_status put_all(const TokenId *ids, int n, IdList *out) {
    colibri_status status = COLIBRI_OK;
    for (int i = 0; i < n && status == COLIBRI_OK; i++) {
        status = id_list_put(out, ids[i]);
    }
    return status;
}

/* Appends the ids of a text alone. */
static colibri_status encode_text(const char *text, size_t length, IdList *out) {
    const uint8_t *bytes = (const uint8_t *)text;
    if (!utf8_is_valid(bytes, length)) {
        return COLIBRI_E_INVALID_UTF8;
    }
    return encode_around(&tokenizer_added_sets[0], encode_normalized, (Stretch){bytes, length, true}, out);
}

colibri_status tokenizer_encode_bare(const char *text, size_t length, int *ids, int capacity, int *n_ids) {
    IdList out = {ids, capacity, 0};
    const colibri_status status = encode_text(text, length, &out);
    *n_ids = status == COLIBRI_OK ? out.count : 0;
    return status;
}

colibri_status tokenizer_encode(const char *text, size_t length, int *ids, int capacity, int *n_ids) {
    IdList out = {ids, capacity, 0};
    *n_ids = 0;
    colibri_status status = put_all(tokenizer_prefix_ids, tokenizer_n_prefix_ids, &out);
    if (status == COLIBRI_OK) {
        status = encode_text(text, length, &out);
    }
    if (status == COLIBRI_OK) {
        status = put_all(tokenizer_suffix_ids, tokenizer_n_suffix_ids, &out);
    }
    if (status == COLIBRI_OK) {
        *n_ids = out.count;
    }
    return status;
}
