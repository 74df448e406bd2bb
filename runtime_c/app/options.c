#include "app/options.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "app/deadline.h"
#include "app/numbers.h"
#include "app/output.h"
#include "board_config.h"
#include "port/tty.h"

typedef enum {
    OPTION_MODE, /* `mode` says which */
    OPTION_MAX_TOKENS,
    OPTION_TEMPERATURE,
    OPTION_TOP_P,
    OPTION_SEED,
    OPTION_THREADS,
    OPTION_CONTEXT,
    OPTION_IDS,
    OPTION_RAW,
    OPTION_CONSOLE,
    OPTION_BAUD,
    OPTION_DEADLINE,
    OPTION_LOCK_MEMORY,
    OPTION_PREFAULT,
    OPTION_HUGE_PAGES,
    OPTION_PIN,
    OPTION_REALTIME,
#if TRACE_COMPILED
    OPTION_TRACE,
    OPTION_TRACE_FD,
    OPTION_TRACE_EVENTS,
#endif
} OptionId;

#define IN(mode) (1u << (mode))
enum {
    GENERATING = IN(MODE_PROMPT) | IN(MODE_TOKENS) | IN(MODE_STDIN),
    COMPUTING = GENERATING | IN(MODE_SELFTEST) | IN(MODE_BENCH),
    SERVING = IN(MODE_SERVE)
};

typedef struct {
    const char *name;
    const char *value; /* name of its value, NULL if it takes none */
    OptionId id;
    Mode mode;
    unsigned goes_with; /* modes, as bits */
    const char *help;
} OptionSpec;

static const OptionSpec specs[] = {
    {"prompt", "TEXT", OPTION_MODE, MODE_PROMPT, 0, "answer TEXT; the answer is streamed to standard output"},
    {"tokens", "IDS", OPTION_MODE, MODE_TOKENS, 0, "the same for a prompt of token ids: 1,2,3"},
    {"stdin", NULL, OPTION_MODE, MODE_STDIN, 0, "answer each line of standard input with one line"},
    {"info", NULL, OPTION_MODE, MODE_INFO, 0, "print what this binary holds, as JSON"},
    {"selftest", NULL, OPTION_MODE, MODE_SELFTEST, 0, "answer the embedded prompt and compare with the reference"},
    {"bench", "N", OPTION_MODE, MODE_BENCH, 0, "time N decode tokens after the embedded prompt"},
    {"serve", NULL, OPTION_MODE, MODE_SERVE, 0, "answer a person or a host program on the console"},
    {"help", NULL, OPTION_MODE, MODE_HELP, 0, "print this text"},
    {"version", NULL, OPTION_MODE, MODE_VERSION, 0, "print the version"},
    {"max-tokens", "N", OPTION_MAX_TOKENS, MODE_NONE, GENERATING | SERVING,
     "stop after N tokens (default: end of text or context)"},
    {"temperature", "T", OPTION_TEMPERATURE, MODE_NONE, GENERATING | SERVING,
     "0: greedy (default); 0.01 .. 100: sample"},
    {"top-p", "P", OPTION_TOP_P, MODE_NONE, GENERATING | SERVING,
     "sample from the most likely tokens that make up P (default 1)"},
    {"seed", "N", OPTION_SEED, MODE_NONE, GENERATING | SERVING,
     "start of the random numbers, for every prompt (default 0)"},
    {"threads", "N", OPTION_THREADS, MODE_NONE, COMPUTING | SERVING,
     "threads; they change no result (default: the board's)"},
    {"ctx", "N", OPTION_CONTEXT, MODE_NONE, GENERATING | SERVING | IN(MODE_BENCH),
     "positions for prompt and answer (default: all compiled in)"},
    {"ids", NULL, OPTION_IDS, MODE_NONE, GENERATING, "print token ids (1,2,3) instead of text"},
#ifdef MODEL_CHAT
    {"raw", NULL, OPTION_RAW, MODE_NONE, IN(MODE_PROMPT) | IN(MODE_STDIN) | SERVING,
     "take prompts as they are, without the model's chat form"},
#endif
    {"console", "PATH", OPTION_CONSOLE, MODE_NONE, SERVING,
     "terminal to serve on (default: standard input and output)"},
    {"baud", "N", OPTION_BAUD, MODE_NONE, SERVING, "its speed (default: as it is)"},
    {"deadline-ms", "T", OPTION_DEADLINE, MODE_NONE, GENERATING | SERVING | IN(MODE_BENCH),
     "report every token that takes longer than T milliseconds"},
    {"lock-memory", NULL, OPTION_LOCK_MEMORY, MODE_NONE, COMPUTING | SERVING, "keep all memory in RAM"},
    {"prefault", NULL, OPTION_PREFAULT, MODE_NONE, COMPUTING | SERVING, "map all memory before the first token"},
    {"huge-pages", NULL, OPTION_HUGE_PAGES, MODE_NONE, COMPUTING | SERVING, "copy the weights to huge pages first"},
    {"pin", "CPUS", OPTION_PIN, MODE_NONE, COMPUTING | SERVING, "one CPU a thread: 0,1 or 0-3"},
    {"realtime", "N", OPTION_REALTIME, MODE_NONE, COMPUTING | SERVING, "run first in, first out, at priority 1 .. 99"},
#if TRACE_COMPILED
    {"trace", "HOW", OPTION_TRACE, MODE_NONE, COMPUTING, "write the records as text (default) or binary, or off"},
    {"trace-fd", "N", OPTION_TRACE_FD, MODE_NONE, COMPUTING, "descriptor that they go to (default 2)"},
    {"trace-events", "NAMES", OPTION_TRACE_EVENTS, MODE_NONE, COMPUTING | SERVING,
     "only these: routing,memory,timing (default: all compiled in)"},
#endif
};

