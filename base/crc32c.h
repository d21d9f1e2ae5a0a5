/* CRC-32C (Castagnoli): the checksum of TFRecord, iSCSI and ext4. */
#ifndef EPOCHFS_BASE_CRC32C_H
#define EPOCHFS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes that follow those whose checksum is crc; 0: of the first bytes. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

/* The same by tables alone, as it is where the processor has no instruction for it. */
uint32_t crc32c_tables(uint32_t crc, const void *bytes, size_t len);

/* A checksum as TFRecord stores it. */
static inline uint32_t crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

#endif
