#include "app/output.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "app/interrupt.h"

Writer out = {.fd = STDOUT_FILENO, .stops_on_interrupt = true};
Writer err = {.fd = STDERR_FILENO, .stops_on_interrupt = false};

/* Waits until a write does not block. Returns whether to go on. */
static bool wait_until_writable(const Writer *writer) {
    if (writer->stops_on_interrupt) {
        return interruptible_wait(writer->fd, POLLOUT);
    }
    struct pollfd target = {.fd = writer->fd, .events = POLLOUT};
    (void)poll(&target, 1, -1);
    return true;
}

bool write_flush(Writer *writer) {
    size_t done = 0;
    if (writer->sink != NULL) {
        writer->sink(writer->bytes, writer->n_bytes);
        done = writer->n_bytes;
    }
    while (done < writer->n_bytes && writer->error == 0) {
        if (!wait_until_writable(writer)) {
            writer->error = EINTR;
            break;
        }
        ssize_t n = write(writer->fd, writer->bytes + done, writer->n_bytes - done);
        if (n >= 0) {
            done += (size_t)n;
        } else if (errno != EINTR && errno != EAGAIN) {
            writer->error = errno;
        }
    }
    writer->n_bytes = 0;
    return writer->error == 0;
}

void write_bytes(Writer *writer, const char *bytes, size_t n) {
    while (n > 0 && writer->error == 0) {
        size_t room = sizeof writer->bytes - writer->n_bytes;
        size_t part = n < room ? n : room;
        memcpy(writer->bytes + writer->n_bytes, bytes, part);
        writer->n_bytes += part;
        bytes += part;
        n -= part;
        if (writer->n_bytes == sizeof writer->bytes) {
            (void)write_flush(writer);
        }
    }
}

void write_text(Writer *writer, const char *text) {
    write_bytes(writer, text, strlen(text));
}

void write_integer(Writer *writer, int64_t value) {
    char digits[20];
    size_t first = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--first] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0) {
        digits[--first] = '-';
    }
    write_bytes(writer, digits + first, sizeof digits - first);
}

static const char hex_digits[] = "0123456789abcdef";

void write_hash(Writer *writer, uint64_t value) {
    char digits[16];
    for (int i = 0; i < 16; i++) {
        digits[i] = hex_digits[(value >> (60 - 4 * i)) & 15];
    }
    write_bytes(writer, digits, sizeof digits);
}

void write_json_text(Writer *writer, const char *text) {
    write_text(writer, "\"");
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c != 0x7F && c != '"' && c != '\\') {
            write_bytes(writer, text, 1);
        } else {
            char escape[6] = {'\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15]};
            write_bytes(writer, escape, sizeof escape);
        }
    }
    write_text(writer, "\"");
}
