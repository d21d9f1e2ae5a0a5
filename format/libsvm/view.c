/* The rows of a selection: sums by blocks, and slabs of decoded rows.
 *
 * Readers read arrays of many rows a range at a time, so two questions recur: where in the
 * selection is element number e, and what are the values there? The sums answer the first: in
 * stored order the index has them; otherwise they take one walk over the selection, and the memo
 * keeps them. For the second, a whole block of rows is decoded and kept in the memo, because the
 * next range, or another array of the same rows, needs it again. */
#include "base/search.h"
#include "format/libsvm/rows.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/text/row.h"

#define SLAB_TEXT    (8u << 20) /* bytes; a block of more is decoded row by row */
#define TABLE_ROWS   16384      /* rows of a selection that has them in its table */
#define AHEAD_BLOCKS 8          /* that are decoded at once, and their bytes: */
#define AHEAD_TEXT   (4u << 20)
#define LOOK_EVERY   64 /* blocks of a walk between two calls of cancelled() */

enum { KEY_TABLE, KEY_BLOCK, KEY_ROW };

static struct memo_key libsvm_view_key_of(const struct libsvm_view *v, uint64_t what,
                                          uint64_t number)
{
    const uint64_t *id = v->sel->id;

    return (struct memo_key){{(uintptr_t)v->rows, id[0], id[1], id[2], what, number}};
}

static bool libsvm_view_is_cancelled(const struct libsvm_view *v)
{
    return read_cancelled(v->sel->rc);
}

/* ---- sums ---- */

static uint64_t rows_of_block(const struct libsvm_view *v, uint64_t block,
                              uint64_t samples[static LIBSVM_BLOCK])
{
    uint64_t first = block * LIBSVM_BLOCK, n = min_u64(LIBSVM_BLOCK, v->sel->count - first);

    selection_samples(v->sel, first, (size_t)n, samples);
    return n;
}

/* The table of a selection that is not in stored order: the sums before each block, and over all;
 * then, for a batch of usual size, the places of its rows. */
static int libsvm_view_make_table(void *ctx, void **ret, size_t *ret_size)
{
    const struct libsvm_view *v = ctx;
    uint64_t blocks = libsvm_view_blocks(v), samples[LIBSVM_BLOCK];
    uint64_t rows = v->sel->count <= TABLE_ROWS ? v->sel->count : 0;
    struct row_sums sums = {0}, *table;
    struct libsvm_row_at *row;
    size_t size;

    if (blocks >= SIZE_MAX / sizeof(*table) / 2)
        return -ENOMEM;
    size = (blocks + 1) * sizeof(*table) + rows * sizeof(*row);
    table = malloc(size);
    if (!table)
        return -ENOMEM;
    row = (struct libsvm_row_at *)(void *)(table + blocks + 1);
    for (uint64_t block = 0; block < blocks; block++) {
        uint64_t n = rows_of_block(v, block, samples);

        if (block % LOOK_EVERY == LOOK_EVERY - 1 && libsvm_view_is_cancelled(v)) {
            free(table);
            return -EINTR;
        }
        table[block] = sums;
        for (uint64_t i = 0; i < n; i++) {
            struct libsvm_row_at at = libsvm_rows_find(v->rows, samples[i]);

            sums.text += libsvm_row_text(v->rows, &at.place);
            sums.features += at.place.features;
            if (rows)
                *row++ = at;
        }
    }
    table[blocks] = sums;
    *ret = table;
    *ret_size = size;
    return 0;
}

int libsvm_view_open(struct libsvm_view *ret, const struct libsvm_rows *rows,
                     const struct selection *sel)
{
    const struct memo_maker table = {.make = libsvm_view_make_table, .ctx = ret, .rc = sel->rc};
    struct memo_key key;

    *ret = (struct libsvm_view){.rows = rows, .sel = sel};
    if (sel->in_order || !sel->count)
        return 0;
    key = libsvm_view_key_of(ret, KEY_TABLE, 0);
    return memo_get(rows->memo, &key, &table, &ret->table);
}

void libsvm_view_close(struct libsvm_view *v)
{
    memo_let_go(v->table);
    v->table = NULL;
}

struct row_sums libsvm_view_sums(const struct libsvm_view *v, uint64_t block)
{
    const struct row_sums *table = v->table ? memo_bytes(v->table) : NULL;
    uint64_t place = min_u64(block * LIBSVM_BLOCK, v->sel->count);
    struct row_sums sums, first;

