/* Gives llama.cpp the work of `colibri_inference --bench` and `--tokens`: a prompt of token ids, then greedy tokens.
 *
 *     peer_driver quantize GGUF OUT q4_0|q4_k_m THREADS
 *     peer_driver run GGUF IDS TOKENS THREADS CONTEXT repack|plain
 *
 * IDS is 1,2,3; TOKENS >= 1 counts chosen tokens, ends of sequence do not stop. `plain` leaves the weights as the file
 * has them. Prints each id at once, to standard output, and in the end one line for machines, PEER_STATUS {...}, to
 * standard error. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "llama.h"

enum { MAX_IDS = 16384 };

typedef struct {
    int n;
    llama_token ids[MAX_IDS];
} Ids;

/* What is timed, in microseconds. As in the firmware's --bench a decoded token is the choice of a token and its way
 * through the layers; the first one is chosen from the prompt's logits. */
typedef struct {
    int64_t load_us;    /* model and context */
    int64_t prefill_us; /* the prompt, all but the choice of the first token */
    int n;
    int64_t us[MAX_IDS];
    int64_t total_us;
    long major_faults; /* of the decoded tokens */
    long minor_faults;
} Timing;

static Ids prompt;
static Ids chosen;
static Timing timing;

static int64_t now_us(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void keep_warnings(enum ggml_log_level level, const char *text, void *data) {
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

static int fail(const char *what, const char *which) {
    fprintf(stderr, "peer_driver: %s: %s\n", which, what);
    return 1;
}

static int quantize(const char *in, const char *out, const char *type, int n_threads) {
    struct llama_model_quantize_params params = llama_model_quantize_default_params();
    if (strcmp(type, "q4_0") == 0) {
        params.ftype = LLAMA_FTYPE_MOSTLY_Q4_0;
    } else if (strcmp(type, "q4_k_m") == 0) {
        params.ftype = LLAMA_FTYPE_MOSTLY_Q4_K_M;
    } else {
        return fail("not q4_0 or q4_k_m", type);
    }
    params.nthread = n_threads;
    return llama_model_quantize(in, out, &params) == 0 ? 0 : fail("cannot be quantized", in);
}

/* False for anything but whole numbers with commas between. */
static bool parse_ids(const char *text, Ids *ids) {
    while (ids->n < MAX_IDS) {
        char *end = NULL;
        long id = strtol(text, &end, 10);
        if (end == text || id < 0 || id > INT32_MAX) {
            return false;
        }
        ids->ids[ids->n++] = (llama_token)id;
        if (*end == '\0') {
            return true;
        }
        if (*end != ',') {
            return false;
        }
        text = end + 1;
    }
    return false;
}

static llama_token most_likely(const float *logits, int n) {
    int best = 0;
    for (int i = 1; i < n; i++) {
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    return best;
}

static struct llama_context *open_context(struct llama_model *model, int n_threads, int n_positions) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)n_positions;
    params.n_threads = n_threads;
    params.n_threads_batch = n_threads;
    return llama_init_from_model(model, params);
}

static void print_token(int n, llama_token token) {
    printf("%s%d", n > 0 ? "," : "", token);
    fflush(stdout);
}

/* The firmware feeds every token of --bench and prints nothing meanwhile; with --tokens it prints each at once and
 * feeds all but the last: `is_timed` says which one is done. */
static int generate(struct llama_context *context, int n_vocab, int n_tokens, bool is_timed) {
    int64_t start = now_us();
    if (llama_decode(context, llama_batch_get_one(prompt.ids, prompt.n)) != 0) {
        return fail("cannot be computed", "prompt");
    }
    const float *logits = llama_get_logits_ith(context, -1); /* waits for the computation */
    int64_t before = now_us();
    timing.prefill_us = before - start;
    struct rusage first;
    struct rusage last;
    (void)getrusage(RUSAGE_SELF, &first);
    for (int n = 0; n < n_tokens; n++) {
        llama_token token = most_likely(logits, n_vocab);
        chosen.ids[chosen.n++] = token;
        if (!is_timed) {
            print_token(n, token);
        }
        if (n + 1 == n_tokens && !is_timed) {
            break;
        }
        if (llama_decode(context, llama_batch_get_one(&token, 1)) != 0) {
            return fail("cannot be computed", "token");
        }
        logits = llama_get_logits_ith(context, -1);
        int64_t after = now_us();
        timing.us[timing.n++] = after - before;
        timing.total_us += after - before;
        before = after;
    }
    (void)getrusage(RUSAGE_SELF, &last);
    timing.major_faults = last.ru_majflt - first.ru_majflt;
    timing.minor_faults = last.ru_minflt - first.ru_minflt;
    return 0;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nearest rank. */
static int64_t percentile(int percent) {
    int rank = (timing.n * percent + 99) / 100;
    return timing.n > 0 ? timing.us[rank > 0 ? rank - 1 : 0] : 0;
}

static int64_t square_root(int64_t value) {
    int64_t root = 0;
    while ((root + 1) * (root + 1) <= value) {
        root++;
    }
    return root;
}

static void print_status(void) {
    int64_t squares = 0;
    for (int i = 0; i < timing.n; i++) {
        int64_t distance = timing.us[i] - timing.total_us / timing.n;
        squares += distance * distance;
    }
    qsort(timing.us, (size_t)timing.n, sizeof timing.us[0], ascending);
    fprintf(stderr,
            "\nPEER_STATUS {\"load_us\":%" PRId64 ",\"prompt_tokens\":%d,\"tokens\":%d,\"bench\":{\"tokens\":%d,"
            "\"prefill_us\":%" PRId64 ",\"total_us\":%" PRId64 ",\"median_us\":%" PRId64 ",\"p99_us\":%" PRId64
            ",\"max_us\":%" PRId64 ",\"std_us\":%" PRId64 "},\"major_faults\":%ld,\"minor_faults\":%ld,\"ids\":[",
            timing.load_us, prompt.n, chosen.n, timing.n, timing.prefill_us, timing.total_us, percentile(50),
            percentile(99), percentile(100), timing.n > 0 ? square_root(squares / timing.n) : 0, timing.major_faults,
            timing.minor_faults);
    for (int i = 0; i < chosen.n; i++) {
        fprintf(stderr, "%s%d", i > 0 ? "," : "", chosen.ids[i]);
    }
    fputs("]}\n", stderr);
}

static int run(const char *path, int n_tokens, int n_threads, int n_positions, bool repacks, bool is_timed) {
    int64_t start = now_us();
    struct llama_model_params params = llama_model_default_params();
    params.use_extra_bufts = repacks;
    struct llama_model *model = llama_model_load_from_file(path, params);
    if (model == NULL) {
        return fail("cannot be loaded", path);
    }
    struct llama_context *context = open_context(model, n_threads, n_positions);
    if (context == NULL) {
        return fail("no context", path);
    }
    timing.load_us = now_us() - start;
    int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    int code = generate(context, n_vocab, n_tokens, is_timed);
    print_status();
    return code;
}

int main(int argc, char **argv) {
    llama_log_set(keep_warnings, NULL);
    llama_backend_init();
    if (argc == 6 && strcmp(argv[1], "quantize") == 0) {
        return quantize(argv[2], argv[3], argv[4], atoi(argv[5]));
    }
    bool is_bench = argc == 8 && strcmp(argv[1], "bench") == 0;
    bool is_run = argc == 8 && strcmp(argv[1], "tokens") == 0;
    if (!is_bench && !is_run) {
        fputs("usage: peer_driver quantize GGUF OUT q4_0|q4_k_m THREADS\n"
              "       peer_driver bench|tokens GGUF IDS TOKENS THREADS CONTEXT repack|plain\n",
              stderr);
        return 2;
    }
    int n_tokens = atoi(argv[4]);
    bool repacks = strcmp(argv[7], "repack") == 0;
    if (n_tokens < 1 || n_tokens > MAX_IDS || !parse_ids(argv[3], &prompt)) {
        return fail("not ids and a number of tokens", argv[3]);
    }
    return run(argv[2], n_tokens, atoi(argv[5]), atoi(argv[6]), repacks, is_bench);
}
