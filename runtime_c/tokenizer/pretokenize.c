#include "tokenizer/pretokenize.h"

#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

static UnicodeClass class_in_table(uint32_t code_point) {
    size_t low = 0; /* the run that holds code_point is in low .. high-1 */
    size_t high = UNICODE_CLASS_RUNS;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (unicode_class_starts[middle] >> 2 <= code_point) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (UnicodeClass)(unicode_class_starts[low] & 3);
}

/* Class of the character at `text`; its length goes to *length. */
static UnicodeClass class_at(const uint8_t *text, size_t *length) {
    const uint32_t code_point = utf8_decode(text, length);
    if (code_point >= 0x80) {
        return class_in_table(code_point);
    }
    if ((code_point | 0x20) - 'a' < 26) {
        return UNICODE_LETTER;
    }
    if (code_point - '0' < 10) {
        return UNICODE_NUMBER;
    }
    return code_point == ' ' || code_point - '\t' < 5 ? UNICODE_SPACE : UNICODE_OTHER;
}

/* Length of 's, 't, 'm, 'd, 're, 've or 'll at the start of the text, else 0. */
static size_t contraction(const uint8_t *text, size_t length) {
    if (length < 2 || text[0] != '\'') {
        return 0;
    }
    switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
        return 2;
    case 'r':
    case 'v':
        return length > 2 && text[2] == 'e' ? 3 : 0;
    case 'l':
        return length > 2 && text[2] == 'l' ? 3 : 0;
    default:
        return 0;
    }
}

/* End of the characters of class `wanted` from `at` on. */
static size_t run_end(const uint8_t *text, size_t at, size_t length, UnicodeClass wanted) {
    while (at < length) {
        size_t n;
        if (class_at(text + at, &n) != wanted) {
            break;
        }
        at += n;
    }
    return at;
}

/* \s+(?!\S)|\s+ : all white space at the end of the text; before a word, all but its last character, unless it is the
 * only one. */
static size_t space_word(const uint8_t *text, size_t length, bool space_before) {
    size_t at = 0;
    size_t last = 0; /* start of the last space character */
    while (at < length) {
        size_t n;
        if (class_at(text + at, &n) != UNICODE_SPACE) {
            return last > 0 || space_before ? last : at;
        }
        last = at;
        at += n;
    }
    return at;
}

size_t pretokenize_word(const uint8_t *text, size_t length, bool space_before) {
    if (!space_before) {
        const size_t n = contraction(text, length);
        if (n > 0) {
            return n;
        }
    }
    const size_t start = !space_before && text[0] == ' ' ? 1 : 0;
    if (start < length) {
        size_t n;
        const UnicodeClass first = class_at(text + start, &n);
        if (first != UNICODE_SPACE) {
            return run_end(text, start + n, length, first);
        }
    }
    return space_word(text, length, space_before);
}
