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
        .id = (number), .kind = THRIFT_NUMBER, .at = offsetof(struct header_numbers, member)       \
    }
#define INSIDE(number, table)                                                                      \
    {                                                                                              \
        .id = (number), .kind = THRIFT_INSIDE, .rules = (table)                                    \
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
