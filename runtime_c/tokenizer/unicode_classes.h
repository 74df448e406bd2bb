/* The three character classes of the GPT-2 expression, as the `tokenizers` library sees them. */
#ifndef COLIBRI_UNICODE_CLASSES_H
#define COLIBRI_UNICODE_CLASSES_H

#include <stdint.h>

typedef enum {
    UNICODE_OTHER = 0,
    UNICODE_LETTER = 1, /* \p{L} */
    UNICODE_NUMBER = 2, /* \p{N} */
    UNICODE_SPACE = 3   /* \s */
} UnicodeClass;

enum { UNICODE_CLASS_RUNS = 1610 };

/* first code point * 4 + class of each run, ascending; a run lasts until the next one. The first starts at 0. */
extern const uint32_t unicode_class_starts[UNICODE_CLASS_RUNS];

#endif
