/* The body of a TRACE frame: kind, sequence number, 0, drop count, records. */
#include "trace/ring.h"

enum { FRAME_KIND = 0x54 };

size_t trace_frame_body(uint8_t body[TRACE_BODY_BYTES]) {
    static uint16_t sequence;
    TraceRecord records[TRACE_FRAME_RECORDS];
    size_t n = trace_take(records, TRACE_FRAME_RECORDS);
    if (n == 0) {
        return 0;
    }
    body[0] = FRAME_KIND;
    put_u16(body + 1, sequence++);
    body[3] = 0;
    put_u32(body + 4, trace_n_dropped());
    memcpy(body + 8, records, n * sizeof records[0]);
    return 8 + n * sizeof records[0];
}
