#include "serve/requests.h"

#include <limits.h>
#include <string.h>

#include "app/lines.h"
#include "app/modes.h"
#include "app/options.h"
#include "port/memory.h"
#include "serve/job.h"
#include "serve/pump.h"
#include "serve/records.h"
#include "serve/serve.h"

enum {
    OP_INFO = 0x10,
    OP_GENERATE,
    OP_CANCEL,
    OP_SELFTEST,
    OP_STATS,
    OP_TRACE,
    OP_PING,
    OP_SHUTDOWN,
    GENERATE_HEAD_BYTES = 21, /* max_tokens, temperature, top_p, seed, flags */
    GENERATE_IDS = 1,
    GENERATE_SILENT = 2,
    GENERATE_RAW = 4, /* only where there is a chat form that it could do without */
    PING_BYTES = 200,
    REPLY_ROOM_BYTES = 16384 /* more than any answer needs but DONE */
};

typedef enum { E_UNKNOWN_OP = 1, E_MALFORMED, E_BUSY, E_TOO_LONG, E_NO_REQUEST, E_NOT_COMPILED } ErrorCode;

typedef struct {
    int op;
    uint16_t request;
    const uint8_t *fields;
    size_t n;
} Request;

static const Report *sum;
static int64_t started_ms;
static int64_t n_requests;
static bool wants_end;

void requests_init(const Report *run_sum) {
    sum = run_sum;
    started_ms = pump_now();
}

bool requests_want_end(void) {
    return wants_end;
}

static void begin_reply(int op, uint16_t request) {
    uint8_t head[MESSAGE_HEAD_BYTES] = {(uint8_t)op, (uint8_t)request, (uint8_t)(request >> 8)};
    sender_begin(&serve_link.sender);
    sender_add(&serve_link.sender, head, sizeof head);
}

bool reply(int op, uint16_t request, const void *fields, size_t n) {
    begin_reply(op, request);
    sender_add(&serve_link.sender, fields, n);
    return sender_end(&serve_link.sender);
}

static void sink(const char *bytes, size_t n) {
    sender_add(&serve_link.sender, bytes, n);
}

static Writer writer = {.sink = sink};

static void refuse(uint16_t request, ErrorCode code, const char *text) {
    char first = (char)code;
    begin_reply(REPLY_ERROR, request);
    sink(&first, 1);
    sink(text, strlen(text));
    (void)sender_end(&serve_link.sender);
}

static void end_json(uint16_t request) {
    (void)write_flush(&writer);
    if (!sender_end(&serve_link.sender)) {
        refuse(request, E_TOO_LONG, "the answer is too long for one message; take it from --info");
    }
}

void reply_report(uint16_t request, const Report *report) {
    begin_reply(REPLY_DONE, request);
    report_write(&writer, report);
    end_json(request);
}

static void put_key(const char *key, int64_t value) {
    write_text(&writer, ",\"");
    write_text(&writer, key);
    write_text(&writer, "\":");
    write_integer(&writer, value);
}

static void on_info(const Request *request) {
    begin_reply(REPLY_JSON, request->request);
    write_info(&writer);
    put_key("protocol", LINK_VERSION);
    put_key("max_message", SERVE_MESSAGE_BYTES);
    put_key("trace", TRACE_COMPILED_MASK);
    write_text(&writer, "}");
    end_json(request->request);
}

static void on_stats(const Request *request) {
    int64_t major = 0;
    int64_t minor = 0;
    RecordCounts records = records_counts();
    report_count_page_faults(&major, &minor);
    begin_reply(REPLY_JSON, request->request);
    write_text(&writer, "{\"uptime_us\":");
    write_integer(&writer, (pump_now() - started_ms) * 1000);
    put_key("sessions", (int64_t)serve_link.counts.n_sessions);
    put_key("requests", n_requests);
    put_key("prompts", sum->n_prompts);
    put_key("tokens", sum->n_tokens);
    put_key("frames_in", (int64_t)serve_link.counts.n_frames_in);
    put_key("frames_out", (int64_t)serve_link.counts.n_frames_out);
    put_key("bad_frames", (int64_t)serve_link.counts.n_bad);
    put_key("repeated_frames", (int64_t)serve_link.sender.n_repeated);
    put_key("trace_records", records.n_records);
    put_key("trace_dropped", records.n_dropped);
    put_key("major_faults", major);
    put_key("minor_faults", minor);
    put_key("max_rss_kib", memory_peak_kib());
    write_text(&writer, "}");
    end_json(request->request);
}

