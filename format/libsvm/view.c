/* The rows of a selection: sums before them, and slabs of decoded rows.
 *
 * Readers read arrays of many rows a range at a time, so two questions recur: where in the
 * selection is element number e, and what are the values there? The sums answer the first: in
 * stored order the index has them; otherwise they take one walk over the selection, and the memo
 * keeps them. For the second, a whole block of rows is decoded and kept in the memo, because the
 * next range, or another array of the same rows, needs it again. */
#include "base/search.h"
#include "format/libsvm/rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/text/row.h"

#define SLAB_TEXT  (8u << 20) /* bytes; a block of more is decoded row by row */
#define AHEAD_TEXT (4u << 20) /* of blocks that are decoded at once */

/* ---- decoding ---- */

/* Rows that are decoded into a slab. */
struct slab_work {
    const struct libsvm_rows *rows;
    const struct libsvm_row_at *row; /* [n] */
    unsigned n;
    struct libsvm_slab *slab;
    struct diag *d;
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
    size_t labels = (size_t)w->rows->labels, features = 0, n = w->n, size;
    struct libsvm_slab *slab;
    uint8_t *at;

    for (size_t i = 0; i < n; i++)
        features += (size_t)w->row[i].place.features;
    size = sizeof(*slab) + n * (sizeof(uint64_t) + sizeof(int64_t) + sizeof(float)) +
           n * labels * sizeof(float) + features * (sizeof(uint32_t) + sizeof(float)) +
           (w->rows->has_fields ? features * sizeof(uint32_t) : 0);
    slab = malloc(size);
    if (!slab)
        return NULL;
    at = (uint8_t *)(slab + 1);
    *slab = (struct libsvm_slab){.n = w->n};
    slab->end = cut_off(&at, n * sizeof(*slab->end));
    slab->qid = cut_off(&at, n * sizeof(*slab->qid));
    slab->weight = cut_off(&at, n * sizeof(*slab->weight));
    slab->label = cut_off(&at, n * labels * sizeof(*slab->label));
    slab->index = cut_off(&at, features * sizeof(*slab->index));
    slab->value = cut_off(&at, features * sizeof(*slab->value));
    if (w->rows->has_fields)
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
    const struct libsvm_rows *rows = w->rows;
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

static int libsvm_view_decode_rows(struct read_context *rc, struct slab_work *w)
{
    struct extent line[LIBSVM_BLOCK];
    int r;

    for (unsigned i = 0; i < w->n; i++)
        line[i] =
            (struct extent){w->row[i].file->base.blob, w->row[i].place.start, w->row[i].place.len};
    r = text_rows_parse(rc, line, w->n, decode_row, w, w->d);
    /* If a file has changed, that explains a fault better than the row does. */
    for (unsigned i = 0; i < w->n && (r == 0 || r == -EBADMSG || r == -ESTALE); i++) {
        int changed =
            i + 1 < w->n && line[i + 1].blob == line[i].blob ? 0 : blob_verify(line[i].blob, w->d);

        if (changed < 0)
            return changed;
    }
    return r;
}

int libsvm_rows_decode(struct read_context *rc, const struct libsvm_rows *rows,
                       const struct libsvm_row_at *row, unsigned n, struct libsvm_slab **ret,
                       size_t *ret_size, struct diag *d)
{
    struct slab_work w = {.rows = rows, .row = row, .n = n, .d = d};
    int r = libsvm_view_check_sizes(&w); /* before memory is allocated for them */

    if (r < 0)
        return r;
    w.slab = slab_new(&w, ret_size);
    if (!w.slab)
        return -ENOMEM;
    r = libsvm_view_decode_rows(rc, &w);
    if (r < 0)
        free(w.slab);
    else
        *ret = w.slab;
    return r;
}

/* ---- sums ---- */

static int count_row(void *ctx, uint64_t sample, const struct sums_pair *before,
                     struct sums_pair *ret)
{
    const struct libsvm_view *v = ctx;
    const struct libsvm_row_at at = libsvm_rows_find(v->rows, sample);

    (void)before;
    *ret = (struct sums_pair){at.place.features, libsvm_row_text(v->rows, &at.place)};
    return 0;
}

static void known_sums(void *ctx, uint64_t sample, struct sums_pair *ret)
{
    const struct row_sums sums = libsvm_rows_sums(((const struct libsvm_view *)ctx)->rows, sample);

    *ret = (struct sums_pair){sums.features, sums.text};
}

static uint64_t view_blocks(const struct libsvm_view *v)
{
    return ceil_div(v->sel->count, LIBSVM_BLOCK);
}

/* The sums before a block, at most the number of blocks: of each block they are in the table. */
static struct sums_pair sums_before_block(const struct libsvm_view *v, uint64_t block)
{
    struct sums_pair sums = {0};

