#include "port/console.h"

#include <errno.h>
#include <termios.h>

void console_set_lines(int fd) {
    struct termios line;
    if (tcgetattr(fd, &line) != 0) {
        return;
    }
    line.c_iflag &= (tcflag_t) ~(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | IXON | IXOFF);
    line.c_iflag |= ICRNL;
    line.c_oflag |= OPOST | ONLCR;
    line.c_lflag &= (tcflag_t) ~(ECHO | ECHONL | ISIG | IEXTEN);
    line.c_lflag |= ICANON;
    line.c_cflag &= (tcflag_t) ~(CSIZE | PARENB);
    line.c_cflag |= CS8 | CREAD | CLOCAL; /* a console has no modem that could hang up */
    (void)tcsetattr(fd, TCSANOW, &line);
}

void console_drain(int fd) {
    while (tcdrain(fd) != 0 && errno == EINTR) {
    }
}
