#include <string.h>

#include "app/answer.h"
#include "app/chat.h"
#include "app/deadline.h"
#include "app/generate.h"
#include "app/interrupt.h"
#include "app/modes.h"
#include "app/output.h"
#include "app/tracing.h"
#include "port/memory.h"
#include "sample/sampler.h"
#include "store/model_tables.h"

static Prompt prompt;

/* Of decode tokens; sorted at the end. */
typedef struct {
    int n;
    int64_t total_ns;
    int64_t us[MODEL_CONTEXT];
} Latencies;

static Latencies plain;
#if TRACE_COMPILED
static Latencies traced; /* of the tokens that were recorded */
#endif

/* Shell sort: the C library's qsort may allocate. */
static void sort_ascending(int64_t *x, int n) {
    for (int gap = n / 2; gap > 0; gap /= 2) {
        for (int i = gap; i < n; i++) {
            int64_t value = x[i];
            int j = i;
            for (; j >= gap && x[j - gap] > value; j -= gap) {
                x[j] = x[j - gap];
            }
            x[j] = value;
        }
    }
}

/* Largest r with r*r <= value, bit by bit. */
static int64_t square_root(int64_t value) {
    int64_t root = 0;
    for (int64_t bit = INT64_C(1) << 31; bit > 0; bit >>= 1) {
        int64_t trial = root + bit;
        if (trial <= INT64_C(3037000499) && trial * trial <= value) {
            root = trial;
        }
    }
    return root;
}

/* Nearest rank: the smallest latency that `percent` of the tokens do not exceed. */
static int64_t percentile(const int64_t *sorted, int n, int percent) {
    int rank = (int)(((int64_t)n * percent + 99) / 100);
    return sorted[rank > 0 ? rank - 1 : 0];
}

static void summarise(Latencies *latencies, Timing *timing) {
    int n = latencies->n;
    int64_t *us = latencies->us;
    int64_t total_us = latencies->total_ns / 1000;
    int64_t squares = 0;
    for (int i = 0; i < n; i++) {
        squares += (us[i] - total_us / n) * (us[i] - total_us / n);
    }
    sort_ascending(us, n);
    timing->n_tokens = n;
    timing->total_us = total_us;
    timing->median_us = percentile(us, n, 50);
    timing->p99_us = percentile(us, n, 99);
    timing->max_us = us[n - 1];
    timing->std_us = square_root(squares / n);
}

static void summarise_all(Timing *timing) {
    if (plain.n > 0) {
        summarise(&plain, timing);
    }
#if TRACE_COMPILED
    if (traced.n > 0) {
        sort_ascending(traced.us, traced.n);
        timing->n_traced = traced.n;
        timing->traced_median_us = percentile(traced.us, traced.n, 50);
    }
#endif
}

/* Where the latency of token n goes. A debug build that records does so for every second token: both kinds see the same
 * positions and the same machine, and their difference is what recording costs. */
static Latencies *latencies_of(int n) {
#if TRACE_COMPILED
    bool is_traced = trace_mask() != 0 && n % 2 == 1;
    trace_pause(!is_traced);
    if (is_traced) {
        return &traced;
    }
#endif
    (void)n;
    return &plain;
}

static void add_latency(Latencies *latencies, int64_t ns) {
    latencies->us[latencies->n++] = ns / 1000;
    latencies->total_ns += ns;
}

static void print_figure(const char *name, int64_t value, const char *unit) {
    write_text(&out, name);
    write_integer(&out, value);
    write_text(&out, unit);
    write_text(&out, "\n");
}

/* n tokens in `us` microseconds, as tokens a second with three decimals. */
static void print_speed(const char *name, int64_t n, int64_t us) {
    int64_t milli_per_s = n * 1000000000 / (us > 0 ? us : 1);
    char fraction[4] = {(char)('0' + milli_per_s / 100 % 10), (char)('0' + milli_per_s / 10 % 10),
                        (char)('0' + milli_per_s % 10), '\0'};
    write_text(&out, name);
    write_integer(&out, milli_per_s / 1000);
    write_text(&out, ".");
    write_text(&out, fraction);
    write_text(&out, " tokens/s\n");
}

