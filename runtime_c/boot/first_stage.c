/* /init of the initramfs: from a kernel with few drivers to the firmware of one slot.
 *
 * Loads the modules that /modules/modules lists, waits for the partition labelled firmware-SLOT, makes it the root and
 * becomes /firmware/colibri_inference, still PID 1. SLOT is from `colibri.slot=` on the kernel's command line (default:
 * a), the longest wait from `colibri.wait=` in seconds; what stands behind ` -- ` there are the firmware's arguments.
 * What fails ends with one line FATAL: ... and the power off: nobody is there who could mend it.
 *
 * A program of its own, static and without threads; the firmware shares no code with it. */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define FIRMWARE "/firmware/colibri_inference"
#define NEW_ROOT "/root"
#define MODULES "/modules"

enum {
    WAIT_S = 15, /* for the partition: a slow eMMC behind a slow bus, with a margin */
    LONGEST_WAIT_S = 3600,
    STEP_MS = 5,
    MAX_ARGUMENTS = 64,
    NAME_BYTES = 256,
    FILE_BYTES = 4096
};

static _Noreturn void power_off(void) {
    (void)tcdrain(STDOUT_FILENO);
    sync();
    (void)reboot(RB_POWER_OFF);
    for (;;) { /* a board without a switch of its own */
        (void)pause();
    }
}

static _Noreturn void fatal(const char *what, const char *which, int error) {
    (void)dprintf(STDOUT_FILENO, "FATAL: %s %s%s%s\n", what, which, error != 0 ? ": " : "",
                  error != 0 ? strerror(error) : "");
    power_off();
}

/* Reads a small file as text; false if there is none. */
static bool read_file(const char *path, char text[FILE_BYTES]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t n = 0;
    ssize_t got = 0;
    while (n < FILE_BYTES - 1 && (got = read(fd, text + n, FILE_BYTES - 1 - n)) > 0) {
        n += (size_t)got;
    }
    text[n] = '\0';
    (void)close(fd);
    return got >= 0;
}

static void mount_one(const char *type, const char *where, unsigned long flags) {
    (void)mkdir(where, 0755);
    if (mount(type, where, type, flags, NULL) != 0 && errno != EBUSY) {
        fatal("cannot mount", where, errno);
    }
}

/* The kernel's messages go on while the firmware speaks; standard streams that are not open would be other files. */
static void open_console(void) {
    while (fcntl(STDERR_FILENO, F_GETFD) < 0) {
        if (open("/dev/console", O_RDWR) < 0) {
            break;
        }
    }
}

static void load_module(const char *name) {
    char path[sizeof MODULES + NAME_BYTES];
    (void)snprintf(path, sizeof path, MODULES "/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fatal("no module", name, errno);
    }
    if (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST) {
        fatal("cannot load", name, errno);
    }
    (void)close(fd);
    (void)unlink(path); /* the initramfs is RAM */
}

/* The list is optional: a kernel may have all drivers built in. */
static void load_modules(void) {
    char list[FILE_BYTES];
    if (!read_file(MODULES "/modules", list)) {
        return;
    }
    char *rest = list;
    for (char *name = strtok_r(list, "\n", &rest); name != NULL; name = strtok_r(NULL, "\n", &rest)) {
        load_module(name);
    }
}

/* Ends the word at `text` as the kernel does, which lets blanks stand between double quotes; returns what follows. */
static char *end_word(char *text) {
    bool quoted = false;
    for (; *text != '\0' && (quoted || (*text != ' ' && *text != '\n')); text++) {
        quoted = quoted != (*text == '"');
    }
    if (*text != '\0') {
        *text++ = '\0';
    }
    return text;
}

/* Whole seconds in digits; anything else is the default. */
static int seconds(const char *text) {
    int value = 0;
    for (const char *digit = text; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || value > LONGEST_WAIT_S) {
            return WAIT_S;
        }
        value = 10 * value + (*digit - '0');
    }
    return value > LONGEST_WAIT_S ? LONGEST_WAIT_S : value;
}

