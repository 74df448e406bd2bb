/* Numbers as people type them: the whole text is the number, or it is refused. */
#ifndef COLIBRI_APP_NUMBERS_H
#define COLIBRI_APP_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

typedef enum { NUMBER_OK, NUMBER_MALFORMED, NUMBER_TOO_LARGE } NumberResult;

/* Decimal digits; *value is set where the result is NUMBER_OK. */
NumberResult parse_unsigned(const char *text, size_t length, uint64_t *value);

/* The same with an optional minus sign. */
NumberResult parse_integer(const char *text, size_t length, int64_t *value);

/* A decimal number such as 0.7, .5 or 1e-1, rounded to binary64 and then to binary32. No hexadecimal, nan or inf. */
NumberResult parse_decimal(const char *text, float *value);

#endif
