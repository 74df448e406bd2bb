#include "port/console.h"

#include <errno.h>
#include <termios.h>

static void set(int fd, tcflag_t input, tcflag_t output, tcflag_t local) {
    struct termios line;
    if (tcgetattr(fd, &line) != 0) {
        return;
    }
    line.c_iflag &= (tcflag_t) ~(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON | IXOFF);
    line.c_iflag |= input;
    line.c_oflag &= (tcflag_t) ~(OPOST | ONLCR);
    line.c_oflag |= output;
    line.c_lflag &= (tcflag_t) ~(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    line.c_lflag |= local;
    line.c_cflag &= (tcflag_t) ~(CSIZE | PARENB);
    line.c_cflag |= CS8 | CREAD | CLOCAL;                   /* a console has no modem that could hang up */
    line.c_cc[VMIN] = local & ICANON ? line.c_cc[VMIN] : 1; /* where they share their place with VEOF and VEOL */
    line.c_cc[VTIME] = local & ICANON ? line.c_cc[VTIME] : 0;
    (void)tcsetattr(fd, TCSANOW, &line);
}

void console_set_lines(int fd) {
    set(fd, ICRNL, OPOST | ONLCR, ICANON);
}

void console_set_raw(int fd) {
    set(fd, 0, 0, 0);
}

void console_drain(int fd) {
    while (tcdrain(fd) != 0 && errno == EINTR) {
    }
}