enum { N_SPECS = sizeof specs / sizeof specs[0] };

static const OptionSpec *find_spec(const char *name, size_t length) {
    for (int i = 0; i < N_SPECS; i++) {
        if (strlen(specs[i].name) == length && memcmp(specs[i].name, name, length) == 0) {
            return &specs[i];
        }
    }
    return NULL;
}

/* Reads a whole number into *value; reports what is wrong with it. */
static colibri_status integer_value(const OptionSpec *spec, const char *text, int minimum, int maximum, int *value,
                                    Report *report) {
    int64_t number = 0;
    NumberResult result = parse_integer(text, strlen(text), &number);
    if (result == NUMBER_MALFORMED) {
        return report_fault(report, COLIBRI_E_USAGE, "--%s '%s' is not a whole number; try --%s %d", spec->name, text,
                            spec->name, minimum);
    }
    if (result == NUMBER_TOO_LARGE || number < minimum || number > maximum) {
        return report_fault(report, COLIBRI_E_USAGE, "--%s %s is out of range; try %d .. %d", spec->name, text, minimum,
                            maximum);
    }
    *value = (int)number;
    return COLIBRI_OK;
}

static colibri_status seed_value(const char *text, uint64_t *seed, Report *report) {
    NumberResult result = parse_unsigned(text, strlen(text), seed);
    if (result == NUMBER_OK) {
        return COLIBRI_OK;
    }
    return report_fault(report, COLIBRI_E_USAGE, "--seed '%s' is not a whole number of 64 bits; try 0 .. %s", text,
                        "18446744073709551615");
}

static colibri_status decimal_value(const OptionSpec *spec, const char *text, float *value, Report *report) {
    if (parse_decimal(text, value) == NUMBER_OK) {
        return COLIBRI_OK;
    }
    return report_fault(report, COLIBRI_E_USAGE, "--%s '%s' is not a decimal number; try --%s 0.7", spec->name, text,
                        spec->name);
}

bool temperature_is_valid(float temperature) {
    return temperature == 0.0f || (temperature >= 0.01f && temperature <= 100.0f);
}

bool top_p_is_valid(float top_p) {
    return top_p > 0.0f && top_p <= 1.0f;
}

static colibri_status temperature_value(const OptionSpec *spec, const char *text, Options *options, Report *report) {
    colibri_status status = decimal_value(spec, text, &options->temperature, report);
    if (status != COLIBRI_OK) {
        return status;
    }
    if (temperature_is_valid(options->temperature)) {
        return COLIBRI_OK;
    }
    return report_fault(report, COLIBRI_E_USAGE, "--temperature %s is out of range; try 0 (greedy) or 0.01 .. 100",
                        text);
}

