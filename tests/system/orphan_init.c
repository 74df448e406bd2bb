/* The init of a test: leaves the firmware, which takes its place, an orphan to reap and a witness of it.
 *
 * The orphan ends after a while. The witness waits until it has gone from /proc, which only the firmware mounts, says
 * so on the console, and asks the firmware to end. This program has mounted nothing and opened nothing. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(long ms) {
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static void watch(pid_t orphan) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)orphan);
    sleep_ms(1500);
    bool gone = false;
    for (int i = 0; i < 100 && !gone; i++) {
        sleep_ms(20);
        gone = access(path, F_OK) != 0;
    }
    int console = open("/dev/console", O_WRONLY);
    (void)dprintf(console, "orphan %s, proc %s, run %s\n", gone ? "reaped" : "left as a zombie",
                  access("/proc/1/stat", F_OK) == 0 ? "mounted" : "missing",
                  mkfifo("/run/test", 0600) == 0 ? "writable" : "missing");
    (void)kill(1, SIGTERM);
    sleep_ms(60000);
}

int main(int argc, char **argv) {
    (void)argc;
    pid_t orphan = fork();
    if (orphan == 0) {
        sleep_ms(1000);
        _exit(0);
    }
    if (fork() == 0) {
        watch(orphan);
        _exit(0);
    }
    argv[0] = "/firmware/colibri_inference";
    (void)execv(argv[0], argv);
    return 1;
}
