/* CRC-32 of zlib and Ethernet: polynomial 0x04C11DB7, reflected, initial value and final XOR 0xFFFFFFFF. */
#ifndef COLIBRI_LINK_CRC32_H
#define COLIBRI_LINK_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const uint8_t *bytes, size_t n);

#endif