static colibri_status top_p_value(const OptionSpec *spec, const char *text, Options *options, Report *report) {
    colibri_status status = decimal_value(spec, text, &options->top_p, report);
    if (status != COLIBRI_OK) {
        return status;
    }
    if (top_p_is_valid(options->top_p)) {
        return COLIBRI_OK;
    }
    return report_fault(report, COLIBRI_E_USAGE, "--top-p %s is out of range; try more than 0, at most 1", text);
}

static colibri_status baud_value(const OptionSpec *spec, const char *text, Options *options, Report *report) {
    colibri_status status = integer_value(spec, text, 1, INT_MAX, &options->baud, report);
    if (status == COLIBRI_OK && !tty_has_speed(options->baud)) {
        return report_fault(report, COLIBRI_E_USAGE, "--baud %s is no speed of serial lines; try --baud 115200", text);
    }
    return status;
}

static const char *mode_option_name(Mode mode) {
    for (int i = 0; i < N_SPECS; i++) {
        if (specs[i].id == OPTION_MODE && specs[i].mode == mode) {
            return specs[i].name;
        }
    }
    return "";
}

static colibri_status set_mode(const OptionSpec *spec, const char *text, Options *options, Report *report) {
    if (options->mode != MODE_NONE) {
        return report_fault(report, COLIBRI_E_USAGE, "--%s and --%s do not go together; give one of them",
                            mode_option_name(options->mode), spec->name);
    }
    options->mode = spec->mode;
    options->prompt = text;
    if (spec->mode == MODE_BENCH) {
        return integer_value(spec, text, 1, MODEL_CONTEXT, &options->n_bench_tokens, report);
    }
    return COLIBRI_OK;
}

static colibri_status set_option(const OptionSpec *spec, const char *text, Options *options, Report *report) {
    switch (spec->id) {
    case OPTION_MODE:
        return set_mode(spec, text, options, report);
    case OPTION_MAX_TOKENS:
        return integer_value(spec, text, 1, INT_MAX, &options->max_tokens, report);
    case OPTION_TEMPERATURE:
        return temperature_value(spec, text, options, report);
    case OPTION_TOP_P:
        return top_p_value(spec, text, options, report);
    case OPTION_SEED:
        return seed_value(text, &options->seed, report);
    case OPTION_THREADS:
        return integer_value(spec, text, 1, MODEL_MAX_THREADS, &options->n_threads, report);
    case OPTION_CONTEXT:
        return integer_value(spec, text, 1, MODEL_CONTEXT, &options->context, report);
    case OPTION_IDS:
        options->prints_ids = true;
        break;
    case OPTION_RAW:
        options->is_raw = true;
        break;
    case OPTION_CONSOLE:
        options->console = text;
        break;
    case OPTION_BAUD:
        return baud_value(spec, text, options, report);
    case OPTION_DEADLINE:
        return deadline_value(text, &options->deadline_us, report);
    case OPTION_LOCK_MEMORY:
        options->tuning.locks_memory = true;
        break;
    case OPTION_PREFAULT:
        options->tuning.prefaults = true;
        break;
    case OPTION_HUGE_PAGES:
        options->tuning.uses_huge_pages = true;
        break;
    case OPTION_PIN:
        return pin_value(text, &options->tuning, report);
    case OPTION_REALTIME:
        return integer_value(spec, text, 1, MOST_PRIORITY, &options->tuning.priority, report);
#if TRACE_COMPILED
    case OPTION_TRACE:
        return trace_output_value(text, &options->trace, report);
    case OPTION_TRACE_FD:
        return integer_value(spec, text, 1, INT_MAX, &options->trace.fd, report);
    case OPTION_TRACE_EVENTS:
        return trace_events_value(text, &options->trace, report);
#endif
    }
    return COLIBRI_OK;
}

