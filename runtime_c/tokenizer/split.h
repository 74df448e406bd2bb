/* Splits text into words by the expressions of the pre-tokenizer, which the generator compiled (render/pattern.py). */
#ifndef COLIBRI_SPLIT_H
#define COLIBRI_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/* Most atoms of an alternative, most stages of a pre-tokenizer; the generator refuses more. */
enum { SPLIT_MOST_ATOMS = 8, SPLIT_MOST_STAGES = 8 };

/* Code points fall into at most 64 classes; a set of them is the mask of its classes. */
typedef uint64_t ClassMask;

/* A greedy run of `least` to `most` characters. */
typedef struct {
    ClassMask chars;
    uint32_t least;
    uint32_t most;
} SplitAtom;

/* Atoms one after the other; no character of `not_before` after them; then the first alternative of the tail that fits,
 * if one does. `first`: what a match can start with. */
typedef struct {
    ClassMask first;
    ClassMask not_before;
    uint16_t atoms; /* index in split_atoms */
    uint16_t n_atoms;
    uint16_t tail; /* index in split_alternatives */
    uint16_t n_tail;
} SplitAlternative;

/* What one expression matches is a word of its own, and so is what lies between; each stage splits the words of the one
 * before. Alternatives are tried in order. `first`: what a match of any of them can start with. */
typedef struct {
    ClassMask first;
    uint16_t alternatives; /* index in split_alternatives */
    uint16_t n_alternatives;
} SplitStage;

/* first code point << 6 | class of each run, ascending; a run lasts until the next one. The first starts at 0. */
extern const uint32_t split_class_runs[];
extern const uint32_t split_n_class_runs;
extern const uint8_t split_ascii_classes[128];

extern const SplitAtom split_atoms[];
extern const SplitAlternative split_alternatives[];
extern const SplitStage split_stages[];
extern const uint32_t split_n_stages; /* 0: the text is one word */

/* A walk over the words of `text`, valid UTF-8; at < length. Zero `ends` at the start. */
typedef struct {
    const uint8_t *text;
    size_t length;
    size_t at;
    size_t ends[SPLIT_MOST_STAGES]; /* of the piece of each stage that `at` is in */
} Splitter;

/* Moves `at` behind the next word and returns the word's length. */
size_t split_next(Splitter *splitter);

#endif