/* Fills `label` with firmware-SLOT and *wait_s, and returns how many words stand behind ` -- `. */
static int read_command_line(char label[NAME_BYTES], int *wait_s) {
    char line[FILE_BYTES];
    const char *slot = "a";
    bool is_ours = false;
    int n_ours = 0;
    if (!read_file("/proc/cmdline", line)) {
        fatal("cannot read", "/proc/cmdline", errno);
    }
    for (char *word = line, *next = NULL; *word != '\0'; word = next) {
        next = end_word(word);
        if (*word == '\0') {
            continue;
        }
        if (is_ours) {
            n_ours++;
        } else if (strcmp(word, "--") == 0) {
            is_ours = true;
        } else if (strncmp(word, "colibri.slot=", 13) == 0) {
            slot = word + 13;
        } else if (strncmp(word, "colibri.wait=", 13) == 0) {
            *wait_s = seconds(word + 13);
        }
    }
    (void)snprintf(label, NAME_BYTES, "firmware-%s", slot);
    return n_ours;
}

static bool has_label(const char *device, const char *label) {
    char path[64 + NAME_BYTES];
    char facts[FILE_BYTES];
    (void)snprintf(path, sizeof path, "/sys/class/block/%s/uevent", device);
    if (!read_file(path, facts)) {
        return false;
    }
    char *rest = facts;
    for (char *line = strtok_r(facts, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "PARTNAME=", 9) == 0) {
            return strcmp(line + 9, label) == 0;
        }
    }
    return false;
}

/* Sets `device` to the partition with this label; of several the first by name, so that each start takes the same. */
static bool find_partition(const char *label, char device[NAME_BYTES]) {
    DIR *folder = opendir("/sys/class/block");
    bool found = false;
    if (folder == NULL) {
        return false;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.' && has_label(entry->d_name, label) &&
            (!found || strcmp(entry->d_name, device) < 0)) {
            (void)snprintf(device, NAME_BYTES, "%s", entry->d_name);
            found = true;
        }
    }
    (void)closedir(folder);
    return found;
}

/* Disks are found while this program runs already. */
static void wait_for_partition(const char *label, int wait_s, char device[NAME_BYTES]) {
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    for (int waited_ms = 0; !find_partition(label, device); waited_ms += STEP_MS) {
        if (waited_ms >= 1000 * wait_s) {
            fatal("no partition is labelled", label, 0);
        }
        (void)nanosleep(&step, NULL);
    }
}

static void mount_root(const char *device) {
    static const char *const types[] = {"squashfs", "erofs", "ext4"};
    char path[8 + NAME_BYTES];
    int error = ENODEV;
    (void)snprintf(path, sizeof path, "/dev/%s", device);
    (void)mkdir(NEW_ROOT, 0755);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (mount(path, NEW_ROOT, types[i], MS_RDONLY, NULL) == 0) {
            return;
        }
        if (errno != ENODEV) { /* a file system that this kernel has, so its word counts */
            error = errno;
        }
    }
    fatal("no file system that this kernel reads is on", path, error);
}

static void switch_root(void) {
    static const char *const kept[] = {"/dev", "/proc", "/sys"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        char target[32];
        (void)snprintf(target, sizeof target, NEW_ROOT "%s", kept[i]);
        if (mount(kept[i], target, NULL, MS_MOVE, NULL) != 0) {
            fatal("the firmware partition has no folder", kept[i], errno);
        }
    }
    if (chdir(NEW_ROOT) != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0) {
        fatal("cannot switch to the root on", NEW_ROOT, errno);
    }
}

/* The firmware's arguments are the last n_ours of ours: words that the kernel does not know stand before them. */
static _Noreturn void start_firmware(int argc, char **argv, int n_ours) {
    char *arguments[MAX_ARGUMENTS + 1] = {FIRMWARE};
    if (n_ours >= argc || n_ours >= MAX_ARGUMENTS) {
        fatal("too many arguments for", FIRMWARE, E2BIG);
    }
    if (n_ours == 0) {
        arguments[1] = "--serve";
    }
    for (int i = 0; i < n_ours; i++) {
        arguments[1 + i] = argv[argc - n_ours + i];
    }
    (void)execv(FIRMWARE, arguments);
    fatal("cannot start", FIRMWARE, errno);
}

int main(int argc, char **argv) {
    char label[NAME_BYTES];
    char device[NAME_BYTES] = "";
    int wait_s = WAIT_S;
    mount_one("devtmpfs", "/dev", MS_NOSUID);
    open_console();
    mount_one("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
    mount_one("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC);
    load_modules();
    int n_ours = read_command_line(label, &wait_s);
    wait_for_partition(label, wait_s, device);
    mount_root(device);
    switch_root();
    start_firmware(argc, argv, n_ours);
}
