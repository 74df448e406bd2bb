/* Standard input, line by line. */
#ifndef COLIBRI_APP_LINES_H
#define COLIBRI_APP_LINES_H

#include <stddef.h>

#include "model_config.h"

/* Longest line that is read whole; a prompt of more bytes hardly fits the context. */
enum { LINE_BYTES = 4096 + 16 * MODEL_CONTEXT };

typedef enum {
    LINE_READ,
    LINE_TOO_LONG, /* skipped; *length says how long it was */
    LINE_END,      /* end of input */
    LINE_INTERRUPTED,
    LINE_FAILED /* errno says why */
} LineResult;

/* Sets *line to the next line, without its line end (LF or CR LF), in static memory until the next call. */
LineResult line_read(const char **line, size_t *length);

#endif
