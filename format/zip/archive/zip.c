#include "format/zip/archive/zip.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "base/text.h"

#define LOCAL_BYTES    30u
#define LOCAL_EXTRA    64u /* bytes that its extra field usually has at most */
#define ENTRY_BYTES    46u
#define END_BYTES      22u
#define COMMENT_MAX    65535u
#define END64_BYTES    56u
#define LOCATOR_BYTES  20u
#define DIRECTORY_MAX  (UINT64_C(1) << 30)
#define DEFLATE_MOST   1032u      /* bytes that a byte of deflated data makes */
#define DEFLATE_ADDS   65536u     /* bytes that it adds, at most, and an eighth */
#define IS_IN_64       UINT32_MAX /* the number is in the record for 64 bits */
#define FLAG_ENCRYPTED 1u
#define FLAG_STRONG    64u
#define FLAG_MASKED    0x2000u
#define METHOD_AES     99
#define MAKER_UNIX     3
#define FIELD_64       1
#define FLAG_UTF8      0x800u /* without it, readers take a name for code page 437 */
#define VERSION        20     /* that a reader needs of those that are written, */
#define VERSION_64     45     /* and for numbers of 64 bits */
#define DATE           0x21   /* 1980-01-01 */
#define PEEK_MORE      4096u /* bytes that deflated data may have more than the start that it makes */

#define LOCAL_MAGIC   UINT32_C(0x04034b50)
#define ENTRY_MAGIC   UINT32_C(0x02014b50)
#define END_MAGIC     UINT32_C(0x06054b50)
#define END64_MAGIC   UINT32_C(0x06064b50)
#define LOCATOR_MAGIC UINT32_C(0x07064b50)

/* What the end of the archive says. */
struct zip_end {
    uint64_t at;           /* of the first record after the directory */
    uint64_t entries;      /* members */
    uint64_t size, offset; /* of the directory */
};

void zip_release(struct zip *zip)
{
    free(zip->bytes);
    free(zip->entry);
    free(zip->room);
    *zip = (struct zip){0};
}

/* ---- the end ---- */

/* -EBADMSG: what is at that byte is not what was expected there. */
static int zip_bad_at(const struct blob *blob, uint64_t at, const char *expected, struct diag *d)
{
    return blob_bad(blob, d, "byte %llu: expected %s", (unsigned long long)at, expected);
}

static int zip_is_part(const struct blob *blob, uint64_t at, struct diag *d)
{
    return zip_bad_at(blob, at, "an archive of one file, got a part of one of several", d);
}

/* The record for 64 bits, which a locator before the end record leads to. */
static int read_end64(const struct blob *blob, uint64_t end_at, struct zip_end *end, struct diag *d)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    uint64_t at, locator_at = end_at - LOCATOR_BYTES;
    int r;

    if (end_at < LOCATOR_BYTES)
        return 0;
    r = blob_read(READ_WAITS, blob, locator, sizeof(locator), locator_at, d);
    if (r < 0 || load_le32(locator) != LOCATOR_MAGIC)
        return r;
    at = load_le64(locator + 8);
    if (load_le32(locator + 4) || load_le32(locator + 16) > 1)
        return zip_is_part(blob, locator_at, d);
    if (at > locator_at || locator_at - at < END64_BYTES)
        return zip_bad_at(blob, locator_at, "the offset of a record before it, got another", d);
    r = blob_read(READ_WAITS, blob, record, sizeof(record), at, d);
    if (r < 0)
        return r;
    if (load_le32(record) != END64_MAGIC || load_le32(record + 16) || load_le32(record + 20) ||
        load_le64(record + 24) != load_le64(record + 32))
        return zip_bad_at(blob, at, "the 64-bit end of an archive of one file, got something else",
                          d);
    *end = (struct zip_end){.at = at,
                            .entries = load_le64(record + 32),
                            .size = load_le64(record + 40),
                            .offset = load_le64(record + 48)};
    return 0;
}

/* What the end record at tail, which is byte `at` of the archive, says. */
static int zip_parse_end(const struct blob *blob, const uint8_t *tail, uint64_t at,
                         struct zip_end *ret, struct diag *d)
{
    uint64_t expected;
    int r;

