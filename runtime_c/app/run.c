#include <errno.h>
#include <string.h>

#include "app/answer.h"
#include "app/chat.h"
#include "app/deadline.h"
#include "app/generate.h"
#include "app/lines.h"
#include "app/modes.h"
#include "sample/sampler.h"

static Prompt prompt;
static Report one_report; /* of the current line of --stdin */

static Report *answer_report; /* of the prompt that is being answered */

/* The writing of an answer is not part of its tokens' time. */
static colibri_status hand_out(int token) {
    deadline_end(answer_report);
    colibri_status status = answer_token(token);
    deadline_start(answer_report);
    return status;
}

/* Answers `prompt`. Random numbers start anew, so an answer does not depend on the prompts before it. */
static colibri_status answer_prompt(const Options *options, AnswerStyle style, Report *report) {
    Generation how = {.max_tokens = options->max_tokens, .context = options->context, .on_token = hand_out};
    sampler_init(options->temperature, options->top_p, options->seed);
    answer_begin(options->prints_ids ? ANSWER_IDS : style, report);
    answer_report = report;
    deadline_reset();
    colibri_status status = generate(&prompt, &how, report);
    if (report->stop == STOP_EOS) { /* a token that nobody is handed */
        deadline_end(report);
    }
    colibri_status written = answer_end();
    return status != COLIBRI_OK ? status : written;
}

colibri_status run_prompt(const Options *options, Report *report) {
    colibri_status status = options->mode == MODE_TOKENS
                                ? prompt_from_ids(options->prompt, options->context, &prompt, report)
                                : prompt_from_user(options->prompt, strlen(options->prompt), options->is_raw,
                                                   options->context, &prompt, report);
    return status == COLIBRI_OK ? answer_prompt(options, ANSWER_TEXT, report) : status;
}

/* Reads and answers one line into one_report; a bad prompt gets an empty line. */
static colibri_status answer_line(const Options *options, LineResult result, const char *line, size_t length) {
    Report *report = &one_report;
    colibri_status status = COLIBRI_OK;
    if (result == LINE_TOO_LONG) {
        status = report_fault(report, COLIBRI_E_PROMPT_TOO_LONG, "a line of %zu bytes; give at most %d", length,
                              (int)LINE_BYTES);
    } else {
        status = prompt_from_user(line, length, options->is_raw, options->context, &prompt, report);
    }
    if (status == COLIBRI_OK) {
        return answer_prompt(options, ANSWER_LINE, report);
    }
    answer_begin(ANSWER_LINE, report);
    return answer_end();
}

colibri_status run_stdin(const Options *options, Report *report) {
    while (report->stop != STOP_INTERRUPTED && report->status != COLIBRI_E_IO) {
        const char *line = NULL;
        size_t length = 0;
        LineResult result = line_read(&line, &length);
        if (result == LINE_END) {
            break;
        }
        if (result == LINE_INTERRUPTED) {
            report->stop = STOP_INTERRUPTED;
            break;
        }
        if (result == LINE_FAILED) {
            return report_fault(report, COLIBRI_E_IO, "cannot read standard input: %s", strerror(errno));
        }
        report_init_answer(&one_report, report);
        colibri_status status = answer_line(options, result, line, length);
        one_report.n_failed = one_report.status != COLIBRI_OK;
        report_print(&one_report, "COLIBRI_ANSWER");
        report_add(report, &one_report);
        if (status == COLIBRI_E_IO) {
            return status;
        }
    }
    return report->status;
}
