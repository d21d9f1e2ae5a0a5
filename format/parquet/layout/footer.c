#include "format/parquet/layout/footer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "format/parquet/decode/thrift.h"

#define HUGGINGFACE_MAX (1u << 20) /* bytes of its JSON that are parsed */

struct footer_reading {
    struct thrift t;
    struct parquet_footer *footer;
    size_t n_chunks;
    uint64_t rows_max;
    struct diag *d;
};

static int footer_bad(struct footer_reading *f, const char *what)
{
    return diag_set(f->d, -EBADMSG, "row group %u, column %zu: %s", f->footer->n_groups,
                    f->footer->n_leaves ? f->n_chunks % f->footer->n_leaves : 0, what);
}

/* ---- chunks ---- */

enum {
    META_TYPE = 1,
    META_ENCODINGS,
    META_PATH,
    META_CODEC,
    META_VALUES,
    META_UNPACKED,
    META_PACKED,
    META_KEYS,
    META_DATA_AT,
    META_INDEX_AT,
    META_DICTIONARY_AT,
    META_STATISTICS
};

enum { STATISTICS_NULLS = 3 };

static uint64_t footer_encodings(struct thrift *t, const struct thrift_field *field)
{
    uint64_t encodings = 0;
    uint32_t n;

    if (!thrift_list(t, field, THRIFT_I32, &n))
        return 0;
    for (uint32_t i = 0; i < n && !t->fault; i++) {
        int64_t encoding = thrift_element(t);

        encodings |= UINT64_C(1) << (encoding < 0 || encoding > 63 ? 63 : encoding);
    }
    return encodings;
}

static uint64_t footer_nulls(struct thrift *t, const struct thrift_field *field)
{
    int64_t number[STATISTICS_NULLS + 1] = {[STATISTICS_NULLS] = -1};

    if (thrift_struct(t, field))
        thrift_numbers(t, STATISTICS_NULLS + 1, number);
    return number[STATISTICS_NULLS] < 0 ? PARQUET_NULLS_UNKNOWN
                                        : (uint64_t)number[STATISTICS_NULLS];
}

static void footer_read_meta(struct footer_reading *f, struct parquet_chunk *chunk,
                             int64_t number[static META_STATISTICS + 1])
{
    struct thrift_field field = {0};

    while (thrift_next(&f->t, &field)) {
        if (field.id == META_ENCODINGS)
            chunk->encodings = footer_encodings(&f->t, &field);
        else if (field.id == META_STATISTICS)
            chunk->nulls = footer_nulls(&f->t, &field);
        else if (field.id >= META_TYPE && field.id < META_STATISTICS)
            thrift_number(&f->t, &field, &number[field.id]);
        else
            thrift_skip(&f->t, field.type);
    }
}

static int footer_check_chunk(struct footer_reading *f, struct parquet_chunk *chunk,
                              const struct parquet_node *leaf, const int64_t *number)
{
    uint64_t at = (uint64_t)number[META_DATA_AT], first = (uint64_t)number[META_DICTIONARY_AT];

    if (number[META_TYPE] != leaf->type)
        return footer_bad(f, "expected the type of the schema, got another");
    if (number[META_CODEC] < 0 || number[META_CODEC] >= N_CODECS)
        return footer_bad(f, "expected a codec from 0 to 7, got another");
    if (number[META_VALUES] < 0 || number[META_UNPACKED] < 0 || number[META_PACKED] < 0)
        return footer_bad(f, "expected values and sizes of 0 or more, got others");
    chunk->codec = (uint8_t)number[META_CODEC];
    chunk->values = (uint64_t)number[META_VALUES];
    chunk->unpacked = (uint64_t)number[META_UNPACKED];
    chunk->start = number[META_DICTIONARY_AT] > 0 && first < at ? first : at;
    if (!chunk->values) {
        chunk->start = chunk->end = PARQUET_MAGIC;
        return 0;
    }
    if (number[META_DATA_AT] < PARQUET_MAGIC || chunk->start < PARQUET_MAGIC ||
        at >= f->footer->at || chunk->start > f->footer->at ||
        (uint64_t)number[META_PACKED] > f->footer->at - chunk->start)
        return footer_bad(f, "expected pages between the magic and the footer, got others");
    chunk->end = chunk->start + (uint64_t)number[META_PACKED];
    return 0;
}

