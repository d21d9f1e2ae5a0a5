#include "format/parquet/layout/footer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "format/parquet/decode/thrift.h"

struct footer_reading {
    struct thrift t;
    struct parquet_footer *footer;
    size_t n_chunks;
    uint64_t rows_max;
    struct diag *d;
    /* What the file says: */
    int64_t rows;
    struct thrift_bytes writer;
    bool is_encrypted;
    /* What a key says: */
    struct thrift_bytes key, value;
    /* What a row group says, and a chunk in it: */
    int64_t group_rows;
    struct footer_chunk {
        int64_t has_meta, has_statistics;
        int64_t type, codec, values, unpacked, packed, at, dictionary_at, nulls;
        uint64_t encodings;
        bool has_path, is_encrypted;
    } chunk;
};

#define RULE(...) THRIFT_RULE(struct footer_reading, __VA_ARGS__)

static int footer_bad(struct footer_reading *f, const char *what)
{
    return diag_set(f->d, -EBADMSG, "row group %u, column %zu: %s", f->footer->n_groups,
                    f->footer->n_leaves ? f->n_chunks % f->footer->n_leaves : 0, what);
}

/* ---- chunks ---- */

static const struct thrift_rule statistics_rules[] = {RULE(3, THRIFT_NUMBER, chunk.nulls), {0}};
static const struct thrift_rule meta_rules[] = {
    RULE(1, THRIFT_NUMBER, chunk.type),
    RULE(2, THRIFT_BITS, chunk.encodings),
    RULE(4, THRIFT_NUMBER, chunk.codec),
    RULE(5, THRIFT_NUMBER, chunk.values),
    RULE(6, THRIFT_NUMBER, chunk.unpacked),
    RULE(7, THRIFT_NUMBER, chunk.packed),
    RULE(9, THRIFT_NUMBER, chunk.at),
    RULE(11, THRIFT_NUMBER, chunk.dictionary_at),
    RULE(12, THRIFT_INSIDE, chunk.has_statistics, .rules = statistics_rules),
    {0}};
static const struct thrift_rule chunk_rules[] = {
    RULE(1, THRIFT_SEEN, chunk.has_path),
    RULE(3, THRIFT_INSIDE, chunk.has_meta, .rules = meta_rules),
    RULE(8, THRIFT_SEEN, chunk.is_encrypted),
    RULE(9, THRIFT_SEEN, chunk.is_encrypted),
    {0}};

static int footer_check_chunk(struct footer_reading *f, const struct parquet_node *leaf,
                              struct parquet_chunk *ret)
{
    const struct footer_chunk *c = &f->chunk;
    uint64_t at = (uint64_t)c->at, first = (uint64_t)c->dictionary_at, end = f->footer->at;

    if (c->type != leaf->type)
        return footer_bad(f, c->has_meta < 0 ? "expected metadata of the column, got none"
                                             : "expected the type of the schema, got another");
    if (c->codec < 0 || c->codec >= N_CODECS)
        return footer_bad(f, "expected a codec from 0 to 7, got another");
    if (c->values < 0 || c->unpacked < 0 || c->packed < 0)
        return footer_bad(f, "expected values and sizes of 0 or more, got others");
    ret->codec = (uint8_t)c->codec;
    ret->values = (uint64_t)c->values;
    ret->unpacked = (uint64_t)c->unpacked;
    ret->start = c->dictionary_at > 0 && first < at ? first : at;
    if (!ret->values)
        ret->start = ret->end = PARQUET_MAGIC;
    else if (c->at < PARQUET_MAGIC || ret->start < PARQUET_MAGIC || at >= end || ret->start > end ||
             (uint64_t)c->packed > end - ret->start)
        return footer_bad(f, "expected pages between the magic and the footer, got others");
    else
        ret->end = ret->start + (uint64_t)c->packed;
    return 0;
}

static int footer_read_chunk(struct footer_reading *f)
{
    struct parquet_footer *footer = f->footer;
    unsigned leaf = footer->leaf[f->n_chunks % footer->n_leaves];
    struct parquet_chunk *chunk;
    int r = array_capacity(&footer->chunk, f->n_chunks, sizeof(*footer->chunk));

    memset(&f->chunk, -1, sizeof(f->chunk));
    f->chunk.encodings = f->chunk.has_path = f->chunk.is_encrypted = 0;
    if (r == 0)
        r = thrift_read(&f->t, chunk_rules, f);
    if (r == 0 && f->chunk.has_path)
        r = footer_bad(f, "expected data in this file, got the name of another file, which is "
                          "never opened");
    if (r < 0)
        return r;
    chunk = &footer->chunk[f->n_chunks];
    *chunk = (struct parquet_chunk){.encodings = f->chunk.encodings,
                                    .nulls = f->chunk.nulls < 0 ? PARQUET_NULLS_UNKNOWN
                                                                : (uint64_t)f->chunk.nulls};
    r = f->chunk.is_encrypted ? 0 : footer_check_chunk(f, &footer->node[leaf], chunk);
    f->n_chunks++;
    return r;
}

