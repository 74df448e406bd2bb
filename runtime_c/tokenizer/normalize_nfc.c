/* Unicode's composed form: decompose, put marks in order, compose. */
#include <string.h>

#include "tokenizer/nfc_tables.h"
#include "tokenizer/steps.h"
#include "tokenizer/utf8.h"

/* Hangul syllables are made of a leading consonant, a vowel and a trailing consonant by a rule. */
enum { S_BASE = 0xAC00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11A7, L_COUNT = 19, V_COUNT = 21, T_COUNT = 28 };
enum { S_COUNT = L_COUNT * V_COUNT * T_COUNT };

/* A cluster of more marks is refused. */
enum { MOST_MARKS = 1024 };

typedef struct {
    uint32_t code_point;
    uint32_t class;
} Mark;

/* A starter, and the marks that came behind it. */
typedef struct {
    uint32_t starter; /* 0: none yet */
    bool has_starter;
    size_t n_marks;
    size_t n_out; /* bytes in tokenizer_text */
} Composer;

static Mark marks[MOST_MARKS];

static uint32_t class_of(uint32_t code_point) {
    uint32_t low = 0;
    uint32_t high = NFC_N_CLASS_RUNS;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (nfc_class_runs[middle] >> 8 <= code_point) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return nfc_class_runs[low] & 0xFF;
}

/* One step of decomposition: returns the first part, or the code point itself; *second is 0 if there is none. */
static uint32_t decompose(uint32_t code_point, uint32_t *second) {
    *second = 0;
    if (code_point - S_BASE < S_COUNT) {
        const uint32_t index = code_point - S_BASE;
        if (index % T_COUNT != 0) {
            *second = T_BASE + index % T_COUNT;
            return code_point - index % T_COUNT;
        }
        *second = V_BASE + index / T_COUNT % V_COUNT;
        return L_BASE + index / T_COUNT / V_COUNT;
    }
    uint32_t low = 0;
    uint32_t high = NFC_N_DECOMPOSITIONS;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (nfc_decompositions[middle][0] == code_point) {
            *second = nfc_decompositions[middle][2];
            return nfc_decompositions[middle][1];
        }
        if (nfc_decompositions[middle][0] < code_point) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return code_point;
}

