#include "colibri.h"

const char *colibri_status_name(colibri_status status) {
    switch (status) {
    case COLIBRI_OK:
        return "ok";
    case COLIBRI_E_USAGE:
        return "usage";
    case COLIBRI_E_EMPTY_PROMPT:
        return "empty_prompt";
    case COLIBRI_E_PROMPT_TOO_LONG:
        return "prompt_too_long";
    case COLIBRI_E_UNKNOWN_TOKEN:
        return "unknown_token";
    case COLIBRI_E_INVALID_UTF8:
        return "invalid_utf8";
    case COLIBRI_E_NOT_FINITE:
        return "not_finite";
    case COLIBRI_E_IO:
        return "io";
    case COLIBRI_E_THREADS:
        return "threads";
    case COLIBRI_E_SELFTEST:
        return "selftest";
    case COLIBRI_E_CONTEXT_FULL:
        return "context_full";
    }
    return "unknown";
}
