/* Bytes as pages of Parquet: the type of the column, its levels, the encoding, the codec, the
 * number of values and whether it is a v2 page (6 bytes); the length of a dictionary (1 byte) and
 * its bytes; then the body. The sizes in the header are those of the body, or twice them. Whatever
 * comes out, there is a value for each level that says so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "format/parquet/decode/page.h"
#include "fuzz.h"

#define HEAD   7
#define VALUES 4096

static void check_data(const struct page_column *column, const struct page_data *data, size_t n)
{
    size_t len, sum = 0, full = column->max_def ? 0 : n;

    for (size_t i = 0; i < n && column->max_def; i++)
        full += data->def[i] == column->max_def;
    FUZZ_CHECK(data->n == n && data->v.n == full && data->n_values == full);
    for (size_t i = 0; i < data->v.n; i++) {
        const uint8_t *bytes = values_at(&data->v, i, &len);

        FUZZ_CHECK(bytes >= data->v.bytes && bytes + len <= data->v.bytes + data->v.used);
        sum += len;
    }
    FUZZ_CHECK(sum == data->v.len);
}

static void saw_values(const struct values *v)
{
    AUTO_FREE uint8_t *all = malloc(v->len + 1);
    size_t at = 0, len;

    for (size_t i = 0; i < v->n; i++, at += len) {
        const uint8_t *bytes = values_at(v, i, &len);

        memcpy(all + at, bytes, len);
    }
    fuzz_saw(all, v->len);
}

static void check_page(const struct page_column *column, struct page_header *header,
                       const uint8_t *body, const struct values *dictionary)
{
    AUTO_PAGE_DATA struct page_data data = {0};
    struct values_memory room = {0};
    const char *why = NULL;
    size_t n = (size_t)header->n;
    int r = page_decode(column, header, body, dictionary, &room, &data, &why);

    FUZZ_CHECK(r == 0 || (r == -EBADMSG && why && !data.n && !data.v.n));
    fuzz_saw(&r, sizeof(r));
    if (r == 0) {
        check_data(column, &data, n);
        saw_values(&data.v);
        FUZZ_CHECK(page_decode(column, header, body, dictionary, &room, &data, &why) == 0);
        check_data(column, &data, 2 * n);
        saw_values(&data.v);
        page_data_drop(column, &data, n);
        check_data(column, &data, n);
    }
    values_memory_release(&room);
}

struct body {
    const uint8_t *bytes;
    uint64_t len;
};

static int read_body(void *ctx, uint64_t at, size_t len, const uint8_t **ret)
{
    const struct body *body = ctx;

    FUZZ_CHECK(len && at < body->len && len <= body->len - at);
    *ret = body->bytes + at;
    return 0;
}

/* Bytes that are unpacked alone are those of the whole. */
static void check_part(const uint8_t *bytes, size_t len, size_t size)
{
    struct body body = {bytes, len};
    const struct codec_packed packed = {0, len, read_body, &body};
    AUTO_FREE uint8_t *whole = malloc(size + 1), *part = malloc(size + 1);
    size_t from = size / 3, to = size - size / 7;
    int all = codec_unpack(CODEC_SNAPPY, bytes, len, whole, size);
    int r = from < to ? codec_unpack_part(&packed, from, to, part) : -ENODATA;

    FUZZ_CHECK(all < 0 || r == -ENODATA || (r == 0 && !memcmp(part, whole + from, to - from)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct page_column column = {0};
    struct page_header header = {.crc = PAGE_NO_CRC};
    AUTO_VALUES struct values dictionary = {0};
    const char *why;
    size_t entries;

    if (len < HEAD || len > 1 << 16)
        return 0;
    column.type = data[0] % N_PARQUET_TYPES;
    column.width = values_width(column.type, data[0] / 16 + 1u);
    column.max_def = data[1] % 4;
    column.max_rep = data[1] / 4 % 4;
    column.codec = data[3] % N_CODECS;
    header.encoding = data[2] % 12;
    header.n = data[4] * 16u % VALUES;
    header.type = data[5] & 1 ? PAGE_DATA_V2 : PAGE_DATA;
    header.is_packed = data[5] & 2 ? 1 : 0;
    header.level_encoding[0] = header.level_encoding[1] = data[5] & 4 ? 4 : 3;
    entries = data[6];
    data += HEAD;
    len -= HEAD;
    entries = entries < len ? entries : len;
    dictionary.width = column.width;
    if (values_decode(&dictionary, column.type,
                      &(const struct values_source){.encoding = ENCODING_PLAIN,
                                                    .bytes = data,
                                                    .len = entries,
                                                    .n = column.width ? entries / column.width : 3},
                      &why) < 0)
        dictionary.n = 0;
    header.packed = len - entries;
    header.unpacked = column.codec ? 2 * header.packed : header.packed;
    if (column.codec == CODEC_SNAPPY)
        check_part(data + entries, len - entries, (size_t)header.unpacked);
    header.def_bytes = header.packed / 4;
    header.rep_bytes = header.packed / 8;
    header.rows = header.n;
    check_page(&column, &header, data + entries, dictionary.n ? &dictionary : NULL);
    return 0;
}
