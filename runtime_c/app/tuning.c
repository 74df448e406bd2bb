#include "app/tuning.h"

#include <string.h>

#include "app/deadline.h"
#include "app/numbers.h"
#include "port/memory.h"
#include "port/pid1.h"
#include "port/schedule.h"

/* What a person may try when the system refuses an option. */
static const struct {
    const char *option;
    const char *hint;
} options[] = {
    {"deadline-ms", ""},
    {"huge-pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or leave it out for a small model"},
    {"lock-memory", "ulimit -l unlimited, or CAP_IPC_LOCK: setcap cap_ipc_lock+ep colibri_inference"},
    {"pin", "CPUs of /sys/devices/system/cpu/online, in a container those of its cpuset"},
    {"prefault", "ulimit -s 8192; if RAM is full, leave it out"},
    {"realtime", "ulimit -r 99, or CAP_SYS_NICE: setcap cap_sys_nice+ep colibri_inference"},
};

enum { N_OPTIONS = sizeof options / sizeof options[0] };

static const char *hint_of(const char *option) {
    for (int i = 0; i < N_OPTIONS; i++) {
        if (strcmp(options[i].option, option) == 0) {
            return options[i].hint;
        }
    }
    return "";
}

/* A reason is a text of the system, or NULL: it did what was asked. */
static void note(const char *option, const char *reason, TuningReport *report) {
    if (reason == NULL || report->n_refused == MOST_REFUSED) {
        return;
    }
    report->refused[report->n_refused++] = (Refusal){option, reason};
    write_text(&err, "colibri_inference: --");
    write_text(&err, option);
    write_text(&err, " was refused: ");
    write_text(&err, reason);
    write_text(&err, "; try ");
    write_text(&err, hint_of(option));
    write_text(&err, "\n");
    (void)write_flush(&err);
}

/* Reads "3" or "0-3" of n bytes. Returns false for anything else, and for CPUs that no system has. */
static bool read_range(const char *text, size_t n, int64_t *first, int64_t *last) {
    const char *dash = memchr(text, '-', n);
    size_t n_first = dash != NULL ? (size_t)(dash - text) : n;
    uint64_t low = 0;
    uint64_t high = 0;
    bool is_number = parse_unsigned(text, n_first, &low) == NUMBER_OK;
    if (dash == NULL) {
        high = low;
    } else {
        is_number = is_number && parse_unsigned(dash + 1, n - n_first - 1, &high) == NUMBER_OK;
    }
    *first = (int64_t)low;
    *last = (int64_t)high;
    return is_number && low <= high && high < MOST_CPUS;
}

static bool is_listed(const Tuning *tuning, int cpu) {
    for (int i = 0; i < tuning->n_cpus; i++) {
        if (tuning->cpus[i] == cpu) {
            return true;
        }
    }
    return false;
}

colibri_status pin_value(const char *text, Tuning *tuning, Report *report) {
    tuning->n_cpus = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        int64_t first = 0;
        int64_t last = 0;
        if (!read_range(at, n, &first, &last)) {
            return report_fault(report, COLIBRI_E_USAGE, "--pin '%s' is no list of CPUs; try --pin 0,1 or --pin 0-3",
                                text);
        }
        for (int64_t cpu = first; cpu <= last; cpu++) {
            if (is_listed(tuning, (int)cpu)) {
                return report_fault(report, COLIBRI_E_USAGE, "--pin %s names CPU %d twice; give each thread its own",
                                    text, (int)cpu);
            }
            if (tuning->n_cpus == MODEL_MAX_THREADS) {
                return report_fault(report, COLIBRI_E_USAGE, "--pin %s: more CPUs than threads; give at most %d", text,
                                    MODEL_MAX_THREADS);
            }
            tuning->cpus[tuning->n_cpus++] = (int)cpu;
        }
        at += n;
        if (*at == '\0') {
            return COLIBRI_OK;
        }
    }
}

colibri_status tuning_check(const Tuning *tuning, int n_threads, Report *report) {
    if (tuning->n_cpus == 0 || tuning->n_cpus == n_threads) {
        return COLIBRI_OK;
    }
    return report_fault(report, COLIBRI_E_USAGE, "--pin names %d CPUs for %d threads; try --threads %d", tuning->n_cpus,
                        n_threads, tuning->n_cpus);
}

void tuning_before_threads(const Tuning *tuning, TuningReport *report) {
    if (!tuning->uses_huge_pages) {
        return;
    }
    HugePages pages = {0};
    int64_t start = deadline_now_ns();
    if (pid1_is_init()) {
        memory_allow_huge_pages();
    }
    note("huge-pages", memory_use_huge_pages(&pages), report);
    report->uses_huge_pages = true;
    report->huge_copied_bytes = pages.n_copied;
    report->huge_bytes = pages.n_huge;
    report->huge_us = (deadline_now_ns() - start) / 1000;
}

void tuning_with_threads(const Tuning *tuning, TuningReport *report) {
    if (tuning->n_cpus > 0) {
        note("pin", schedule_pin(tuning->cpus), report);
    }
    if (tuning->prefaults) {
        int64_t start = deadline_now_ns();
        note("prefault", memory_prefault(&report->prefault_bytes), report);
        report->is_prefaulted = true;
        report->prefault_us = (deadline_now_ns() - start) / 1000;
    }
    if (tuning->locks_memory) {
        note("lock-memory", memory_lock(), report);
    }
    if (tuning->priority > 0) {
        note("realtime", schedule_realtime(tuning->priority), report);
    }
}

void tuning_write(Writer *writer, const TuningReport *report) {
    if (report->uses_huge_pages) {
        write_text(writer, ",\"huge_pages\":{\"copied_bytes\":");
        write_integer(writer, report->huge_copied_bytes);
        report_write_integer(writer, "huge_bytes", report->huge_bytes);
        report_write_integer(writer, "us", report->huge_us);
        write_text(writer, "}");
    }
    if (report->is_prefaulted) {
        write_text(writer, ",\"prefault\":{\"bytes\":");
        write_integer(writer, report->prefault_bytes);
        report_write_integer(writer, "us", report->prefault_us);
        write_text(writer, "}");
    }
    for (int i = 0; i < report->n_refused; i++) {
        write_text(writer, i == 0 ? ",\"refused\":{" : ",");
        write_json_text(writer, report->refused[i].option);
        write_text(writer, ":");
        write_json_text(writer, report->refused[i].reason);
    }
    write_text(writer, report->n_refused > 0 ? "}" : "");
}

void tuning_write_names(Writer *writer) {
    write_text(writer, "[");
    for (int i = 0; i < N_OPTIONS; i++) {
        write_text(writer, i > 0 ? ", " : "");
        write_json_text(writer, options[i].option);
    }
    write_text(writer, "]");
}
