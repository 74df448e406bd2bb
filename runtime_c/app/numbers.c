#include "app/numbers.h"

#include <stdlib.h>
#include <string.h>

NumberResult parse_unsigned(const char *text, size_t length, uint64_t *value) {
    uint64_t number = 0;
    NumberResult result = length > 0 ? NUMBER_OK : NUMBER_MALFORMED;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return NUMBER_MALFORMED;
        }
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (number > (UINT64_MAX - digit) / 10) {
            result = NUMBER_TOO_LARGE;
        }
        number = number * 10 + digit;
    }
    if (result == NUMBER_OK) {
        *value = number;
    }
    return result;
}

NumberResult parse_integer(const char *text, size_t length, int64_t *value) {
    size_t sign = length > 0 && text[0] == '-' ? 1 : 0;
    uint64_t magnitude = 0;
    NumberResult result = parse_unsigned(text + sign, length - sign, &magnitude);
    if (result != NUMBER_OK) {
        return result;
    }
    if (magnitude > INT64_MAX) {
        return NUMBER_TOO_LARGE;
    }
    *value = sign ? -(int64_t)magnitude : (int64_t)magnitude;
    return NUMBER_OK;
}

NumberResult parse_decimal(const char *text, float *value) {
    char *end = NULL;
    size_t length = strlen(text);
    /* strtod would also take white space, hexadecimal, nan and inf */
    if (length == 0 || strspn(text, "0123456789.eE+-") != length) {
        return NUMBER_MALFORMED;
    }
    double number = strtod(text, &end);
    if (*end != '\0') {
        return NUMBER_MALFORMED;
    }
    *value = (float)number;
    return NUMBER_OK;
}
