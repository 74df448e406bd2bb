#include "app/answer.h"

#include <errno.h>
#include <string.h>

#include "app/output.h"
#include "tokenizer/tokenizer.h"

static struct {
    AnswerStyle style;
    Report *report;
    TokenStream stream;
    int n_written; /* tokens */
} answer;

static char piece[ANSWER_PIECE_BYTES];

colibri_status answer_flush(Report *report) {
    if (write_flush(&out)) {
        return COLIBRI_OK;
    }
    if (out.error == EINTR) {
        report->stop = STOP_INTERRUPTED;
        return COLIBRI_OK;
    }
    if (out.error == EPIPE) {
        return report_fault(report, COLIBRI_E_IO, "nobody reads standard output any more (closed pipe)");
    }
    return report_fault(report, COLIBRI_E_IO, "cannot write to standard output: %s; check its disk or device",
                        strerror(out.error));
}

static void write_as_one_line(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n') {
            write_text(&out, "\\n");
        } else if (text[i] == '\r') {
            write_text(&out, "\\r");
        } else {
            write_bytes(&out, text + i, 1);
        }
    }
}

static void write_piece(size_t n) {
    if (answer.style == ANSWER_LINE) {
        write_as_one_line(piece, n);
    } else {
        write_bytes(&out, piece, n);
    }
}

void answer_begin(AnswerStyle style, Report *report) {
    memset(&answer, 0, sizeof answer);
    answer.style = style;
    answer.report = report;
}

colibri_status answer_token(int token) {
    if (answer.style == ANSWER_IDS) {
        write_text(&out, answer.n_written > 0 ? "," : "");
        write_integer(&out, token);
    } else {
        write_piece(token_stream_push(&answer.stream, token, piece));
    }
    answer.n_written++;
    return answer_flush(answer.report);
}

colibri_status answer_end(void) {
    if (answer.style != ANSWER_IDS) {
        write_piece(token_stream_finish(&answer.stream, piece));
    }
    write_text(&out, "\n");
    return answer_flush(answer.report);
}
