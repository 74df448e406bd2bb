#include "serve/pump.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/interrupt.h"
#include "port/tty.h"
#include "serve/records.h"

enum {
    IN_BYTES = 256,
    KEY_BYTES = 4096,
    TEXT_BYTES = 2048,
    STALL_MS = 2000, /* a line that takes nothing for so long has no reader */
    REOPEN_MS = 200, /* between two tries to open a terminal that went away */
    CLOSE_MS = 2000, /* for the last bytes */
    DRAIN_MS = 1000,
    ENDING_STEP_MS = 50
};

Link serve_link;

static struct {
    Tty tty;
    const char *path;
    int baud;
    bool has_ended;
    uint64_t n_connections; /* tried */
    int64_t lost_ms;        /* when the terminal went away, or was last tried */
    uint8_t in[IN_BYTES];
    size_t n_in;
    size_t at_in;
    bool is_behind;                /* the last read filled in[] */
    uint8_t out[FRAME_WIRE_BYTES]; /* a frame, or a piece of text */
    size_t n_out;
    size_t at_out;
    int64_t moved_ms; /* when the line last took a byte, or was given the first one to take */
    bool is_stalled;
    char text[TEXT_BYTES];
    size_t n_text;
    uint8_t keys[KEY_BYTES]; /* a ring */
    unsigned first_key;
    unsigned n_keys;
    bool interrupt_waits;
} pump;

int64_t pump_now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

uint64_t pump_peer(void) {
    uint64_t session = serve_link.is_open ? serve_link.counts.n_sessions : 0;
    return pump_is_connected() ? pump.n_connections << 32 | session : 0;
}

bool pump_is_connected(void) {
    return pump.tty.in >= 0;
}

bool pump_has_ended(void) {
    return pump.has_ended;
}

static int open_line(void) {
    int error = pump.path != NULL ? tty_open(&pump.tty, pump.path, pump.baud) : tty_open_streams(&pump.tty, pump.baud);
    pump.moved_ms = pump_now();
    pump.is_stalled = false;
    pump.n_connections++;
    return error;
}

colibri_status pump_open(const char *path, int baud, Report *report) {
    pump.path = path;
    pump.baud = baud;
    int error = open_line();
    const char *name = path != NULL ? path : "standard input";
    if (error == ENOTTY) {
        return report_fault(report, COLIBRI_E_IO, "%s is no terminal; try the name of a serial line, /dev/ttyS0", name);
    }
    if (error != 0) {
        return report_fault(report, COLIBRI_E_IO, "cannot open %s: %s; try another --console", name, strerror(error));
    }
    return COLIBRI_OK;
}

/* The other end is gone: a terminal with a name may come back, anything else does not. */
static void hang_up(void) {
    link_hang_up(&serve_link);
    tty_close(&pump.tty);
    pump.n_in = pump.at_in = pump.n_out = pump.at_out = pump.n_text = 0;
    pump_forget_keys();
    pump.lost_ms = pump_now();
    pump.has_ended = pump.path == NULL;
}

void pump_forget_keys(void) {
    pump.n_keys = 0;
    pump.interrupt_waits = false;
}

static void put_key(uint8_t key) {
    if (key == KEY_INTERRUPT) {
        pump_forget_keys();
        pump.interrupt_waits = true;
    }
    if (pump.n_keys < KEY_BYTES) {
        pump.keys[(pump.first_key + pump.n_keys++) % KEY_BYTES] = key;
    }
}

int pump_key(void) {
    if (pump.n_keys == 0) {
        return -1;
    }
    uint8_t key = pump.keys[pump.first_key];
    pump.first_key = (pump.first_key + 1) % KEY_BYTES;
    pump.n_keys--;
    if (key == KEY_INTERRUPT) {
        pump.interrupt_waits = false;
    }
    return key;
}

bool pump_interrupt_waits(void) {
    return pump.interrupt_waits;
}

static void on_event(LinkEvent event) {
    if (event == LINK_TEXT) {
        for (size_t i = 0; i < serve_link.decoder.n; i++) {
            put_key(serve_link.decoder.bytes[i]);
        }
    } else if (event == LINK_OPENED) {
        pump_forget_keys();
        pump.n_text = 0;
    }
}

/* Typed bytes must find room, those of a session always do. */
static bool takes_input(void) {
    return serve_link.is_open || KEY_BYTES - pump.n_keys >= IN_BYTES + FRAME_WIRE_BYTES;
}

static void look_at_input(int64_t now) {
    while (pump.at_in < pump.n_in) {
        LinkEvent event = link_push(&serve_link, pump.in[pump.at_in++], now);
        on_event(event);
        if (event == LINK_MESSAGE) {
            return;
        }
    }
}

static void receive(int64_t now) {
    ssize_t n = read(pump.tty.in, pump.in, sizeof pump.in);
    pump.is_behind = n == (ssize_t)sizeof pump.in;
    if (n > 0) {
        pump.n_in = (size_t)n;
        pump.at_in = 0;
        look_at_input(now);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    } else if (n == 0 && !pump.tty.is_terminal) { /* who wrote to the pipe is done, and may still read */
        link_hang_up(&serve_link);
        pump.has_ended = true;
    } else {
        hang_up();
    }
}

