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

enum {
    HEADER_TYPE = 1,
    HEADER_UNPACKED,
    HEADER_PACKED,
    HEADER_CRC,
    HEADER_V1,
    HEADER_INDEX,
    HEADER_DICTIONARY,
    HEADER_V2
};

static bool page_v1(const int64_t number[static 8], struct page_header *ret)
{
    ret->n = (uint64_t)number[1];
    ret->encoding = (uint64_t)number[2];
    ret->level_encoding[0] = (uint64_t)number[3];
    ret->level_encoding[1] = (uint64_t)number[4];
    return number[1] >= 0;
}

static bool page_v2(const int64_t number[static 8], struct page_header *ret)
{
    uint64_t levels;

    ret->n = (uint64_t)number[1];
    ret->nulls = (uint64_t)number[2];
    ret->rows = (uint64_t)number[3];
    ret->encoding = (uint64_t)number[4];
    ret->def_bytes = (uint64_t)number[5];
    ret->rep_bytes = (uint64_t)number[6];
    ret->is_packed = number[7] != 0;
    return number[1] >= 0 && number[2] >= 0 && number[3] >= 0 &&
           checked_add(ret->def_bytes, ret->rep_bytes, &levels) && levels <= ret->packed &&
           levels <= ret->unpacked;
}

static bool page_kind(struct page_header *ret, int64_t number[static HEADER_V2 + 1][8])
{
    switch (ret->type) {
    case PAGE_DATA:
        return page_v1(number[HEADER_V1], ret);
    case PAGE_DICTIONARY:
        return page_v1(number[HEADER_DICTIONARY], ret);
    case PAGE_DATA_V2:
        return page_v2(number[HEADER_V2], ret);
    default:
        return true;
    }
}

