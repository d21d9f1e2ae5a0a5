/* How records lie in a TFRecord file, without a header and one after another
 * (tensorflow/core/lib/io/record_writer.h):
 *
 *     u64 length, u32 checksum of those 8 bytes, the data, u32 checksum of the data
 *
 * all little-endian; checksums are CRC-32C, masked. */
#ifndef EPOCHFS_FORMAT_TFRECORD_FRAME_H
#define EPOCHFS_FORMAT_TFRECORD_FRAME_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/crc32c.h"

#define FRAME_HEAD  12 /* bytes before the data */
#define FRAME_BYTES 16 /* with those after it */

/* Is it the head of a record? *ret_len: the bytes of its data, which may be any number. */
static inline bool frame_head(const uint8_t head[static FRAME_HEAD], uint64_t *ret_len)
{
    if (load_le32(head + 8) != crc32c_masked(crc32c(0, head, 8)))
        return false;
    *ret_len = load_le64(head);
    return true;
}

/* Do the data and the checksum that follows them agree? */
static inline bool frame_data(const uint8_t *data, uint64_t len)
{
    return load_le32(data + len) == crc32c_masked(crc32c(0, data, len));
}

#endif