    *ret = (struct zip_end){.at = at,
                            .entries = load_le16(tail + 10),
                            .size = load_le32(tail + 12),
                            .offset = load_le32(tail + 16)};
    if (load_le16(tail + 8) != load_le16(tail + 10) ||
        (load_le16(tail + 4) && load_le16(tail + 4) != UINT16_MAX))
        return zip_is_part(blob, at, d);
    r = read_end64(blob, at, ret, d);
    if (r < 0)
        return r;
    if (!checked_add(ret->offset, ret->size, &expected) || expected != ret->at)
        return blob_bad(blob, d,
                        "directory: expected it to end at byte %llu, got offset %llu and %llu "
                        "bytes; are there bytes before the archive?",
                        (unsigned long long)ret->at, (unsigned long long)ret->offset,
                        (unsigned long long)ret->size);
    if (ret->size > DIRECTORY_MAX)
        return blob_bad(blob, d, "directory: expected at most %llu bytes, got %llu",
                        (unsigned long long)DIRECTORY_MAX, (unsigned long long)ret->size);
    return 0;
}

/* Find the end record: the last of that magic that is the end of a directory, whose comment ends
 * the file; otherwise, as bytes may follow, the last of that magic that is the end of a directory.
 * What is wrong with the last of that magic is the error. */
static int read_end(const struct blob *blob, struct zip_end *ret, struct diag *d)
{
    size_t len = (size_t)min_u64(blob->size, END_BYTES + COMMENT_MAX);
    AUTO_FREE uint8_t *tail = malloc(len + 1);
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

/* ---- members ---- */

const uint8_t *zip_extra(const struct zip_member *m, unsigned id, size_t *ret_len)
{
    const uint8_t *field = m->extra;
    size_t left = m->extra_len, len;

    for (; left >= 4; field += 4 + len, left -= 4 + len) {
        len = load_le16(field + 2);
        if (len > left - 4)
            return NULL;
        if (load_le16(field) == id) {
            *ret_len = len;
            return field + 4;
        }
    }
    return NULL;
}

/* The entry of the directory at that byte. */
static struct zip_member zip_parse_entry(const uint8_t *at)
{
    struct zip_member m = {.name = (const char *)at + ENTRY_BYTES,
                           .name_len = load_le16(at + 28),
                           .local_len = load_le16(at + 28),
                           .extra = at + ENTRY_BYTES + load_le16(at + 28),
                           .extra_len = load_le16(at + 30),
                           .maker = at[5],
                           .mode = at[5] == MAKER_UNIX ? load_le16(at + 40) : 0,
                           .flags = load_le16(at + 8),
                           .method = load_le16(at + 10),
                           .crc = load_le32(at + 16),
                           .packed_size = load_le32(at + 20),
                           .size = load_le32(at + 24),
                           .header = load_le32(at + 42)};
    uint64_t *number[] = {&m.size, &m.packed_size, &m.header};
    size_t len = 0;
    const uint8_t *field;

    /* Numbers of 64 bits are in the extra field, for those that are all ones. Without that field, a
     * number just is as large. */
    field = zip_extra(&m, FIELD_64, &len);
    for (size_t k = 0; field && k < ARRAY_LEN(number); k++)
        if (*number[k] == IS_IN_64) {
            *number[k] = len >= 8 ? load_le64(field) : UINT64_MAX; /* which is refused */
            field += 8;
            len -= min_u64(len, 8);
        }
    return m;
}

static uint32_t zip_crc(const void *bytes, size_t len)
{
    return (uint32_t)crc32_z(0, bytes, len);
}

struct zip_member zip_member(const struct zip *zip, size_t i)
{
    struct zip_member m = zip_parse_entry(zip->bytes + zip->entry[i]);

    m.local_crc = zip_crc(m.name, m.name_len);
    m.room = zip->room[i];
    return m;
}

int zip_bad(const struct blob *blob, const struct zip_member *m, struct diag *d, const char *format,
            ...)
{
    char reason[300];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    return blob_bad(blob, d, "member %.100s%s%.*s: %s", m->folder ? m->folder : "",
                    m->folder ? "/" : "", (int)min_u64(m->name_len, 100), m->name, reason);
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
    return "a rare method";
}

int zip_check(const struct blob *blob, const struct zip_member *m, bool foreign, struct diag *d)
{
    const char *method = zip_foreign_method(m);

    if (m->size == UINT64_MAX || m->packed_size == UINT64_MAX || m->header == UINT64_MAX)
        return zip_bad(blob, m, d, "expected its numbers of 64 bits, got an extra field without");
    if (m->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED) || m->method == METHOD_AES)
        return zip_bad(blob, m, d, "is encrypted, which epochfs does not read");
    if (method && !foreign)
        return zip_bad(blob, m, d, "its compression method is %u (%s): expected stored or deflated",
                       m->method, method);
    if (m->method == ZIP_STORED && m->packed_size != m->size)
        return zip_bad(blob, m, d,
                       "expected as many bytes in the archive as it has, got %llu and %llu",
                       (unsigned long long)m->packed_size, (unsigned long long)m->size);
    if (m->method == ZIP_DEFLATED && m->size / DEFLATE_MOST > m->packed_size)
        return zip_bad(
            blob, m, d, "expected at most %u bytes of each deflated byte, got %llu bytes of %llu",
            DEFLATE_MOST, (unsigned long long)m->size, (unsigned long long)m->packed_size);
    if (m->method == ZIP_DEFLATED && m->packed_size > m->size &&
        m->packed_size - m->size > m->size / 8 + DEFLATE_ADDS)
        return zip_bad(blob, m, d, "expected at most %llu deflated bytes for %llu, got %llu",
                       (unsigned long long)(m->size + m->size / 8 + DEFLATE_ADDS),
                       (unsigned long long)m->size, (unsigned long long)m->packed_size);
    return 0;
}

