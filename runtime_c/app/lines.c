#include "app/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "app/interrupt.h"

static char bytes[4096]; /* read but not consumed: bytes[at .. end-1] */
static size_t at;
static size_t end;
static char text[LINE_BYTES];

/* Waits for input. Returns LINE_READ if there are bytes. */
static LineResult fill(void) {
    while (at == end) {
        (void)interruptible_wait(STDIN_FILENO, POLLIN);
        if (interrupted()) {
            return LINE_INTERRUPTED;
        }
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n == 0) {
            return LINE_END;
        }
        if (n > 0) {
            at = 0;
            end = (size_t)n;
        } else if (errno != EINTR && errno != EAGAIN) {
            return LINE_FAILED;
        }
    }
    return LINE_READ;
}

LineResult line_read(const char **line, size_t *length) {
    size_t n = 0;
    bool started = false;
    for (;;) {
        LineResult result = fill();
        if (result == LINE_END && started) {
            break; /* the last line may lack its line end */
        }
        if (result != LINE_READ) {
            return result;
        }
        started = true;
        char c = bytes[at++];
        if (c == '\n') {
            break;
        }
        if (n < sizeof text) {
            text[n] = c;
        }
        n++;
    }
    *length = n;
    if (n > sizeof text) {
        return LINE_TOO_LONG;
    }
    if (n > 0 && text[n - 1] == '\r') {
        *length = n - 1;
    }
    *line = text;
    return LINE_READ;
}
