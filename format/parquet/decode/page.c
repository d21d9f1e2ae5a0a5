#include "format/parquet/decode/page.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/parquet/decode/hybrid.h"
#include "format/parquet/decode/thrift.h"

/* ---- headers ---- */

struct header_numbers {
    int64_t type, unpacked, packed, crc;
    int64_t v1[5], dictionary[3], v2[8]; /* by their ids */
};

#define NUMBER(number, member)                                                                     \
    {                                                                                              \
        .id = (number), .becomes = THRIFT_NUMBER, .at = offsetof(struct header_numbers, member)    \
    }
#define INSIDE(number, table)                                                                      \
    {                                                                                              \
        .id = (number), .becomes = THRIFT_INSIDE, .rules = (table)                                 \
    }

static const struct thrift_rule v1_rules[] = {
    NUMBER(1, v1[1]), NUMBER(2, v1[2]), NUMBER(3, v1[3]), NUMBER(4, v1[4]), {0}};
static const struct thrift_rule dictionary_rules[] = {
    NUMBER(1, dictionary[1]), NUMBER(2, dictionary[2]), {0}};
static const struct thrift_rule v2_rules[] = {
    NUMBER(1, v2[1]), NUMBER(2, v2[2]), NUMBER(3, v2[3]), NUMBER(4, v2[4]),
    NUMBER(5, v2[5]), NUMBER(6, v2[6]), NUMBER(7, v2[7]), {0}};
static const struct thrift_rule header_rules[] = {
    NUMBER(1, type),     NUMBER(2, unpacked),         NUMBER(3, packed),   NUMBER(4, crc),
    INSIDE(5, v1_rules), INSIDE(7, dictionary_rules), INSIDE(8, v2_rules), {0}};

/* What pages of that type have. */
static bool page_kind(struct page_header *ret, const struct header_numbers *h)
{
    const int64_t *number = ret->type == PAGE_DATA         ? h->v1
                            : ret->type == PAGE_DICTIONARY ? h->dictionary
                            : ret->type == PAGE_DATA_V2    ? h->v2
                                                           : NULL;
    bool is_v2 = number == h->v2;
    uint64_t levels;

    if (!number)
        return true;
    ret->n = (uint64_t)number[1];
    ret->encoding = (uint64_t)number[is_v2 ? 4 : 2];
    ret->level_encoding[0] = (uint64_t)h->v1[3];
    ret->level_encoding[1] = (uint64_t)h->v1[4];
    ret->nulls = (uint64_t)h->v2[2];
    ret->rows = (uint64_t)h->v2[3];
    ret->def_bytes = (uint64_t)h->v2[5];
    ret->rep_bytes = (uint64_t)h->v2[6];
    ret->is_packed = h->v2[7] != 0;
    return number[1] >= 0 && (!is_v2 || (number[2] >= 0 && number[3] >= 0 &&
                                         checked_add(ret->def_bytes, ret->rep_bytes, &levels) &&
                                         levels <= ret->packed && levels <= ret->unpacked));
}

int page_header_read(const uint8_t *bytes, size_t len, struct page_header *ret,
                     const char **ret_why)
{
    struct thrift t = {.at = bytes, .end = bytes + len};
    struct header_numbers h;

    memset(&h, -1, sizeof(h));
    h.crc = INT64_MIN;
    h.v2[7] = 1;
    if (thrift_read(&t, header_rules, &h) < 0) {
        *ret_why = t.fault;
        return -ENODATA;
    }
    *ret = (struct page_header){.len = (unsigned)(t.at - bytes),
                                .type = h.type,
                                .unpacked = (uint64_t)h.unpacked,
                                .packed = (uint64_t)h.packed,
                                .has_crc = h.crc != INT64_MIN,
                                .crc = (uint32_t)h.crc};
    *ret_why = "expected a page header with sizes and counts of 0 or more, got another";
    if (h.type < 0 || h.unpacked < 0 || h.packed < 0 || !page_kind(ret, &h))
        return -EBADMSG;
    *ret_why = "expected a page of at most 256 MiB and 67108864 values, got a larger one";
    return ret->unpacked > PAGE_BYTES_MAX || ret->packed > UINT64_C(2) * PAGE_BYTES_MAX ||
                   ret->n > PAGE_VALUES_MAX
               ? -EBADMSG
               : 0;
}

