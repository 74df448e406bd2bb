/* Splits text into words, as GPT-2's expression does:
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#ifndef COLIBRI_PRETOKENIZE_H
#define COLIBRI_PRETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the first word of `text`, which must be valid UTF-8; length > 0. With space_before the text is
 * read as if one more space stood in front of it: the word then starts with that space, and the result, which does not
 * count it, may be 0. */
size_t pretokenize_word(const uint8_t *text, size_t length, bool space_before);

#endif
