/* The chat form of a build with --chat (MODEL_CHAT): a prompt is prefix, the user's text, suffix, encoded as a whole
 * and without the ids that the tokenizer puts around a plain text. */
#ifndef COLIBRI_APP_CHAT_H
#define COLIBRI_APP_CHAT_H

#include "app/prompt.h"

#ifdef MODEL_CHAT

/* UTF-8, generated; MODEL_CHAT_PREFIX_BYTES and MODEL_CHAT_SUFFIX_BYTES long, and a NUL. */
extern const char chat_prefix[];
extern const char chat_suffix[];

/* As prompt_from_text, in the chat form unless is_raw. With MODEL_CHAT_TRIM, the white space around the text is left
 * out. */
COLIBRI_MUST_CHECK colibri_status prompt_from_user(const char *text, size_t length, bool is_raw, int context,
                                                   Prompt *prompt, Report *report);

#else

COLIBRI_MUST_CHECK static inline colibri_status prompt_from_user(const char *text, size_t length, bool is_raw,
                                                                 int context, Prompt *prompt, Report *report) {
    (void)is_raw;
    return prompt_from_text(text, length, context, prompt, report);
}

#endif
#endif