static int footer_read_chunk(struct footer_reading *f)
{
    struct parquet_footer *footer = f->footer;
    int64_t number[META_STATISTICS + 1];
    struct thrift_field field = {0};
    struct parquet_chunk *chunk;
    bool has_meta = false, is_encrypted = false, has_path = false;
    size_t leaf = f->n_chunks % footer->n_leaves;
    int r = array_capacity(&footer->chunk, f->n_chunks, sizeof(*footer->chunk));

    if (r < 0)
        return r;
    chunk = &footer->chunk[f->n_chunks];
    *chunk = (struct parquet_chunk){.nulls = PARQUET_NULLS_UNKNOWN};
    memset(number, -1, sizeof(number));
    while (thrift_next(&f->t, &field)) {
        if (field.id == 3 && field.type == THRIFT_STRUCT) {
            has_meta = true;
            footer_read_meta(f, chunk, number);
            continue;
        }
        has_path |= field.id == 1;
        is_encrypted |= field.id == 8 || field.id == 9;
        thrift_skip(&f->t, field.type);
    }
    if (f->t.fault)
        return -EBADMSG;
    if (has_path)
        return footer_bad(f, "expected data in this file, got the name of another file, which is "
                             "never opened");
    if (!has_meta && !is_encrypted)
        return footer_bad(f, "expected metadata of the column, got none");
    r = is_encrypted ? 0 : footer_check_chunk(f, chunk, &footer->node[footer->leaf[leaf]], number);
    f->n_chunks++;
    return r;
}

/* ---- row groups ---- */

/* The chunks have the values of the rows. */
static int footer_check_rows(struct footer_reading *f, uint64_t rows)
{
    struct parquet_footer *footer = f->footer;

    f->n_chunks -= footer->n_leaves;
    for (unsigned i = 0; i < footer->n_leaves; i++, f->n_chunks++) {
        const struct parquet_chunk *chunk = &footer->chunk[f->n_chunks];
        bool is_flat = !footer->node[footer->leaf[i]].max_rep;

        if (chunk->end && (is_flat ? chunk->values != rows : chunk->values < rows))
            return footer_bad(f, "expected as many values as the group has rows, got others");
        if (chunk->values > PARQUET_ROWS_MAX * 64)
            return footer_bad(f, "expected at most 2^37 values, got more");
    }
    return 0;
}

static int footer_read_group(struct footer_reading *f)
{
    struct parquet_footer *footer = f->footer;
    struct thrift_field field = {0};
    size_t before = f->n_chunks;
    int64_t rows = -1;
    int r = 0;

    while (r == 0 && thrift_next(&f->t, &field)) {
        uint32_t n;

        if (field.id == 3)
            thrift_number(&f->t, &field, &rows);
        else if (field.id != 1)
            thrift_skip(&f->t, field.type);
        else if (thrift_list(&f->t, &field, THRIFT_STRUCT, &n))
            for (uint32_t i = 0; i < n && r == 0; i++)
                r = f->n_chunks - before == footer->n_leaves
                        ? footer_bad(f, "expected a chunk for each column, got more")
                        : footer_read_chunk(f);
    }
    if (r < 0 || f->t.fault)
        return r < 0 ? r : -EBADMSG;
    if (f->n_chunks - before != footer->n_leaves)
        return footer_bad(f, "expected a chunk for each column, got fewer");
    if (rows < 0 || (uint64_t)rows > f->rows_max - footer->rows)
        return diag_set(f->d, -EBADMSG,
                        "row group %u: expected 0 rows or more, and at most %llu in the file, got "
                        "%lld",
                        footer->n_groups, (unsigned long long)f->rows_max, (long long)rows);
    r = array_capacity(&footer->group, footer->n_groups, sizeof(*footer->group));
    if (r == 0)
        r = footer_check_rows(f, (uint64_t)rows);
    if (r < 0)
        return r;
    footer->group[footer->n_groups++] = (struct parquet_group){footer->rows, (uint64_t)rows};
    footer->rows += (uint64_t)rows;
    return 0;
}

static int footer_read_groups(struct footer_reading *f, uint32_t n)
{
    int r = 0;

    if (!f->footer->node)
        return diag_set(f->d, -EBADMSG, "expected the schema before row groups, got none");
    if (f->footer->n_groups || n > PARQUET_GROUPS_MAX)
        return diag_set(f->d, -EBADMSG, "expected one list of at most 1048576 row groups");
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = footer_read_group(f);
    return r;
}

/* ---- the file ---- */

static int footer_copy(const uint8_t *bytes, size_t len, char **ret)
{
    free(*ret);
    *ret = strndup((const char *)bytes, len);
    return *ret ? 0 : -ENOMEM;
}

static int footer_read_keys(struct footer_reading *f, uint32_t n)
{
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++) {
        struct thrift_field field = {0};
        const uint8_t *key = NULL, *value = NULL;
        size_t key_len = 0, len = 0;

        while (thrift_next(&f->t, &field))
            if (field.id == 1)
                thrift_binary(&f->t, &field, &key, &key_len);
            else if (field.id == 2)
                thrift_binary(&f->t, &field, &value, &len);
            else
                thrift_skip(&f->t, field.type);
        if (f->t.fault || !value || key_len != 11 || memcmp(key, "huggingface", 11) != 0 ||
            len > HUGGINGFACE_MAX)
            continue;
        r = footer_copy(value, len, &f->footer->huggingface);
        f->footer->huggingface_len = r == 0 ? strlen(f->footer->huggingface) : 0;
    }
    return r;
}