/* Reads the option at argv[*at], and its value from "--name=value" or the next argument; moves *at to what it used. */
static colibri_status parse_one(int argc, char **argv, int *at, const OptionSpec **found, Options *options,
                                Report *report) {
    const char *argument = argv[*at];
    if (strncmp(argument, "--", 2) != 0) {
        return report_fault(report, COLIBRI_E_USAGE, "unexpected argument '%s'; try --prompt TEXT, or --help",
                            argument);
    }
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    const OptionSpec *spec = find_spec(name, equals != NULL ? (size_t)(equals - name) : strlen(name));
    if (spec == NULL) {
        return report_fault(report, COLIBRI_E_USAGE, "unknown option '%s'; try --help", argument);
    }
    const char *text = equals != NULL ? equals + 1 : NULL;
    if (spec->value == NULL && text != NULL) {
        return report_fault(report, COLIBRI_E_USAGE, "--%s takes no value; leave out '=%s'", spec->name, text);
    }
    if (spec->value != NULL && text == NULL) {
        if (*at + 1 == argc) {
            return report_fault(report, COLIBRI_E_USAGE, "--%s needs a value; try --%s %s", spec->name, spec->name,
                                spec->value);
        }
        text = argv[++*at];
    }
    *found = spec;
    return set_option(spec, text, options, report);
}

static int default_threads(void) {
    int n_threads = BOARD_DEFAULT_THREADS < MODEL_MAX_THREADS ? BOARD_DEFAULT_THREADS : MODEL_MAX_THREADS;
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return n_cpus < 1 ? 1 : n_cpus < n_threads ? (int)n_cpus : n_threads;
}

colibri_status options_parse(int argc, char **argv, Options *options, Report *report) {
    *options =
        (Options){.max_tokens = INT_MAX, .top_p = 1.0f, .n_threads = default_threads(), .context = MODEL_CONTEXT};
#if TRACE_COMPILED
    options->trace = (TraceOptions){TRACE_OUTPUT_TEXT, STDERR_FILENO, 0};
#endif
    const OptionSpec *given[N_SPECS] = {NULL};
    for (int at = 1; at < argc; at++) {
        const OptionSpec *spec = NULL;
        colibri_status status = parse_one(argc, argv, &at, &spec, options, report);
        if (status != COLIBRI_OK) {
            return status;
        }
        given[spec - specs] = spec;
    }
#if TRACE_COMPILED
    if (options->mode == MODE_SERVE) { /* which writes its records itself, when it is asked to */
        options->trace.output = TRACE_OUTPUT_OFF;
    } else if (options->trace.mask == 0) {
        options->trace.mask = TRACE_COMPILED_MASK;
    }
#endif
    if (options->mode == MODE_NONE) {
        return report_fault(report, COLIBRI_E_USAGE, "nothing to do; try --prompt TEXT, --selftest, or --help");
    }
    for (int i = 0; i < N_SPECS; i++) {
        if (given[i] != NULL && given[i]->id != OPTION_MODE && !(given[i]->goes_with & IN(options->mode))) {
            return report_fault(report, COLIBRI_E_USAGE, "--%s does not go with --%s; leave it out", given[i]->name,
                                mode_option_name(options->mode));
        }
    }
    return tuning_check(&options->tuning, options->n_threads, report);
}

void options_print_help(void) {
    static const char blanks[] = "                    ";
    write_text(&out, "usage: colibri_inference MODE [OPTION ...]\n\n");
    for (int i = 0; i < N_SPECS; i++) {
        const OptionSpec *spec = &specs[i];
        size_t width = strlen(spec->name) + (spec->value != NULL ? 1 + strlen(spec->value) : 0);
        if (i > 0 && spec->id != OPTION_MODE && specs[i - 1].id == OPTION_MODE) {
            write_text(&out, "\n");
        }
        write_text(&out, "  --");
        write_text(&out, spec->name);
        if (spec->value != NULL) {
            write_text(&out, " ");
            write_text(&out, spec->value);
        }
        write_text(&out, blanks + width);
        write_text(&out, spec->help);
        write_text(&out, "\n");
    }
    write_text(&out, "\nThe last line on standard error is COLIBRI_STATUS {...}, whatever happens.\n"
                     "exit codes: 0 ok, 2 usage, 3 bad prompt, 4 input or output, 5 not finite, 6 selftest,\n"
                     "            7 internal, 130 interrupted\n");
}