    sums_before(&v->sums, min_u64(block * LIBSVM_BLOCK, v->sel->count), &sums);
    return sums;
}

/* Is the block decoded as one slab? */
static bool block_is_slab(const struct libsvm_view *v, uint64_t block)
{
    return sums_before_block(v, block + 1).other - sums_before_block(v, block).other <= SLAB_TEXT;
}

uint64_t libsvm_view_slab_end(const struct libsvm_view *v, uint64_t place)
{
    uint64_t block = place / LIBSVM_BLOCK;

    return block_is_slab(v, block) ? min_u64((block + 1) * LIBSVM_BLOCK, v->sel->count) : place + 1;
}

int libsvm_view_feature_place(struct libsvm_view *v, uint64_t at, uint64_t *ret_place,
                              uint64_t *ret_end)
{
    uint64_t block = SEARCH_LAST(view_blocks(v), i, sums_before_block(v, i).size <= at);
    struct sums_pair before = sums_before_block(v, block + 1);
    int r = 0;

    *ret_place = block * LIBSVM_BLOCK;
    if (!block_is_slab(v, block)) {
        r = sums_find(&v->sums, at, ret_place, &before);
        if (r == 0)
            r = sums_after(&v->sums, *ret_place, &before, &before);
    }
    *ret_end = before.size;
    return r;
}

/* ---- slabs ---- */

static int libsvm_view_make_slab(const struct slab_reader *reader, uint64_t block, void **ret,
                                 size_t *ret_size, struct diag *d)
{
    const struct libsvm_view *v = reader->ctx;
    uint64_t first = block * reader->places, samples[LIBSVM_BLOCK];
    unsigned n = (unsigned)min_u64(reader->places, v->sel->count - first);
    struct libsvm_row_at row[LIBSVM_BLOCK];
    struct libsvm_slab *slab = NULL;
    struct sums_pair before;
    int r = sums_before(&v->sums, first, &before);

    selection_samples(v->sel, first, n, samples);
    for (unsigned i = 0; i < n; i++)
        row[i] = libsvm_rows_find(v->rows, samples[i]);
    if (r == 0)
        r = libsvm_rows_decode(reader->rc, v->rows, row, n, &slab, ret_size, d);
    if (r < 0)
        return r;
    slab->first = first;
    slab->features_before = before.size;
    *ret = slab;
    return 0;
}

static uint64_t blocks_together(const struct slab_reader *reader, uint64_t block)
{
    const struct libsvm_view *v = reader->ctx;
    uint64_t start, n = 1;

    if (reader->places == 1)
        return 1;
    start = sums_before_block(v, block).other;
    while (n < SLABS_AHEAD && block + n < view_blocks(v) &&
           sums_before_block(v, block + n + 1).other - start <= AHEAD_TEXT)
        n++;
    return n;
}

int libsvm_view_open(struct libsvm_view *ret, struct read_context *rc,
                     const struct libsvm_rows *rows, const struct selection *sel)
{
    const struct memo_key key = {{(uintptr_t)rows, sel->id[0], sel->id[1], sel->id[2]}};

    *ret = (struct libsvm_view){.rows = rows,
                                .sel = sel,
                                .slabs = {.rc = rc,
                                          .sel = sel,
                                          .memo = rows->memo,
                                          .pool = rows->pool,
                                          .owner = rows,
                                          .ctx = ret,
                                          .make = libsvm_view_make_slab,
                                          .together = blocks_together}};
    return sums_open_known(&ret->sums, rows->memo, &key, sel, count_row, known_sums, ret);
}

void libsvm_view_close(struct libsvm_view *v)
{
    sums_close(&v->sums);
}

int libsvm_view_slab(struct libsvm_view *v, uint64_t place, const struct libsvm_slab **ret_slab,
                     struct memo_thing **ret, struct diag *d)
{
    unsigned places = block_is_slab(v, place / LIBSVM_BLOCK) ? LIBSVM_BLOCK : 1;
    int r;

    v->slabs.n_tried = places == v->slabs.places ? v->slabs.n_tried : 0;
    v->slabs.places = places;
    r = slab_get(&v->slabs, place / places, ret, d);
    if (r == 0)
        *ret_slab = memo_bytes(*ret);
    return r;
}
