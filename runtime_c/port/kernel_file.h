/* Numbers in the text files of /proc and /sys. */
#ifndef COLIBRI_KERNEL_FILE_H
#define COLIBRI_KERNEL_FILE_H

#include <stdint.h>

/* The number that a file begins with; 0 if there is none. */
uint64_t kernel_file_number(const char *path);

/* The sum of N over all lines "NAME N kB" of a file, in KiB; -1 if it cannot be read. `name` ends with its colon. */
int64_t kernel_file_sum_kib(const char *path, const char *name);

#endif
