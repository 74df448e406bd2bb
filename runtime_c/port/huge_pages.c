#define _GNU_SOURCE /* mremap, MADV_HUGEPAGE */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port/kernel_file.h"
#include "port/memory.h"
#include "port/segments.h"

enum { DEFAULT_HUGE_BYTES = 2 << 20 };

#define SETTINGS "/sys/kernel/mm/transparent_hugepage/"

void memory_allow_huge_pages(void) {
    static const char setting[] = "madvise";
    int fd = open(SETTINGS "enabled", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, setting, sizeof setting - 1);
        (void)close(fd);
    }
}

static uintptr_t huge_page_bytes(void) {
    uint64_t bytes = kernel_file_number(SETTINGS "hpage_pmd_size");
    bool is_power = bytes >= page_bytes() && (bytes & (bytes - 1)) == 0;
    return is_power ? (uintptr_t)bytes : (uintptr_t)DEFAULT_HUGE_BYTES;
}

/* Bytes of this process in anonymous huge pages; -1 where the kernel does not tell. */
static int64_t huge_bytes_now(void) {
    int64_t kib = kernel_file_sum_kib("/proc/self/smaps", "AnonHugePages:");
    return kib < 0 ? -1 : kib * 1024;
}

/* Where copies are made: one huge page, aligned, anew for each copy since the last one has moved away. */
typedef struct {
    unsigned char *whole; /* 2 * bytes */
    unsigned char *page;
    uintptr_t bytes; /* of a huge page */
} Scratch;

static bool open_scratch(Scratch *scratch, uintptr_t bytes) {
    void *whole = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) {
        return false;
    }
    scratch->whole = whole;
    scratch->page = (unsigned char *)round_up((uintptr_t)whole, bytes);
    scratch->bytes = bytes;
    return true;
}

static void close_scratch(const Scratch *scratch) {
    (void)munmap(scratch->whole, 2 * scratch->bytes);
}

/* Copies the bytes at `from` into a page that is read-only afterwards. */
static bool copy_page(const Scratch *scratch, uintptr_t from) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(scratch->page, scratch->bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED ||
        madvise(scratch->page, scratch->bytes, MADV_HUGEPAGE) != 0) {
        return false;
    }
    memcpy(scratch->page, (const void *)from, scratch->bytes);
    return mprotect(scratch->page, scratch->bytes, PROT_READ) == 0;
}

/* The copy takes the place of what it is a copy of in one step: readers see the same bytes before and after. */
static bool move_page(const Scratch *scratch, uintptr_t to) {
    return mremap(scratch->page, scratch->bytes, scratch->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)to) ==
           (void *)to;
}

/* The whole huge pages of a segment of constants. */
static Segment whole_pages(const Segment *segment, uintptr_t huge) {
    Segment whole = *segment;
    whole.begin = round_up(segment->begin, huge);
    whole.end = round_down(segment->end, huge);
    if (segment->is_written || segment->is_code || whole.begin > whole.end) {
        whole.end = whole.begin;
    }
    return whole;
}

static const char *replace(const Scratch *scratch, const Segment *whole, int64_t before, HugePages *result) {
    for (uintptr_t at = whole->begin; at < whole->end; at += scratch->bytes) {
        if (!copy_page(scratch, at)) {
            return strerror(errno);
        }
        if (result->n_copied == 0 && huge_bytes_now() <= before) {
            return "the kernel gives no huge page";
        }
        if (!move_page(scratch, at)) {
            return strerror(errno);
        }
        result->n_copied += (int64_t)scratch->bytes;
    }
    return NULL;
}

const char *memory_use_huge_pages(HugePages *result) {
    Segment segments[MOST_SEGMENTS];
    Scratch scratch;
    const char *reason = NULL;
    int64_t before = huge_bytes_now();
    int n = segments_find(segments);
    if (before < 0) {
        return "/proc/self/smaps cannot be read";
    }
    if (!open_scratch(&scratch, huge_page_bytes())) {
        return strerror(errno);
    }
    for (int i = 0; i < n && reason == NULL; i++) {
        Segment whole = whole_pages(&segments[i], scratch.bytes);
        reason = replace(&scratch, &whole, before, result);
    }
    close_scratch(&scratch);
    if (reason == NULL && result->n_copied == 0) {
        return "the weights fill no huge page";
    }
    result->n_huge = result->n_copied > 0 ? huge_bytes_now() - before : 0;
    return reason;
}
