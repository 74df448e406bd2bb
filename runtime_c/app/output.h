/* Buffered writing to a file descriptor without stdio: partial writes, EINTR and full pipes are dealt with here, and
 * numbers look the same with every C library. */
#ifndef COLIBRI_APP_OUTPUT_H
#define COLIBRI_APP_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int fd;
    void (*sink)(const char *bytes, size_t n); /* takes the bytes instead of fd; NULL: none */
    bool stops_on_interrupt;                   /* a blocked write gives up after SIGINT or SIGTERM */
    int error;                                 /* errno of the first failure; what follows is dropped */
    size_t n_bytes;
    char bytes[1024];
} Writer;

extern Writer out; /* standard output: answers */
extern Writer err; /* standard error: messages and the status line */

void write_bytes(Writer *writer, const char *bytes, size_t n);
void write_text(Writer *writer, const char *text);
void write_integer(Writer *writer, int64_t value);
void write_hash(Writer *writer, uint64_t value);        /* 16 hexadecimal digits */
void write_json_text(Writer *writer, const char *text); /* UTF-8 in quotes; quotes and controls as \u00XX */

/* Empties the buffer; returns whether everything so far has arrived. */
bool write_flush(Writer *writer);

#endif
