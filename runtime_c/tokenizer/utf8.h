/* UTF-8 as the Unicode standard's table 3-7 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef COLIBRI_UTF8_H
#define COLIBRI_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { UTF8_VALID, UTF8_INVALID, UTF8_INCOMPLETE } Utf8State;

/* Length (1 to 4) of the character at `bytes`, or of the longest start of one (the "maximal subpart" that becomes one
 * U+FFFD). UTF8_INCOMPLETE: more bytes could still complete it. n > 0. */
size_t utf8_sequence(const uint8_t *bytes, size_t n, Utf8State *state);

bool utf8_is_valid(const uint8_t *bytes, size_t n);

/* Code point at `bytes`, which must be valid UTF-8; its length goes to *length. */
uint32_t utf8_decode(const uint8_t *bytes, size_t *length);

/* Writes a code point as UTF-8; returns its length, 1 to 4. */
size_t utf8_encode(uint32_t code_point, uint8_t *bytes);

#endif
