#include "app/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "app/deadline.h"
#include "app/tracing.h"
#include "app/tuning.h"
#include "sample/sampler.h"

static bool shows_page_faults = false;

void report_count_page_faults(int64_t *major, int64_t *minor) {
    struct rusage usage;
    *major = *minor = 0;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        *major = usage.ru_majflt;
        *minor = usage.ru_minflt;
    }
}

void report_init(Report *report) {
    memset(report, 0, sizeof *report);
    report->logits_hash = LOGITS_HASH_START;
    report->fault_layer = -1;
    report_count_page_faults(&report->major_faults_before, &report->minor_faults_before);
}

void report_init_answer(Report *answer, const Report *run) {
    report_init(answer);
    answer->threads = run->threads;
    answer->context = run->context;
    answer->deadline.limit_us = run->deadline.limit_us;
    answer->n_prompts = 1;
}

void report_show_page_faults(void) {
    shows_page_faults = true;
}

/* Arguments of the user appear in messages: one line must stay one line. */
static void make_printable(char *text) {
    for (; *text != '\0'; text++) {
        if (*text < 0x20 || *text > 0x7E) {
            *text = '?';
        }
    }
}

colibri_status report_fault(Report *report, colibri_status status, const char *format, ...) {
    va_list arguments;
    if (report->status != COLIBRI_OK) {
        return status;
    }
    va_start(arguments, format);
    (void)vsnprintf(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
    make_printable(report->message);
    report->status = status;
    report->fault_layer = status == COLIBRI_E_NOT_FINITE ? colibri_fault_layer() : -1;
    return status;
}

void report_add(Report *sum, const Report *one) {
    sum->n_prompts++;
    sum->n_prompt_tokens += one->n_prompt_tokens;
    sum->n_tokens += one->n_tokens;
    deadline_add(&sum->deadline, &one->deadline);
    sum->logits_hash = sum->logits_hash * LOGITS_HASH_FACTOR + one->logits_hash;
    if (one->stop == STOP_INTERRUPTED) {
        sum->stop = STOP_INTERRUPTED;
    }
    if (one->status == COLIBRI_OK) {
        return;
    }
    sum->n_failed++;
    if (sum->status == COLIBRI_OK) {
        sum->status = one->status;
        sum->fault_layer = one->fault_layer;
        sum->message_was_shown = true;
        memcpy(sum->message, one->message, sizeof sum->message);
    }
}

/* A fault outranks the signal that came during it. */
static bool ended_by_signal(const Report *report) {
    return report->status == COLIBRI_OK && report->stop == STOP_INTERRUPTED;
}

int report_exit_code(const Report *report) {
    if (ended_by_signal(report)) {
        return 130;
    }
    switch (report->status) {
    case COLIBRI_OK:
        return 0;
    case COLIBRI_E_USAGE:
        return 2;
    case COLIBRI_E_EMPTY_PROMPT:
    case COLIBRI_E_PROMPT_TOO_LONG:
    case COLIBRI_E_UNKNOWN_TOKEN:
    case COLIBRI_E_INVALID_UTF8:
        return 3;
    case COLIBRI_E_IO:
        return 4;
    case COLIBRI_E_NOT_FINITE:
        return 5;
    case COLIBRI_E_SELFTEST:
        return 6;
    case COLIBRI_E_THREADS:
    case COLIBRI_E_CONTEXT_FULL:
        break;
    }
    return 7;
}

const char *report_stop_name(Stop stop) {
    static const char *const names[] = {
        [STOP_NONE] = "none",
        [STOP_EOS] = "eos",
        [STOP_LENGTH] = "length",
        [STOP_CONTEXT] = "context",
        [STOP_INTERRUPTED] = "interrupted",
    };
    return names[stop];
}

void report_write_integer(Writer *writer, const char *key, int64_t value) {
    write_text(writer, ",\"");
    write_text(writer, key);
    write_text(writer, "\":");
    write_integer(writer, value);
}

static void print_key_hash(Writer *writer, const char *key, uint64_t value) {
    write_text(writer, ",\"");
    write_text(writer, key);
    write_text(writer, "\":\"");
    write_hash(writer, value);
    write_text(writer, "\"");
}

static void print_ids(Writer *writer, const Report *report) {
    write_text(writer, ",\"ids\":[");
    for (int i = 0; i < report->n_ids; i++) {
        if (i > 0) {
            write_text(writer, ",");
        }
        write_integer(writer, report->ids[i]);
    }
    write_text(writer, "]");
}

static void print_timing(Writer *writer, const Timing *timing) {
    write_text(writer, ",\"bench\":{\"tokens\":");
    write_integer(writer, timing->n_tokens);
    report_write_integer(writer, "prefill_us", timing->prefill_us);
    report_write_integer(writer, "total_us", timing->total_us);
    report_write_integer(writer, "median_us", timing->median_us);
    report_write_integer(writer, "p99_us", timing->p99_us);
    report_write_integer(writer, "max_us", timing->max_us);
    report_write_integer(writer, "std_us", timing->std_us);
    report_write_integer(writer, "major_faults", timing->major_faults);
    report_write_integer(writer, "minor_faults", timing->minor_faults);
    report_write_integer(writer, "max_rss_kib", timing->max_rss_kib);
#if TRACE_COMPILED
    if (timing->n_traced > 0) {
        report_write_integer(writer, "traced_tokens", timing->n_traced);
        report_write_integer(writer, "traced_median_us", timing->traced_median_us);
    }
#endif
    write_text(writer, "}");
}

static void print_page_faults(Writer *writer, const Report *report) {
    int64_t major = 0;
    int64_t minor = 0;
    report_count_page_faults(&major, &minor);
    report_write_integer(writer, "major_faults", major - report->major_faults_before);
    report_write_integer(writer, "minor_faults", minor - report->minor_faults_before);
}

void report_write(Writer *writer, const Report *report) {
    write_text(writer, "{\"status\":");
    write_json_text(writer, ended_by_signal(report) ? "interrupted" : colibri_status_name(report->status));
    report_write_integer(writer, "exit_code", report_exit_code(report));
    report_write_integer(writer, "prompts", report->n_prompts);
    report_write_integer(writer, "failed", report->n_failed);
    report_write_integer(writer, "prompt_tokens", report->n_prompt_tokens);
    report_write_integer(writer, "tokens", report->n_tokens);
    print_ids(writer, report);
    print_key_hash(writer, "logits_hash", report->logits_hash);
    write_text(writer, ",\"stop\":");
    write_json_text(writer, report_stop_name(report->stop));
    report_write_integer(writer, "threads", report->threads);
    report_write_integer(writer, "context", report->context);
    if (report->has_expected_hash) {
        print_key_hash(writer, "expected_hash", report->expected_hash);
    }
    if (report->timing.n_tokens > 0) {
        print_timing(writer, &report->timing);
    }
    if (shows_page_faults || report->timing.n_tokens > 0) {
        print_page_faults(writer, report);
    }
    deadline_write(writer, &report->deadline);
    tuning_write(writer, &report->tuning);
#if TRACE_COMPILED
    trace_print_counts(writer);
#endif
    if (report->fault_layer >= 0) {
        report_write_integer(writer, "layer", report->fault_layer);
    }
    if (report->message[0] != '\0') {
        write_text(writer, ",\"message\":");
        write_json_text(writer, report->message);
    }
    write_text(writer, "}");
}

static void print_message(const Report *report) {
    write_text(&err, "colibri_inference: ");
    write_text(&err, report->message);
    write_text(&err, "\n");
}

void report_print(const Report *report, const char *prefix) {
    trace_finish();
    if (report->message[0] != '\0' && !report->message_was_shown) {
        print_message(report);
    }
    deadline_print(&report->deadline);
    write_text(&err, prefix);
    write_text(&err, " ");
    report_write(&err, report);
    write_text(&err, "\n");
    (void)write_flush(&err);
}
