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

#define RULE(...) THRIFT_RULE(struct page_header, __VA_ARGS__)

static const struct thrift_rule v1_rules[] = {RULE(1, THRIFT_NUMBER, n),
                                              RULE(2, THRIFT_NUMBER, encoding),
                                              RULE(3, THRIFT_NUMBER, level_encoding[0]),
                                              RULE(4, THRIFT_NUMBER, level_encoding[1]),
                                              {0}};
static const struct thrift_rule dictionary_rules[] = {
    RULE(1, THRIFT_NUMBER, n), RULE(2, THRIFT_NUMBER, encoding), {0}};
static const struct thrift_rule v2_rules[] = {
    RULE(1, THRIFT_NUMBER, n),         RULE(2, THRIFT_NUMBER, nulls),
    RULE(3, THRIFT_NUMBER, rows),      RULE(4, THRIFT_NUMBER, encoding),
    RULE(5, THRIFT_NUMBER, def_bytes), RULE(6, THRIFT_NUMBER, rep_bytes),
    RULE(7, THRIFT_NUMBER, is_packed), {0}};
static const struct thrift_rule header_rules[] = {
    RULE(1, THRIFT_NUMBER, type),
    RULE(2, THRIFT_NUMBER, unpacked),
    RULE(3, THRIFT_NUMBER, packed),
    RULE(4, THRIFT_NUMBER, crc),
    RULE(5, THRIFT_INSIDE, has[PAGE_DATA], .rules = v1_rules),
    RULE(7, THRIFT_INSIDE, has[PAGE_DICTIONARY], .rules = dictionary_rules),
    RULE(8, THRIFT_INSIDE, has[PAGE_DATA_V2], .rules = v2_rules),
    {0}};

/* Has it what its type wants, and nothing else? Numbers that it lacks are negative. */
static bool page_is_whole(const struct page_header *h)
{
    bool is_known = h->type <= PAGE_DATA_V2 && h->type != PAGE_INDEX;
    uint64_t levels;

    if (h->type < 0 || (int64_t)h->unpacked < 0 || (int64_t)h->packed < 0)
        return false;
    for (int64_t type = PAGE_DATA; type <= PAGE_DATA_V2 && is_known; type++)
        if ((h->has[type] > 0) != (h->type == type))
            return false;
    if (!is_known || h->type != PAGE_DATA_V2)
        return !is_known || (int64_t)h->n >= 0;
    return (int64_t)h->n >= 0 && (int64_t)h->nulls >= 0 && (int64_t)h->rows >= 0 &&
           checked_add(h->def_bytes, h->rep_bytes, &levels) && levels <= h->packed &&
           levels <= h->unpacked;
}

int page_header_read(const uint8_t *bytes, size_t len, struct page_header *ret,
                     const char **ret_why)
{
    struct thrift t = {.at = bytes, .end = bytes + len};

    memset(ret, -1, sizeof(*ret));
    ret->crc = PAGE_NO_CRC;
    ret->is_packed = 1;
    if (thrift_read(&t, header_rules, ret) < 0) {
        *ret_why = t.fault;
        return -ENODATA;
    }
    ret->len = (unsigned)(t.at - bytes);
    *ret_why = "expected a page header with sizes and counts of 0 or more, got another";
    if (!page_is_whole(ret))
        return -EBADMSG;
    *ret_why = "expected a page of at most 256 MiB and 67108864 values, got a larger one";
    return ret->unpacked > PAGE_BYTES_MAX || ret->packed > UINT64_C(2) * PAGE_BYTES_MAX ||
                   (ret->n > PAGE_VALUES_MAX && (int64_t)ret->n > 0)
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
    data->n = data->n_values = 0;
}

