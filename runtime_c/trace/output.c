/* From the ring to a descriptor, between two tokens, without waiting for who reads there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/frame.h"
#include "trace/ring.h"
#include "trace/text.h"

enum {
    OUTPUT_BYTES = 4096,     /* a pipe takes this much whole or not at all: no line is cut */
    LAST_WAIT_MILLIS = 1000, /* of trace_finish, as long as nothing moves */
    ITEM_BYTES = FRAME_WIRE_BYTES > 2 * TRACE_LINE_BYTES ? FRAME_WIRE_BYTES : 2 * TRACE_LINE_BYTES
};

static struct {
    TraceOutput encoding;
    int fd;
    bool is_socket;
    int error;
    uint32_t n_dropped_shown; /* in the text encoding */
    size_t n_bytes;           /* in bytes[], of which n_written have left */
    size_t n_written;
    size_t n_records; /* that bytes[] says */
    uint8_t bytes[OUTPUT_BYTES];
} output;

/* Of a pipe or a terminal, a way to write that never waits. Its own flags would be those of every process that shares
 * it (the user's shell), so it is opened anew; where that fails, `fd` itself is used after a look whether it is ready.
 */
static int without_waiting(int fd, const struct stat *what) {
    char path[] = "/proc/self/fd/..........";
    char *end = path + sizeof "/proc/self/fd/" - 1;
    int n_digits = 1;
    if (!S_ISFIFO(what->st_mode) && !S_ISCHR(what->st_mode)) {
        return fd;
    }
    for (int rest = fd; rest >= 10; rest /= 10) {
        n_digits++;
    }
    end[n_digits] = '\0';
    for (int rest = fd; n_digits > 0; rest /= 10) {
        end[--n_digits] = (char)('0' + rest % 10);
    }
    int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return own >= 0 ? own : fd;
}

void trace_output_open(int fd, TraceOutput encoding) {
    struct stat what = {0};
    (void)fstat(fd, &what);
    output.encoding = encoding;
    output.is_socket = S_ISSOCK(what.st_mode);
    output.fd = without_waiting(fd, &what);
}

int trace_output_error(void) {
    return output.error;
}

static char *text_end(void) {
    return (char *)output.bytes + output.n_bytes;
}

static void add_dropped(uint32_t n) {
    output.n_dropped_shown = n;
    output.n_bytes += trace_text_dropped(n, text_end());
}

/* The next record, after what was dropped of its token; or what was dropped since. */
static void add_text(void) {
    TraceRecord record;
    if (trace_take(&record, 1) == 0) {
        if (trace_n_dropped() != output.n_dropped_shown) {
            add_dropped(trace_n_dropped());
        }
        return;
    }
    uint32_t n_lost = record.bytes[0] == RECORD_TOKEN ? get_u16(record.bytes + 2) : 0;
    if (n_lost > 0) {
        add_dropped(output.n_dropped_shown + n_lost);
    }
    output.n_bytes += trace_text(&record, text_end());
    output.n_records++;
}

static void add_frame(void) {
    uint8_t body[TRACE_BODY_BYTES];
    size_t n = trace_frame_body(body);
    if (n > 0) {
        output.n_bytes += frame_encode(body, n, output.bytes + output.n_bytes);
        output.n_records += (n - 8) / sizeof(TraceRecord);
    }
}

/* Fills the buffer, if it is empty, with whole lines or frames. Returns whether anything is to be written. */
static bool fill(void) {
    if (output.n_bytes > 0) {
        return true;
    }
    output.n_records = 0;
    for (size_t before = SIZE_MAX; output.n_bytes != before && OUTPUT_BYTES - output.n_bytes >= ITEM_BYTES;) {
        before = output.n_bytes;
        if (output.encoding == TRACE_OUTPUT_TEXT) {
            add_text();
        } else {
            add_frame();
        }
    }
    return output.n_bytes > 0;
}

static bool is_ready(int milliseconds) {
    struct pollfd target = {.fd = output.fd, .events = POLLOUT};
    return poll(&target, 1, milliseconds) > 0;
}

/* Whatever waits, in the ring and here, will not arrive. */
static void give_up(void) {
    trace_count_dropped((uint32_t)output.n_records);
    output.n_bytes = 0;
    output.n_written = 0;
    output.n_records = 0;
    trace_discard();
}

static ssize_t write_some(void) {
    const uint8_t *bytes = output.bytes + output.n_written;
    size_t n = output.n_bytes - output.n_written;
    return output.is_socket ? send(output.fd, bytes, n, MSG_DONTWAIT) : write(output.fd, bytes, n);
}

/* Writes what waits, with at most that long a wait each time. Returns false when the descriptor takes no more now. */
static bool write_all(int milliseconds) {
    while (output.error == 0 && fill()) {
        if (!is_ready(milliseconds)) {
            return false;
        }
        ssize_t n = write_some();
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            output.error = errno;
        } else if (n < 0 && errno == EAGAIN && milliseconds == 0) {
            return false;
        } else if (n > 0) {
            output.n_written += (size_t)n;
        }
        if (output.n_written == output.n_bytes) {
            output.n_bytes = 0;
            output.n_written = 0;
        }
    }
    return output.error == 0;
}

void trace_flush(void) {
    if (output.encoding == TRACE_OUTPUT_OFF || trace_active == 0) {
        return;
    }
    (void)write_all(0);
    if (output.error != 0) {
        give_up();
    }
}

void trace_finish(void) {
    if (output.encoding != TRACE_OUTPUT_OFF && !write_all(LAST_WAIT_MILLIS)) {
        give_up();
    }
}
