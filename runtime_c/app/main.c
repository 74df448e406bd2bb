/* colibri_inference: the program on the board. docs/firmware.md describes its options, status line and exit codes. */
#include "app/answer.h"
#include "app/interrupt.h"
#include "app/modes.h"
#include "app/tuning.h"
#include "port/pid1.h"
#include "serve/serve.h"
#include "tokenizer/tokenizer.h"

static colibri_status print_texts(Mode mode, Report *report) {
    if (mode == MODE_HELP) {
        options_print_help();
    } else if (mode == MODE_INFO) {
        print_info();
    } else {
        print_version();
    }
    return answer_flush(report);
}

static colibri_status answer_lines(const Options *options, Report *report) {
    if (pid1_is_init()) {
        print_ready();
        colibri_status status = answer_flush(report);
        if (status != COLIBRI_OK) {
            return status;
        }
    }
    return run_stdin(options, report);
}

static colibri_status compute(const Options *options, Report *report) {
    switch (options->mode) {
    case MODE_STDIN:
        return answer_lines(options, report);
    case MODE_SERVE:
        return run_serve(options, report);
    case MODE_SELFTEST:
        return run_selftest(options, report);
    case MODE_BENCH:
        return run_bench(options, report);
    default:
        return run_prompt(options, report);
    }
}

static colibri_status run(const Options *options, Report *report) {
    if (options->mode == MODE_HELP || options->mode == MODE_INFO || options->mode == MODE_VERSION) {
        return print_texts(options->mode, report);
    }
    if (tokenizer_max_piece_bytes > ANSWER_PIECE_BYTES) {
        return report_fault(report, COLIBRI_E_IO, "a token of %zu bytes; this program holds %d: report this fault",
                            tokenizer_max_piece_bytes, (int)ANSWER_PIECE_BYTES);
    }
    tuning_before_threads(&options->tuning, &report->tuning);
    colibri_status status = colibri_open(options->n_threads);
    if (status != COLIBRI_OK) {
        return report_fault(report, status, "cannot start %d threads; try --threads 1", options->n_threads);
    }
    report->threads = options->n_threads;
    report->context = options->context;
    report->deadline.limit_us = options->deadline_us;
    tuning_with_threads(&options->tuning, &report->tuning);
#if TRACE_COMPILED
    status = trace_start(&options->trace, report);
    if (status != COLIBRI_OK) {
        colibri_close();
        return status;
    }
#endif
    status = compute(options, report);
    if (options->mode != MODE_STDIN && options->mode != MODE_SERVE) { /* which count for themselves */
        report->n_prompts = 1;
        report->n_failed = status != COLIBRI_OK;
    }
    colibri_close();
    return status;
}

int main(int argc, char **argv) {
    static Report report;
    Options options;
    bool is_init = pid1_begin();
    interrupts_catch();
    report_init(&report);
    if (is_init) {
        report_show_page_faults();
    }
    colibri_status status = options_parse(argc, argv, &options, &report);
    if (status == COLIBRI_OK) {
        status = run(&options, &report);
    }
    if (status != COLIBRI_OK && report.status == COLIBRI_OK) {
        (void)report_fault(&report, status, "%s", colibri_status_name(status));
    }
    report_print(&report, "COLIBRI_STATUS");
    if (is_init) {
        pid1_power_off();
    }
    return report_exit_code(&report);
}
