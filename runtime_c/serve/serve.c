#include "serve/serve.h"

#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "app/interrupt.h"
#include "serve/human.h"
#include "serve/job.h"
#include "serve/pump.h"
#include "serve/records.h"
#include "serve/requests.h"
#include "store/model_tables.h"

enum { IDLE_MS = 60000, LAST_WORDS_MS = 2000, LAST_STEP_MS = 100 };

static uint8_t message[SERVE_MESSAGE_BYTES];

/* A number that differs from one start to the next, also on a board without a clock that runs on. */
static uint32_t boot_number(void) {
    struct timespec time;
    uint32_t number = 0;
    const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes from the kernel */
    if (random != NULL) {
        memcpy(&number, random, sizeof number);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return number ^ (uint32_t)time.tv_nsec;
}

static uint8_t digit_value(char c) {
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void init_link(void) {
    uint8_t digest[8];
    for (int i = 0; i < 8; i++) {
        digest[i] = (uint8_t)(digit_value(model_digest[2 * i]) << 4 | digit_value(model_digest[2 * i + 1]));
    }
    link_init(&serve_link, boot_number(), digest, message, sizeof message);
}

/* Fetches what was typed, up to a whole line, which becomes the job. */
static void listen(const Options *options) {
    for (int key = pump_key(); key >= 0; key = pump_key()) {
        if (!human_type((unsigned char)key)) {
            continue;
        }
        size_t n = 0;
        const char *line = human_line(&n);
        job_set_text(line, n, options->is_raw);
        job_start(&(Job){.kind = JOB_HUMAN,
                         .max_tokens = options->max_tokens,
                         .temperature = options->temperature,
                         .top_p = options->top_p,
                         .seed = options->seed});
        return;
    }
}

/* Greets a person after a start, a session, or when a terminal came back. Returns who is there now. */
static uint64_t greet_after(uint64_t before, const Options *options) {
    uint64_t now = pump_peer();
    if (now != before) {
        human_forget();
        records_begin(options);
        if (now != 0 && !serve_link.is_open) {
            human_greet();
        }
    }
    return now;
}

static bool goes_on(void) {
    return !interrupted() && !requests_want_end() && !pump_has_ended();
}

static void serve(const Options *options) {
    uint64_t peer = 0;
    bool more = false;
    while (goes_on() || (pump_has_ended() && more)) {
        peer = greet_after(peer, options);
        more = pump_round(more ? 0 : IDLE_MS);
        requests_take();
        if (!serve_link.is_open) {
            listen(options);
        }
        more = more || job_current()->kind != JOB_NONE;
        job_run();
    }
}

/* Lets the host have what it was told last. */
static void say_goodbye(void) {
    int64_t deadline = pump_now() + LAST_WORDS_MS;
    while (serve_link.is_open && !sender_is_idle(&serve_link.sender) && pump_now() < deadline) {
        (void)pump_round(LAST_STEP_MS);
    }
    link_close(&serve_link, RESET_ENDING);
    human_leave();
    pump_close();
}

colibri_status run_serve(const Options *options, Report *report) {
    init_link();
    job_init(options, report);
    requests_init(report);
    colibri_status status = pump_open(options->console, options->baud, report);
    if (status != COLIBRI_OK) {
        return status;
    }
    serve(options);
    bool is_lost = !pump_is_connected();
    say_goodbye();
    if (interrupted()) {
        report->stop = STOP_INTERRUPTED;
    } else if (is_lost && !requests_want_end()) {
        return report_fault(report, COLIBRI_E_IO,
                            "the console hung up; with --console PATH the firmware waits for it to come back");
    }
    return report->status;
}
