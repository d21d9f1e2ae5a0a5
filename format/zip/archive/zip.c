#include "format/zip/archive/zip.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"

#define LOCAL_BYTES    30u
#define ENTRY_BYTES    46u
#define END_BYTES      22u
#define COMMENT_MAX    65535u
#define END64_BYTES    56u
#define LOCATOR_BYTES  20u
#define DIRECTORY_MAX  (UINT64_C(1) << 30)
#define DEFLATE_MOST   1032u      /* bytes that a byte of deflated data makes */
#define IS_IN_64       UINT32_MAX /* the number is in the record for 64 bits */
#define FLAG_ENCRYPTED 1u
#define FLAG_STRONG    64u
#define FLAG_MASKED    0x2000u
#define METHOD_AES     99
#define MAKER_UNIX     3
#define PEEK_MORE                                                                                  \
    4096u /* bytes that the start of deflated data may have more than what it makes                \
           */

#define LOCAL_MAGIC   UINT32_C(0x04034b50)
#define ENTRY_MAGIC   UINT32_C(0x02014b50)
#define END_MAGIC     UINT32_C(0x06054b50)
#define END64_MAGIC   UINT32_C(0x06064b50)
#define LOCATOR_MAGIC UINT32_C(0x07064b50)

/* What the end of the archive says. */
struct zip_end {
    uint64_t at;           /* of the first record behind the directory */
    uint64_t entries;      /* members */
    uint64_t size, offset; /* of the directory */
};

void zip_release(struct zip *zip)
{
    free(zip->member);
    free(zip->bytes);
    *zip = (struct zip){0};
}

/* The archive is one of several files. */
static int zip_is_part(const struct blob *blob, uint64_t at, struct diag *d)
{
    return blob_bad(blob, d,
                    "byte %llu: expected an archive of one file, got a part of one of several",
                    (unsigned long long)at);
}

/* The record for 64 bits, which a locator before the end record leads to. */
static int read_end64(const struct blob *blob, uint64_t end_at, struct zip_end *end, struct diag *d)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    uint64_t at;
    int r;

    if (end_at < LOCATOR_BYTES)
        return 0;
    r = blob_read(READ_WAITS, blob, locator, sizeof(locator), end_at - LOCATOR_BYTES, d);
    if (r < 0 || load_le32(locator) != LOCATOR_MAGIC)
        return r;
    at = load_le64(locator + 8);
    if (load_le32(locator + 4) || load_le32(locator + 16) > 1)
        return zip_is_part(blob, end_at - LOCATOR_BYTES, d);
    if (at > end_at - LOCATOR_BYTES || end_at - LOCATOR_BYTES - at < END64_BYTES)
        return blob_bad(blob, d, "byte %llu: expected the offset of a record before it, got %llu",
                        (unsigned long long)(end_at - LOCATOR_BYTES), (unsigned long long)at);
    r = blob_read(READ_WAITS, blob, record, sizeof(record), at, d);
    if (r < 0)
        return r;
    if (load_le32(record) != END64_MAGIC || load_le32(record + 16) || load_le32(record + 20) ||
        load_le64(record + 24) != load_le64(record + 32))
        return blob_bad(
            blob, d,
            "byte %llu: expected the 64-bit end of an archive of one file, got something else",
            (unsigned long long)at);
    end->at = at;
    end->entries = load_le64(record + 32);
    end->size = load_le64(record + 40);
    end->offset = load_le64(record + 48);
    return 0;
}

static int zip_check_end(const struct blob *blob, const struct zip_end *end, struct diag *d)
{
    uint64_t expected;

    if (!checked_add(end->offset, end->size, &expected) || expected != end->at)
        return blob_bad(blob, d,
                        "directory: expected it to end at byte %llu, got offset %llu and %llu "
                        "bytes; are there bytes before the archive?",
                        (unsigned long long)end->at, (unsigned long long)end->offset,
                        (unsigned long long)end->size);
    if (end->size > DIRECTORY_MAX)
        return blob_bad(blob, d, "directory: expected at most %llu bytes, got %llu",
                        (unsigned long long)DIRECTORY_MAX, (unsigned long long)end->size);
    return 0;
}

/* What the end record at tail, which is byte `at` of the archive, says. */
static int zip_parse_end(const struct blob *blob, const uint8_t *tail, uint64_t at,
                         struct zip_end *ret, struct diag *d)
{
    int r;

