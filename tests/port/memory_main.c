/* Moves 9 MiB of constants, DATA_FILE, to huge pages and prefaults 4 MiB of static memory; prints what came of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "port/memory.h"
#include "port/threads.h"

__asm__(".section .rodata\n\t.balign 4096\n\t.global constants\nconstants:\n\t.incbin \"" DATA_FILE "\"\n"
        "\t.global constants_end\nconstants_end:\n\t.text\n");
extern const unsigned char constants[];
extern const unsigned char constants_end[];

/* A kernel before 5.14, without huge pages: compiled with -Dmadvise=refused_madvise. */
#ifdef madvise
int madvise(void *begin, size_t n, int advice) {
    (void)begin;
    (void)n;
    (void)advice;
    errno = EINVAL;
    return -1;
}
#endif

enum { STATIC_BYTES = 4 << 20, PAGE_BYTES = 4096 };

static unsigned char written[STATIC_BYTES];

static unsigned long long digest(void) {
    unsigned long long h = 1469598103934665603u;
    for (const unsigned char *at = constants; at < constants_end; at++) {
        h = (h ^ *at) * 1099511628211u;
    }
    return h;
}

/* A number in kB of /proc/self/status. */
static long status_kib(const char *name) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            (void)sscanf(line + strlen(name), ": %ld", &kib);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

/* Whether every mapping of the constants can be read only. */
static bool is_read_only(void) {
    char line[512];
    bool is = true;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long begin = 0;
        unsigned long end = 0;
        char rights[8] = "";
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && end > (unsigned long)constants &&
            begin < (unsigned long)constants_end) {
            is = is && strcmp(rights, "r--p") == 0;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return is;
}

static long faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt + usage.ru_majflt : -1;
}

int main(void) {
    unsigned long long before = digest();
    long kib_before = status_kib("VmRSS");
    HugePages pages = {0};
    const char *reason = memory_use_huge_pages(&pages);
    long growth_kib = status_kib("VmHWM") - kib_before;
    bool same = digest() == before;
    int64_t n_bytes = 0;
    if (threads_start(2) != COLIBRI_OK) {
        return 1;
    }
    const char *prefault_reason = memory_prefault(&n_bytes);
    long faults_before = faults();
    for (int i = 0; i < STATIC_BYTES; i += PAGE_BYTES) {
        ((volatile unsigned char *)written)[i]++;
    }
    same = same && digest() == before;
    long n_faults = faults() - faults_before;
    threads_stop();
    printf("{\"reason\":\"%s\",\"copied\":%lld,\"huge\":%lld,\"same\":%d,\"read_only\":%d,\"growth_kib\":%ld,"
           "\"prefault_reason\":\"%s\",\"prefaulted\":%lld,\"faults\":%ld}\n",
           reason != NULL ? reason : "", (long long)pages.n_copied, (long long)pages.n_huge, same, is_read_only(),
           growth_kib, prefault_reason != NULL ? prefault_reason : "", (long long)n_bytes, n_faults);
    return 0;
}