int page_header_read(const uint8_t *bytes, size_t len, struct page_header *ret,
                     const char **ret_why)
{
    int64_t top[HEADER_V2 + 1] = {[HEADER_TYPE] = -1, [HEADER_UNPACKED] = -1, [HEADER_PACKED] = -1};
    int64_t number[HEADER_V2 + 1][8];
    struct thrift_field f = {0};
    struct thrift t;

    *ret = (struct page_header){0};
    memset(number, -1, sizeof(number));
    number[HEADER_V2][7] = 1;
    thrift_init(&t, bytes, len);
    while (thrift_next(&t, &f)) {
        if (f.id == HEADER_V1 || f.id == HEADER_DICTIONARY || f.id == HEADER_V2) {
            if (thrift_struct(&t, &f))
                thrift_numbers(&t, 8, number[f.id]);
        } else if (f.id >= HEADER_TYPE && f.id <= HEADER_CRC) {
            ret->has_crc |= thrift_number(&t, &f, &top[f.id]) && f.id == HEADER_CRC;
        } else {
            thrift_skip(&t, f.type);
        }
    }
    *ret_why = t.fault;
    if (t.fault)
        return -ENODATA;
    ret->len = (unsigned)(t.at - bytes);
    ret->type = top[HEADER_TYPE];
    ret->unpacked = (uint64_t)top[HEADER_UNPACKED];
    ret->packed = (uint64_t)top[HEADER_PACKED];
    ret->crc = (uint32_t)top[HEADER_CRC];
    *ret_why = "expected a page header with sizes and counts of 0 or more, got another";
    if (top[HEADER_TYPE] < 0 || top[HEADER_UNPACKED] < 0 || top[HEADER_PACKED] < 0 ||
        !page_kind(ret, number))
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

static int page_append_levels(uint8_t **levels, size_t n, const uint8_t *more, size_t n_more)
{
    uint8_t *grown;

    if (!more)
        return 0;
    grown = realloc(*levels, n + n_more + 1);
    if (!grown)
        return -ENOMEM;
    *levels = grown;
    memcpy(grown + n, more, n_more);
    return 0;
}

int page_data_append(struct page_data *data, struct page_data *other)
{
    int r;

    if (!data->n && !data->v.n) {
        page_data_release(data);
        *data = *other;
        *other = (struct page_data){.v.width = data->v.width};
        return 0;
    }
    r = data->n + other->n > 2 * PAGE_VALUES_MAX
            ? -EBADMSG
            : page_append_levels(&data->def, data->n, other->def, other->n);

    if (r == 0)
        r = page_append_levels(&data->rep, data->n, other->rep, other->n);
    if (r == 0)
        r = values_append(&data->v, &other->v);
    if (r == 0)
        data->n += other->n;
    return r;
}

size_t page_count_values(const struct page_column *column, const struct page_data *data)
{
    size_t n = 0;

    if (!column->max_def)
        return data->n;
    for (size_t i = 0; i < data->n; i++)
        n += data->def[i] == column->max_def;
    return n;
}

static int page_fail(const char **ret_why, const char *why)
{
    *ret_why = why;
    return -EBADMSG;
}

/* Decode the levels of a page from their bytes. */
static int page_levels(const uint8_t *bytes, size_t len, unsigned max, size_t n, uint8_t **ret,
                       const char **ret_why)
{
    if (!max)
        return 0;
    *ret = malloc(n + 1);
    if (!*ret)
        return -ENOMEM;
    if (!hybrid_decode(bytes, len, bit_width(max), n, NULL, *ret))
        return page_fail(ret_why, "expected a level for each value, got the end of the levels");
    for (size_t i = 0; i < n; i++)
        if ((*ret)[i] > max)
            return page_fail(ret_why, "expected levels up to the column's, got a larger one");
    return 0;
}

/* Levels of a v1 page have their length in front. */
static int page_levels_v1(const uint8_t *bytes, size_t len, size_t *at, unsigned max, size_t n,
                          uint64_t encoding, uint8_t **ret, size_t *ret_more, const char **ret_why)
{
    size_t bytes_of;
    int r;

    if (!max)
        return 0;
    if (encoding != ENCODING_RLE)
        return page_fail(ret_why, "expected levels as runs, got bit-packed ones");
    *ret_more = *at + 4;
    if (len < *ret_more)
        return 1;
    bytes_of = load_le32(bytes + *at);
    if (bytes_of > PAGE_BYTES_MAX)
        return page_fail(ret_why, "expected levels inside the page, got a larger length");
    *ret_more += bytes_of;
    if (len < *ret_more)
        return 1;
    r = page_levels(bytes + *at + 4, bytes_of, max, n, ret, ret_why);
    *at = *ret_more;
    return r;
}

static int page_check_v2(const struct page_column *column, const struct page_header *header,
                         const struct page_data *data, const char **ret_why)
{
    uint64_t rows = column->max_rep ? 0 : data->n;

    for (size_t i = 0; i < data->n && column->max_rep; i++)
        rows += !data->rep[i];
    if (header->nulls != data->n - page_count_values(column, data))
        return page_fail(ret_why, "expected as many nulls as the header says, got others");
    if (rows != header->rows)
        return page_fail(ret_why, "expected as many rows as the header says, got others");
    return 0;
}

int page_decode_levels(const struct page_column *column, const struct page_header *header,
                       const uint8_t *levels, size_t len, struct page_data *ret, size_t *ret_at,
                       size_t *ret_more, const char **ret_why)
{
    bool is_v2 = header->type == PAGE_DATA_V2;
    size_t at = 0, n = (size_t)header->n;
    int r;

    page_data_release(ret);
    *ret_more = 0;
    if (is_v2) {
        at = *ret_more = (size_t)(header->rep_bytes + header->def_bytes);
        if (len < at)
            return 1;
        r = page_levels(levels, (size_t)header->rep_bytes, column->max_rep, n, &ret->rep, ret_why);
        if (r == 0)
            r = page_levels(levels + header->rep_bytes, (size_t)header->def_bytes, column->max_def,
                            n, &ret->def, ret_why);
    } else {
        r = page_levels_v1(levels, len, &at, column->max_rep, n, header->level_encoding[1],
                           &ret->rep, ret_more, ret_why);
        if (r == 0)
            r = page_levels_v1(levels, len, &at, column->max_def, n, header->level_encoding[0],
                               &ret->def, ret_more, ret_why);
    }
    if (r)
        return r;
    ret->n = n;
    *ret_at = at;
    return is_v2 ? page_check_v2(column, header, ret, ret_why) : 0;
}

static int page_check_crc(const struct page_header *header, const uint8_t *body,
                          const char **ret_why)
{
    return header->has_crc && libdeflate_crc32(0, body, (size_t)header->packed) != header->crc
               ? page_fail(ret_why, "expected the CRC of the header, got another")
               : 0;
}

/* Unpack bytes [at, packed) of a body: *ret has what follows `at`; *ret_memory is the caller's. */
static int page_unpack(const struct page_column *column, const struct page_header *header,
                       const uint8_t *body, size_t at, const uint8_t **ret, uint8_t **ret_memory,
                       const char **ret_why)
{
    bool packed = header->type != PAGE_DATA_V2 || header->is_packed;
    size_t len = (size_t)header->packed - at, size = (size_t)header->unpacked - at;
    int r;

    *ret = body + at;
    if (len == size && (!packed || column->codec == CODEC_NONE || !len)) /* as it is */
        return 0;
    *ret = *ret_memory = malloc(size + 1);
    if (!*ret)
        return -ENOMEM;
    r = codec_unpack(packed ? column->codec : CODEC_NONE, body + at, len, *ret_memory, size);
    return r == -EBADMSG ? page_fail(ret_why, "expected a body that unpacks to the size in the "
                                              "header, got another")
                         : r;
}

int page_decode(const struct page_column *column, const struct page_header *header,
                const uint8_t *body, const struct values *dictionary, struct page_data *ret,
                const char **ret_why)
{
    size_t at = 0, more, packed_at = 0, len = (size_t)header->unpacked;
    AUTO_FREE uint8_t *memory = NULL;
    const uint8_t *unpacked = NULL;
    bool is_v2 = header->type == PAGE_DATA_V2;
    const uint8_t *values;
    int r = page_check_crc(header, body, ret_why);

    if (is_v2)
        packed_at = (size_t)(header->rep_bytes + header->def_bytes);
    if (r == 0)
        r = page_unpack(column, header, body, packed_at, &unpacked, &memory, ret_why);
    if (r == 0)
        r = page_decode_levels(column, header, is_v2 ? body : unpacked, is_v2 ? packed_at : len,
                               ret, &at, &more, ret_why);
    if (r == 1)
        r = page_fail(ret_why, "expected levels inside the page, got a larger length");
    if (r < 0)
        return r;
    values = is_v2 ? unpacked : unpacked + at;
    ret->v.width = column->width;
    return values_decode(&ret->v, column->type, header->encoding, values, len - at,
                         page_count_values(column, ret), dictionary, ret_why);
}

int page_decode_dictionary(const struct page_column *column, const struct page_header *header,
                           const uint8_t *body, struct values *ret, const char **ret_why)
{
    AUTO_FREE uint8_t *memory = NULL;
    const uint8_t *unpacked = NULL;
    int r = page_check_crc(header, body, ret_why);

    if (r == 0 && header->encoding != ENCODING_PLAIN &&
        header->encoding != ENCODING_PLAIN_DICTIONARY)
        r = page_fail(ret_why, "expected plain values in a dictionary, got another encoding");
    if (r == 0)
        r = page_unpack(column, header, body, 0, &unpacked, &memory, ret_why);
    ret->width = column->width;
    return r < 0 ? r
                 : values_decode(ret, column->type, ENCODING_PLAIN, unpacked,
                                 (size_t)header->unpacked, (size_t)header->n, NULL, ret_why);
}