static void print_timing(const Report *report) {
    const Timing *timing = &report->timing;
    print_figure("prompt tokens   ", report->n_prompt_tokens, "");
    print_figure("prompt time     ", timing->prefill_us, " us");
    print_speed("prompt speed    ", report->n_prompt_tokens, timing->prefill_us);
    print_figure("decode tokens   ", timing->n_tokens, "");
    print_speed("decode speed    ", timing->n_tokens, timing->total_us);
    print_figure("latency median  ", timing->median_us, " us");
    print_figure("latency p99     ", timing->p99_us, " us");
    print_figure("latency maximum ", timing->max_us, " us");
    print_figure("latency std     ", timing->std_us, " us");
    if (report->deadline.limit_us > 0) {
        print_figure("over deadline   ", report->deadline.n_late, "");
    }
    print_figure("decode faults   ", timing->major_faults, " major");
    print_figure("                ", timing->minor_faults, " minor");
    print_figure("peak memory     ", timing->max_rss_kib, " KiB");
#if TRACE_COMPILED
    if (timing->n_traced > 0) {
        print_figure("recorded tokens ", timing->n_traced, " more");
        print_figure("recorded median ", timing->traced_median_us, " us");
    }
#endif
}

/* Times n_tokens greedy tokens after the prompt, ends of sequence ignored. */
static colibri_status decode(int n_tokens, Report *report) {
    Timing *timing = &report->timing;
    int64_t major = 0;
    int64_t minor = 0;
    report_count_page_faults(&major, &minor);
    int64_t before = deadline_now_ns();
    for (int n = 0; n < n_tokens && report->stop == STOP_NONE; n++) {
        Latencies *latencies = latencies_of(n);
        int token = 0;
        colibri_status status = choose(&token, report);
        if (status == COLIBRI_OK) {
            status = feed(token, true, report);
        }
        if (status != COLIBRI_OK) {
            return status;
        }
        int64_t after = deadline_now_ns();
        add_latency(latencies, after - before);
        deadline_note(after - before, report);
        before = after;
        if (interrupted()) {
            report->stop = STOP_INTERRUPTED;
        }
    }
    report_count_page_faults(&timing->major_faults, &timing->minor_faults);
    timing->major_faults -= major;
    timing->minor_faults -= minor;
    timing->max_rss_kib = memory_peak_kib();
    summarise_all(timing);
    return COLIBRI_OK;
}

colibri_status run_bench(const Options *options, Report *report) {
    sampler_init(0.0f, 1.0f, 0);
    colibri_status status =
        prompt_from_user(model_golden_prompt, strlen(model_golden_prompt), false, options->context, &prompt, report);
    if (status != COLIBRI_OK) {
        return status;
    }
    int room = options->context - prompt.n_ids;
    if (room == 0) {
        return report_fault(report, COLIBRI_E_USAGE, "--bench %d: the embedded prompt fills all %d positions",
                            options->n_bench_tokens, options->context);
    }
    if (options->n_bench_tokens > room) {
        return report_fault(report, COLIBRI_E_USAGE,
                            "--bench %d: the embedded prompt leaves %d of %d positions; try --bench %d",
                            options->n_bench_tokens, room, options->context, room);
    }
    int64_t start = deadline_now_ns();
    status = feed_prompt(&prompt, NULL, report);
    report->timing.prefill_us = (deadline_now_ns() - start) / 1000;
    if (status == COLIBRI_OK && report->stop == STOP_NONE) {
        status = decode(options->n_bench_tokens, report);
    }
    if (status != COLIBRI_OK || report->timing.n_tokens == 0) {
        return status;
    }
    if (report->stop == STOP_NONE) {
        report->stop = STOP_LENGTH;
    }
    print_timing(report);
    return answer_flush(report);
}