/* Check the entry that is next, with left bytes of the directory. */
static int zip_read_entry(const struct blob *blob, bool foreign, const struct zip *zip, size_t left,
                          size_t *ret_len, struct diag *d)
{
    const uint8_t *at = zip->bytes + zip->entry[zip->n];
    uint64_t place = zip->directory + zip->entry[zip->n];
    struct zip_member m;

    if (left < ENTRY_BYTES || load_le32(at) != ENTRY_MAGIC)
        return zip_bad_at(blob, place,
                          "an entry of the directory (50 4b 01 02), got something else", d);
    *ret_len = (size_t)ENTRY_BYTES + load_le16(at + 28) + load_le16(at + 30) + load_le16(at + 32);
    if (*ret_len > left)
        return zip_bad_at(blob, place, "an entry inside of the directory, got a longer one", d);
    if (load_le16(at + 34) && load_le16(at + 34) != UINT16_MAX)
        return zip_is_part(blob, place, d);
    m = zip_parse_entry(at);
    return zip_check(blob, &m, foreign, d);
}

struct zip_place {
    uint64_t header;
    uint32_t member;
};

static int zip_compare_places(const void *a, const void *b)
{
    const struct zip_place *x = a, *y = b;

    return (x->header > y->header) - (x->header < y->header);
}

/* Each member ends before the next one, in the order of the archive: set the room between them. */
static int zip_find_room(const struct blob *blob, struct zip *zip, struct diag *d)
{
    AUTO_FREE struct zip_place *place = malloc((zip->n + 1) * sizeof(*place));
    bool sorted = true;

    zip->room = malloc((zip->n + 1) * sizeof(*zip->room));
    if (!place || !zip->room)
        return -ENOMEM;
    for (size_t i = 0; i < zip->n; i++) {
        place[i].header = zip_parse_entry(zip->bytes + zip->entry[i]).header;
        place[i].member = (uint32_t)i;
        sorted = sorted && (!i || place[i - 1].header <= place[i].header);
    }
    if (!sorted)
        qsort(place, zip->n, sizeof(*place), zip_compare_places);
    place[zip->n] = (struct zip_place){.header = zip->directory};
    for (size_t i = 0; i < zip->n; i++) {
        struct zip_member m = zip_parse_entry(zip->bytes + zip->entry[place[i].member]);
        uint64_t next = place[i + 1].header, end;

        if (!checked_add(m.header, LOCAL_BYTES + m.name_len, &end) ||
            !checked_add(end, m.packed_size, &end) || end > next)
            return zip_bad(blob, &m, d,
                           "expected %llu bytes from %llu on, before the %s at byte %llu, got %s",
                           (unsigned long long)m.packed_size, (unsigned long long)m.header,
                           i + 1 < zip->n ? "next member" : "directory", (unsigned long long)next,
                           i + 1 < zip->n ? "two that overlap" : "a later end");
        zip->room[place[i].member] = (uint16_t)min_u64(next - end, UINT16_MAX);
    }
    return 0;
}