    *ret = (struct zip_end){.at = at,
                            .entries = load_le16(tail + 10),
                            .size = load_le32(tail + 12),
                            .offset = load_le32(tail + 16)};
    if (load_le16(tail + 8) != load_le16(tail + 10) ||
        (load_le16(tail + 4) && load_le16(tail + 4) != UINT16_MAX))
        return zip_is_part(blob, at, d);
    r = read_end64(blob, at, ret, d);
    return r < 0 ? r : zip_check_end(blob, ret, d);
}

/* Find the end record: the last of that magic that is the end of a directory, whose comment ends
 * the file; otherwise, as bytes may follow, the last of that magic that is the end of a directory.
 * What is wrong with the last of that magic is the error. */
static int read_end(const struct blob *blob, struct zip_end *ret, struct diag *d)
{
    size_t len = (size_t)min_u64(blob->size, END_BYTES + COMMENT_MAX);
    AUTO_FREE uint8_t *tail = malloc(len ? len : 1);
    uint64_t start = blob->size - len;
    struct diag first = DIAG_INIT;
    int r = !tail ? -ENOMEM : len ? blob_read(READ_WAITS, blob, tail, len, start, d) : 0;

    if (r < 0)
        return r;
    for (unsigned exact = 2; exact-- > 0;)
        for (size_t i = len < END_BYTES ? 0 : len - END_BYTES + 1; i-- > 0;) {
            struct diag ignored = DIAG_INIT;

            if (load_le32(tail + i) != END_MAGIC ||
                (i + END_BYTES + load_le16(tail + i + 20) == len) != exact)
                continue;
            r = zip_parse_end(blob, tail + i, start + i, ret, first.set ? &ignored : &first);
            if (r == 0)
                return r;
            if (r != -EBADMSG) /* of a read */
                return diag_set(d, r, "%s", first.set ? first.text : ignored.text);
        }
    return first.set ? diag_set(d, -EBADMSG, "%s", first.text)
                     : blob_bad(blob, d,
                                "end: expected the directory of the archive (50 4b 05 06 near the "
                                "end), got none: cut short?");
}

/* Take numbers of 64 bits from the extra field, in place of those that are all ones. */
static bool take_64(struct zip_member *m, const uint8_t *extra, size_t len)
{
    uint64_t *number[] = {&m->size, &m->packed_size, &m->header};
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(number); i++)
        if (*number[i] == IS_IN_64)
            number[n++] = number[i];
    while (n && len >= 4) {
        size_t bytes = load_le16(extra + 2);

        if (bytes > len - 4)
            return false;
        if (load_le16(extra) == 1) {
            if (bytes < 8 * n)
                return false;
            for (size_t i = 0; i < n; i++)
                *number[i] = load_le64(extra + 4 + 8 * i);
            return true;
        }
        extra += 4 + bytes;
        len -= 4 + bytes;
    }
    return true; /* it just is as large as that */
}

static int zip_read_entry(const struct blob *blob, const uint8_t *at, size_t left, uint64_t place,
                          struct zip_member *ret, size_t *ret_len, struct diag *d)
{
    size_t name, extra;

    if (left < ENTRY_BYTES || load_le32(at) != ENTRY_MAGIC)
        return blob_bad(
            blob, d,
            "byte %llu: expected an entry of the directory (50 4b 01 02), got something else",
            (unsigned long long)place);
    name = load_le16(at + 28);
    extra = load_le16(at + 30);
    *ret_len = ENTRY_BYTES + name + extra + load_le16(at + 32);
    *ret = (struct zip_member){.name = (const char *)at + ENTRY_BYTES,
                               .name_len = name,
                               .extra = at + ENTRY_BYTES + name,
                               .extra_len = extra,
                               .maker = at[5],
                               .mode = at[5] == MAKER_UNIX ? load_le16(at + 40) : 0,
                               .flags = load_le16(at + 8),
                               .method = load_le16(at + 10),
                               .crc = load_le32(at + 16),
                               .packed_size = load_le32(at + 20),
                               .size = load_le32(at + 24),
                               .header = load_le32(at + 42)};
    if (*ret_len > left || !take_64(ret, at + ENTRY_BYTES + name, extra))
        return blob_bad(
            blob, d, "byte %llu: expected an entry inside of the directory, got %zu bytes of %zu",
            (unsigned long long)place, *ret_len, left);
    if (load_le16(at + 34) && load_le16(at + 34) != UINT16_MAX)
        return zip_is_part(blob, place, d);
    return 0;
}

