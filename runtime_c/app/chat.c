#include "app/chat.h"

#ifdef MODEL_CHAT
#include <string.h>

#include "app/lines.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer/white_space.h"

static char whole[MODEL_CHAT_PREFIX_BYTES + LINE_BYTES + MODEL_CHAT_SUFFIX_BYTES];

#if MODEL_CHAT_TRIM
/* What Python's str.strip takes away. */
static bool is_blank(uint32_t code_point) {
    return is_white_space(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

/* Takes the white space around valid UTF-8 away. */
static void trim(const char **text, size_t *length) {
    const uint8_t *bytes = (const uint8_t *)*text;
    size_t start = 0;
    size_t end = *length;
    for (size_t n = 0; start < end && is_blank(utf8_decode(bytes + start, &n)); start += n) {
    }
    while (end > start) {
        size_t at = end - 1;
        size_t n;
        while ((bytes[at] & 0xC0) == 0x80) {
            at--;
        }
        if (!is_blank(utf8_decode(bytes + at, &n))) {
            break;
        }
        end = at;
    }
    *text += start;
    *length = end - start;
}
#else
static void trim(const char **text, size_t *length) {
    (void)text;
    (void)length;
}
#endif

/* Encodes a text, valid UTF-8, in the chat form. */
static colibri_status encode_wrapped(const char *text, size_t length, Prompt *prompt) {
    memcpy(whole, chat_prefix, MODEL_CHAT_PREFIX_BYTES);
    memcpy(whole + MODEL_CHAT_PREFIX_BYTES, text, length);
    memcpy(whole + MODEL_CHAT_PREFIX_BYTES + length, chat_suffix, MODEL_CHAT_SUFFIX_BYTES);
    const size_t n = MODEL_CHAT_PREFIX_BYTES + length + MODEL_CHAT_SUFFIX_BYTES;
    return tokenizer_encode_bare(whole, n, prompt->ids, MODEL_CONTEXT, &prompt->n_ids);
}

colibri_status prompt_from_user(const char *text, size_t length, bool is_raw, int context, Prompt *prompt,
                                Report *report) {
    if (is_raw || length == 0) {
        return prompt_from_text(text, length, context, prompt, report);
    }
    colibri_status status = COLIBRI_E_INVALID_UTF8;
    if (utf8_is_valid((const uint8_t *)text, length)) {
        trim(&text, &length);
        if (length > LINE_BYTES) {
            return report_fault(report, COLIBRI_E_PROMPT_TOO_LONG, "the prompt has %zu bytes; give at most %d", length,
                                (int)LINE_BYTES);
        }
        status = encode_wrapped(text, length, prompt);
    }
    return prompt_judge(status, text, length, context, prompt, report);
}

#endif