    if (table)
        return table[block];
    if (!v->sel->count)
        return (struct row_sums){0};
    sums = libsvm_rows_sums(v->rows, v->sel->first + place);
    first = libsvm_rows_sums(v->rows, v->sel->first);
    return (struct row_sums){sums.text - first.text, sums.features - first.features};
}

static uint64_t block_of(const struct libsvm_view *v, uint64_t at, bool text)
{
    return text ? SEARCH_LAST(libsvm_view_blocks(v), i, libsvm_view_sums(v, i).text <= at)
                : SEARCH_LAST(libsvm_view_blocks(v), i, libsvm_view_sums(v, i).features <= at);
}

uint64_t libsvm_view_text_block(const struct libsvm_view *v, uint64_t at)
{
    return block_of(v, at, true);
}

void libsvm_view_rows(const struct libsvm_view *v, uint64_t block,
                      struct libsvm_row_at ret[static LIBSVM_BLOCK], unsigned *ret_n)
{
    const struct row_sums *table = v->table ? memo_bytes(v->table) : NULL;
    uint64_t samples[LIBSVM_BLOCK], n;

    if (table && v->sel->count <= TABLE_ROWS) {
        const struct libsvm_row_at *row =
            (const struct libsvm_row_at *)(const void *)(table + libsvm_view_blocks(v) + 1);

        *ret_n = (unsigned)min_u64(LIBSVM_BLOCK, v->sel->count - block * LIBSVM_BLOCK);
        memcpy(ret, row + block * LIBSVM_BLOCK, *ret_n * sizeof(*row));
        return;
    }
    n = rows_of_block(v, block, samples);
    for (uint64_t i = 0; i < n; i++)
        ret[i] = libsvm_rows_find(v->rows, samples[i]);
    *ret_n = (unsigned)n;
}

/* ---- slabs ---- */

/* The input of a slab: the block that contains place, or the row of place alone. */
struct slab_work {
    struct read_context *rc;
    const struct libsvm_view *v;
    uint64_t place;
    bool whole;
    struct diag *d;
    /* Its rows, at places from first on: */
    const struct libsvm_row_at *row;
    uint64_t first;
    unsigned n;
    uint64_t features_before;
    struct libsvm_slab *slab; /* that they are decoded into */
};

/* The memory at *at, which moves behind it. */
static void *cut_off(uint8_t **at, size_t bytes)
{
    *at += bytes;
    return *at - bytes;
}

/* Allocate a slab for its rows' labels and features, as one piece of memory. */
static struct libsvm_slab *slab_new(const struct slab_work *w, size_t *ret_size)
{
    size_t labels = (size_t)w->v->rows->labels, features = 0, n = w->n, size;
    struct libsvm_slab *slab;
    uint8_t *at;

    for (size_t i = 0; i < n; i++)
        features += (size_t)w->row[i].place.features;
    size = sizeof(*slab) + n * (sizeof(uint64_t) + sizeof(int64_t) + sizeof(float)) +
           n * labels * sizeof(float) + features * (sizeof(uint32_t) + sizeof(float)) +
           (w->v->rows->has_fields ? features * sizeof(uint32_t) : 0);
    slab = malloc(size);
    if (!slab)
        return NULL;
    at = (uint8_t *)(slab + 1);
    *slab =
        (struct libsvm_slab){.first = w->first, .n = w->n, .features_before = w->features_before};
    slab->end = cut_off(&at, n * sizeof(*slab->end));
    slab->qid = cut_off(&at, n * sizeof(*slab->qid));
    slab->weight = cut_off(&at, n * sizeof(*slab->weight));
    slab->label = cut_off(&at, n * labels * sizeof(*slab->label));
    slab->index = cut_off(&at, features * sizeof(*slab->index));
    slab->value = cut_off(&at, features * sizeof(*slab->value));
    if (w->v->rows->has_fields)
        slab->field = cut_off(&at, features * sizeof(*slab->field));
    *ret_size = size;
    return slab;
}

static int libsvm_view_not_as_indexed(const struct slab_work *w, const struct libsvm_row_at *at)
{
    return diag_set(w->d, -ESTALE,
                    "%s: row %llu at byte %llu is not what it was when it was indexed",
                    blob_name(at->file->base.blob), (unsigned long long)at->row,
                    (unsigned long long)at->place.start);
}

