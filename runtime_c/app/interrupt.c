#include "app/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t signal_came = 0;

/* A byte is written to wake[1] with each signal, so that a wait that is about to start sees it, too. -1: no pipe. */
static int wake[2] = {-1, -1};

static void on_signal(int number) {
    int saved = errno;
    (void)number;
    signal_came = 1;
    ssize_t n = write(wake[1], "", 1);
    (void)n;
    errno = saved;
}

/* Where standard output is closed, pipe() returns its number: the ends move to numbers that nobody else writes to. */
static void open_wake_pipe(void) {
    int ends[2];
    if (pipe(ends) != 0) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        wake[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        (void)fcntl(wake[i], F_SETFL, O_NONBLOCK);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

void interrupts_catch(void) {
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    open_wake_pipe();
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    /* nohup's wish is respected */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
        (void)sigaction(SIGHUP, &action, NULL);
    }
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
}

bool interrupted(void) {
    return signal_came != 0;
}

int interrupt_wake_fd(void) {
    return wake[0];
}

bool interruptible_wait(int fd, short events) {
    struct pollfd waits[2] = {{.fd = fd, .events = events}, {.fd = wake[0], .events = POLLIN}};
    while (poll(waits, 2, -1) < 0 && errno == EINTR) {
    }
    return waits[0].revents != 0 || !interrupted();
}
