/* What a row has, from the index and the units. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/read_context.h"
#include "format/parquet/file.h"

static uint64_t contents_state(const struct parquet_file *file, const struct parquet_column *c,
                               uint64_t row)
{
    return c->state == NO_SLOT ? STATE_SIZE
                               : index_number(&file->base.prepared.index, row, c->state);
}

/* The byte of the file where the bytes of a row are as they are; 0: they are packed. */
static uint64_t contents_place(const struct parquet_file *file, const struct parquet_column *c,
                               uint64_t row)
{
    return c->place == NO_SLOT ? 0 : index_number(&file->base.prepared.index, row, c->place);
}

bool parquet_has(const void *p, uint64_t row, unsigned column)
{
    const struct parquet_file *file = p;
    const struct parquet_column *c = &file->column[column];

    return !file->record[column].has_holes || contents_state(file, c, row) != STATE_NULL;
}

static int contents_refuse(const struct parquet_file *file, unsigned column, uint64_t row,
                           const char *why, struct diag *d)
{
    return diag_set(d, -EIO, "%s: row %llu: column '%s' cannot be read%s%s",
                    blob_name(file->base.blob), (unsigned long long)row, file->column[column].name,
                    *why ? ": " : "", why);
}

int parquet_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                 struct diag *d)
{
    const struct parquet_file *file = p;
    const struct parquet_column *c = &file->column[column];
    uint64_t state = contents_state(file, c, row);

    if (state == STATE_BAD)
        return contents_refuse(file, column, row, c->fault ? c->fault : "", d);
    if (c->shown == SHOWN_NUMBER)
        return 0;
    if (state < STATE_SIZE || state - STATE_SIZE > UINT32_MAX)
        return contents_refuse(file, column, row, "the kept index has another size", d);
    ret[0] = state - STATE_SIZE;
    for (unsigned i = 1; i < c->ndim; i++)
        ret[i] = c->dim[i];
    return 0;
}

bool parquet_is_copy(const void *p, uint64_t row, unsigned column)
{
    const struct parquet_file *file = p;

    return contents_place(file, &file->column[column], row) > 0;
}

bool parquet_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct parquet_file *file = p;
    const struct parquet_column *c = &file->column[column];
    uint64_t state = contents_state(file, c, row), place = contents_place(file, c, row);

    if (state < STATE_SIZE || c->n_leaves > 1)
        return false;
    if (!place)
        parquet_unit_extent(file, column, row, ret);
    else
        *ret = (struct extent){file->base.blob, place, state - STATE_SIZE};
    return ret->len && ret->off <= ret->blob->size && ret->len <= ret->blob->size - ret->off;
}

/* The bytes of a row in a unit. */
static int contents_bytes(const struct parquet_file *file, unsigned column, uint64_t row,
                          const struct parquet_slab *slab, size_t i, const uint8_t **ret,
                          size_t *ret_len, struct diag *d)
{
    size_t start = slab->width ? i * slab->width : i ? slab->end[i - 1] : 0;

    if (i >= slab->n || slab->state[i] != STATE_SIZE)
        return contents_refuse(file, column, row,
                               i < slab->n && slab->state[i] == STATE_NULL
                                   ? "expected no null, as the statistics say, got one"
                                   : slab->fault,
                               d);
    *ret = slab->bytes + start;
    *ret_len = slab->width ? slab->width : slab->end[i] - start;
    return 0;
}

int parquet_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                 uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct parquet_file *file = p;
    uint64_t place = contents_place(file, &file->column[column], row), first;
    const struct parquet_slab *slab;
    AUTO_MEMO struct memo_thing *thing = NULL;
    const uint8_t *bytes;
    size_t have;
    int r;

    if (place)
        return blob_read(rc, file->base.blob, dst, len, place + off, d);
    r = parquet_unit_get(rc, file, column, row, &slab, &first, &thing, d);
    if (r == 0)
        r = contents_bytes(file, column, row, slab, (size_t)(row - first), &bytes, &have, d);
    if (r < 0)
        return r;
    if (off > have || len > have - off)
        return contents_refuse(file, column, row, "the kept index has another size", d);
    memcpy(dst, bytes + off, len);
    return 0;
}

/* Bytes of a row of numbers that do not vary. */
static size_t contents_width(const struct parquet_column *c)
{
    return c->shown == SHOWN_ARRAY ? (size_t)(c->width * c->dim[0] * c->tail) : c->width;
}

/* Copy values of a good unit, up to the first of n rows that it has not. Returns how many. */
static unsigned contents_copy(const struct parquet_slab *slab, uint64_t first, const uint64_t *row,
                              unsigned n, size_t width, size_t step, uint8_t *dst)
{
    unsigned i = 0;

    if (!slab->is_good || slab->width != width)
        return 0;
    /* Sizes that are constants make a copy of one instruction. */
    if (width == 8)
        for (; i < n && row[i] - first < slab->n; i++)
            memcpy(dst + i * step, slab->bytes + (row[i] - first) * 8, 8);
    else if (width == 4)
        for (; i < n && row[i] - first < slab->n; i++)
            memcpy(dst + i * step, slab->bytes + (row[i] - first) * 4, 4);
    else
        for (; i < n && row[i] - first < slab->n; i++)
            memcpy(dst + i * step, slab->bytes + (row[i] - first) * width, width);
    return i;
}

/* Rows of one column, which go to dst, which is every step bytes. */
static int contents_column(struct read_context *rc, const struct parquet_file *file,
                           unsigned column, const uint64_t *row, unsigned n, size_t step,
                           uint8_t *dst, struct diag *d)
{
    size_t width = contents_width(&file->column[column]);
    int all = 0;

    for (unsigned i = 0; i < n;) {
        const struct parquet_slab *slab = NULL;
        AUTO_MEMO struct memo_thing *thing = NULL;
        uint64_t first = row[i];
        unsigned copied = 0;
        int r = parquet_unit_get(rc, file, column, row[i], &slab, &first, &thing, d);

        if (!missing_go_on(rc, r, &all))
            break;
        if (r == 0)
            copied = contents_copy(slab, first, row + i, n - i, width, step, dst + i * step);
        i += copied;
        /* What the unit lacks at its end cannot be read. */
        for (unsigned k = i; r == 0 && i < n && !copied && (i == k || row[i] - first < slab->n);
             i++) {
            const uint8_t *bytes;
            size_t len;

            r = contents_bytes(file, column, row[i], slab, (size_t)(row[i] - first), &bytes, &len,
                               d);
            if (r == 0 && len != width)
                r = contents_refuse(file, column, row[i], "the kept index has another size", d);
            if (r == 0)
                memcpy(dst + i * step, bytes, width);
        }
        if (r < 0 && r != -EAGAIN)
            return r;
        i += r == -EAGAIN;
    }
    return all;
}

int parquet_read_rows(struct read_context *rc, const void *p, const uint64_t *row, unsigned n,
                      const unsigned *column, unsigned n_columns, uint8_t *dst, struct diag *d)
{
    const struct parquet_file *file = p;
    size_t step = 0, at = 0;
    int all = 0;

    for (unsigned i = 0; i < n_columns; i++)
        step += contents_width(&file->column[column[i]]);
    for (unsigned i = 0; i < n_columns; i++) {
        int r = contents_column(rc, file, column[i], row, n, step, dst + at, d);

        at += contents_width(&file->column[column[i]]);
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}
