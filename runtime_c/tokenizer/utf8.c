#include "tokenizer/utf8.h"

#include <string.h>

/* Number of bytes that `lead` announces; 0 if no character starts with it. */
static size_t announced_length(uint8_t lead) {
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xC2) {
        return 0;
    }
    if (lead < 0xE0) {
        return 2;
    }
    if (lead < 0xF0) {
        return 3;
    }
    return lead < 0xF5 ? 4 : 0;
}

/* Whether `second` may follow `lead`: four leads allow less than 80..BF. */
static bool second_fits(uint8_t lead, uint8_t second) {
    switch (lead) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return second >= 0x80 && second <= 0xBF;
    }
}

size_t utf8_sequence(const uint8_t *bytes, size_t n, Utf8State *state) {
    const size_t length = announced_length(bytes[0]);
    if (length == 0) {
        *state = UTF8_INVALID;
        return 1;
    }
    for (size_t i = 1; i < length; i++) {
        if (i == n) {
            *state = UTF8_INCOMPLETE;
            return i;
        }
        const bool fits = i == 1 ? second_fits(bytes[0], bytes[1]) : (bytes[i] & 0xC0) == 0x80;
        if (!fits) {
            *state = UTF8_INVALID;
            return i;
        }
    }
    *state = UTF8_VALID;
    return length;
}

/* How many of the n bytes, in steps of 8, are ASCII. */
static size_t ascii_run(const uint8_t *bytes, size_t n) {
    size_t at = 0;
    for (uint64_t eight; n - at >= sizeof eight; at += sizeof eight) {
        memcpy(&eight, bytes + at, sizeof eight);
        if ((eight & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
    }
    return at;
}

bool utf8_is_valid(const uint8_t *bytes, size_t n) {
    for (size_t at = 0;;) {
        at += ascii_run(bytes + at, n - at);
        if (at == n) {
            return true;
        }
        Utf8State state;
        at += utf8_sequence(bytes + at, n - at, &state);
        if (state != UTF8_VALID) {
            return false;
        }
    }
}

uint32_t utf8_decode(const uint8_t *bytes, size_t *length) {
    const uint32_t lead = bytes[0];
    if (lead < 0x80) {
        *length = 1;
        return lead;
    }
    if (lead < 0xE0) {
        *length = 2;
        return (lead & 0x1F) << 6 | (bytes[1] & 0x3FU);
    }
    if (lead < 0xF0) {
        *length = 3;
        return (lead & 0x0F) << 12 | (bytes[1] & 0x3FU) << 6 | (bytes[2] & 0x3FU);
    }
    *length = 4;
    return (lead & 0x07) << 18 | (bytes[1] & 0x3FU) << 12 | (bytes[2] & 0x3FU) << 6 | (bytes[3] & 0x3FU);
}

size_t utf8_encode(uint32_t code_point, uint8_t *bytes) {
    if (code_point < 0x80) {
        bytes[0] = (uint8_t)code_point;
        return 1;
    }
    const size_t length = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        bytes[i] = (uint8_t)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    bytes[0] = (uint8_t)((0xF00U >> length) | code_point);
    return length;
}
