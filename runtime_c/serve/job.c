#include "serve/job.h"

#include "app/answer.h"
#include "app/chat.h"
#include "app/deadline.h"
#include "app/generate.h"
#include "app/interrupt.h"
#include "sample/sampler.h"
#include "serve/human.h"
#include "serve/pump.h"
#include "serve/records.h"
#include "serve/requests.h"
#include "tokenizer/tokenizer.h"

enum {
    PATIENCE_MS = 1000, /* between two looks at a line that takes nothing */
    DONE_BYTES = 2048,  /* of a status object without its ids */
    ID_BYTES = 8,       /* of an id in it: vocabularies have fewer than ten million tokens */
    TOKEN_HEAD_BYTES = 8,
    MOST_ROUNDS = 64 /* of the line between two tokens: a peer that talks without end must not stop the answer */
};

static const Options *defaults;
static Report *sum;
static Job job;
static uint64_t peer; /* that the job is for */
static bool is_cancelled;
static Prompt prompt;
static Report report;
static TokenStream stream;
static char piece[TOKEN_HEAD_BYTES + 2 * ANSWER_PIECE_BYTES];

void job_init(const Options *options, Report *run_sum) {
    defaults = options;
    sum = run_sum;
}

void job_set_text(const char *text, size_t n, bool is_raw) {
    report_init_answer(&report, sum);
    colibri_status status = prompt_from_user(text, n, is_raw, defaults->context, &prompt, &report);
    (void)status; /* the report has it */
}

void job_set_ids(const uint8_t *ids, size_t n) {
    report_init_answer(&report, sum);
    colibri_status status = prompt_from_words(ids, n, defaults->context, &prompt, &report);
    (void)status;
}

void job_start(const Job *accepted) {
    job = *accepted;
    peer = pump_peer();
    is_cancelled = false;
    if (job.kind == JOB_SELFTEST) {
        report_init_answer(&report, sum);
        report.deadline.limit_us = 0; /* whose tokens are not timed */
    }
}

const Job *job_current(void) {
    return &job;
}

void job_cancel(void) {
    is_cancelled = true;
}

/* Whether nobody waits for the answer any more. */
static bool is_abandoned(void) {
    return peer != pump_peer();
}

/* Looks at the line between two tokens. */
static bool must_stop(void) {
    bool more = true;
    for (int i = 0; i < MOST_ROUNDS && more; i++) {
        more = pump_round(0) || serve_link.has_message;
        if (!is_abandoned()) {
            requests_take();
        }
        more = more && !serve_link.has_message;
    }
    if (job.kind == JOB_HUMAN && !is_abandoned()) {
        records_print();
        is_cancelled = is_cancelled || pump_interrupt_waits();
    }
    return interrupted() || is_cancelled || is_abandoned();
}

/* Waits until a message of n bytes fits. Returns false if nobody waits for it any more. */
static bool wait_for_room(size_t n) {
    while (sender_room(&serve_link.sender) < n) {
        (void)pump_round(PATIENCE_MS);
        if (is_abandoned() || interrupted()) {
            return false;
        }
        requests_take();
    }
    return !is_abandoned();
}

static void put_u32(char *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        bytes[i] = (char)(value >> (8 * i));
    }
}

/* Sends the n bytes of text in piece[TOKEN_HEAD_BYTES ...] that are whole with the last token. */
static void send_token(size_t n) {
    int at = report.n_ids - 1;
    if (job.kind == JOB_HUMAN) {
        human_answer(piece + TOKEN_HEAD_BYTES, n);
        return;
    }
    size_t n_message = MESSAGE_HEAD_BYTES + TOKEN_HEAD_BYTES + n;
    if (job.is_silent || !wait_for_room(n_message)) {
        return;
    }
    put_u32(piece, (uint32_t)at);
    put_u32(piece + 4, (uint32_t)report.ids[at]);
    (void)reply(REPLY_TOKEN, job.request, piece, TOKEN_HEAD_BYTES + n);
}

static colibri_status on_token(int token) {
    char *text = piece + TOKEN_HEAD_BYTES;
    deadline_end(&report);
    size_t n = token_stream_push(&stream, token, text);
    if (report.stop != STOP_NONE) {
        n += token_stream_finish(&stream, text + n);
    }
    send_token(n);
    deadline_start(&report);
    return COLIBRI_OK;
}

static void compute(void) {
    Generation how = {
        .max_tokens = job.max_tokens, .context = defaults->context, .on_token = on_token, .must_stop = must_stop};
    colibri_status status = COLIBRI_OK;
    if (job.kind == JOB_SELFTEST) {
        status = selftest(MODEL_CONTEXT, must_stop, &report);
    } else {
        stream = (TokenStream){.n_pending = 0};
        sampler_init(job.temperature, job.top_p, job.seed);
        deadline_reset();
        status = generate(&prompt, &how, &report);
        if (report.stop == STOP_EOS) { /* which generate tells nobody of */
            deadline_end(&report);
            send_token(token_stream_finish(&stream, piece + TOKEN_HEAD_BYTES));
        }
    }
    (void)status; /* the report has it */
}

/* A run that answers many keeps their sum, but not the faults of single ones: the peer got those. */
static void add_up(void) {
    report.n_failed = report.status != COLIBRI_OK;
    report_add(sum, &report);
    sum->status = COLIBRI_OK;
    sum->stop = STOP_NONE;
    sum->fault_layer = -1;
    sum->message[0] = '\0';
}

static void answer(int64_t milliseconds) {
    if (job.kind == JOB_HUMAN) {
        records_print();
        human_end(&report, milliseconds);
        return;
    }
    size_t n = DONE_BYTES + ID_BYTES * (size_t)report.n_ids;
    if (n > MESSAGE_BYTES) {
        report.n_ids = 0; /* TOKEN had them; the hash says whether they are right */
        n = DONE_BYTES;
    }
    if (wait_for_room(n)) {
        reply_report(job.request, &report);
    }
}

void job_run(void) {
    if (job.kind == JOB_NONE) {
        return;
    }
    int64_t start = pump_now();
    if (report.status == COLIBRI_OK) {
        compute();
    }
    add_up();
    if (!is_abandoned()) {
        answer(pump_now() - start);
    }
    job.kind = JOB_NONE;
}
