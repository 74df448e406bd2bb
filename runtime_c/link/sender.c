#include "link/sender.h"

#include <string.h>

void sender_reset(Sender *sender, int window, int64_t now) {
    sender->base = sender->cut = sender->end = sender->written = 0;
    sender->overflowed = false;
    sender->first_end = sender->n_ends = 0;
    sender->seq = 0;
    sender->n_frames = sender->n_tried = sender->n_sent = 0;
    sender->window = window;
    sender->last_ack_ms = now;
    sender->went_back_ms = now - ROUND_TRIP_MS;
}

void sender_begin(Sender *sender) {
    sender->written = sender->end;
    sender->overflowed = false;
}

void sender_add(Sender *sender, const void *bytes, size_t n) {
    const uint8_t *source = bytes;
    if (n > SENDER_RING_BYTES - (size_t)(sender->written - sender->base)) {
        sender->overflowed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        sender->ring[sender->written++ % SENDER_RING_BYTES] = source[i];
    }
}

bool sender_end(Sender *sender) {
    uint32_t n = sender->written - sender->end;
    if (sender->overflowed || n == 0 || n > MESSAGE_BYTES || sender->n_ends == SENDER_MESSAGES) {
        return false;
    }
    sender->end = sender->written;
    sender->ends[(sender->first_end + sender->n_ends) % SENDER_MESSAGES] = sender->end;
    sender->n_ends++;
    return true;
}

size_t sender_room(const Sender *sender) {
    size_t room = SENDER_RING_BYTES - (size_t)(sender->end - sender->base);
    if (sender->n_ends == SENDER_MESSAGES) {
        return 0;
    }
    return room < MESSAGE_BYTES ? room : MESSAGE_BYTES;
}

bool sender_is_idle(const Sender *sender) {
    return sender->base == sender->end;
}

static SenderFrame *frame_at(Sender *sender, int i) {
    return &sender->frames[(unsigned)(sender->seq + i) % MAX_WINDOW];
}

/* Cuts the next frame off the oldest message. */
static void cut_frame(Sender *sender) {
    uint32_t left = sender->ends[sender->first_end] - sender->cut;
    SenderFrame *frame = frame_at(sender, sender->n_frames++);
    frame->start = sender->cut;
    frame->is_last = left <= DATA_PAYLOAD_BYTES;
    frame->n = (uint16_t)(frame->is_last ? left : DATA_PAYLOAD_BYTES);
    sender->cut += frame->n;
    if (frame->is_last) {
        sender->first_end = (sender->first_end + 1) % SENDER_MESSAGES;
        sender->n_ends--;
    }
}

size_t sender_next(Sender *sender, uint8_t *body, int64_t now) {
    if (sender->n_sent >= sender->window) {
        return 0;
    }
    if (sender->n_sent == sender->n_frames) {
        if (sender->n_ends == 0 || sender->n_frames == MAX_WINDOW) {
            return 0;
        }
        cut_frame(sender);
    }
    if (sender->n_sent == 0) {
        sender->last_ack_ms = now; /* the peer has a second from here */
    }
    const SenderFrame *frame = frame_at(sender, sender->n_sent);
    uint16_t seq = (uint16_t)(sender->seq + sender->n_sent);
    body[0] = FRAME_KIND_DATA;
    body[1] = (uint8_t)seq;
    body[2] = (uint8_t)(seq >> 8);
    body[3] = frame->is_last ? 1 : 0;
    for (uint32_t i = 0; i < frame->n; i++) {
        body[DATA_HEAD_BYTES + i] = sender->ring[(frame->start + i) % SENDER_RING_BYTES];
    }
    if (sender->n_sent < sender->n_tried) {
        sender->n_repeated++;
    } else {
        sender->n_tried++;
    }
    sender->n_sent++;
    return DATA_HEAD_BYTES + (size_t)frame->n;
}

static int lower(int value, int by) {
    return value > by ? value - by : 0;
}

void sender_ack(Sender *sender, uint16_t next, int window, int64_t now) {
    int n = (uint16_t)(next - sender->seq);
    if (n > sender->n_tried) {
        return; /* an old one, or of something that was never sent */
    }
    bool repeats = n == 0 && sender->n_sent > 0;
    for (int i = 0; i < n; i++) {
        sender->base += frame_at(sender, i)->n;
    }
    sender->seq = next;
    sender->n_frames -= n;
    sender->n_tried -= n;
    sender->n_sent = lower(sender->n_sent, n);
    sender->window = window < MAX_WINDOW ? window : MAX_WINDOW;
    sender->last_ack_ms = now;
    if (n > 0) { /* a frame that is lost behind these is another loss */
        sender->went_back_ms = now - ROUND_TRIP_MS;
    }
    if (repeats && now - sender->went_back_ms >= ROUND_TRIP_MS) {
        sender->went_back_ms = now;
        sender->n_sent = 0;
    }
}

void sender_tick(Sender *sender, int64_t now) {
    if (now >= sender_deadline(sender)) {
        sender->last_ack_ms = now;
        sender->went_back_ms = now;
        sender->n_sent = 0;
    }
}

int64_t sender_deadline(const Sender *sender) {
    return sender->n_sent > 0 ? sender->last_ack_ms + RESEND_MS : INT64_MAX;
}
