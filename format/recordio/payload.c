/* Parts, and records as what their parts are together. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/recordio/file.h"

const char *recordio_part(const uint8_t header[static RECORDIO_PART], uint64_t at, uint64_t size,
                          unsigned *ret_flag, uint64_t *ret_len, uint64_t *ret_end,
                          char text[static RECORDIO_WHY])
{
    uint32_t magic = load_le32(header), word = load_le32(header + 4);
    uint64_t len = word & RECORDIO_MOST, end;

    *ret_flag = word >> 29;
    *ret_len = len;
    end = at + RECORDIO_PART + (len + 3) / 4 * 4; /* at is inside a file, so no sum overflows */
    *ret_end = end;
    if (magic != RECORDIO_MAGIC)
        snprintf(text, RECORDIO_WHY,
                 "expected the magic number 0a 23 d7 ce, got %02x %02x %02x %02x", header[0],
                 header[1], header[2], header[3]);
    else if (*ret_flag > 3)
        snprintf(text, RECORDIO_WHY, "expected flags from 0 to 3, got %u", *ret_flag);
    else if (end > size)
        snprintf(text, RECORDIO_WHY, "expected %llu bytes, got %llu",
                 (unsigned long long)(end - at), (unsigned long long)(size - at));
    else
        return NULL;
    return text;
}

/* The parts of a record, and the magic before each but the first, as ranges of its payload. */
struct walk {
    struct read_context *rc;
    const struct blob *blob;
    uint64_t at;         /* of the part */
    uint64_t start, end; /* of its bytes in the payload */
    uint64_t length;     /* of the payload */
};

/* Read the header of the part that begins at walk->at, whose bytes follow those before. */
static int read_part(struct walk *walk, uint64_t *ret_next, struct diag *d)
{
    const struct blob *blob = walk->blob;
    uint8_t header[RECORDIO_PART];
    char why[RECORDIO_WHY];
    const char *wrong;
    unsigned flag;
    uint64_t len;
    int r = blob_read(walk->rc, blob, header, sizeof(header), walk->at, d);

    if (r < 0)
        return r;
    wrong = recordio_part(header, walk->at, blob->size, &flag, &len, ret_next, why);
    if (wrong || len > walk->length - walk->start)
        return diag_set(d, -EIO, "%s: byte %llu: %s", blob_name(blob), (unsigned long long)walk->at,
                        wrong ? wrong : "the part is longer than its record");
    walk->end = walk->start + len;
    return 0;
}

/* Write what [off, off + len) has of [start, end), whose bytes are at byte at; magic: they are the
 * magic number. */
static int recordio_payload_copy(const struct walk *walk, bool magic, uint64_t start, uint64_t end,
                                 uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint64_t from = max_u64(start, off), to = min_u64(end, off + len);
    uint8_t bytes[4];

    if (from >= to)
        return 0;
    if (!magic)
        return blob_read(walk->rc, walk->blob, dst + (from - off), (size_t)(to - from),
                         walk->at + RECORDIO_PART + (from - start), d);
    store_le32(bytes, RECORDIO_MAGIC);
    memcpy(dst + (from - off), bytes + (from - start), (size_t)(to - from));
    return 0;
}

static int read_parts(struct walk *walk, uint64_t n_parts, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    uint64_t next;
    int r = 0, all = 0;

    for (uint64_t i = 0; i < n_parts && walk->start < off + len; i++, walk->at = next) {
        r = read_part(walk, &next, d);
        if (r < 0)
            return r;
        if (!missing_go_on(
                walk->rc,
                recordio_payload_copy(walk, false, walk->start, walk->end, off, len, dst, d), &all))
            return all;
        walk->start = walk->end;
        if (i + 1 == n_parts)
            break;
        if (walk->length - walk->start < 4)
            return diag_set(d, -EIO, "%s: byte %llu: its parts are longer than the record",
                            blob_name(walk->blob), (unsigned long long)walk->at);
        recordio_payload_copy(walk, true, walk->start, walk->start + 4, off, len, dst, d);
        walk->start += 4;
    }
    if (all == 0 && walk->start < off + len)
        return diag_set(d, -EIO, "%s: byte %llu: its parts are shorter than the record",
                        blob_name(walk->blob), (unsigned long long)walk->at);
    return all;
}

int recordio_read(struct read_context *rc, const struct blob *blob, uint64_t at, uint64_t length,
                  uint64_t n_parts, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct walk walk = {.rc = rc, .blob = blob, .at = at, .length = length};
    int r;

    if (n_parts == 1)
        return blob_read(rc, blob, dst, len, at + RECORDIO_PART + off, d);
    r = read_parts(&walk, n_parts, off, len, dst, d);
    /* Each part says where the next one is: note all that is to come, not only this one. */
    if (r == -EAGAIN && rc)
        missing_add(rc, blob, walk.at,
                    min_u64(off + len - min_u64(walk.start, off + len) + n_parts * RECORDIO_PART,
                            blob->size - walk.at));
    return r;
}