/* ---- row groups ---- */

static int footer_read_chunks(void *memory, uint32_t n)
{
    struct footer_reading *f = memory;
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++)
        r = f->n_chunks == ((size_t)f->footer->n_groups + 1) * f->footer->n_leaves
                ? footer_bad(f, "expected a chunk for each column, got more")
                : footer_read_chunk(f);
    return r;
}

static const struct thrift_rule group_rules[] = {
    RULE(1, THRIFT_LIST, chunk, .list = footer_read_chunks),
    RULE(3, THRIFT_NUMBER, group_rows),
    {0}};

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
    uint64_t rows;
    int r;

    f->group_rows = -1;
    r = thrift_read(&f->t, group_rules, f);
    if (r < 0)
        return r;
    rows = (uint64_t)f->group_rows;
    if (f->n_chunks != ((size_t)footer->n_groups + 1) * footer->n_leaves)
        return footer_bad(f, "expected a chunk for each column, got fewer");
    if (f->group_rows < 0 || rows > f->rows_max - footer->rows)
        return diag_set(f->d, -EBADMSG,
                        "row group %u: expected 0 rows or more, and at most %llu in the file, got "
                        "%lld",
                        footer->n_groups, (unsigned long long)f->rows_max,
                        (long long)f->group_rows);
    r = array_capacity(&footer->group, footer->n_groups, sizeof(*footer->group));
    if (r == 0)
        r = footer_check_rows(f, rows);
    if (r < 0)
        return r;
    footer->group[footer->n_groups++] = (struct parquet_group){footer->rows, rows};
    footer->rows += rows;
    return 0;
}

/* ---- the file ---- */

static int footer_read_schema(void *memory, uint32_t n)
{
    struct footer_reading *f = memory;

    return parquet_schema_read(&f->t, n, f->footer, f->d);
}

static int footer_read_groups(void *memory, uint32_t n)
{
    struct footer_reading *f = memory;
    int r = 0;

    if (!f->footer->node)
        return diag_set(f->d, -EBADMSG, "expected a schema, got none");
    if (f->footer->n_groups || n > PARQUET_GROUPS_MAX)
        return diag_set(f->d, -EBADMSG, "expected one list of at most 1048576 row groups");
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = footer_read_group(f);
    return r;
}

static int footer_copy(struct thrift_bytes bytes, char **ret)
{
    free(*ret);
    *ret = strndup((const char *)bytes.at, bytes.len);
    return *ret ? 0 : -ENOMEM;
}

static int footer_read_keys(void *memory, uint32_t n)
{
    static const struct thrift_rule key_rules[] = {
        RULE(1, THRIFT_BYTES, key), RULE(2, THRIFT_BYTES, value), {0}};
    struct footer_reading *f = memory;
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++) {
        f->key = f->value = (struct thrift_bytes){0};
        r = thrift_read(&f->t, key_rules, f);
        f->value.len = min_u64(f->value.len, PARQUET_HUGGINGFACE_MAX + 1);
        if (r == 0 && f->value.at && f->key.len == 11 && !memcmp(f->key.at, "huggingface", 11))
            r = footer_copy(f->value, &f->footer->huggingface);
    }
    return r;
}

static int footer_parse(const uint8_t *bytes, size_t len, struct parquet_footer *footer,
                        struct diag *d)
{
    static const struct thrift_rule schema[] = {RULE(2, THRIFT_LIST, t, .list = footer_read_schema),
                                                {0}};
    static const struct thrift_rule rules[] = {RULE(3, THRIFT_NUMBER, rows),
                                               RULE(4, THRIFT_LIST, t, .list = footer_read_groups),
                                               RULE(5, THRIFT_LIST, t, .list = footer_read_keys),
                                               RULE(6, THRIFT_BYTES, writer),
                                               RULE(8, THRIFT_SEEN, is_encrypted),
                                               {0}};
    struct footer_reading f = {
        .t = {.at = bytes, .end = bytes + len},
        .footer = footer,
        .rows_max = min_u64(PARQUET_ROWS_MAX, (footer->at + len) * PARQUET_ROWS_OF_BYTE),
        .d = d};
    int r = thrift_read(&f.t, schema, &f); /* first, as fields may have any order */

    f.t.at = bytes;
    if (r == 0)
        r = thrift_read(&f.t, rules, &f);
    if (f.is_encrypted)
        return diag_set(d, -EBADMSG, "it is encrypted: expected columns that can be read");
    if (f.t.fault)
        return diag_set(d, -EBADMSG, "footer, byte %llu: %s",
                        (unsigned long long)(footer->at + (uint64_t)(f.t.fault_at - bytes)),
                        f.t.fault);
    footer->said_rows = (uint64_t)f.rows;
    if (r == 0 && f.writer.at)
        r = footer_copy(f.writer, &footer->writer);
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