/* ---- levels and values ---- */

void page_data_release(struct page_data *data)
{
    free(data->def);
    free(data->rep);
    values_release(&data->v);
    data->def = data->rep = NULL;
    data->n = 0;
}

void page_room_release(struct page_room *room)
{
    free(room->bytes);
    *room = (struct page_room){0};
}

size_t page_count_values(const struct page_column *column, const struct page_data *data,
                         size_t from)
{
    size_t n = 0;

    if (!column->max_def)
        return data->n - from;
    for (size_t i = from; i < data->n; i++)
        n += data->def[i] == column->max_def;
    return n;
}

void page_data_drop(const struct page_column *column, struct page_data *data, size_t n)
{
    struct page_data front = {.n = n, .def = data->def};

    values_drop(&data->v, page_count_values(column, &front, 0));
    data->n -= n;
    if (data->def)
        memmove(data->def, data->def + n, data->n);
    if (data->rep)
        memmove(data->rep, data->rep + n, data->n);
}

static int page_fail(const char **ret_why, const char *why)
{
    *ret_why = why;
    return -EBADMSG;
}

int page_data_grow(const struct page_column *column, struct page_data *data, size_t n)
{
    for (unsigned i = 0; i < 2; i++) {
        uint8_t **levels = i ? &data->def : &data->rep, *grown;

        if (!(i ? column->max_def : column->max_rep))
            continue;
        grown = realloc(*levels, data->n + n + 1);
        if (!grown)
            return -ENOMEM;
        *levels = grown;
    }
    return 0;
}

/* Decode n levels from their bytes. */
static int page_levels(const uint8_t *bytes, size_t len, unsigned max, size_t n, uint8_t *ret,
                       const char **ret_why)
{
    if (!hybrid_decode(bytes, len, bit_width(max), n, NULL, ret))
        return page_fail(ret_why, "expected a level for each value, got the end of the levels");
    for (size_t i = 0; i < n; i++)
        if (ret[i] > max)
            return page_fail(ret_why, "expected levels up to the column's, got a larger one");
    return 0;
}

/* What the header of a v2 page says of its levels, which are those from `from` on. */
static int page_check_v2(const struct page_column *column, const struct page_header *header,
                         const struct page_data *data, size_t from, const char **ret_why)
{
    uint64_t rows = column->max_rep ? 0 : header->n;

    for (size_t i = from; i < data->n && column->max_rep; i++)
        rows += !data->rep[i];
    if (header->nulls != header->n - page_count_values(column, data, from))
        return page_fail(ret_why, "expected as many nulls as the header says, got others");
    return rows != header->rows
               ? page_fail(ret_why, "expected as many rows as the header says, got others")
               : 0;
}

int page_decode_levels(const struct page_column *column, const struct page_header *header,
                       const uint8_t *bytes, size_t len, struct page_data *ret, size_t *ret_at,
                       const char **ret_why)
{
    bool is_v2 = header->type == PAGE_DATA_V2;
    size_t at = 0, n = (size_t)header->n, had = ret->n;
    int r = had + n > 2 * PAGE_VALUES_MAX
                ? page_fail(ret_why, "expected fewer values that are decoded together, got more")
                : page_data_grow(column, ret, n);

    for (unsigned i = 0; i < 2 && r == 0; i++) { /* repetition, definition */
        unsigned max = i ? column->max_def : column->max_rep;
        size_t size = (size_t)(i ? header->def_bytes : header->rep_bytes);

        if (max && !is_v2) { /* their length is in front */
            if (header->level_encoding[!i] != ENCODING_RLE)
                return page_fail(ret_why, "expected levels as runs, got bit-packed ones");
            if (len - at < 4)
                return -ENODATA;
            size = load_le32(bytes + at);
            at += 4;
        }
        if ((max || is_v2) && size > len - at)
            return -ENODATA;
        if (max)
            r = page_levels(bytes + at, size, max, n, (i ? ret->def : ret->rep) + had, ret_why);
        at += max || is_v2 ? size : 0;
    }
    ret->n += r == 0 ? n : 0;
    if (r == 0 && is_v2)
        r = page_check_v2(column, header, ret, had, ret_why);
    if (r < 0)
        ret->n = had;
    *ret_at = at;
    return r;
}