int zip_read(const struct blob *blob, bool foreign, struct zip *ret, struct diag *d)
{
    AUTO_ZIP struct zip zip = {0};
    struct zip_end end = {0};
    size_t at = 0, most;
    int r = read_end(blob, &end, d);

    if (r < 0)
        return r;
    most = (size_t)(end.size / ENTRY_BYTES) + 1;
    zip.directory = end.offset;
    zip.bytes = malloc((size_t)end.size + 1);
    zip.entry = malloc(most * sizeof(*zip.entry));
    if (!zip.bytes || !zip.entry)
        return -ENOMEM;
    r = end.size ? blob_read(READ_WAITS, blob, zip.bytes, (size_t)end.size, end.offset, d) : 0;
    while (r == 0 && at < end.size) {
        size_t len = 0;

        zip.entry[zip.n] = (uint32_t)at;
        r = zip_read_entry(blob, foreign, &zip, (size_t)end.size - at, &len, d);
        zip.n += r == 0;
        at += len;
    }
    if (r == 0 && zip.n != end.entries)
        r = blob_bad(blob, d, "directory at byte %llu: expected %llu members, got %zu",
                     (unsigned long long)end.offset, (unsigned long long)end.entries, zip.n);
    if (r == 0)
        r = zip_find_room(blob, &zip, d);
    if (r < 0)
        return r;
    *ret = zip;
    zip = (struct zip){0};
    return 0;
}

bool zip_first_ends(const uint8_t *head, size_t len, const char *end)
{
    size_t n = len >= LOCAL_BYTES ? load_le16(head + 26) : 0, ends = strlen(end);

    return n >= ends && LOCAL_BYTES + n <= len &&
           !strncasecmp((const char *)head + LOCAL_BYTES + n - ends, end, ends);
}

/* ---- contents ---- */

uint64_t zip_end(const struct zip_member *m)
{
    return m->header + LOCAL_BYTES + m->local_len + min_u64(LOCAL_EXTRA, m->room) + m->packed_size;
}

int zip_locate(struct read_context *rc, const struct blob *blob, struct zip_member *m,
               struct diag *d)
{
    uint8_t local[LOCAL_BYTES + UINT16_MAX];
    size_t len = LOCAL_BYTES + m->local_len;
    int r = m->at ? 0 : blob_read(rc, blob, local, len, m->header, d);

    if (r < 0 || m->at)
        return r;
    if (load_le32(local) != LOCAL_MAGIC || load_le16(local + 26) != m->local_len ||
        zip_crc(local + LOCAL_BYTES, m->local_len) != m->local_crc)
        return zip_bad(blob, m, d, "byte %llu: expected its header, got something else",
                       (unsigned long long)m->header);
    if (load_le16(local + 8) != m->method || (load_le16(local + 6) & FLAG_ENCRYPTED))
        return zip_bad(blob, m, d,
                       "byte %llu: expected a header with method %u and no encryption, got method "
                       "%u and flags %04x",
                       (unsigned long long)m->header, m->method, load_le16(local + 8),
                       load_le16(local + 6));
    len += load_le16(local + 28);
    if (load_le16(local + 28) > m->room)
        return zip_bad(
            blob, m, d, "expected its %llu bytes from %llu on before byte %llu, got more",
            (unsigned long long)m->packed_size, (unsigned long long)m->header + len,
            (unsigned long long)m->header + LOCAL_BYTES + m->local_len + m->packed_size + m->room);
    m->at = m->header + len;
    return 0;
}

int zip_pread(struct read_context *rc, const struct blob *blob, struct zip_member *m, uint64_t off,
              void *buf, size_t len, struct diag *d)
{
    int r = zip_locate(rc, blob, m, d);

    if (r == -EAGAIN)
        blob_pread(rc, blob, buf, len, m->header + LOCAL_BYTES + m->local_len + off);
    return r < 0 ? r : blob_read(rc, blob, buf, len, m->at + off, d);
}

int zip_content(struct read_context *rc, const struct blob *blob, struct zip_member *m, void *ret,
                size_t len, struct diag *d)
{
    bool whole = len == m->size;
    size_t n = (size_t)min_u64(m->packed_size, whole ? UINT64_MAX : (uint64_t)len + PEEK_MORE);
    AUTO_FREE uint8_t *packed = NULL;
    z_stream z = {.next_out = ret, .avail_out = (uInt)len};
    int r, state;

    if (m->method == ZIP_STORED)
        return zip_pread(rc, blob, m, 0, ret, len, d);
    packed = malloc(n + 1);
    r = packed ? zip_pread(rc, blob, m, 0, packed, n, d) : -ENOMEM;
    if (r < 0)
        return r;
    z.next_in = packed;
    z.avail_in = (uInt)n;
    state = inflateInit2(&z, -15);
    if (state == Z_OK) {
        state = inflate(&z, Z_SYNC_FLUSH);
        inflateEnd(&z);
    }
    if (state == Z_MEM_ERROR)
        return -ENOMEM;
    if (z.avail_out ||
        (whole && (state != Z_STREAM_END || z.avail_in || zip_crc(ret, len) != m->crc)))
        return zip_bad(blob, m, d,
                       "expected %llu bytes with CRC-32 %08x in its deflated data, got %s",
                       (unsigned long long)m->size, m->crc, z.msg ? z.msg : "others");
    return 0;
}

