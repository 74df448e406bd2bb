#include "tokenizer/split.h"

#include <stdbool.h>

#include "tokenizer/utf8.h"

#define NO_MATCH SIZE_MAX

/* The text that an expression sees: it ends where the piece of the stage before ends. */
typedef struct {
    const uint8_t *text;
    size_t end;
} Piece;

static uint32_t class_in_runs(uint32_t code_point) {
    uint32_t low = 0; /* the run that holds code_point is in low .. high-1 */
    uint32_t high = split_n_class_runs;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (split_class_runs[middle] >> 6 <= code_point) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return split_class_runs[low] & 63;
}

/* Class of the character at `text`, as a mask; its length goes to *length. */
static inline ClassMask class_at(const uint8_t *text, size_t *length) {
    if (text[0] < 0x80) {
        *length = 1;
        return (ClassMask)1 << split_ascii_classes[text[0]];
    }
    return (ClassMask)1 << class_in_runs(utf8_decode(text, length));
}

/* End of the run of an atom from `at` on; its characters go to *count. */
static size_t run_end(const SplitAtom *atom, const Piece *piece, size_t at, uint32_t *count) {
    uint32_t n = 0;
    while (n < atom->most && at < piece->end) {
        size_t length;
        if ((class_at(piece->text + at, &length) & atom->chars) == 0) {
            break;
        }
        at += length;
        n++;
    }
    *count = n;
    return at;
}

static size_t before(const uint8_t *text, size_t at) {
    do {
        at--;
    } while ((text[at] & 0xC0) == 0x80);
    return at;
}

static bool may_end(const SplitAlternative *alternative, const Piece *piece, size_t at) {
    size_t length;
    return alternative->not_before == 0 || at == piece->end ||
           (class_at(piece->text + at, &length) & alternative->not_before) == 0;
}

/* End of the match of the atoms at `at`, or NO_MATCH. Runs are taken as long as they go and give back, the last one
 * first, as a backtracking engine does. */
static size_t match_atoms(const SplitAlternative *alternative, const Piece *piece, size_t at) {
    const SplitAtom *atoms = split_atoms + alternative->atoms;
    const uint32_t n = alternative->n_atoms;
    size_t ends[SPLIT_MOST_ATOMS];
    uint32_t counts[SPLIT_MOST_ATOMS];
    for (uint32_t i = 0;;) {
        if (i < n) {
            ends[i] = run_end(&atoms[i], piece, i > 0 ? ends[i - 1] : at, &counts[i]);
            if (counts[i] >= atoms[i].least) {
                i++;
                continue;
            }
        } else if (may_end(alternative, piece, ends[n - 1])) {
            return ends[n - 1];
        }
        do {
            if (i == 0) {
                return NO_MATCH;
            }
            i--;
        } while (counts[i] <= atoms[i].least);
        counts[i]--;
        ends[i] = before(piece->text, ends[i]);
        i++;
    }
}

/* End of the match of the first of n alternatives that fits at `at`, or NO_MATCH; the alternative goes to *which. */
static size_t match_first(uint32_t from, uint32_t n, const Piece *piece, size_t at, const SplitAlternative **which) {
    if (n == 0 || at == piece->end) {
        return NO_MATCH;
    }
    size_t length;
    const ClassMask first = class_at(piece->text + at, &length);
    for (const SplitAlternative *alternative = split_alternatives + from; n > 0; n--, alternative++) {
        if ((alternative->first & first) == 0) {
            continue;
        }
        const size_t end = match_atoms(alternative, piece, at);
        if (end != NO_MATCH) {
            *which = alternative;
            return end;
        }
    }
    return NO_MATCH;
}

/* End of the match of a stage's expression at `at`, or NO_MATCH. */
static size_t match(const SplitStage *stage, const Piece *piece, size_t at) {
    const SplitAlternative *found;
    const size_t end = match_first(stage->alternatives, stage->n_alternatives, piece, at, &found);
    if (end == NO_MATCH) {
        return NO_MATCH;
    }
    const size_t tail = match_first(found->tail, found->n_tail, piece, end, &found);
    return tail != NO_MATCH ? tail : end;
}

/* The next character behind the one at `at` that a match can start with, or the end. */
static size_t skip(const SplitStage *stage, const Piece *piece, size_t at) {
    size_t length;
    (void)class_at(piece->text + at, &length);
    for (at += length; at < piece->end && (class_at(piece->text + at, &length) & stage->first) == 0; at += length) {
    }
    return at;
}

/* End of the match at `at`, or of the text up to the next match. */
static size_t piece_end(const SplitStage *stage, const Piece *piece, size_t at) {
    const size_t matched = match(stage, piece, at);
    if (matched != NO_MATCH) {
        return matched;
    }
    size_t end = at;
    do {
        end = skip(stage, piece, end);
    } while (end < piece->end && match(stage, piece, end) == NO_MATCH);
    return end;
}

size_t split_next(Splitter *splitter) {
    const size_t at = splitter->at;
    size_t end = splitter->length;
    for (uint32_t i = 0; i < split_n_stages; i++) {
        if (splitter->ends[i] <= at) {
            const Piece piece = {splitter->text, end};
            splitter->ends[i] = piece_end(&split_stages[i], &piece, at);
        }
        end = splitter->ends[i];
    }
    splitter->at = end;
    return end - at;
}