/* Unpack bytes [at, packed) of a body: *ret has what follows `at`. */
static int page_unpack(const struct page_column *column, const struct page_header *header,
                       const uint8_t *body, size_t at, struct page_room *room, const uint8_t **ret,
                       const char **ret_why)
{
    bool packed = header->type != PAGE_DATA_V2 || header->is_packed;
    size_t len = (size_t)header->packed - at, size = (size_t)header->unpacked - at;
    int r;

    if (header->has_crc && libdeflate_crc32(0, body, (size_t)header->packed) != header->crc)
        return page_fail(ret_why, "expected the CRC of the header, got another");
    *ret = body + at;
    if (len == size && (!packed || column->codec == CODEC_NONE || !len)) /* as it is */
        return 0;
    if (size >= room->capacity) {
        page_room_release(room);
        room->bytes = malloc(size + 1);
        if (!room->bytes)
            return -ENOMEM;
        room->capacity = size + 1;
    }
    *ret = room->bytes;
    r = codec_unpack(packed ? column->codec : CODEC_NONE, body + at, len, room->bytes, size);
    return r == -EBADMSG ? page_fail(ret_why, "expected a body that unpacks to the size in the "
                                              "header, got another")
                         : r;
}

int page_decode(const struct page_column *column, const struct page_header *header,
                const uint8_t *body, const struct values *dictionary, struct page_room *room,
                struct page_data *ret, const char **ret_why)
{
    bool is_v2 = header->type == PAGE_DATA_V2; /* its levels are not packed */
    size_t packed_at = is_v2 ? (size_t)(header->rep_bytes + header->def_bytes) : 0;
    size_t at = 0, had = ret->n, len = (size_t)header->unpacked;
    const uint8_t *unpacked = NULL;
    int r = page_unpack(column, header, body, packed_at, room, &unpacked, ret_why);

    if (r == 0)
        r = page_decode_levels(column, header, is_v2 ? body : unpacked, is_v2 ? packed_at : len,
                               ret, &at, ret_why);
    if (r == -ENODATA)
        r = page_fail(ret_why, "expected levels inside the page, got a larger length");
    if (r < 0)
        return r;
    ret->v.width = column->width;
    r = values_decode(&ret->v, column->type, header->encoding, unpacked + (is_v2 ? 0 : at),
                      len - at, page_count_values(column, ret, had), dictionary, ret_why);
    if (r < 0)
        ret->n = had;
    return r;
}

int page_decode_dictionary(const struct page_column *column, const struct page_header *header,
                           const uint8_t *body, struct page_room *room, struct values *ret,
                           const char **ret_why)
{
    const uint8_t *unpacked = NULL;
    int r = header->encoding != ENCODING_PLAIN && header->encoding != ENCODING_PLAIN_DICTIONARY
                ? page_fail(ret_why, "expected plain values in a dictionary, got another encoding")
                : page_unpack(column, header, body, 0, room, &unpacked, ret_why);

    ret->width = column->width;
    return r < 0 ? r
                 : values_decode(ret, column->type, ENCODING_PLAIN, unpacked,
                                 (size_t)header->unpacked, (size_t)header->n, NULL, ret_why);
}
