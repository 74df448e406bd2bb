/* Requests of a host and their answers: PROTOCOL.md section 4. */
#ifndef COLIBRI_SERVE_REQUESTS_H
#define COLIBRI_SERVE_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/report.h"

enum {
    MESSAGE_HEAD_BYTES = 3, /* op, request */
    REPLY_OK = 0x81,
    REPLY_JSON = 0x82,
    REPLY_TOKEN = 0x83,
    REPLY_DONE = 0x84,
    REPLY_PONG = 0x85,
    REPLY_ERROR = 0x8F
};

/* `sum` is the run's, for STATS; it stays with the caller. */
void requests_init(const Report *sum);

/* Answers the request that waits on the link, or makes it the current job. A request stays there as long as its answer
 * may find no room. */
void requests_take(void);

/* Whether a host has asked the firmware to end. */
bool requests_want_end(void);

/* Sends a message. Returns false if it does not fit. */
bool reply(int op, uint16_t request, const void *fields, size_t n);

/* Sends DONE. */
void reply_report(uint16_t request, const Report *report);

#endif
