/* This program's memory made ready before the first token. Each function returns NULL, or the system's reason for a
 * refusal; then the program runs on as before. */
#ifndef COLIBRI_MEMORY_H
#define COLIBRI_MEMORY_H

#include <stdint.h>

/* Keeps every page in RAM, those still to come included; pages that are not there yet are read now. Call it once the
 * threads run, whose stacks it holds, too. */
const char *memory_lock(void);

/* Maps every page of the program, weights and static memory, and the threads' stacks, so that none faults later. Call
 * it once the threads run. Adds the bytes to *n_bytes; after a refusal, those that were mapped before. */
const char *memory_prefault(int64_t *n_bytes);

/* The most memory that this program had in RAM; 0 where the kernel does not tell. The ru_maxrss of getrusage would
 * count what the process had before it became this program: that of a large parent. */
int64_t memory_peak_kib(void);

/* Has the kernel give huge pages to who asks for them: for the init of a system, whose kernel gives none by itself if
 * it has less than 512 MiB. What fails is left out. */
void memory_allow_huge_pages(void);

/* Bytes of the read-only segments that lie in whole huge pages: those of them that were copied, and those that the
 * kernel gave huge pages for. */
typedef struct {
    int64_t n_copied;
    int64_t n_huge;
} HugePages;

/* Replaces the read-only segments, that is the weights, by copies in anonymous huge pages at the same addresses. One
 * huge page at a time, and each gives its file pages back, so no more memory is taken at any time but one huge page.
 * Call it before the threads run. Fails before anything is replaced, if the kernel gives no huge page. */
const char *memory_use_huge_pages(HugePages *result);

#endif
