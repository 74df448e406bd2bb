#include "link/frame.h"

#include <string.h>

#include "link/crc32.h"

enum { ESCAPE = 0x7D, FLIP = 0x20, CRC_BYTES = 4, PACKET_BYTES = FRAME_BODY_BYTES + CRC_BYTES };

static bool needs_escape(uint8_t byte) {
    return byte == '\n' || byte == '\r' || byte == 0x11 || byte == 0x13 || byte == ESCAPE;
}

static size_t put_escaped(uint8_t byte, uint8_t *wire) {
    if (!needs_escape(byte)) {
        wire[0] = byte;
        return 1;
    }
    wire[0] = ESCAPE;
    wire[1] = byte ^ FLIP;
    return 2;
}

size_t frame_encode(const uint8_t *body, size_t n_body, uint8_t *wire) {
    uint8_t packet[PACKET_BYTES + 1];
    uint32_t crc = crc32_of(body, n_body);
    memcpy(packet, body, n_body);
    for (size_t i = 0; i < CRC_BYTES; i++) {
        packet[n_body + i] = (uint8_t)(crc >> (8 * i));
    }
    size_t n_packet = n_body + CRC_BYTES;
    packet[n_packet] = 0; /* COBS: each run of bytes that are not 0 goes out behind its length + 1 */
    size_t n = 0;
    wire[n++] = 0;
    for (size_t start = 0; start <= n_packet;) {
        size_t end = start;
        while (packet[end] != 0) {
            end++;
        }
        n += put_escaped((uint8_t)(end - start + 1), wire + n);
        for (size_t i = start; i < end; i++) {
            n += put_escaped(packet[i], wire + n);
        }
        start = end + 1;
    }
    wire[n++] = 0;
    return n;
}

/* Takes the escapes out, in place. Returns the new length, 0 for a wrong escape. */
static size_t unescape(uint8_t *bytes, size_t n) {
    size_t written = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = bytes[i];
        if (byte == ESCAPE) {
            if (i + 1 == n || !needs_escape(bytes[i + 1] ^ FLIP)) {
                return 0;
            }
            byte = bytes[++i] ^ FLIP;
        } else if (needs_escape(byte)) {
            return 0;
        }
        bytes[written++] = byte;
    }
    return written;
}

/* Takes COBS out. Returns the length of the packet, 0 if the stuffing is wrong. */
static size_t unstuff(const uint8_t *bytes, size_t n, uint8_t *packet) {
    size_t written = 0;
    if (n > PACKET_BYTES + 1) {
        return 0;
    }
    for (size_t at = 0; at < n;) {
        size_t length = bytes[at++];
        if (length == 0 || length - 1 > n - at) {
            return 0;
        }
        memcpy(packet + written, bytes + at, length - 1);
        written += length - 1;
        at += length - 1;
        if (at < n) {
            packet[written++] = 0;
        }
    }
    return written;
}

/* Decodes what is pending into bytes. */
static FrameEvent decode(FrameDecoder *decoder) {
    uint8_t packet[PACKET_BYTES + 1];
    size_t n = unescape(decoder->pending, decoder->n_pending);
    n = unstuff(decoder->pending, n, packet);
    decoder->n_pending = 0;
    if (n <= CRC_BYTES) {
        return FRAME_BAD;
    }
    size_t n_body = n - CRC_BYTES;
    const uint8_t *crc = packet + n_body;
    uint32_t sent = crc[0] | (uint32_t)crc[1] << 8 | (uint32_t)crc[2] << 16 | (uint32_t)crc[3] << 24;
    if (crc32_of(packet, n_body) != sent) {
        return FRAME_BAD;
    }
    memcpy(decoder->bytes, packet, n_body);
    decoder->n = n_body;
    return FRAME_GOOD;
}

/* No text has a control byte other than backspace, tabulator and escape before its line end; a frame has one among its
 * first two bytes: its kind, or the length of the run before a zero. */
static bool looks_like_text(const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] < 0x20 && bytes[i] != 0x08 && bytes[i] != 0x09 && bytes[i] != 0x1B) {
            return false;
        }
    }
    return true;
}

FrameEvent frame_give_up(FrameDecoder *decoder) {
    decoder->is_open = false;
    if (decoder->n_pending == 0) {
        return FRAME_NONE;
    }
    decoder->n = decoder->n_pending;
    decoder->n_pending = 0;
    if (!looks_like_text(decoder->pending, decoder->n)) {
        return FRAME_BAD;
    }
    memcpy(decoder->bytes, decoder->pending, decoder->n);
    return FRAME_TEXT;
}

FrameEvent frame_push(FrameDecoder *decoder, uint8_t byte) {
    if (byte == 0) {
        decoder->is_open = true;
        return decoder->n_pending > 0 ? decode(decoder) : FRAME_NONE;
    }
    if (!decoder->is_open) {
        decoder->bytes[0] = byte;
        decoder->n = 1;
        return FRAME_TEXT;
    }
    bool is_line_end = byte == '\n' || byte == '\r';
    if (is_line_end || decoder->n_pending == FRAME_WIRE_BYTES) {
        FrameEvent event = frame_give_up(decoder);
        if (event == FRAME_BAD) {
            return event;
        }
        if (event == FRAME_NONE) {
            decoder->n = 0;
        }
        decoder->bytes[decoder->n++] = byte;
        return FRAME_TEXT;
    }
    decoder->pending[decoder->n_pending++] = byte;
    return FRAME_NONE;
}
