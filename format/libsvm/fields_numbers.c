/* Numbers as little-endian bytes: any byte range of an array of them. */
#include "format/libsvm/fields_parts.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

void libsvm_copy_made(void (*make)(const void *of, uint64_t i, uint8_t ret[static 8]),
                      const void *of, unsigned width, uint64_t off, size_t len, uint8_t *dst)
{
    while (len) {
        unsigned skip = (unsigned)(off % width);
        size_t n = (size_t)min_u64(len, width - skip);
        uint8_t bytes[8];

        make(of, off / width, bytes);
        memcpy(dst, bytes + skip, n);
        dst += n;
        off += n;
        len -= n;
    }
}

static void make_u32(const void *of, uint64_t i, uint8_t ret[static 8])
{
    store_le32(ret, ((const uint32_t *)of)[i]);
}

static void make_u64(const void *of, uint64_t i, uint8_t ret[static 8])
{
    store_le64(ret, ((const uint64_t *)of)[i]);
}

void libsvm_make_widened(const void *of, uint64_t i, uint8_t ret[static 8])
{
    store_le64(ret, ((const uint32_t *)of)[i]);
}

void libsvm_copy_numbers(const void *of, unsigned width, uint64_t off, size_t len, uint8_t *dst)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        memcpy(dst, (const uint8_t *)of + off, len);
    else
        libsvm_copy_made(width == 4 ? make_u32 : make_u64, of, width, off, len, dst);
}