/* Puts what goes out next into out[], if that is empty. */
static void fill_output(int64_t now) {
    if (pump.at_out < pump.n_out) {
        return;
    }
    pump.at_out = 0;
    pump.moved_ms = now;
    pump.n_out = pump.n_text < sizeof pump.out ? pump.n_text : sizeof pump.out;
    memcpy(pump.out, pump.text, pump.n_out);
    pump.n_text -= pump.n_out;
    memmove(pump.text, pump.text + pump.n_out, pump.n_text);
    if (pump.n_out == 0) {
        pump.n_out = link_next_frame(&serve_link, pump.out, now);
    }
    if (pump.n_out == 0 && serve_link.is_open) {
        pump.n_out = records_next_frame(pump.out);
    }
}

/* Writes until the line takes no more. */
static void transmit(int64_t now) {
    for (fill_output(now); pump.at_out < pump.n_out; fill_output(now)) {
        ssize_t n = write(pump.tty.out, pump.out + pump.at_out, pump.n_out - pump.at_out);
        if (n > 0) {
            pump.at_out += (size_t)n;
            pump.moved_ms = now;
            pump.is_stalled = false;
        } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        } else {
            hang_up();
            return;
        }
    }
    if (now - pump.moved_ms >= STALL_MS) {
        pump.is_stalled = true;
        pump.n_text = 0;
    }
}

static int wait_until(int64_t now, int milliseconds) {
    int64_t deadline = link_deadline(&serve_link);
    if (deadline <= now) {
        return 0;
    }
    return deadline - now < milliseconds ? (int)(deadline - now) : milliseconds;
}

/* Sleeps until a byte can be moved. Returns whether one came. */
static bool wait_for_line(int milliseconds) {
    bool wants_out = pump.at_out < pump.n_out;
    bool is_ending = interrupted(); /* from then on its descriptor is always ready, and the caller must look */
    if (is_ending && milliseconds > ENDING_STEP_MS) {
        milliseconds = ENDING_STEP_MS;
    }
    struct pollfd waits[3] = {
        {.fd = takes_input() && !pump.has_ended ? pump.tty.in : -1, .events = POLLIN},
        {.fd = wants_out ? pump.tty.out : -1, .events = POLLOUT},
        {.fd = is_ending ? -1 : interrupt_wake_fd(), .events = POLLIN},
    };
    return poll(waits, 3, milliseconds) > 0 && waits[0].revents != 0;
}

static void try_to_reopen(int milliseconds) {
    struct pollfd wake = {.fd = interrupted() ? -1 : interrupt_wake_fd(), .events = POLLIN};
    int64_t now = pump_now();
    if (now - pump.lost_ms >= REOPEN_MS) {
        pump.lost_ms = now;
        if (open_line() == 0) {
            return;
        }
    }
    (void)poll(&wake, 1, milliseconds < REOPEN_MS ? milliseconds : REOPEN_MS);
}

bool pump_round(int milliseconds) {
    if (!pump_is_connected()) {
        if (pump.path != NULL) {
            try_to_reopen(milliseconds);
        }
        return false;
    }
    int64_t now = pump_now();
    pump.is_behind = false;
    if (pump.at_in < pump.n_in) {
        look_at_input(now);
        milliseconds = 0;
    }
    transmit(now);
    if (pump_is_connected() && pump.at_in == pump.n_in && wait_for_line(wait_until(now, milliseconds))) {
        receive(pump_now());
    }
    if (pump_is_connected() && pump.at_in == pump.n_in && !pump.is_behind) {
        on_event(link_tick(&serve_link, pump_now())); /* after the bytes: those that came during a long token count */
        transmit(pump_now());
    }
    return pump.at_in < pump.n_in || pump.is_behind;
}

static void put_text(char c) {
    int64_t start = pump_now();
    while (pump.n_text == sizeof pump.text && pump_is_connected() && !pump.is_stalled && !serve_link.is_open &&
           pump_now() - start < STALL_MS) {
        (void)pump_round(STALL_MS / 4);
    }
    if (pump.n_text < sizeof pump.text && pump_is_connected() && !pump.is_stalled && !serve_link.is_open) {
        pump.text[pump.n_text++] = c;
    }
}

void pump_text(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n') {
            put_text('\r');
            put_text('\n');
        } else {
            bool is_shown = c >= 0x20 ? c != 0x7F : c == '\b' || c == '\t';
            put_text(is_shown ? bytes[i] : '?');
        }
    }
}

void pump_close(void) {
    int64_t deadline = pump_now() + CLOSE_MS;
    while (pump_is_connected() && pump_now() < deadline && !pump.is_stalled &&
           (pump.n_text > 0 || pump.at_out < pump.n_out || serve_link.reset_is_due != 0)) {
        (void)pump_round(CLOSE_MS / 20);
    }
    if (pump_is_connected()) {
        tty_drain(&pump.tty, DRAIN_MS);
        tty_close(&pump.tty);
    }
}