void page_data_drop(const struct page_column *column, struct page_data *data, size_t n)
{
    size_t n_values = column->max_def ? 0 : n;

    for (size_t i = 0; i < n && data->def; i++)
        n_values += data->def[i] == column->max_def;
    values_drop(&data->v, n_values);
    data->n_values -= n_values;
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

/* What the header of a v2 page says of its levels, which are those from `from` on. */
static int page_check_v2(const struct page_column *column, const struct page_header *header,
                         const struct page_data *data, size_t from, size_t n_values,
                         const char **ret_why)
{
    uint64_t rows = column->max_rep ? 0 : header->n;

    for (size_t i = from; i < data->n && column->max_rep; i++)
        rows += !data->rep[i];
    if (header->nulls != header->n - n_values)
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
    size_t at = 0, n = (size_t)header->n, had = ret->n, full[2] = {0, column->max_def ? 0 : n};
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
            r = hybrid_levels(bytes + at, size, max, n, (i ? ret->def : ret->rep) + had, &full[i]);
        if (r < 0)
            r = page_fail(ret_why,
                          r == -ENODATA
                              ? "expected a level for each value, got the end of the levels"
                              : "expected levels up to the column's, got a larger one");
        at += max || is_v2 ? size : 0;
    }
    ret->n += r == 0 ? n : 0;
    if (r == 0 && is_v2)
        r = page_check_v2(column, header, ret, had, full[1], ret_why);
    if (r < 0)
        ret->n = had;
    else
        ret->n_values += full[1];
    *ret_at = at;
    return r;
}

/* Unpack bytes [at, packed) of a body: from->bytes has what follows `at`. */
static int page_unpack(const struct page_column *column, const struct page_header *header,
                       const uint8_t *body, size_t at, struct values_memory *memory,
                       struct values_source *from, const char **ret_why)
{
    bool packed = header->type != PAGE_DATA_V2 || header->is_packed;
    size_t len = (size_t)header->packed - at, size = (size_t)header->unpacked - at;
    int r;

    *from = (struct values_source){.bytes = body + at, .len = size};
    if (header->crc != PAGE_NO_CRC &&
        libdeflate_crc32(0, body, (size_t)header->packed) != (uint32_t)header->crc)
        return page_fail(ret_why, "expected the CRC of the header, got another");
    if (len == size && (!packed || column->codec == CODEC_NONE || !len)) /* as it is */
        return 0;
    r = values_memory_have(memory, size);
    if (r == 0)
        r = codec_unpack(packed ? column->codec : CODEC_NONE, body + at, len, memory->bytes, size);
    from->bytes = memory->bytes;
    from->memory = memory;
    return r == -EBADMSG ? page_fail(ret_why, "expected a body that unpacks to the size in the "
                                              "header, got another")
                         : r;
}

int page_decode(const struct page_column *column, const struct page_header *header,
                const uint8_t *body, const struct values *dictionary, struct values_memory *memory,
                struct page_data *ret, const char **ret_why)
{
    bool is_v2 = header->type == PAGE_DATA_V2; /* its levels are not packed */
    size_t packed_at = is_v2 ? (size_t)(header->rep_bytes + header->def_bytes) : 0;
    size_t at = 0, had = ret->n, had_values = ret->n_values;
    struct values_source from;
    int r = page_unpack(column, header, body, packed_at, memory, &from, ret_why);

    if (r == 0)
        r = page_decode_levels(column, header, is_v2 ? body : from.bytes,
                               is_v2 ? packed_at : from.len, ret, &at, ret_why);
    if (r == -ENODATA)
        r = page_fail(ret_why, "expected levels inside the page, got a larger length");
    if (r < 0)
        return r;
    from.encoding = header->encoding;
    from.bytes += is_v2 ? 0 : at;
    from.len -= is_v2 ? 0 : at;
    from.n = ret->n_values - had_values;
    from.dictionary = dictionary;
    ret->v.width = column->width;
    r = values_decode(&ret->v, column->type, &from, ret_why);
    if (r < 0) {
        ret->n = had;
        ret->n_values = had_values;
    }
    return r;
}

int page_decode_dictionary(const struct page_column *column, const struct page_header *header,
                           const uint8_t *body, struct values_memory *memory, struct values *ret,
                           const char **ret_why)
{
    struct values_source from;
    int r = header->encoding != ENCODING_PLAIN && header->encoding != ENCODING_PLAIN_DICTIONARY
                ? page_fail(ret_why, "expected plain values in a dictionary, got another encoding")
                : page_unpack(column, header, body, 0, memory, &from, ret_why);

    if (r < 0)
        return r;
    from.n = (size_t)header->n;
    ret->width = column->width;
    return values_decode(ret, column->type, &from, ret_why); /* PLAIN is 0 */
}
