/* QEMU plugin: counts the instructions that a guest program executes and prints the sum when it ends, to standard error
 * or to a file (-plugin LIB,out=PATH). With marks=on it also prints the sum so far whenever the guest writes to its
 * standard output: a program that prints token by token is counted token by token.
 *
 * Debian ships no qemu-plugin.h, so the functions that are used (plugin API version 1) are declared here. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t PluginId;
typedef struct qemu_plugin_tb TranslationBlock;
typedef void (*TranslateCallback)(PluginId, TranslationBlock *);
typedef void (*SyscallCallback)(PluginId, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                                uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
typedef struct {
    const char *target_name; /* "x86_64"; more follows in QEMU's own */
} Machine;

enum { INLINE_ADD_U64 = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id, TranslateCallback callback);
void qemu_plugin_register_vcpu_tb_exec_inline(TranslationBlock *block, int operation, void *counter, uint64_t amount);
size_t qemu_plugin_tb_n_insns(const TranslationBlock *block);
void qemu_plugin_register_vcpu_syscall_cb(PluginId id, SyscallCallback callback);
void qemu_plugin_register_atexit_cb(PluginId id, void (*callback)(PluginId, void *), void *data);

EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(PluginId id, const void *info, int argc, char **argv);

static uint64_t executed;
static char out_path[4096];  // "": standard error
static int64_t write_number; // of the guest's system call

static void on_translation(PluginId id, TranslationBlock *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, INLINE_ADD_U64, &executed, qemu_plugin_tb_n_insns(block));
}

static void on_system_call(PluginId id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                           uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)vcpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number == write_number && a1 == 1) {
        fprintf(stderr, "\nmark %" PRIu64 "\n", executed);
    }
}

static void on_exit_of_guest(PluginId id, void *data) {
    (void)id;
    (void)data;
    FILE *out = out_path[0] != '\0' ? fopen(out_path, "w") : stderr;
    if (out == NULL) {
        perror(out_path);
        return;
    }
    fprintf(out, "instructions %" PRIu64 "\n", executed);
    fflush(out);
}

int qemu_plugin_install(PluginId id, const void *info, int argc, char **argv) {
    write_number = strcmp(((const Machine *)info)->target_name, "x86_64") == 0 ? 1 : 64;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "marks=on") == 0) {
            qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
            continue;
        }
        if (strncmp(argv[i], "out=", 4) != 0 || strlen(argv[i] + 4) >= sizeof out_path) {
            fprintf(stderr, "not out=PATH or marks=on: %s\n", argv[i]);
            return -1;
        }
        strcpy(out_path, argv[i] + 4);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_guest, NULL);
    return 0;
}
