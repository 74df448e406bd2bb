#define _GNU_SOURCE /* dl_iterate_phdr */
#include "port/segments.h"

#include <link.h>
#include <stddef.h>
#include <unistd.h>

uintptr_t page_bytes(void) {
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (uintptr_t)bytes : 4096;
}

typedef struct {
    Segment *segments;
    int n;
    uintptr_t relro_end; /* what lies below in its segment was made read-only after the program's start */
} Search;

static void add(Search *search, uintptr_t begin, uintptr_t end, const ElfW(Phdr) * header) {
    if (begin < end && search->n < MOST_SEGMENTS) {
        search->segments[search->n++] =
            (Segment){begin, end, (header->p_flags & PF_W) != 0, (header->p_flags & PF_X) != 0};
    }
}

/* A segment that is written in part becomes two. */
static void add_load(Search *search, uintptr_t base, const ElfW(Phdr) * header) {
    uintptr_t begin = round_down(base + header->p_vaddr, page_bytes());
    uintptr_t end = round_up(base + header->p_vaddr + header->p_memsz, page_bytes());
    uintptr_t middle = search->relro_end;
    if (begin < middle && middle < end) {
        add(search, begin, middle, header);
        if (search->n > 0) {
            search->segments[search->n - 1].is_written = false;
        }
        begin = middle;
    }
    add(search, begin, end, header);
}

/* The program itself comes first; 1 ends the search. */
static int visit(struct dl_phdr_info *info, size_t size, void *argument) {
    Search *search = argument;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_GNU_RELRO) {
            search->relro_end = round_down(info->dlpi_addr + header->p_vaddr + header->p_memsz, page_bytes());
        }
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            add_load(search, info->dlpi_addr, &info->dlpi_phdr[i]);
        }
    }
    return 1;
}

int segments_find(Segment segments[MOST_SEGMENTS]) {
    Search search = {.segments = segments};
    (void)dl_iterate_phdr(visit, &search);
    return search.n;
}
