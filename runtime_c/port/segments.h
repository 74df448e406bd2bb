/* Where the program's own segments are mapped, by the headers that the kernel mapped with them. */
#ifndef COLIBRI_SEGMENTS_H
#define COLIBRI_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uintptr_t begin; /* multiples of the page size */
    uintptr_t end;
    bool is_written; /* else nobody writes it after the program's start */
    bool is_code;
} Segment;

enum { MOST_SEGMENTS = 12 };

/* Fills segments[]; returns how many. */
int segments_find(Segment segments[MOST_SEGMENTS]);

/* Multiples of `unit`, a power of two. */
static inline uintptr_t round_down(uintptr_t address, uintptr_t unit) {
    return address & ~(unit - 1);
}

static inline uintptr_t round_up(uintptr_t address, uintptr_t unit) {
    return round_down(address + unit - 1, unit);
}

uintptr_t page_bytes(void);

#endif
