#include <string.h>

#include "tokenizer/steps.h"

static const uint8_t LOW_BLOCK[3] = {0xE2, 0x96, 0x81}; /* U+2581 */

static bool starts_with_space_or_block(const Stretch *stretch) {
    return stretch->bytes[0] == ' ' || (stretch->length >= 3 && memcmp(stretch->bytes, LOW_BLOCK, 3) == 0);
}

colibri_status prepare_prefix_space(Stretch *stretch) {
    if (stretch->bytes[0] == ' ') {
        return COLIBRI_OK;
    }
    if (stretch->length >= tokenizer_text_bytes) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    tokenizer_text[0] = ' ';
    memcpy(tokenizer_text + 1, stretch->bytes, stretch->length);
    *stretch = (Stretch){tokenizer_text, stretch->length + 1, stretch->at_start};
    return COLIBRI_OK;
}

static colibri_status replace_blocks(Stretch *stretch, bool space_before) {
    size_t n = 0;
    if (space_before) {
        tokenizer_text[n++] = ' ';
    }
    for (size_t i = 0; i < stretch->length; n++) {
        if (n >= tokenizer_text_bytes) {
            return COLIBRI_E_PROMPT_TOO_LONG;
        }
        const bool block = stretch->length - i >= 3 && memcmp(stretch->bytes + i, LOW_BLOCK, 3) == 0;
        tokenizer_text[n] = block ? ' ' : stretch->bytes[i];
        i += block ? 3 : 1;
    }
    *stretch = (Stretch){tokenizer_text, n, stretch->at_start};
    return COLIBRI_OK;
}

colibri_status prepare_spaces_always(Stretch *stretch) {
    return replace_blocks(stretch, true);
}

colibri_status prepare_spaces_unless(Stretch *stretch) {
    return replace_blocks(stretch, !starts_with_space_or_block(stretch));
}

colibri_status prepare_spaces_first(Stretch *stretch) {
    return replace_blocks(stretch, stretch->at_start && !starts_with_space_or_block(stretch));
}

colibri_status prepare_spaces_plain(Stretch *stretch) {
    return replace_blocks(stretch, false);
}
