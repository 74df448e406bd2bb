/* Runs a program and prints, as JSON, how long it took to its first byte of output and to its end, its largest resident
 * set and its page faults. Its output is read and dropped; its standard error is ours.
 *
 *     launch PROGRAM [ARGUMENT ...]
 *
 * A small program on purpose: the resident set that the kernel reports of a child starts with its parent's. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_us(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void become(char **command, const int ends[2]) {
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)execv(command[0], command);
    fprintf(stderr, "launch: %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

/* When the first byte came, or 0 where none did; returns at the end of the output. */
static int64_t read_all(int fd) {
    static char dropped[65536];
    int64_t first = 0;
    for (;;) {
        ssize_t n = read(fd, dropped, sizeof dropped);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return first;
        }
        if (first == 0 && n > 0) {
            first = now_us();
        }
    }
}

int main(int argc, char **argv) {
    int ends[2];
    if (argc < 2 || pipe(ends) != 0) {
        fputs("usage: launch PROGRAM [ARGUMENT ...]\n", stderr);
        return 2;
    }
    int64_t start = now_us();
    pid_t child = fork();
    if (child == 0) {
        become(argv + 1, ends);
    }
    (void)close(ends[1]);
    int64_t first = read_all(ends[0]);
    int state = 0;
    struct rusage used;
    if (child < 0 || wait4(child, &state, 0, &used) != child) {
        perror("launch");
        return 1;
    }
    printf("{\"first_us\":%" PRId64 ",\"total_us\":%" PRId64
           ",\"peak_kib\":%ld,\"minor_faults\":%ld,\"major_faults\":%ld}\n",
           first > 0 ? first - start : 0, now_us() - start, used.ru_maxrss, used.ru_minflt, used.ru_majflt);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}