static int parse_text_row(const struct libsvm_row_at *at, const uint8_t *line,
                          struct libsvm_row *row, struct diag *d)
{
    struct libsvm_fault fault;

    return libsvm_line_parse(line, at->place.len, at->file->columns, row, &fault) < 0
               ? libsvm_file_fault(at->file, at->row, line, at->place.len, &fault, d)
               : 0;
}

/* Parse row i into its place in the slab. */
static int decode_row(void *ctx, unsigned i, const uint8_t *line, struct diag *d)
{
    const struct slab_work *w = ctx;
    const struct libsvm_slab *slab = w->slab;
    const struct libsvm_rows *rows = w->v->rows;
    const struct libsvm_row_at *at = &w->row[i];
    uint64_t before = i ? slab->end[i - 1] : 0;
    struct libsvm_row row = {
        .label = (float *)(uintptr_t)slab->label + i * rows->labels,
        .label_capacity = rows->labels,
        .index = (uint32_t *)(uintptr_t)slab->index + before,
        .value = (float *)(uintptr_t)slab->value + before,
        .field = slab->field ? (uint32_t *)(uintptr_t)slab->field + before : NULL,
        .capacity = at->place.features,
    };
    int r = at->file->matrix ? libsvm_matrix_row(at->file, line, at->place.start, &row, d)
                             : parse_text_row(at, line, &row, d);

    if (r < 0)
        return r;
    if (row.n != at->place.features || row.n_labels > rows->labels)
        return libsvm_view_not_as_indexed(w, at);
    ((uint64_t *)(uintptr_t)slab->end)[i] = before + row.n;
    ((float *)(uintptr_t)slab->weight)[i] = row.weight;
    ((int64_t *)(uintptr_t)slab->qid)[i] = row.qid;
    for (uint64_t k = 0; k < row.n && rows->shift; k++) {
        row.index[k] -= rows->shift;
        if (row.field)
            row.field[k] -= rows->shift;
    }
    return row.sorted ? 0 : libsvm_row_sort(row.index, row.field, row.value, row.n);
}

/* Could the rows be in memory as the index says? */
static int libsvm_view_check_sizes(const struct slab_work *w)
{
    static const struct libsvm_fault too_long = {0, libsvm_too_long};

    for (const struct libsvm_row_at *at = w->row; at < w->row + w->n; at++) {
        if (at->place.len > LIBSVM_LINE_MAX)
            return libsvm_file_fault(at->file, at->row, (const uint8_t *)"", 0, &too_long, w->d);
        if (at->place.features > at->place.len)
            return libsvm_view_not_as_indexed(w, at);
    }
    return 0;
}

static int libsvm_view_decode_rows(struct slab_work *w)
{
    struct extent line[LIBSVM_BLOCK];
    int r;

    for (unsigned i = 0; i < w->n; i++)
        line[i] =
            (struct extent){w->row[i].file->base.blob, w->row[i].place.start, w->row[i].place.len};
    r = text_rows_parse(w->rc, line, w->n, decode_row, w, w->d);
    /* If a file has changed, that explains a fault better than the row does. */
    for (unsigned i = 0; i < w->n && (r == 0 || r == -EBADMSG || r == -ESTALE); i++) {
        int changed =
            i + 1 < w->n && line[i + 1].blob == line[i].blob ? 0 : blob_verify(line[i].blob, w->d);

        if (changed < 0)
            return changed;
    }
    return r;
}

static int libsvm_view_make_slab(void *ctx, void **ret, size_t *ret_size)
{
    struct libsvm_row_at row[LIBSVM_BLOCK];
    struct slab_work *w = ctx;
    uint64_t block = w->place / LIBSVM_BLOCK;
    int r;

    libsvm_view_rows(w->v, block, row, &w->n);
    w->row = row;
    w->first = block * LIBSVM_BLOCK;
    w->features_before = libsvm_view_sums(w->v, block).features;
    if (!w->whole) {
        for (; w->first < w->place; w->first++, w->row++)
            w->features_before += w->row->place.features;
        w->n = 1;
    }
    r = libsvm_view_check_sizes(w); /* before memory is allocated for them */
    if (r < 0)
        return r;
    w->slab = slab_new(w, ret_size);
    if (!w->slab)
        return -ENOMEM;
    r = libsvm_view_decode_rows(w);
    if (r < 0) {
        free(w->slab);
        return r;
    }
    *ret = w->slab;
    return 0;
}

