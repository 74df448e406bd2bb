/* One function a mode; each fills the report and prints what it found on standard output. */
#ifndef COLIBRI_APP_MODES_H
#define COLIBRI_APP_MODES_H

#include "app/options.h"
#include "app/report.h"

COLIBRI_MUST_CHECK colibri_status run_prompt(const Options *options, Report *report);   /* --prompt, --tokens */
COLIBRI_MUST_CHECK colibri_status run_stdin(const Options *options, Report *report);    /* --stdin */
COLIBRI_MUST_CHECK colibri_status run_selftest(const Options *options, Report *report); /* --selftest */
COLIBRI_MUST_CHECK colibri_status run_bench(const Options *options, Report *report);    /* --bench */
void print_info(void);                                                                  /* --info */
void print_version(void);                                                               /* --version */

/* The object of --info without its closing brace: others may add to it. */
void write_info(Writer *writer);

/* "READY colibri model=NAME digest=...": for who waits at the console of a board that has just started. */
void print_ready(void);

#endif
