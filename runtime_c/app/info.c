#include <stdbool.h>

#include "app/modes.h"
#include "app/output.h"
#include "app/tracing.h"
#include "store/model_tables.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#if defined(__GLIBC__)
#define C_LIBRARY "glibc"
#else
#define C_LIBRARY "musl"
#endif

#if defined(BOARD_KERNELS_AVX2)
#define KERNELS "avx2"
#elif defined(BOARD_KERNELS_NEON)
#define KERNELS "neon"
#else
#define KERNELS "portable"
#endif

static const char *format_name(int format) {
    switch (format) {
    case FORMAT_W4:
        return "w4";
    case FORMAT_W8:
        return "w8";
    default:
        return "f16";
    }
}

static void print_key(const char *key) {
    write_text(&out, ",\n \"");
    write_text(&out, key);
    write_text(&out, "\": ");
}

static void print_text(const char *key, const char *value) {
    print_key(key);
    write_json_text(&out, value);
}

static void print_number(const char *key, int64_t value) {
    print_key(key);
    write_integer(&out, value);
}

static void print_ids(const char *key, const int *ids, int n) {
    print_key(key);
    write_text(&out, "[");
    for (int i = 0; i < n; i++) {
        write_text(&out, i > 0 ? ", " : "");
        write_integer(&out, ids[i]);
    }
    write_text(&out, "]");
}

static void print_shape(void) {
    print_number("layers", MODEL_N_LAYERS);
    print_number("dim", MODEL_DIM);
    print_number("hidden_dim", MODEL_HIDDEN_DIM);
    print_number("heads", MODEL_N_HEADS);
    print_number("kv_heads", MODEL_N_KV_HEADS);
    print_number("head_dim", MODEL_HEAD_DIM);
    print_number("experts", MODEL_N_EXPERTS);
    print_number("top_k", MODEL_TOP_K);
    print_number("vocab_size", MODEL_VOCAB_SIZE);
    print_ids("eos_ids", model_eos_ids, MODEL_N_EOS);
}

static void print_formats(void) {
    print_number("group_size", MODEL_GROUP_SIZE);
    print_number("activation_bits", MODEL_ACTIVATION_BITS);
    print_text("expert_format", format_name(MODEL_EXPERT_FORMAT));
    print_text("attention_format", format_name(MODEL_ATTENTION_FORMAT));
    print_text("embedding_format", format_name(MODEL_EMBEDDING_FORMAT));
    print_text("lm_head_format", format_name(MODEL_LM_HEAD_FORMAT));
}

static void print_golden(void) {
    print_text("golden_prompt", model_golden_prompt);
    print_ids("golden_ids", model_golden_ids, MODEL_N_GOLDEN);
    print_key("golden_hash");
    write_text(&out, "\"");
    write_hash(&out, model_golden_hash);
    write_text(&out, "\"");
}

void print_info(void) {
    write_text(&out, "{\n \"model\": ");
    write_json_text(&out, model_name);
    print_text("model_sha256", model_digest);
    print_text("builder", model_builder_version);
    print_number("abi", COLIBRI_ABI);
    print_text("board", BOARD_NAME);
    print_text("kernels", KERNELS);
    print_text("compiler", COMPILER);
    print_text("c_library", C_LIBRARY);
    print_text("toolchain", BOARD_TOOLCHAIN);
    print_text("c_flags", BOARD_C_FLAGS);
    print_text("link_flags", BOARD_LINK_FLAGS);
    print_number("context", MODEL_CONTEXT);
    print_number("max_threads", MODEL_MAX_THREADS);
    print_number("default_threads", BOARD_DEFAULT_THREADS);
#if TRACE_COMPILED
    print_key("debug");
    trace_print_names();
#endif
    print_shape();
    print_formats();
    print_golden();
    write_text(&out, "\n}\n");
}

void print_version(void) {
    write_text(&out, "colibri_inference ");
    write_text(&out, model_builder_version);
    write_text(&out, " (ABI ");
    write_integer(&out, COLIBRI_ABI);
    write_text(&out, ", model ");
    write_text(&out, model_name);
    write_text(&out, ", board " BOARD_NAME ")\n");
}

void print_ready(void) {
    write_text(&out, "READY colibri model=");
    write_text(&out, model_name);
    write_text(&out, " digest=");
    write_bytes(&out, model_digest, 16);
    write_text(&out, "\n");
}