/* The code point that the two compose to, or 0. */
static uint32_t compose(uint32_t first, uint32_t second) {
    if (first - L_BASE < L_COUNT && second - V_BASE < V_COUNT) {
        return S_BASE + ((first - L_BASE) * V_COUNT + (second - V_BASE)) * T_COUNT;
    }
    if (first - S_BASE < S_COUNT && (first - S_BASE) % T_COUNT == 0 && second - T_BASE - 1 < T_COUNT - 1) {
        return first + (second - T_BASE);
    }
    uint32_t low = 0;
    uint32_t high = NFC_N_COMPOSITIONS;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const uint32_t *row = nfc_decompositions[nfc_compositions[middle]];
        if (row[1] == first && row[2] == second) {
            return row[0];
        }
        if (row[1] < first || (row[1] == first && row[2] < second)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

COLIBRI_MUST_CHECK static colibri_status put(Composer *composer, uint32_t code_point) {
    uint8_t bytes[4];
    const size_t n = utf8_encode(code_point, bytes);
    if (tokenizer_text_bytes - composer->n_out < n) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    for (size_t i = 0; i < n; i++) {
        tokenizer_text[composer->n_out++] = bytes[i];
    }
    return COLIBRI_OK;
}

/* Marks with the starter as far as they compose; what is left stays in `marks`. */
static void compose_marks(Composer *composer) {
    size_t n_left = 0;
    for (size_t i = 0; i < composer->n_marks; i++) {
        const bool blocked = n_left > 0 && marks[n_left - 1].class >= marks[i].class;
        const uint32_t composed =
            composer->has_starter && !blocked ? compose(composer->starter, marks[i].code_point) : 0;
        if (composed != 0) {
            composer->starter = composed;
        } else {
            marks[n_left++] = marks[i];
        }
    }
    composer->n_marks = n_left;
}

COLIBRI_MUST_CHECK static colibri_status flush(Composer *composer) {
    colibri_status status = composer->has_starter ? put(composer, composer->starter) : COLIBRI_OK;
    for (size_t i = 0; i < composer->n_marks && status == COLIBRI_OK; i++) {
        status = put(composer, marks[i].code_point);
    }
    composer->n_marks = 0;
    composer->has_starter = false;
    return status;
}

/* Puts a mark behind those of its class and of lower ones. */
COLIBRI_MUST_CHECK static colibri_status add_mark(Composer *composer, Mark mark) {
    if (composer->n_marks == MOST_MARKS) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    size_t at = composer->n_marks++;
    for (; at > 0 && marks[at - 1].class > mark.class; at--) {
        marks[at] = marks[at - 1];
    }
    marks[at] = mark;
    return COLIBRI_OK;
}

/* Adds a code point that does not decompose. */
COLIBRI_MUST_CHECK static colibri_status add(Composer *composer, uint32_t code_point) {
    const Mark mark = {code_point, class_of(code_point)};
    if (mark.class != 0) {
        return add_mark(composer, mark);
    }
    compose_marks(composer);
    const uint32_t composed =
        composer->has_starter && composer->n_marks == 0 ? compose(composer->starter, code_point) : 0;
    if (composed != 0) {
        composer->starter = composed;
        return COLIBRI_OK;
    }
    const colibri_status status = flush(composer);
    composer->starter = code_point;
    composer->has_starter = true;
    return status;
}

/* Adds the full decomposition of a code point: first parts are decomposed further, second parts are not. */
COLIBRI_MUST_CHECK static colibri_status add_decomposed(Composer *composer, uint32_t code_point) {
    uint32_t seconds[8];
    size_t n = 0;
    uint32_t second;
    for (uint32_t first = decompose(code_point, &second); first != code_point && n < 8;
         first = decompose(code_point, &second)) {
        if (second != 0) {
            seconds[n++] = second;
        }
        code_point = first;
    }
    colibri_status status = add(composer, code_point);
    while (n > 0 && status == COLIBRI_OK) {
        status = add(composer, seconds[--n]);
    }
    return status;
}

/* Whether a code point stays as it is behind any text, unless something unstable follows. */
static bool is_stable(uint32_t code_point) {
    const uint32_t page = code_point >> 8;
    return page >= NFC_N_PAGES || (nfc_unstable[nfc_page_of[page]][(code_point & 0xFF) / 8] >> code_point % 8 & 1) == 0;
}

/* Where the next cluster to compose starts, from `at` on: with the character before the first unstable one. */
static size_t next_cluster(const Stretch *stretch, size_t at) {
    size_t length;
    for (size_t start = at; at < stretch->length; at += length) {
        if (stretch->bytes[at] < 0x80) {
            length = 1;
        } else if (!is_stable(utf8_decode(stretch->bytes + at, &length))) {
            return start;
        }
        start = at;
    }
    return stretch->length;
}

/* Composes the cluster at *at: a character and the unstable ones behind it; moves *at behind it. */
COLIBRI_MUST_CHECK static colibri_status compose_cluster(Composer *composer, const Stretch *stretch, size_t *at) {
    size_t length;
    uint32_t code_point = utf8_decode(stretch->bytes + *at, &length);
    colibri_status status = COLIBRI_OK;
    do {
        status = add_decomposed(composer, code_point);
        *at += length;
        if (*at == stretch->length) {
            break;
        }
        code_point = utf8_decode(stretch->bytes + *at, &length);
    } while (status == COLIBRI_OK && !is_stable(code_point));
    if (status != COLIBRI_OK) {
        return status;
    }
    compose_marks(composer);
    return flush(composer);
}

COLIBRI_MUST_CHECK static colibri_status copy(Composer *composer, const uint8_t *bytes, size_t n) {
    if (tokenizer_text_bytes - composer->n_out < n) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    memcpy(tokenizer_text + composer->n_out, bytes, n);
    composer->n_out += n;
    return COLIBRI_OK;
}

colibri_status normalize_nfc(Stretch *stretch) {
    size_t at = next_cluster(stretch, 0);
    if (at == stretch->length) {
        return COLIBRI_OK;
    }
    Composer composer = {0};
    colibri_status status = copy(&composer, stretch->bytes, at);
    while (status == COLIBRI_OK && at < stretch->length) {
        status = compose_cluster(&composer, stretch, &at);
        if (status == COLIBRI_OK) {
            const size_t next = next_cluster(stretch, at);
            status = copy(&composer, stretch->bytes + at, next - at);
            at = next;
        }
    }
    *stretch = (Stretch){tokenizer_text, composer.n_out, stretch->at_start};
    return status;
}
