#include "port/kernel_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

enum { READ_BYTES = 4096 };

static char text[READ_BYTES];

uint64_t kernel_file_number(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
    uint64_t number = 0;
    for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++) {
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return number;
}

/* Lines that arrive in pieces. */
typedef struct {
    size_t n_matched; /* bytes of the name that the current line has */
    bool is_other;    /* the line has another name */
    int64_t kib;
    int64_t sum_kib;
} Scan;

static void scan(Scan *at, const char *name, char c) {
    if (c == '\n') {
        at->sum_kib += at->kib;
        *at = (Scan){.sum_kib = at->sum_kib};
    } else if (at->is_other) {
        return;
    } else if (name[at->n_matched] != '\0') {
        at->is_other = c != name[at->n_matched];
        at->n_matched++;
    } else if (c >= '0' && c <= '9') {
        at->kib = at->kib * 10 + (c - '0');
    }
}

int64_t kernel_file_sum_kib(const char *path, const char *name) {
    Scan at = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    if (fd < 0) {
        return -1;
    }
    while ((n = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            scan(&at, name, text[i]);
        }
    }
    (void)close(fd);
    return n == 0 ? at.sum_kib : -1;
}
