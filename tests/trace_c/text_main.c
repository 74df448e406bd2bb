/* Records of 16 bytes on standard input, their lines on standard output. */
#include <stdio.h>

#include "trace/text.h"

int main(void) {
    TraceRecord record;
    char line[TRACE_LINE_BYTES];
    while (fread(record.bytes, 1, sizeof record.bytes, stdin) == sizeof record.bytes) {
        size_t n = trace_text(&record, line);
        if (n > sizeof line) {
            return 1;
        }
        (void)fwrite(line, 1, n, stdout);
    }
    return 0;
}
