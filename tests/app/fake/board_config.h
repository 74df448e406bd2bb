#ifndef BOARD_CONFIG_H
#define BOARD_CONFIG_H

#define BOARD_KERNELS_PORTABLE 1
#define BOARD_NAME "fake-board"
#define BOARD_DEFAULT_THREADS 2
#define BOARD_TOOLCHAIN "fake-gcc"
#define BOARD_C_FLAGS "-O1 -ffp-contract=off"
#define BOARD_LINK_FLAGS "-static"

#endif
