/* QEMU plugin: counts the instructions of a guest program by (context, function). The context is the last function
 * executed that has one of its own: so a kernel's instructions are told apart by who called it.
 *
 * usage: -plugin LIB,functions=PATH,out=PATH
 * functions: lines "BEGIN END CONTEXT" (hexadecimal addresses, END exclusive, ascending; CONTEXT -1: that of before).
 * out: lines "CONTEXT FUNCTION COUNT" (indices from 0; FUNCTION -1: outside of all functions), counts above 0 only.
 *
 * Debian ships no qemu-plugin.h, so the functions that are used (plugin API version 1) are declared here. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t PluginId;
typedef struct qemu_plugin_tb TranslationBlock;
typedef struct qemu_plugin_insn Instruction;
typedef void (*TranslateCallback)(PluginId, TranslationBlock *);
typedef void (*ExecuteCallback)(unsigned int vcpu, void *data);

enum { NO_REGISTERS = 0 };
enum { MAX_FUNCTIONS = 8192, MAX_CONTEXTS = 64, COUNT_BITS = 16, NO_CONTEXT = -1 };

void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id, TranslateCallback callback);
void qemu_plugin_register_vcpu_tb_exec_cb(TranslationBlock *block, ExecuteCallback callback, int flags, void *data);
size_t qemu_plugin_tb_n_insns(const TranslationBlock *block);
uint64_t qemu_plugin_tb_vaddr(const TranslationBlock *block);
void qemu_plugin_register_atexit_cb(PluginId id, void (*callback)(PluginId, void *), void *data);

EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(PluginId id, const void *info, int argc, char **argv);

typedef struct {
    uint64_t begin;
    uint64_t end;
    int context;
} Function;

static Function functions[MAX_FUNCTIONS];
static int n_functions;
static uint64_t counts[MAX_CONTEXTS][MAX_FUNCTIONS + 1]; /* the last: outside of all functions */
static int context;                                      /* guests with one thread only */
static char out_path[4096];

/* Index of the function that holds `address`; n_functions: none. */
static int function_at(uint64_t address) {
    int low = 0;
    int high = n_functions;
    while (low < high) {
        int middle = (low + high) / 2;
        if (functions[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n_functions && functions[low].begin <= address ? low : n_functions;
}

/* data: function index << COUNT_BITS | instructions of the block. */
static void on_execution(unsigned int vcpu, void *data) {
    (void)vcpu;
    uintptr_t packed = (uintptr_t)data;
    size_t function = packed >> COUNT_BITS;
    int own = function < (size_t)n_functions ? functions[function].context : NO_CONTEXT;
    if (own != NO_CONTEXT) {
        context = own;
    }
    counts[context][function] += packed & ((1u << COUNT_BITS) - 1);
}

static void on_translation(PluginId id, TranslationBlock *block) {
    (void)id;
    uintptr_t function = (uintptr_t)function_at(qemu_plugin_tb_vaddr(block));
    uintptr_t packed = function << COUNT_BITS | qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_execution, NO_REGISTERS, (void *)packed);
}

static void on_exit_of_guest(PluginId id, void *data) {
    (void)id;
    (void)data;
    FILE *out = fopen(out_path, "w");
    if (out == NULL) {
        perror(out_path);
        return;
    }
    for (int c = 0; c < MAX_CONTEXTS; c++) {
        for (int f = 0; f <= n_functions; f++) {
            if (counts[c][f] > 0) {
                fprintf(out, "%d %d %" PRIu64 "\n", c, f < n_functions ? f : -1, counts[c][f]);
            }
        }
    }
    fclose(out);
}

static int read_functions(const char *path) {
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        perror(path);
        return -1;
    }
    Function *f = functions;
    while (n_functions < MAX_FUNCTIONS &&
           fscanf(in, "%" SCNx64 " %" SCNx64 " %d", &f->begin, &f->end, &f->context) == 3) {
        n_functions++;
        f++;
    }
    int is_whole = feof(in);
    fclose(in);
    return is_whole ? 0 : -1;
}

int qemu_plugin_install(PluginId id, const void *info, int argc, char **argv) {
    (void)info;
    int failed = 0;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0 && strlen(argv[i] + 4) < sizeof out_path) {
            strcpy(out_path, argv[i] + 4);
        } else if (strncmp(argv[i], "functions=", 10) == 0) {
            failed |= read_functions(argv[i] + 10);
        } else {
            fprintf(stderr, "neither functions=PATH nor out=PATH: %s\n", argv[i]);
            failed = -1;
        }
    }
    if (failed != 0 || out_path[0] == '\0') {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_guest, NULL);
    return 0;
}