/* ---- writing ---- */

/* Bytes of the extra field of a member: its sizes, and where it is. */
static size_t zip_field_bytes(uint64_t size, uint64_t header)
{
    size_t n = (size >= IS_IN_64 ? 16u : 0) + (header >= IS_IN_64 ? 8u : 0);

    return n ? 4 + n : 0;
}

size_t zip_local_size(const struct zip_member *m)
{
    return LOCAL_BYTES + m->name_len + zip_field_bytes(m->size, 0);
}

size_t zip_entry_size(const struct zip_member *m)
{
    return ENTRY_BYTES + m->name_len + zip_field_bytes(m->size, m->header);
}

size_t zip_end_size(uint64_t directory)
{
    return END_BYTES + (directory >= IS_IN_64 ? END64_BYTES + LOCATOR_BYTES : 0);
}

static uint32_t zip_in_32(uint64_t n)
{
    return (uint32_t)min_u64(n, IS_IN_64);
}

static unsigned zip_flags(const char *name, size_t left)
{
    bool is_ascii = true;

    for (size_t i = 0; i < left; i++)
        is_ascii = is_ascii && (unsigned char)name[i] < 0x80;
    return is_ascii || !text_is_utf8(name, left) ? 0 : FLAG_UTF8;
}

/* What both headers have: numbers, from the version on, and at `end` the name and a field for
 * numbers of 64 bits. Returns its end. */
static uint8_t *zip_put_common(uint8_t *at, const struct zip_member *m, uint64_t header,
                               uint8_t *end)
{
    size_t field = zip_field_bytes(m->size, header);

    store_le16(at, field ? VERSION_64 : VERSION);
    store_le16(at + 2, (uint16_t)zip_flags(m->name, m->name_len));
    store_le16(at + 4, ZIP_STORED);
    store_le16(at + 6, 0); /* time */
    store_le16(at + 8, DATE);
    store_le32(at + 10, m->crc);
    store_le32(at + 14, zip_in_32(m->size));
    store_le32(at + 18, zip_in_32(m->size));
    store_le16(at + 22, (uint16_t)m->name_len);
    store_le16(at + 24, (uint16_t)field);
    memcpy(end, m->name, m->name_len);
    end += m->name_len;
    if (!field)
        return end;
    store_le16(end, FIELD_64);
    store_le16(end + 2, (uint16_t)(field - 4));
    if (m->size >= IS_IN_64) {
        store_le64(end + 4, m->size);
        store_le64(end + 12, m->size);
    }
    if (header >= IS_IN_64)
        store_le64(end + field - 8, header);
    return end + field;
}

uint8_t *zip_put_local(uint8_t *at, const struct zip_member *m)
{
    store_le32(at, LOCAL_MAGIC);
    return zip_put_common(at + 4, m, 0, at + LOCAL_BYTES);
}

uint8_t *zip_put_entry(uint8_t *at, const struct zip_member *m)
{
    memset(at, 0, ENTRY_BYTES);
    store_le32(at, ENTRY_MAGIC);
    store_le16(at + 4, MAKER_UNIX << 8 | VERSION);
    store_le32(at + 38, UINT32_C(0100444) << 16); /* a regular file, read-only */
    store_le32(at + 42, zip_in_32(m->header));
    return zip_put_common(at + 6, m, m->header, at + ENTRY_BYTES);
}

uint8_t *zip_put_end(uint8_t *at, unsigned n, uint64_t directory, uint64_t size)
{
    memset(at, 0, zip_end_size(directory));
    if (directory >= IS_IN_64) {
        store_le32(at, END64_MAGIC);
        store_le64(at + 4, END64_BYTES - 12);
        store_le16(at + 12, MAKER_UNIX << 8 | VERSION_64);
        store_le16(at + 14, VERSION_64);
        store_le64(at + 24, n);
        store_le64(at + 32, n);
        store_le64(at + 40, size);
        store_le64(at + 48, directory);
        at += END64_BYTES;
        store_le32(at, LOCATOR_MAGIC);
        store_le64(at + 8, directory + size);
        store_le32(at + 16, 1);
        at += LOCATOR_BYTES;
    }
    store_le32(at, END_MAGIC);
    store_le16(at + 8, (uint16_t)n);
    store_le16(at + 10, (uint16_t)n);
    store_le32(at + 12, directory >= IS_IN_64 ? IS_IN_64 : (uint32_t)size);
    store_le32(at + 16, zip_in_32(directory));
    return at + END_BYTES;
}