/* Is the block decoded as one slab? */
static bool block_is_slab(const struct libsvm_view *v, uint64_t block)
{
    return libsvm_view_sums(v, block + 1).text - libsvm_view_sums(v, block).text <= SLAB_TEXT;
}

/* Decoding ahead: readers mostly need the following blocks next. */
struct ahead {
    struct read_context *rc;
    const struct libsvm_view *v;
    uint64_t block;
    _Atomic unsigned missing; /* bit i: of block + i */
};

static void decode_ahead(void *ctx, unsigned i)
{
    struct ahead *ahead = ctx;
    uint64_t block = ahead->block + i;
    const struct memo_key key = libsvm_view_key_of(ahead->v, KEY_BLOCK, block);
    struct slab_work w = {
        .rc = ahead->rc, .v = ahead->v, .place = block * LIBSVM_BLOCK, .whole = true};
    AUTO_MEMO struct memo_thing *thing = NULL;

    /* Ignore errors: the reader that needs a block gets its error when it decodes it. */
    if (memo_get(ahead->v->rows->memo, &key,
                 &(struct memo_maker){.make = libsvm_view_make_slab, .ctx = &w}, &thing) == -EAGAIN)
        atomic_fetch_or(&ahead->missing, 1u << i);
}

/* Decode several blocks at once, from this one on, which the memo does not have. */
static void decode_together(struct read_context *rc, struct libsvm_view *v, uint64_t block)
{
    struct ahead ahead = {rc, v, block, 0};
    uint64_t start = libsvm_view_sums(v, block).text, sample;
    unsigned n = 1;

    while (n < AHEAD_BLOCKS && block + n < libsvm_view_blocks(v) &&
           libsvm_view_sums(v, block + n + 1).text - start <= AHEAD_TEXT)
        n++;
    if (n < 2)
        return;
    selection_samples(v->sel, block * LIBSVM_BLOCK, 1,
                      &sample); /* the first call must not run in the pool's threads */
    pool_run(v->rows->pool, n, decode_ahead, &ahead);
    v->tried = block;
    v->missing = ahead.missing;
}

/* Was a part of the block missing, so that it is among the missing ranges now? */
static bool libsvm_view_is_missing(const struct libsvm_view *v, uint64_t block)
{
    return block >= v->tried && block - v->tried < AHEAD_BLOCKS &&
           v->missing >> (block - v->tried) & 1;
}

int libsvm_view_slab(struct read_context *rc, struct libsvm_view *v, uint64_t place,
                     const struct libsvm_slab **ret_slab, struct memo_thing **ret, struct diag *d)
{
    uint64_t block = place / LIBSVM_BLOCK;
    bool whole = block_is_slab(v, block);
    struct memo_key key = libsvm_view_key_of(v, whole ? KEY_BLOCK : KEY_ROW, whole ? block : place);
    struct slab_work w = {.rc = rc, .v = v, .place = place, .whole = whole, .d = d};
    const struct memo_maker slab = {.make = libsvm_view_make_slab, .ctx = &w, .rc = v->sel->rc};
    int r;

    if (whole && !libsvm_view_is_missing(v, block) && !memo_has(v->rows->memo, &key))
        decode_together(rc, v, block);
    if (whole && libsvm_view_is_missing(v, block))
        return -EAGAIN;
    r = memo_get(v->rows->memo, &key, &slab, ret);
    if (r == 0)
        *ret_slab = memo_bytes(*ret);
    return r;
}

uint64_t libsvm_view_slab_end(const struct libsvm_view *v, uint64_t place)
{
    uint64_t block = place / LIBSVM_BLOCK;

    return block_is_slab(v, block) ? min_u64((block + 1) * LIBSVM_BLOCK, v->sel->count) : place + 1;
}

uint64_t libsvm_view_feature_place(const struct libsvm_view *v, uint64_t at, uint64_t *ret_end)
{
    uint64_t block = block_of(v, at, false), end = libsvm_view_sums(v, block).features;
    struct libsvm_row_at row[LIBSVM_BLOCK];
    unsigned n, i;

    if (block_is_slab(v, block)) {
        *ret_end = libsvm_view_sums(v, block + 1).features;
        return block * LIBSVM_BLOCK;
    }
    libsvm_view_rows(v, block, row, &n);
    end += row[0].place.features;
    for (i = 0; i + 1 < n && end <= at; i++)
        end += row[i + 1].place.features;
    *ret_end = end;
    return block * LIBSVM_BLOCK + i;
}
