#include "link/link.h"

#include <string.h>

enum {
    KIND_SYNC = 1,
    KIND_SYNC_ACK = 2,
    KIND_DATA = FRAME_KIND_DATA,
    KIND_ACK = 4,
    KIND_RESET = 5,
    KIND_BYE = 6,
    N_PROBE = 13,
    SYNC_BYTES = 7 + N_PROBE,
    SYNC_HEAD_BYTES = 6, /* kind, nonce, version: what every version begins with */
    ACK_BYTES = 4,
    RESET_BYTES = 2
};

/* What a line that is not transparent would change. */
static const uint8_t probe[N_PROBE] = {0x00, 0x0A, 0x0D, 0x11, 0x13, 0x7D, 0x7F, 0xFF, 0x20, 0x08, 0x03, 0x04, 0x1A};

static uint32_t get_u32(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint8_t *put_u32(uint8_t *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    return bytes + 4;
}

void link_init(Link *link, uint32_t boot, const uint8_t digest[8], uint8_t *message, size_t capacity) {
    memset(link, 0, sizeof *link);
    link->boot = boot;
    memcpy(link->digest, digest, sizeof link->digest);
    link->message = message;
    link->message_capacity = capacity;
}

/* What is left of a session that ended, or begins. */
static void forget(Link *link, int window, int64_t now) {
    sender_reset(&link->sender, window, now);
    link->n_message = 0;
    link->has_message = false;
    link->next = 0;
    link->ack_is_due = false;
    link->told_window = LINK_WINDOW;
}

static LinkEvent end_session(Link *link, int reason) {
    if (!link->is_open) {
        return LINK_NOTHING;
    }
    link->is_open = false;
    link->reset_is_due = reason;
    link->sync_ack_is_due = false;
    forget(link, 0, link->last_heard_ms);
    (void)frame_give_up(&link->decoder); /* what follows is typed by a person, until the next 00 */
    return LINK_CLOSED;
}

void link_close(Link *link, ResetReason reason) {
    (void)end_session(link, (int)reason);
    link->is_over = reason == RESET_ENDING;
}

void link_hang_up(Link *link) {
    (void)end_session(link, 0);
    (void)frame_give_up(&link->decoder);
    link->reset_is_due = 0;
    link->sync_ack_is_due = false;
}

static LinkEvent drop(Link *link, int64_t now) {
    link->counts.n_bad++;
    if (link->is_open && now - link->last_bad_ack_ms >= LINK_BAD_ACK_MS) {
        link->last_bad_ack_ms = now;
        link->ack_is_due = true;
    }
    return LINK_NOTHING;
}

static LinkEvent on_sync(Link *link, const uint8_t *body, size_t n, int64_t now) {
    if (n < SYNC_HEAD_BYTES) {
        return drop(link, now);
    }
    uint32_t nonce = get_u32(body + 1);
    bool is_ours = body[5] == LINK_VERSION;
    if (is_ours && (n != SYNC_BYTES || body[6] < 1 || body[6] > MAX_WINDOW || memcmp(body + 7, probe, N_PROBE) != 0)) {
        return drop(link, now);
    }
    LinkEvent event = LINK_NOTHING;
    if (!is_ours) {
        event = end_session(link, 0);
    } else if (!link->is_open || nonce != link->nonce) { /* else our SYNC_ACK was late, or got lost */
        link->is_open = true;
        link->nonce = nonce;
        link->counts.n_sessions++;
        forget(link, body[6], now);
        event = LINK_OPENED;
    }
    link->reset_is_due = 0;
    link->sync_nonce = nonce;
    link->sync_ack_is_due = true;
    link->last_heard_ms = now;
    return event;
}

static LinkEvent on_data(Link *link, const uint8_t *body, size_t n) {
    uint16_t seq = (uint16_t)(body[1] | body[2] << 8);
    link->ack_is_due = true;
    if (seq != link->next || link->has_message) {
        return LINK_NOTHING;
    }
    size_t n_payload = n - DATA_HEAD_BYTES;
    if (link->n_message + n_payload > MESSAGE_BYTES) {
        return end_session(link, RESET_TOO_LONG);
    }
    if (link->n_message < link->message_capacity) {
        size_t room = link->message_capacity - link->n_message;
        memcpy(link->message + link->n_message, body + DATA_HEAD_BYTES, n_payload < room ? n_payload : room);
    }
    link->n_message += n_payload;
    link->next++;
    link->has_message = body[3] == 1;
    return link->has_message ? LINK_MESSAGE : LINK_NOTHING;
}

static bool is_well_formed(const uint8_t *body, size_t n) {
    switch (body[0]) {
    case KIND_DATA:
        return n >= DATA_HEAD_BYTES && body[3] <= 1;
    case KIND_ACK:
        return n == ACK_BYTES && body[3] <= MAX_WINDOW;
    case KIND_RESET:
        return n == RESET_BYTES;
    case KIND_BYE:
        return n == 1;
    default:
        return false;
    }
}

static LinkEvent on_frame(Link *link, const uint8_t *body, size_t n, int64_t now) {
    if (link->is_over) {
        return LINK_NOTHING;
    }
    if (body[0] == KIND_SYNC) {
        return on_sync(link, body, n, now);
    }
    if (!is_well_formed(body, n)) {
        return drop(link, now);
    }
    if (!link->is_open) {
        bool expects_session = body[0] == KIND_DATA || body[0] == KIND_ACK;
        if (expects_session && link->reset_is_due == 0) { /* the reason why it is gone says more */
            link->reset_is_due = RESET_NO_SESSION;
        }
        return LINK_NOTHING;
    }
    link->last_heard_ms = now;
    if (body[0] == KIND_DATA) {
        return on_data(link, body, n);
    }
    if (body[0] == KIND_ACK) {
        sender_ack(&link->sender, (uint16_t)(body[1] | body[2] << 8), body[3], now);
        return LINK_NOTHING;
    }
    return end_session(link, 0);
}

static LinkEvent on_decoded(Link *link, FrameEvent decoded, int64_t now) {
    switch (decoded) {
    case FRAME_GOOD:
        link->counts.n_frames_in++;
        return on_frame(link, link->decoder.bytes, link->decoder.n, now);
    case FRAME_BAD:
        return drop(link, now);
    case FRAME_TEXT:
        return link->is_open ? LINK_NOTHING : LINK_TEXT;
    case FRAME_NONE:
        break;
    }
    return LINK_NOTHING;
}

LinkEvent link_push(Link *link, uint8_t byte, int64_t now) {
    link->last_byte_ms = now;
    return on_decoded(link, frame_push(&link->decoder, byte), now);
}

LinkEvent link_tick(Link *link, int64_t now) {
    if (link->is_open) {
        if (now - link->last_heard_ms >= LINK_SILENCE_MS) {
            return end_session(link, RESET_SILENT);
        }
        if (now - link->last_sent_ms >= LINK_KEEP_ALIVE_MS) {
            link->ack_is_due = true;
        }
        sender_tick(&link->sender, now);
    }
    if (link->decoder.n_pending > 0 && now - link->last_byte_ms >= LINK_TEXT_MS) {
        return on_decoded(link, frame_give_up(&link->decoder), now);
    }
    return LINK_NOTHING;
}

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int64_t link_deadline(const Link *link) {
    int64_t deadline = link->decoder.n_pending > 0 ? link->last_byte_ms + LINK_TEXT_MS : INT64_MAX;
    if (link->is_open) {
        deadline = earlier(deadline, link->last_heard_ms + LINK_SILENCE_MS);
        if (!link->ack_is_due) { /* else it waits for the line alone */
            deadline = earlier(deadline, link->last_sent_ms + LINK_KEEP_ALIVE_MS);
        }
        deadline = earlier(deadline, sender_deadline(&link->sender));
    }
    return deadline;
}

bool link_message(const Link *link, const uint8_t **message, size_t *n) {
    *message = link->message;
    *n = link->n_message;
    return link->n_message <= link->message_capacity;
}

void link_message_done(Link *link) {
    link->has_message = false;
    link->n_message = 0;
    if (link->told_window == 0) {
        link->ack_is_due = true;
    }
}

static size_t make_sync_ack(const Link *link, uint8_t *body) {
    uint8_t *at = body;
    *at++ = KIND_SYNC_ACK;
    at = put_u32(at, link->sync_nonce);
    *at++ = LINK_VERSION;
    *at++ = LINK_WINDOW;
    at = put_u32(at, link->boot);
    memcpy(at, link->digest, sizeof link->digest);
    at += sizeof link->digest;
    memcpy(at, probe, N_PROBE);
    return (size_t)(at + N_PROBE - body);
}

static size_t make_ack(Link *link, uint8_t *body) {
    link->told_window = link->has_message ? 0 : LINK_WINDOW;
    link->ack_is_due = false;
    body[0] = KIND_ACK;
    body[1] = (uint8_t)link->next;
    body[2] = (uint8_t)(link->next >> 8);
    body[3] = (uint8_t)link->told_window;
    return ACK_BYTES;
}

static size_t make_reset(Link *link, uint8_t *body) {
    body[0] = KIND_RESET;
    body[1] = (uint8_t)link->reset_is_due;
    link->reset_is_due = 0;
    return RESET_BYTES;
}

size_t link_next_frame(Link *link, uint8_t *wire, int64_t now) {
    uint8_t body[FRAME_BODY_BYTES];
    size_t n = 0;
    if (link->reset_is_due != 0) {
        n = make_reset(link, body);
    } else if (link->sync_ack_is_due) {
        link->sync_ack_is_due = false;
        n = make_sync_ack(link, body);
    } else if (link->is_open) {
        n = link->ack_is_due ? make_ack(link, body) : sender_next(&link->sender, body, now);
    }
    if (n == 0) {
        return 0;
    }
    link->counts.n_frames_out++;
    link->last_sent_ms = now;
    return frame_encode(body, n, wire);
}
