/* The options of a debug build, and what its status line adds (docs/tracing.md). */
#ifndef COLIBRI_APP_TRACING_H
#define COLIBRI_APP_TRACING_H

#include "app/report.h"
#include "trace/trace.h"

#if TRACE_COMPILED
typedef struct {
    TraceOutput output;
    int fd;
    unsigned mask;
} TraceOptions;

/* Read the value of --trace and of --trace-events; a fault is reported. */
COLIBRI_MUST_CHECK colibri_status trace_output_value(const char *text, TraceOptions *options, Report *report);
COLIBRI_MUST_CHECK colibri_status trace_events_value(const char *text, TraceOptions *options, Report *report);

/* Begins to record and to write. COLIBRI_E_USAGE for a descriptor that is not open for writing. */
COLIBRI_MUST_CHECK colibri_status trace_start(const TraceOptions *options, Report *report);

/* The member "trace" of a status line, if anything was recorded. */
void trace_print_counts(Writer *writer);

/* The names of what is compiled in, as a JSON list. */
void trace_print_names(Writer *writer);
#endif

#endif