static int footer_read_field(struct footer_reading *f, const struct thrift_field *field)
{
    struct thrift *t = &f->t;
    const uint8_t *bytes;
    int64_t rows;
    uint32_t n;
    size_t len;

    switch (field->id) {
    case 2:
        return thrift_list(t, field, THRIFT_STRUCT, &n) ? parquet_schema_read(t, n, f->footer, f->d)
                                                        : 0;
    case 3:
        if (thrift_number(t, field, &rows))
            f->footer->said_rows = (uint64_t)rows;
        return 0;
    case 4:
        return thrift_list(t, field, THRIFT_STRUCT, &n) ? footer_read_groups(f, n) : 0;
    case 5:
        return thrift_list(t, field, THRIFT_STRUCT, &n) ? footer_read_keys(f, n) : 0;
    case 6:
        return thrift_binary(t, field, &bytes, &len) ? footer_copy(bytes, len, &f->footer->writer)
                                                     : 0;
    case 8:
        return diag_set(f->d, -EBADMSG, "it is encrypted: expected columns that can be read");
    default:
        thrift_skip(t, field->type);
        return 0;
    }
}

static int footer_parse(const uint8_t *bytes, size_t len, struct parquet_footer *footer,
                        struct diag *d)
{
    struct footer_reading f = {
        .footer = footer,
        .rows_max = min_u64(PARQUET_ROWS_MAX, (footer->at + len) * PARQUET_ROWS_OF_BYTE),
        .d = d};
    struct thrift_field field = {0};
    int r = 0;

    thrift_init(&f.t, bytes, len);
    while (r == 0 && thrift_next(&f.t, &field))
        r = footer_read_field(&f, &field);
    if (f.t.fault)
        return diag_set(d, -EBADMSG, "footer, byte %llu: %s",
                        (unsigned long long)(footer->at + (uint64_t)(f.t.fault_at - bytes)),
                        f.t.fault);
    if (r == 0 && !footer->n_leaves)
        r = diag_set(d, -EBADMSG, "expected at least one column, got no columns");
    return r;
}

/* Read the bytes of the footer: first the end of the file, which mostly has all of it. */
static int footer_load(struct blob *blob, uint64_t *ret_at, uint8_t **ret, size_t *ret_len,
                       struct diag *d)
{
    uint64_t size = blob->size, have = min_u64(size, PARQUET_TAIL_READ), len;
    AUTO_FREE uint8_t *tail = malloc((size_t)have + 1);
    const uint8_t *end = tail + have;
    int r;

    if (!tail)
        return -ENOMEM;
    if (size < PARQUET_MAGIC + PARQUET_TAIL)
        return diag_set(d, -EBADMSG,
                        "expected at least 12 bytes, got %llu: it is cut off, or "
                        "still being written",
                        (unsigned long long)size);
    r = blob_read(READ_WAITS, blob, tail, (size_t)have, size - have, d);
    if (r < 0)
        return r;
    if (!memcmp(end - 4, "PARE", 4))
        return diag_set(d, -EBADMSG, "it is encrypted: expected PAR1 at its end, got PARE");
    if (memcmp(end - 4, "PAR1", 4) != 0)
        return diag_set(d, -EBADMSG,
                        "expected PAR1 in the last 4 bytes, got others: it is cut off, or still "
                        "being written");
    len = load_le32(end - PARQUET_TAIL);
    if (!len || len > size - PARQUET_MAGIC - PARQUET_TAIL || len > PARQUET_FOOTER_MAX)
        return diag_set(d, -EBADMSG,
                        "byte %llu: expected the length of a footer inside the file, "
                        "of at most 256 MiB, got %llu",
                        (unsigned long long)(size - PARQUET_TAIL), (unsigned long long)len);
    *ret_at = size - PARQUET_TAIL - len;
    *ret_len = (size_t)len;
    *ret = malloc((size_t)len);
    if (!*ret)
        return -ENOMEM;
    if (len + PARQUET_TAIL <= have)
        memcpy(*ret, end - PARQUET_TAIL - len, (size_t)len);
    else
        r = blob_read(READ_WAITS, blob, *ret, (size_t)len, *ret_at, d);
    return r;
}

int parquet_footer_read(struct blob *blob, struct parquet_footer *ret, struct diag *d)
{
    AUTO_FREE uint8_t *bytes = NULL;
    struct diag why = DIAG_INIT;
    size_t len = 0;
    int r;

    *ret = (struct parquet_footer){0};
    r = footer_load(blob, &ret->at, &bytes, &len, &why);
    if (r == 0)
        r = blob_verify(blob, &why);
    if (r == 0)
        r = footer_parse(bytes, len, ret, &why);
    if (r == -EBADMSG)
        return diag_set(d, r, "%s: %s", blob_name(blob), diag_text(&why, r));
    return r < 0 && why.set ? diag_set(d, r, "%s", why.text) : r;
}

void parquet_footer_release(struct parquet_footer *footer)
{
    for (unsigned i = 0; i < footer->n_nodes; i++)
        free(footer->node[i].name);
    free(footer->node);
    free(footer->leaf);
    free(footer->group);
    free(footer->chunk);
    free(footer->huggingface);
    free(footer->writer);
    *footer = (struct parquet_footer){0};
}