static uint32_t get_u32(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static float get_f32(const uint8_t *bytes) {
    uint32_t word = get_u32(bytes);
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Returns what is wrong with a GENERATE, NULL: nothing. */
static const char *generate_fault(const Request *request, const Job *job, int flags) {
#ifdef MODEL_CHAT
    if (flags & ~(GENERATE_IDS | GENERATE_SILENT | GENERATE_RAW)) {
        return "unknown GENERATE flags; use bits 0, 1 and 2";
    }
#else
    if (flags & ~(GENERATE_IDS | GENERATE_SILENT)) {
        return "unknown GENERATE flags; use bits 0 and 1";
    }
#endif
    if ((flags & GENERATE_IDS) && (request->n - GENERATE_HEAD_BYTES) % 4 != 0) {
        return "token ids take 4 bytes each; send whole ones";
    }
    if (!temperature_is_valid(job->temperature)) {
        return "temperature is out of range; try 0 (greedy) or 0.01 .. 100";
    }
    return top_p_is_valid(job->top_p) ? NULL : "top_p is out of range; try more than 0, at most 1";
}

static void on_generate(const Request *request) {
    const uint8_t *fields = request->fields;
    if (request->n < GENERATE_HEAD_BYTES) {
        refuse(request->request, E_MALFORMED, "GENERATE is too short; it has 21 bytes before the prompt");
        return;
    }
    uint32_t max_tokens = get_u32(fields);
    int flags = fields[20];
    Job job = {.kind = JOB_GENERATE,
               .request = request->request,
               .is_silent = (flags & GENERATE_SILENT) != 0,
               .max_tokens = max_tokens == 0 || max_tokens > INT_MAX ? INT_MAX : (int)max_tokens,
               .temperature = get_f32(fields + 4),
               .top_p = get_f32(fields + 8),
               .seed = get_u32(fields + 12) | (uint64_t)get_u32(fields + 16) << 32};
    const char *fault = generate_fault(request, &job, flags);
    if (fault != NULL) {
        refuse(request->request, E_MALFORMED, fault);
        return;
    }
    const uint8_t *prompt = fields + GENERATE_HEAD_BYTES;
    size_t n = request->n - GENERATE_HEAD_BYTES;
    if (flags & GENERATE_IDS) {
        job_set_ids(prompt, n / 4);
    } else {
        job_set_text((const char *)prompt, n, (flags & GENERATE_RAW) != 0);
    }
    job_start(&job);
}

static void on_cancel(const Request *request) {
    if (request->n != 2) {
        refuse(request->request, E_MALFORMED, "CANCEL has one field of 2 bytes: the request to cancel");
        return;
    }
    uint16_t which = (uint16_t)(request->fields[0] | request->fields[1] << 8);
    const Job *job = job_current();
    if (job->kind == JOB_NONE || job->request != which) {
        refuse(request->request, E_NO_REQUEST, "no such request runs; it may have ended already");
        return;
    }
    (void)reply(REPLY_OK, request->request, NULL, 0);
    job_cancel();
}

static void on_trace(const Request *request) {
    if (request->n != 1 || request->fields[0] > (TRACE_ROUTING | TRACE_MEMORY | TRACE_TIMING)) {
        refuse(request->request, E_MALFORMED, "TRACE has one field of 1 byte: a mask, 0 .. 7");
    } else if (!records_set(request->fields[0])) {
        refuse(request->request, E_NOT_COMPILED, "not compiled in; build with --debug routing,memory,timing");
    } else {
        (void)reply(REPLY_OK, request->request, NULL, 0);
    }
}

static void on_ping(const Request *request) {
    if (request->n > PING_BYTES) {
        refuse(request->request, E_MALFORMED, "PING takes at most 200 bytes");
    } else {
        (void)reply(REPLY_PONG, request->request, request->fields, request->n);
    }
}

static void on_shutdown(const Request *request) {
    (void)reply(REPLY_OK, request->request, NULL, 0);
    job_cancel();
    wants_end = true;
}

/* Requests without fields, and those that compute. */
static bool has_fault(const Request *request) {
    bool computes = request->op == OP_GENERATE || request->op == OP_SELFTEST;
    bool is_bare =
        request->op == OP_INFO || request->op == OP_SELFTEST || request->op == OP_STATS || request->op == OP_SHUTDOWN;
    if (request->request == 0) {
        refuse(0, E_MALFORMED, "request 0 is not allowed; number requests from 1");
    } else if (is_bare && request->n > 0) {
        refuse(request->request, E_MALFORMED, "this request has no fields; send op and request alone");
    } else if (computes && job_current()->kind != JOB_NONE) {
        refuse(request->request, E_BUSY, "another answer is being computed; wait for it, or cancel it");
    } else {
        return false;
    }
    return true;
}

static void dispatch(const Request *request) {
    switch (request->op) {
    case OP_INFO:
        on_info(request);
        break;
    case OP_GENERATE:
        on_generate(request);
        break;
    case OP_CANCEL:
        on_cancel(request);
        break;
    case OP_SELFTEST:
        job_start(&(Job){.kind = JOB_SELFTEST, .request = request->request});
        break;
    case OP_STATS:
        on_stats(request);
        break;
    case OP_TRACE:
        on_trace(request);
        break;
    case OP_PING:
        on_ping(request);
        break;
    case OP_SHUTDOWN:
        on_shutdown(request);
        break;
    default:
        refuse(request->request, E_UNKNOWN_OP, "unknown op; this firmware speaks version 1");
    }
}

void requests_take(void) {
    const uint8_t *message = NULL;
    size_t n = 0;
    if (!serve_link.has_message || sender_room(&serve_link.sender) < REPLY_ROOM_BYTES) {
        return;
    }
    bool is_whole = link_message(&serve_link, &message, &n);
    uint16_t number = (uint16_t)(n >= MESSAGE_HEAD_BYTES ? message[1] | message[2] << 8 : 0);
    n_requests++;
    if (n < MESSAGE_HEAD_BYTES) {
        refuse(number, E_MALFORMED, "a message has 3 bytes before its fields");
    } else if (!is_whole) {
        refuse(number, E_TOO_LONG, "the message is longer than max_message of INFO; try a shorter prompt");
    } else {
        Request request = {message[0], number, message + MESSAGE_HEAD_BYTES, n - MESSAGE_HEAD_BYTES};
        if (!has_fault(&request)) {
            dispatch(&request);
        }
    }
    link_message_done(&serve_link);
}
