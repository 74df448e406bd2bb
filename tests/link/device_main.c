/* A device that answers each message with itself, in a time that the test makes. Standard input: u32 milliseconds to
 * pass, u16 length, bytes from the line. Output: u16 length, bytes to the line. A first argument limits how much of the
 * answers fits, as a device that is busy. */
#include <stdio.h>
#include <stdlib.h>

#include "link/link.h"

static Link device;
static uint8_t request[5000];
static uint8_t wire[65536];
static size_t least_room = 16384;

static void answer(void) {
    const uint8_t *message = NULL;
    size_t n = 0;
    if (!device.has_message || sender_room(&device.sender) < least_room) {
        return;
    }
    bool is_whole = link_message(&device, &message, &n);
    sender_begin(&device.sender);
    sender_add(&device.sender, is_whole ? (const void *)message : "too long", is_whole ? n : 8);
    if (!sender_end(&device.sender)) {
        abort();
    }
    link_message_done(&device);
}

int main(int argc, char **argv) {
    const uint8_t digest[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t head[6];
    int64_t now = 0;
    if (argc > 1) {
        least_room = (size_t)atoi(argv[1]);
    }
    link_init(&device, 77, digest, request, sizeof request);
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        now += head[0] | head[1] << 8 | head[2] << 16;
        (void)link_tick(&device, now);
        size_t n = head[4] | (size_t)head[5] << 8;
        for (size_t i = 0; i < n; i++) {
            (void)link_push(&device, (uint8_t)getchar(), now);
            answer();
        }
        answer();
        size_t n_wire = 0;
        for (size_t part = 1; part != 0 && n_wire + FRAME_WIRE_BYTES <= sizeof wire; n_wire += part) {
            part = link_next_frame(&device, wire + n_wire, now);
        }
        (void)putchar((int)(n_wire & 255));
        (void)putchar((int)(n_wire >> 8));
        (void)fwrite(wire, 1, n_wire, stdout);
        (void)fflush(stdout);
    }
    return 0;
}
