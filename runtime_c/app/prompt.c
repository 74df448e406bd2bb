#include "app/prompt.h"

#include <string.h>

#include "app/numbers.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

static colibri_status empty_prompt(Report *report) {
    return report_fault(report, COLIBRI_E_EMPTY_PROMPT, "the prompt is empty; give at least one character or token id");
}

static colibri_status require_fit(int n_ids, int context, Report *report) {
    if (n_ids <= context) {
        return COLIBRI_OK;
    }
    const char *advice = context < MODEL_CONTEXT ? "a larger --ctx, or shorten the prompt" : "a shorter prompt";
    return report_fault(report, COLIBRI_E_PROMPT_TOO_LONG,
                        "the prompt has %d tokens and the context %d positions; try %s", n_ids, context, advice);
}

/* Bytes before the first one that belongs to no character. */
static size_t valid_length(const char *text, size_t length) {
    size_t at = 0;
    Utf8State state = UTF8_VALID;
    while (at < length) {
        size_t n = utf8_sequence((const uint8_t *)text + at, length - at, &state);
        if (state != UTF8_VALID) {
            break;
        }
        at += n;
    }
    return at;
}

colibri_status prompt_judge(colibri_status status, const char *text, size_t length, int context, Prompt *prompt,
                            Report *report) {
    if (status == COLIBRI_E_INVALID_UTF8) {
        return report_fault(report, status, "the prompt is not UTF-8: byte %zu of %zu is wrong; convert it with iconv",
                            valid_length(text, length) + 1, length);
    }
    if (status == COLIBRI_E_PROMPT_TOO_LONG) {
        return report_fault(report, status,
                            "the prompt has more than %d tokens, all that the context was built for; shorten it",
                            MODEL_CONTEXT);
    }
    if (status != COLIBRI_OK) {
        return report_fault(report, status, "the prompt cannot be encoded: %s", colibri_status_name(status));
    }
    return prompt->n_ids == 0 ? empty_prompt(report) : require_fit(prompt->n_ids, context, report);
}

colibri_status prompt_from_text(const char *text, size_t length, int context, Prompt *prompt, Report *report) {
    if (length == 0) {
        return empty_prompt(report);
    }
    colibri_status status = tokenizer_encode(text, length, prompt->ids, MODEL_CONTEXT, &prompt->n_ids);
    return prompt_judge(status, text, length, context, prompt, report);
}

/* One id, text[0 .. length-1]. */
static colibri_status parse_id(const char *text, size_t length, int *id, Report *report) {
    int64_t number = 0;
    NumberResult result = parse_integer(text, length, &number);
    int shown = length < 40 ? (int)length : 40;
    if (result == NUMBER_MALFORMED) {
        return report_fault(report, COLIBRI_E_USAGE, "--tokens: '%.*s' is not a token id; give whole numbers: 1,2,3",
                            shown, text);
    }
    if (result == NUMBER_TOO_LARGE || number < 0 || number >= MODEL_VOCAB_SIZE) {
        return report_fault(report, COLIBRI_E_UNKNOWN_TOKEN, "token id %.*s is not in the vocabulary; try 0 .. %d",
                            shown, text, MODEL_VOCAB_SIZE - 1);
    }
    *id = (int)number;
    return COLIBRI_OK;
}

colibri_status prompt_from_ids(const char *text, int context, Prompt *prompt, Report *report) {
    if (*text == '\0') {
        return empty_prompt(report);
    }
    int n_ids = 0;
    for (const char *item = text;; n_ids++) {
        size_t length = strcspn(item, ",");
        int id = 0;
        colibri_status status = parse_id(item, length, &id, report);
        if (status != COLIBRI_OK) {
            return status;
        }
        if (n_ids < MODEL_CONTEXT) {
            prompt->ids[n_ids] = id;
        }
        if (item[length] == '\0') {
            break;
        }
        item += length + 1;
    }
    prompt->n_ids = n_ids + 1;
    return require_fit(prompt->n_ids, context, report);
}

colibri_status prompt_from_words(const unsigned char *words, size_t n_ids, int context, Prompt *prompt,
                                 Report *report) {
    if (n_ids == 0) {
        return empty_prompt(report);
    }
    for (size_t i = 0; i < n_ids; i++) {
        const unsigned char *word = words + 4 * i;
        uint32_t id = word[0] | (uint32_t)word[1] << 8 | (uint32_t)word[2] << 16 | (uint32_t)word[3] << 24;
        if (id >= MODEL_VOCAB_SIZE) {
            return report_fault(report, COLIBRI_E_UNKNOWN_TOKEN, "token id %lu is not in the vocabulary; try 0 .. %d",
                                (unsigned long)id, MODEL_VOCAB_SIZE - 1);
        }
        if (i < MODEL_CONTEXT) {
            prompt->ids[i] = (int)id;
        }
    }
    prompt->n_ids = (int)n_ids;
    return require_fit(prompt->n_ids, context, report);
}
