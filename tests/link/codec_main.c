/* Codec of frames as a filter, for comparison with its Python twin.
 *   encode  standard input: u16 length and body, any number of them; output: u16 length and frame
 *   decode  standard input: any bytes; output: for each event its kind (1 frame, 2 text, 3 bad), u16 length and bytes;
 *           silence at the end */
#include <stdio.h>
#include <string.h>

#include "link/frame.h"

static void put(const uint8_t *bytes, size_t n) {
    (void)putchar((int)(n & 255));
    (void)putchar((int)(n >> 8));
    (void)fwrite(bytes, 1, n, stdout);
}

static int encode_all(void) {
    uint8_t head[2];
    while (fread(head, 1, 2, stdin) == 2) {
        uint8_t body[FRAME_BODY_BYTES];
        uint8_t wire[FRAME_WIRE_BYTES];
        size_t n = head[0] | (size_t)head[1] << 8;
        if (n > sizeof body || fread(body, 1, n, stdin) != n) {
            return 1;
        }
        put(wire, frame_encode(body, n, wire));
    }
    return 0;
}

static void put_event(FrameEvent event, const FrameDecoder *decoder) {
    if (event != FRAME_NONE) {
        (void)putchar((int)event);
        put(decoder->bytes, event == FRAME_BAD ? 0 : decoder->n);
    }
}

static int decode_all(void) {
    static FrameDecoder decoder;
    for (int byte = getchar(); byte != EOF; byte = getchar()) {
        put_event(frame_push(&decoder, (uint8_t)byte), &decoder);
    }
    put_event(frame_give_up(&decoder), &decoder);
    return 0;
}

int main(int argc, char **argv) {
    return argc == 2 && strcmp(argv[1], "encode") == 0 ? encode_all() : decode_all();
}
