#define _DEFAULT_SOURCE /* speeds above 38400 */
#include "port/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "port/console.h"

static const struct {
    int baud;
    speed_t speed;
} speeds[] = {
    {9600, B9600},       {19200, B19200},     {38400, B38400},     {57600, B57600},     {115200, B115200},
    {230400, B230400},   {460800, B460800},   {500000, B500000},   {576000, B576000},   {921600, B921600},
    {1000000, B1000000}, {1152000, B1152000}, {1500000, B1500000}, {2000000, B2000000}, {2500000, B2500000},
    {3000000, B3000000}, {3500000, B3500000}, {4000000, B4000000},
};

enum { N_SPEEDS = sizeof speeds / sizeof speeds[0], DRAIN_STEP_MS = 5 };

bool tty_has_speed(int baud) {
    for (int i = 0; i < N_SPEEDS; i++) {
        if (speeds[i].baud == baud) {
            return true;
        }
    }
    return false;
}

static void set_speed(int fd, int baud) {
    struct termios line;
    for (int i = 0; i < N_SPEEDS; i++) {
        if (speeds[i].baud == baud && tcgetattr(fd, &line) == 0) {
            (void)cfsetispeed(&line, speeds[i].speed);
            (void)cfsetospeed(&line, speeds[i].speed);
            (void)tcsetattr(fd, TCSANOW, &line);
        }
    }
}

/* Sets an open line for bytes. Returns 0 or errno. */
static int set_up(Tty *tty, int baud) {
    tty->is_terminal = tcgetattr(tty->in, &tty->saved) == 0;
    if (!tty->is_terminal) {
        return baud != 0 ? ENOTTY : 0;
    }
    console_set_raw(tty->in);
    if (baud != 0) {
        set_speed(tty->in, baud);
    }
    return 0;
}

int tty_open(Tty *tty, const char *path, int baud) {
    tty->shared_flags = -1;
    tty->in = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    tty->out = tty->in;
    if (tty->in < 0) {
        return errno;
    }
    int error = set_up(tty, baud);
    if (error == 0 && !tty->is_terminal) {
        error = ENOTTY;
    }
    if (error != 0) {
        tty_close(tty);
    }
    return error;
}

int tty_open_streams(Tty *tty, int baud) {
    /* Flags belong to every process that shares a stream (the user's shell): it is opened anew where that works. */
    int in = isatty(STDIN_FILENO) ? open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    int out = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    tty->in = in >= 0 ? in : STDIN_FILENO; /* read only after poll */
    tty->out = out >= 0 ? out : STDOUT_FILENO;
    tty->shared_flags = -1;
    if (out < 0) {
        tty->shared_flags = fcntl(STDOUT_FILENO, F_GETFL);
        (void)fcntl(STDOUT_FILENO, F_SETFL, tty->shared_flags | O_NONBLOCK);
    }
    int error = set_up(tty, baud);
    if (error != 0) {
        tty_close(tty);
    }
    return error;
}

void tty_drain(const Tty *tty, int milliseconds) {
    const struct timespec step = {.tv_nsec = DRAIN_STEP_MS * 1000000L};
    int n_waiting = 0;
    for (int waited = 0; waited < milliseconds && isatty(tty->out); waited += DRAIN_STEP_MS) {
        if (ioctl(tty->out, TIOCOUTQ, &n_waiting) != 0 || n_waiting == 0) {
            return;
        }
        (void)nanosleep(&step, NULL);
    }
}

void tty_close(Tty *tty) {
    if (tty->in < 0) {
        return;
    }
    if (tty->is_terminal) {
        (void)tcsetattr(tty->in, TCSANOW, &tty->saved);
    }
    if (tty->shared_flags >= 0) {
        (void)fcntl(tty->out, F_SETFL, tty->shared_flags);
    }
    if (tty->out != tty->in && tty->out > STDERR_FILENO) {
        (void)close(tty->out);
    }
    if (tty->in > STDERR_FILENO) {
        (void)close(tty->in);
    }
    tty->in = tty->out = -1;
}
