/* QEMU plugin: counts the instructions of a guest program by (part, context, function). The context is the last
 * function executed that has one of its own: so a kernel's instructions are told apart by who called it. Part 0 lasts
 * until the guest first writes to its standard output, part 1 for the `writes` after that, part 2 until its end.
 *
 * usage: -plugin LIB,functions=PATH,out=PATH,writes=N
 * functions: lines "BEGIN END CONTEXT" (hexadecimal addresses, END exclusive, ascending; CONTEXT -1: that of before).
 * out: lines "PART CONTEXT FUNCTION COUNT" (indices from 0; FUNCTION -1: outside of all functions), counts above 0
 * only.
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
typedef void (*SyscallCallback)(PluginId, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                                uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
typedef struct {
    const char *target_name; /* "x86_64"; more follows in QEMU's own */
} Machine;

enum { NO_REGISTERS = 0 };
enum { MAX_FUNCTIONS = 8192, MAX_CONTEXTS = 64, N_PARTS = 3, COUNT_BITS = 16, NO_CONTEXT = -1 };

void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id, TranslateCallback callback);
void qemu_plugin_register_vcpu_tb_exec_cb(TranslationBlock *block, ExecuteCallback callback, int flags, void *data);
size_t qemu_plugin_tb_n_insns(const TranslationBlock *block);
uint64_t qemu_plugin_tb_vaddr(const TranslationBlock *block);
void qemu_plugin_register_vcpu_syscall_cb(PluginId id, SyscallCallback callback);
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
static uint64_t counts[N_PARTS][MAX_CONTEXTS][MAX_FUNCTIONS + 1]; /* the last: outside of all functions */
static int part, context;                                         /* guests with one thread only */
static int64_t n_writes, writes_in_part_1;
static int64_t write_number; /* of the guest's system call */
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
    counts[part][context][function] += packed & ((1u << COUNT_BITS) - 1);
}

static void on_translation(PluginId id, TranslationBlock *block) {
    (void)id;
    uintptr_t function = (uintptr_t)function_at(qemu_plugin_tb_vaddr(block));
    uintptr_t packed = function << COUNT_BITS | qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_execution, NO_REGISTERS, (void *)packed);
}

static void on_system_call(PluginId id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                           uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)vcpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number == write_number && a1 == 1) {
        part = n_writes < writes_in_part_1 ? 1 : 2;
        n_writes++;
    }
}

static void print_part(FILE *out, int p) {
    for (int c = 0; c < MAX_CONTEXTS; c++) {
        for (int f = 0; f <= n_functions; f++) {
            if (counts[p][c][f] > 0) {
                fprintf(out, "%d %d %d %" PRIu64 "\n", p, c, f < n_functions ? f : -1, counts[p][c][f]);
            }
        }
    }
}

static void on_exit_of_guest(PluginId id, void *data) {
    (void)id;
    (void)data;
    FILE *out = fopen(out_path, "w");
    if (out == NULL) {
        perror(out_path);
        return;
    }
    for (int p = 0; p < N_PARTS; p++) {
        print_part(out, p);
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
    write_number = strcmp(((const Machine *)info)->target_name, "x86_64") == 0 ? 1 : 64;
    int failed = 0;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0 && strlen(argv[i] + 4) < sizeof out_path) {
            strcpy(out_path, argv[i] + 4);
        } else if (strncmp(argv[i], "functions=", 10) == 0) {
            failed |= read_functions(argv[i] + 10);
        } else if (strncmp(argv[i], "writes=", 7) == 0) {
            writes_in_part_1 = strtol(argv[i] + 7, NULL, 10);
        } else {
            fprintf(stderr, "none of functions=PATH, out=PATH, writes=N: %s\n", argv[i]);
            failed = -1;
        }
    }
    if (failed != 0 || out_path[0] == '\0') {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
    qemu_plugin_register_atexit_cb(id, on_exit_of_guest, NULL);
    return 0;
}