int zip_read(const struct blob *blob, struct zip *ret, struct diag *d)
{
    AUTO_ZIP struct zip zip = {0};
    struct zip_end end = {0};
    size_t at = 0;
    int r = read_end(blob, &end, d);

    if (r < 0)
        return r;
    zip.directory = end.offset;
    zip.bytes = malloc(end.size ? end.size : 1);
    if (!zip.bytes)
        return -ENOMEM;
    r = end.size ? blob_read(READ_WAITS, blob, zip.bytes, (size_t)end.size, end.offset, d) : 0;
    while (r == 0 && at < end.size) {
        size_t len = 0;

        if (array_capacity(&zip.member, zip.n, sizeof(*zip.member)) < 0)
            return -ENOMEM;
        r = zip_read_entry(blob, zip.bytes + at, (size_t)end.size - at, end.offset + at,
                           &zip.member[zip.n], &len, d);
        zip.n += r == 0;
        at += len;
    }
    if (r == 0 && zip.n != end.entries)
        r = blob_bad(blob, d, "directory at byte %llu: expected %llu members, got %zu",
                     (unsigned long long)end.offset, (unsigned long long)end.entries, zip.n);
    if (r < 0)
        return r;
    *ret = zip;
    zip = (struct zip){0};
    return 0;
}

const char *zip_foreign_method(const struct zip_member *m)
{
    static const struct {
        unsigned method;
        const char *name;
    } methods[] = {{ZIP_STORED, NULL}, {ZIP_DEFLATED, NULL}, {9, "Deflate64"}, {12, "bzip2"},
                   {14, "LZMA"},       {93, "Zstandard"},    {95, "xz"},       {98, "PPMd"}};

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (methods[i].method == m->method)
            return methods[i].name;
    return "another one";
}

bool zip_is_encrypted(const struct zip_member *m)
{
    return m->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED) || m->method == METHOD_AES;
}

int zip_check(const struct blob *blob, const struct zip_member *m, struct diag *d)
{
    const char *method = zip_foreign_method(m);

    if (zip_is_encrypted(m))
        return blob_bad(blob, d, "member %.*s: is encrypted, which epochfs does not read",
                        (int)min_u64(m->name_len, 64), m->name);
    if (method)
        return blob_bad(
            blob, d, "member %.*s: its compression method is %u (%s): expected stored or deflated",
            (int)min_u64(m->name_len, 64), m->name, m->method, method);
    if (m->method == ZIP_STORED && m->packed_size != m->size)
        return blob_bad(
            blob, d,
            "member %.*s: expected as many bytes in the archive as it has, got %llu and %llu",
            (int)min_u64(m->name_len, 64), m->name, (unsigned long long)m->packed_size,
            (unsigned long long)m->size);
    if (m->method == ZIP_DEFLATED && m->size / DEFLATE_MOST > m->packed_size)
        return blob_bad(blob, d,
                        "member %.*s: expected at most %u bytes of each deflated byte, got %llu "
                        "bytes of %llu",
                        (int)min_u64(m->name_len, 64), m->name, DEFLATE_MOST,
                        (unsigned long long)m->size, (unsigned long long)m->packed_size);
    return 0;
}

int zip_locate(struct read_context *rc, const struct blob *blob, struct zip_member *m, uint64_t end,
               struct diag *d)
{
    uint8_t local[LOCAL_BYTES + UINT16_MAX];
    uint64_t member_end;
    size_t len = LOCAL_BYTES + m->name_len;
    int r;

    if (m->header > end || end - m->header < len)
        return blob_bad(blob, d,
                        "member %.*s: expected its header before byte %llu, got it at %llu",
                        (int)min_u64(m->name_len, 64), m->name, (unsigned long long)end,
                        (unsigned long long)m->header);
    r = blob_read(rc, blob, local, len, m->header, d);
    if (r < 0)
        return r;
    if (load_le32(local) != LOCAL_MAGIC || load_le16(local + 26) != m->name_len ||
        memcmp(local + LOCAL_BYTES, m->name, m->name_len) != 0)
        return blob_bad(blob, d,
                        "byte %llu: expected the header of member %.*s, got something else",
                        (unsigned long long)m->header, (int)min_u64(m->name_len, 64), m->name);
    if (load_le16(local + 8) != m->method || (load_le16(local + 6) & FLAG_ENCRYPTED))
        return blob_bad(blob, d,
                        "byte %llu: expected the header of member %.*s with method %u and no "
                        "encryption, got method %u and flags %04x",
                        (unsigned long long)m->header, (int)min_u64(m->name_len, 64), m->name,
                        m->method, load_le16(local + 8), load_le16(local + 6));
    m->at = m->header + len + load_le16(local + 28);
    if (!checked_add(m->at, m->packed_size, &member_end) || member_end > end)
        return blob_bad(
            blob, d, "member %.*s: expected its %llu bytes from %llu on before byte %llu, got more",
            (int)min_u64(m->name_len, 64), m->name, (unsigned long long)m->packed_size,
            (unsigned long long)m->at, (unsigned long long)end);
    return 0;
}

