/* White space as Unicode's White_Space property has it: what added tokens may take along. */
#ifndef COLIBRI_WHITE_SPACE_H
#define COLIBRI_WHITE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

static inline bool is_white_space(uint32_t code_point) {
    if (code_point < 0x1680) {
        return code_point == ' ' || (code_point >= '\t' && code_point <= '\r') || code_point == 0x85 ||
               code_point == 0xA0;
    }
    return code_point == 0x1680 || (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
           code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F || code_point == 0x3000;
}

#endif
