#include "app/tracing.h"

#if TRACE_COMPILED
#include <fcntl.h>
#include <string.h>

#include "app/output.h"

static const struct {
    const char *name;
    unsigned bit;
} events[] = {{"memory", TRACE_MEMORY}, {"routing", TRACE_ROUTING}, {"timing", TRACE_TIMING}};

enum { N_EVENTS = sizeof events / sizeof events[0] };

colibri_status trace_output_value(const char *text, TraceOptions *options, Report *report) {
    static const char *const names[] = {
        [TRACE_OUTPUT_OFF] = "off", [TRACE_OUTPUT_TEXT] = "text", [TRACE_OUTPUT_BINARY] = "binary"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            options->output = (TraceOutput)i;
            return COLIBRI_OK;
        }
    }
    return report_fault(report, COLIBRI_E_USAGE, "--trace '%s' is unknown; try text, binary or off", text);
}

/* The event of that name; 0 if there is none. */
static unsigned event_bit(const char *name, size_t length) {
    for (int i = 0; i < N_EVENTS; i++) {
        if (strlen(events[i].name) == length && memcmp(events[i].name, name, length) == 0) {
            return events[i].bit;
        }
    }
    return 0;
}

colibri_status trace_events_value(const char *text, TraceOptions *options, Report *report) {
    options->mask = 0;
    for (const char *name = text;; name++) {
        size_t length = strcspn(name, ",");
        unsigned bit = event_bit(name, length);
        int shown = length < 40 ? (int)length : 40;
        if (bit == 0) {
            return report_fault(report, COLIBRI_E_USAGE,
                                "--trace-events: '%.*s' is unknown; try --trace-events routing,memory,timing", shown,
                                name);
        }
        if (!(bit & TRACE_COMPILED_MASK)) {
            return report_fault(report, COLIBRI_E_USAGE,
                                "--trace-events: %.*s is not compiled in; build with --debug %.*s, too", shown, name,
                                shown, name);
        }
        options->mask |= bit;
        name += length;
        if (*name == '\0') {
            return COLIBRI_OK;
        }
    }
}

colibri_status trace_start(const TraceOptions *options, Report *report) {
    if (options->output == TRACE_OUTPUT_OFF) {
        return COLIBRI_OK;
    }
    int flags = fcntl(options->fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
        return report_fault(report, COLIBRI_E_USAGE, "--trace-fd %d is not open for writing; in a shell: %d>trace.bin",
                            options->fd, options->fd);
    }
    trace_output_open(options->fd, options->output);
    trace_set_mask(options->mask);
    return COLIBRI_OK;
}

static void print_count(Writer *writer, const char *name, uint32_t value) {
    write_text(writer, name);
    write_integer(writer, value);
}

void trace_print_counts(Writer *writer) {
    if (trace_n_records() == 0) {
        return;
    }
    print_count(writer, ",\"trace\":{\"records\":", trace_n_records());
    print_count(writer, ",\"dropped\":", trace_n_dropped());
    if (trace_output_error() != 0) {
        write_text(writer, ",\"error\":");
        write_json_text(writer, strerror(trace_output_error()));
    }
    write_text(writer, "}");
}

void trace_print_names(Writer *writer) {
    const char *before = "[\"";
    for (int i = 0; i < N_EVENTS; i++) {
        if (events[i].bit & TRACE_COMPILED_MASK) {
            write_text(writer, before);
            write_text(writer, events[i].name);
            before = "\", \"";
        }
    }
    write_text(writer, "\"]");
}
#endif