static int by_header(const void *a, const void *b)
{
    const struct zip_member *const *x = a, *const *y = b;

    return (*x)->header < (*y)->header ? -1 : (*x)->header > (*y)->header;
}

int zip_ends(const struct blob *blob, const struct zip *zip, uint64_t *ret, struct diag *d)
{
    AUTO_FREE const struct zip_member **order = malloc((zip->n + 1) * sizeof(*order));

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < zip->n; i++)
        order[i] = &zip->member[i];
    qsort(order, zip->n, sizeof(*order), by_header);
    for (size_t i = 0; i < zip->n; i++) {
        const struct zip_member *m = order[i];
        uint64_t next = i + 1 < zip->n ? order[i + 1]->header : zip->directory, end;

        if (m->header > zip->directory)
            return blob_bad(blob, d,
                            "member %.*s: expected its header before byte %llu, got it at %llu",
                            (int)min_u64(m->name_len, 64), m->name,
                            (unsigned long long)zip->directory, (unsigned long long)m->header);
        if (!checked_add(m->header, LOCAL_BYTES + m->name_len, &end) ||
            !checked_add(end, m->packed_size, &end) || end > next)
            return blob_bad(blob, d,
                            "member %.*s: expected %llu bytes from %llu on, before the %s at byte "
                            "%llu, got two that overlap",
                            (int)min_u64(m->name_len, 64), m->name,
                            (unsigned long long)m->packed_size, (unsigned long long)m->header,
                            i + 1 < zip->n ? "next member" : "directory", (unsigned long long)next);
        ret[m - zip->member] = next;
    }
    return 0;
}

int zip_find(const struct blob *blob, struct zip *zip, struct diag *d)
{
    AUTO_FREE uint64_t *end = malloc((zip->n + 1) * sizeof(*end));
    int r = end ? zip_ends(blob, zip, end, d) : -ENOMEM;

    for (size_t i = 0; i < zip->n && r == 0; i++)
        r = zip_locate(READ_WAITS, blob, &zip->member[i], end[i], d);
    return r;
}

int zip_inflate(uint8_t *packed, size_t len, void *ret, size_t size, struct zip_inflated *made)
{
    z_stream z = {
        .next_in = packed, .avail_in = (uInt)len, .next_out = ret, .avail_out = (uInt)size};
    int state;

    if (inflateInit2(&z, -15) != Z_OK)
        return -ENOMEM;
    state = inflate(&z, Z_SYNC_FLUSH);
    inflateEnd(&z);
    *made = (struct zip_inflated){z.total_in, z.total_out, state == Z_STREAM_END, z.msg};
    return state == Z_MEM_ERROR                                             ? -ENOMEM
           : state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR ? 0
                                                                            : -EBADMSG;
}

int zip_peek(const struct blob *blob, const struct zip_member *m, uint8_t *ret, size_t capacity,
             size_t *ret_len, struct diag *d)
{
    bool stored = m->method == ZIP_STORED;
    size_t n = (size_t)(stored ? min_u64(capacity, m->size)
                               : min_u64(m->packed_size, (uint64_t)capacity + PEEK_MORE));
    AUTO_FREE uint8_t *packed = stored ? NULL : malloc(n + 1);
    struct zip_inflated made = {0};
    int r = stored || packed ? 0 : -ENOMEM;

    if (r == 0 && n)
        r = blob_read(READ_WAITS, blob, stored ? ret : packed, n, m->at, d);
    if (r < 0 || stored) {
        *ret_len = n;
        return r;
    }
    r = zip_inflate(packed, n, ret, capacity, &made);
    if (r == -EBADMSG)
        blob_bad(blob, d, "member %.*s: deflated data: %s", (int)min_u64(m->name_len, 64), m->name,
                 made.fault ? made.fault : "expected a valid stream, got damage");
    *ret_len = made.len;
    return r;
}
