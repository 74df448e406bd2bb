/* The device's end of a serial session: PROTOCOL.md sections 1 to 3. A state machine without input and output of its
 * own: bytes and the time go in, events and frames come out. Times are milliseconds of a clock that never goes back. */
#ifndef COLIBRI_LINK_LINK_H
#define COLIBRI_LINK_LINK_H

#include "link/frame.h"
#include "link/sender.h"

enum {
    LINK_VERSION = 1,
    LINK_WINDOW = 7, /* times the longest frame, and some ACKs: below the 4 KiB that a tty keeps */
    LINK_KEEP_ALIVE_MS = 2000,
    LINK_SILENCE_MS = 10000, /* of the host, after which the session ends */
    LINK_TEXT_MS = 1000,     /* of silence, after which a started frame is none */
    LINK_BAD_ACK_MS = 20
};

typedef enum { RESET_NO_SESSION = 1, RESET_SILENT, RESET_TOO_LONG, RESET_ENDING } ResetReason;

typedef enum {
    LINK_NOTHING,
    LINK_TEXT,    /* decoder.bytes[0 .. decoder.n-1] lay outside of frames; only without a session */
    LINK_OPENED,  /* a session begins; one that was open is over */
    LINK_CLOSED,  /* the session is over */
    LINK_MESSAGE, /* a request is complete: link_message, then link_message_done */
} LinkEvent;

typedef struct {
    uint64_t n_frames_in;
    uint64_t n_frames_out;
    uint64_t n_bad;
    uint64_t n_sessions;
} LinkCounts;

typedef struct {
    FrameDecoder decoder;
    Sender sender;
    LinkCounts counts;
    uint32_t boot;
    uint8_t digest[8];
    bool is_open;
    bool is_over;   /* the firmware ends: nobody is answered any more */
    uint32_t nonce; /* of the open session */
    uint8_t *message;
    size_t message_capacity;
    size_t n_message; /* bytes of the request so far, also of those that found no room */
    bool has_message; /* it is whole; no DATA is taken until it is done with */
    uint16_t next;    /* seq that is waited for */
    int told_window;  /* in the last ACK */
    bool ack_is_due;
    bool sync_ack_is_due;
    uint32_t sync_nonce; /* to answer */
    int reset_is_due;    /* its reason, 0: none */
    int64_t last_byte_ms;
    int64_t last_heard_ms; /* a good frame */
    int64_t last_sent_ms;
    int64_t last_bad_ack_ms;
} Link;

/* boot and digest as in SYNC_ACK; message[capacity] belongs to the link from here on: requests are put together in it.
 */
void link_init(Link *link, uint32_t boot, const uint8_t digest[8], uint8_t *message, size_t capacity);

/* Takes one byte from the line. */
LinkEvent link_push(Link *link, uint8_t byte, int64_t now);

/* Does what is due; link_deadline says when to call it at the latest, INT64_MAX: never. */
LinkEvent link_tick(Link *link, int64_t now);
int64_t link_deadline(const Link *link);

/* The request that LINK_MESSAGE told of. Returns false if it is longer than the capacity: *n is its length, and only
 * message[0 .. capacity-1] came. */
bool link_message(const Link *link, const uint8_t **message, size_t *n);
void link_message_done(Link *link);

/* Writes the next frame to send to wire[FRAME_WIRE_BYTES]; 0: there is none. */
size_t link_next_frame(Link *link, uint8_t *wire, int64_t now);

/* Ends the session from this side; the next frame tells the host why. */
void link_close(Link *link, ResetReason reason);

/* The line is gone, and with it the session, what was to be sent, and half a frame. */
void link_hang_up(Link *link);

#endif
