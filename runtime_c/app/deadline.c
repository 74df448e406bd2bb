#include "app/deadline.h"

#include <time.h>

#include "app/numbers.h"

#define MOST_MS 3600000.0f /* an hour */

static int64_t started_ns; /* 0: no token is being timed */

int64_t deadline_now_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

colibri_status deadline_value(const char *text, int64_t *limit_us, Report *report) {
    float ms = 0.0f;
    if (parse_decimal(text, &ms) != NUMBER_OK) {
        return report_fault(report, COLIBRI_E_USAGE, "--deadline-ms '%s' is not a decimal number; try --deadline-ms 20",
                            text);
    }
    if (!(ms >= 0.001f && ms <= MOST_MS)) {
        return report_fault(report, COLIBRI_E_USAGE, "--deadline-ms %s is out of range; try 0.001 .. 3600000", text);
    }
    *limit_us = (int64_t)((double)ms * 1000.0 + 0.5);
    return COLIBRI_OK;
}

void deadline_reset(void) {
    started_ns = 0;
}

void deadline_start(const Report *report) {
    started_ns = report->deadline.limit_us > 0 ? deadline_now_ns() : 0;
}

void deadline_end(Report *report) {
    if (started_ns != 0) {
        deadline_note(deadline_now_ns() - started_ns, report);
    }
    started_ns = 0;
}

void deadline_note(int64_t ns, Report *report) {
    DeadlineReport *deadline = &report->deadline;
    int64_t us = ns / 1000;
    if (deadline->limit_us == 0 || us <= deadline->limit_us) {
        return;
    }
    deadline->n_late++;
    deadline->worst_us = us > deadline->worst_us ? us : deadline->worst_us;
    if (deadline->n_shown < MOST_LATE_SHOWN) {
        deadline->shown[deadline->n_shown++] = (LateToken){colibri_position() - 1, us};
    }
}

void deadline_add(DeadlineReport *sum, const DeadlineReport *one) {
    sum->n_late += one->n_late;
    sum->worst_us = one->worst_us > sum->worst_us ? one->worst_us : sum->worst_us;
}

void deadline_write(Writer *writer, const DeadlineReport *deadline) {
    if (deadline->limit_us == 0) {
        return;
    }
    write_text(writer, ",\"deadline\":{\"limit_us\":");
    write_integer(writer, deadline->limit_us);
    report_write_integer(writer, "late", deadline->n_late);
    report_write_integer(writer, "worst_us", deadline->worst_us);
    write_text(writer, "}");
}

static void write_ms(int64_t us) {
    char decimals[5] = {'.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10), (char)('0' + us % 10), '\0'};
    write_integer(&err, us / 1000);
    write_text(&err, decimals);
}

void deadline_print(const DeadlineReport *deadline) {
    for (int i = 0; i < deadline->n_shown; i++) {
        write_text(&err, "COLIBRI_LATE {\"position\":");
        write_integer(&err, deadline->shown[i].position);
        write_text(&err, ",\"ms\":");
        write_ms(deadline->shown[i].us);
        write_text(&err, "}\n");
    }
}
