/* The sending half of a session: messages wait in a ring until they are acknowledged (go-back-N, PROTOCOL.md section
 * 3). Times are milliseconds of a clock that never goes back. */
#ifndef COLIBRI_LINK_SENDER_H
#define COLIBRI_LINK_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DATA_HEAD_BYTES = 4, /* kind, seq, flags */
    DATA_PAYLOAD_BYTES = 244,
    MESSAGE_BYTES = 65535,     /* longest message */
    SENDER_RING_BYTES = 65536, /* a power of 2 */
    SENDER_MESSAGES = 64,      /* that wait to be cut into frames */
    MAX_WINDOW = 8,
    RESEND_MS = 1000,    /* without an ACK */
    ROUND_TRIP_MS = 200, /* in which a repeated ACK says nothing new */
    FRAME_KIND_DATA = 3
};

typedef struct {
    uint32_t start; /* position of the payload in the ring */
    uint16_t n;
    bool is_last; /* of its message */
} SenderFrame;

/* Zero it at the start. Positions count bytes since the session's start, modulo 2^32. */
typedef struct {
    uint8_t ring[SENDER_RING_BYTES];
    uint32_t base;                  /* first byte that is not acknowledged */
    uint32_t cut;                   /* first byte that belongs to no frame yet */
    uint32_t end;                   /* behind the last whole message */
    uint32_t written;               /* behind what was added to the message that is being written */
    bool overflowed;                /* that message does not fit */
    uint32_t ends[SENDER_MESSAGES]; /* of the messages from `cut` on */
    unsigned first_end;
    unsigned n_ends;
    SenderFrame frames[MAX_WINDOW]; /* cut and not acknowledged, by seq modulo MAX_WINDOW */
    uint16_t seq;                   /* of the oldest one */
    int n_frames;
    int n_tried; /* of these, sent at least once */
    int n_sent;  /* of these, sent since the sender last went back */
    int window;  /* the peer's credit, from seq on */
    int64_t last_ack_ms;
    int64_t went_back_ms;
    uint64_t n_repeated; /* frames sent again, over all sessions */
} Sender;

/* Forgets all messages; window is the peer's. */
void sender_reset(Sender *sender, int window, int64_t now);

/* A message is written in parts. sender_end returns false, and drops the message, if it is longer than a message can be
 * or than what sender_room said. */
void sender_begin(Sender *sender);
void sender_add(Sender *sender, const void *bytes, size_t n);
bool sender_end(Sender *sender);

/* Bytes that a message may have now. */
size_t sender_room(const Sender *sender);

/* Whether everything was acknowledged. */
bool sender_is_idle(const Sender *sender);

/* Writes the body of the next DATA frame, or returns 0: nothing to send, or no credit. */
size_t sender_next(Sender *sender, uint8_t *body, int64_t now);

void sender_ack(Sender *sender, uint16_t next, int window, int64_t now);

/* Goes back if the peer's ACK is overdue at `now`; sender_deadline says when that is, INT64_MAX: never. */
void sender_tick(Sender *sender, int64_t now);
int64_t sender_deadline(const Sender *sender);

#endif
