#define _DEFAULT_SOURCE /* mount, reboot */
#include "port/pid1.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/console.h"

static bool is_init = false;

/* The kernel's number of its first PID namespace (PROC_PID_INIT_INO): containers have others. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

typedef struct {
    const char *type;
    const char *where;
    const char *witness; /* there where it is mounted already */
    unsigned long flags;
} MountPoint;

static const MountPoint proc = {"proc", "/proc", "/proc/self/ns/pid", MS_NOSUID | MS_NODEV | MS_NOEXEC};

/* A kernel that starts the firmware without an initramfs mounts the root alone, read-only: folders are not made here.
 */
static const MountPoint others[] = {
    {"devtmpfs", "/dev", "/dev/null", MS_NOSUID},
    {"sysfs", "/sys", "/sys/class", MS_NOSUID | MS_NODEV | MS_NOEXEC},
    {"tmpfs", "/run", NULL, MS_NOSUID | MS_NODEV},
};

static void mount_if_missing(const MountPoint *point) {
    struct stat facts;
    if (point->witness == NULL || stat(point->witness, &facts) != 0) {
        (void)mount(point->type, point->where, point->type, point->flags, NULL);
    }
}

static bool is_first_namespace(void) {
    struct stat facts;
    return stat("/proc/self/ns/pid", &facts) == 0 && facts.st_ino == FIRST_PID_NAMESPACE;
}

/* Without /dev/console in its root the kernel starts init with no open file at all. */
static void open_missing_streams(void) {
    int fd = -1;
    do {
        fd = open("/dev/console", O_RDWR | O_NOCTTY);
    } while (fd >= 0 && fd < STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}

/* Ignoring SIGCHLD makes the kernel reap whatever ends from now on. Children of who was process 1 before may have ended
 * already. */
static void reap_orphans(void) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&ignore.sa_mask);
    (void)sigaction(SIGCHLD, &ignore, NULL);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

bool pid1_begin(void) {
    if (getpid() != 1) {
        return false;
    }
    mount_if_missing(&proc);
    if (!is_first_namespace()) {
        return false;
    }
    is_init = true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        mount_if_missing(&others[i]);
    }
    open_missing_streams();
    console_set_lines(STDIN_FILENO);
    reap_orphans();
    (void)reboot(RB_DISABLE_CAD);
    return true;
}

bool pid1_is_init(void) {
    return is_init;
}

_Noreturn void pid1_power_off(void) {
    console_drain(STDOUT_FILENO);
    console_drain(STDERR_FILENO);
    sync();
    (void)reboot(RB_POWER_OFF);
    for (;;) { /* a board that cannot switch itself off: ending would make the kernel panic */
        (void)pause();
    }
}
