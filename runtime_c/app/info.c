#include <stdbool.h>

#include "app/modes.h"
#include "app/output.h"
#include "app/tracing.h"
#include "app/tuning.h"
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

static void print_key(Writer *writer, const char *key) {
    write_text(writer, ",\n \"");
    write_text(writer, key);
    write_text(writer, "\": ");
}

static void print_text(Writer *writer, const char *key, const char *value) {
    print_key(writer, key);
    write_json_text(writer, value);
}

static void print_number(Writer *writer, const char *key, int64_t value) {
    print_key(writer, key);
    write_integer(writer, value);
}

static void print_ids(Writer *writer, const char *key, const int *ids, int n) {
    print_key(writer, key);
    write_text(writer, "[");
    for (int i = 0; i < n; i++) {
        write_text(writer, i > 0 ? ", " : "");
        write_integer(writer, ids[i]);
    }
    write_text(writer, "]");
}

static void print_shape(Writer *writer) {
    print_number(writer, "layers", MODEL_N_LAYERS);
    print_number(writer, "dim", MODEL_DIM);
    print_number(writer, "hidden_dim", MODEL_HIDDEN_DIM);
    print_number(writer, "heads", MODEL_N_HEADS);
    print_number(writer, "kv_heads", MODEL_N_KV_HEADS);
    print_number(writer, "head_dim", MODEL_HEAD_DIM);
    print_number(writer, "experts", MODEL_N_EXPERTS);
    print_number(writer, "top_k", MODEL_TOP_K);
    print_number(writer, "vocab_size", MODEL_VOCAB_SIZE);
    print_ids(writer, "eos_ids", model_eos_ids, MODEL_N_EOS);
}

static void print_formats(Writer *writer) {
    print_number(writer, "group_size", MODEL_GROUP_SIZE);
    print_number(writer, "activation_bits", MODEL_ACTIVATION_BITS);
    print_text(writer, "expert_format", format_name(MODEL_EXPERT_FORMAT));
    print_text(writer, "attention_format", format_name(MODEL_ATTENTION_FORMAT));
    print_text(writer, "embedding_format", format_name(MODEL_EMBEDDING_FORMAT));
    print_text(writer, "lm_head_format", format_name(MODEL_LM_HEAD_FORMAT));
}

static void print_golden(Writer *writer) {
    print_text(writer, "golden_prompt", model_golden_prompt);
    print_ids(writer, "golden_ids", model_golden_ids, MODEL_N_GOLDEN);
    print_key(writer, "golden_hash");
    write_text(writer, "\"");
    write_hash(writer, model_golden_hash);
    write_text(writer, "\"");
}

void write_info(Writer *writer) {
    write_text(writer, "{\n \"model\": ");
    write_json_text(writer, model_name);
    print_text(writer, "model_sha256", model_digest);
    print_text(writer, "builder", model_builder_version);
    print_number(writer, "abi", COLIBRI_ABI);
    print_text(writer, "board", BOARD_NAME);
    print_text(writer, "kernels", KERNELS);
    print_text(writer, "compiler", COMPILER);
    print_text(writer, "c_library", C_LIBRARY);
    print_text(writer, "toolchain", BOARD_TOOLCHAIN);
    print_text(writer, "c_flags", BOARD_C_FLAGS);
    print_text(writer, "link_flags", BOARD_LINK_FLAGS);
    print_number(writer, "context", MODEL_CONTEXT);
    print_number(writer, "prefill_batch", MODEL_BATCH);
    print_number(writer, "max_threads", MODEL_MAX_THREADS);
    print_number(writer, "default_threads", BOARD_DEFAULT_THREADS);
    print_key(writer, "run_options");
    tuning_write_names(writer);
#if TRACE_COMPILED
    print_key(writer, "debug");
    trace_print_names(writer);
#endif
    print_shape(writer);
    print_formats(writer);
#ifdef MODEL_CHAT
    print_number(writer, "chat_form_bytes", MODEL_CHAT_PREFIX_BYTES + MODEL_CHAT_SUFFIX_BYTES);
#endif
    print_golden(writer);
}

void print_info(void) {
    write_info(&out);
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
