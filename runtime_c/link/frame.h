/* Frames on a serial line: PROTOCOL.md section 1. Knows neither sessions nor models. */
#ifndef COLIBRI_LINK_FRAME_H
#define COLIBRI_LINK_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_BODY_BYTES = 248, /* longest body */
    FRAME_WIRE_BYTES = 520  /* room for the longest frame on the wire: 508 bytes */
};

/* Writes the frame of a body, 1 <= n_body <= FRAME_BODY_BYTES, to wire[FRAME_WIRE_BYTES]; returns its length. */
size_t frame_encode(const uint8_t *body, size_t n_body, uint8_t *wire);

typedef enum {
    FRAME_NONE, /* nothing is complete */
    FRAME_GOOD, /* bytes[0 .. n-1] is the body of a frame, 1 <= n <= FRAME_BODY_BYTES */
    FRAME_TEXT, /* bytes[0 .. n-1] lay outside of frames, n >= 1 */
    FRAME_BAD   /* a frame was dropped */
} FrameEvent;

/* One direction of a line. Zero it at the start. */
typedef struct {
    uint8_t pending[FRAME_WIRE_BYTES]; /* what came since a 00 */
    size_t n_pending;
    bool is_open;                        /* a 00 came: what follows may be a frame */
    uint8_t bytes[FRAME_WIRE_BYTES + 1]; /* of the last event */
    size_t n;
} FrameDecoder;

/* Takes one byte from the line. bytes and n hold until the next call. */
FrameEvent frame_push(FrameDecoder *decoder, uint8_t byte);

/* The line was silent for a second, or ends, or the next byte must be text: what came since a 00 is no frame. */
FrameEvent frame_give_up(FrameDecoder *decoder);

#endif
