/* What one record of a record_set has: the file that the record is in, and there its row and its
 * columns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_context.h"
#include "format/records/record_items.h"
#include "format/records/record_set_parts.h"

/* A column of a record: in its file. */
struct place {
    struct record_file *file;
    uint64_t row;
    unsigned column; /* NO_COLUMN: a hole */
};

static struct place record_contents_find_content(const struct dataset *ds,
                                                 const struct record_content *c, uint64_t record)
{
    const struct record_set *set = record_set_of(ds);
    uint64_t row;
    unsigned file = shards_find(&set->files, record, &row);
    struct place place = {set->files.file[file], row, c->column};

    if (set->learned.map)
        place.column = set->learned.map[file][c->column];
    if (place.column != NO_COLUMN && set->rf->has && !set->rf->has(place.file, row, place.column))
        place.column = NO_COLUMN;
    return place;
}

const struct record_column *record_set_columns(const struct record_format *rf,
                                               const struct record_file *file, unsigned *ret_n)
{
    *ret_n = rf->column ? rf->n_columns : file->n_columns;
    return rf->column ? rf->column : file->column;
}

static int dims_at(const struct record_format *rf, const struct record_content *c,
                   const struct place *place, uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    const struct record_file *file = place->file;
    const struct record_column *column;
    unsigned n;

    if (place->column == NO_COLUMN) {
        for (unsigned i = 0; i < RECORD_AXES; i++)
            ret_dim[i] = i && c->dim[i] != DIM_VARIES ? c->dim[i] : 0;
        return 0;
    }
    column = &record_set_columns(rf, file, &n)[place->column];
    memcpy(ret_dim, column->dim, sizeof(column->dim));
    if (column->shown == RECORD_NUMBERS && !column->ndim)
        ret_dim[0] = 1; /* if others have an axis */
    if (rf->dims)
        return rf->dims(file, place->row, place->column, ret_dim, d);
    if (column->shown != RECORD_NUMBERS || (column->ndim && column->dim[0] == DIM_VARIES))
        ret_dim[0] = rf->length(file, place->row, place->column);
    return 0;
}

static int set_dims(const struct dataset *ds, const struct record_content *c, uint64_t record,
                    uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    const struct place place = record_contents_find_content(ds, c, record);

    return dims_at(record_set_of(ds)->rf, c, &place, ret_dim, d);
}

static bool extent_at(const struct record_format *rf, const struct record_content *c,
                      const struct place *place, struct extent *ret)
{
    uint64_t dim[RECORD_AXES];

    if (place->column == NO_COLUMN)
        return false;
    if (rf->extent)
        return rf->extent(place->file, place->row, place->column, ret);
    if (dims_at(rf, c, place, dim, NULL) < 0)
        return false;
    *ret = (struct extent){place->file->blob, rf->place(place->file, place->row, place->column),
                           record_bytes(c, dim)};
    return ret->len > 0;
}

static bool set_extent(const struct dataset *ds, const struct record_content *c, uint64_t record,
                       struct extent *ret)
{
    const struct place place = record_contents_find_content(ds, c, record);

    return extent_at(record_set_of(ds)->rf, c, &place, ret);
}

static bool is_copy_at(const struct record_format *rf, const struct place *place)
{
    return !rf->read || rf->extents_are_copies ||
           (rf->is_copy && place->column != NO_COLUMN &&
            rf->is_copy(place->file, place->row, place->column));
}

bool record_set_is_copy(const struct dataset *ds, const struct record_content *c, uint64_t record)
{
    const struct place place = record_contents_find_content(ds, c, record);

    return is_copy_at(record_set_of(ds)->rf, &place);
}

static bool set_as_is(const struct dataset *ds, const struct record_content *c, uint64_t record,
                      struct extent *ret)
{
    const struct record_format *rf = record_set_of(ds)->rf;
    const struct place place = record_contents_find_content(ds, c, record);
    unsigned n;

    return place.column != NO_COLUMN && is_copy_at(rf, &place) &&
           (!rf->read ||
            record_set_columns(rf, place.file, &n)[place.column].shown == RECORD_BYTES) &&
           !(rf->verify && prepared_doubts(&place.file->prepared, place.row)) &&
           extent_at(rf, c, &place, ret);
}

/* Is what an index by content says of a row true? */
static int verify_row(struct read_context *rc, const struct record_format *rf,
                      struct record_file *file, uint64_t row, struct diag *d)
{
    struct diag why = DIAG_INIT;
    int r;

    if (!rf->verify || !prepared_doubts(&file->prepared, row))
        return 0;
    r = rf->verify(rc, file, row, &why);
    if (r == 0)
        r = blob_verify(file->blob, &why);
    if (r == -EBADMSG)
        return prepared_disprove(&file->prepared, row, diag_text(&why, r), d);
    if (r < 0)
        return why.set ? diag_set(d, r, "%s", why.text) : r;
    prepared_prove(&file->prepared, row);
    return 0;
}

static int set_read(struct read_context *rc, const struct dataset *ds,
                    const struct record_content *c, uint64_t record, uint64_t off, size_t len,
                    uint8_t *dst, struct diag *d)
{
    const struct record_format *rf = record_set_of(ds)->rf;
    const struct place place = record_contents_find_content(ds, c, record);
    const struct blob *blob = place.file->blob;
    struct extent e;
    int r, all = 0;

    if (place.column == NO_COLUMN) /* has no bytes */
        return diag_set(d, -ENOENT, "%s: record %llu has no such field", blob_name(blob),
                        (unsigned long long)place.row);
    r = verify_row(rc, rf, place.file, place.row, d);
    if (!missing_go_on(rc, r, &all))
        return all;
    r = 0;
    if (rf->read) {
        r = rf->read(rc, place.file, place.row, place.column, off, len, dst, d);
    } else if (extent_at(rf, c, &place, &e)) {
        blob = e.blob;
        r = blob_read(rc, blob, dst, len, e.off + off, d);
    } else {
        uint64_t dim[RECORD_AXES];

        r = dims_at(rf, c, &place, dim, d); /* why it has no bytes */
    }
    return r < 0 || all < 0 ? (r < 0 ? r : all) : blob_used(rc, blob, d);
}

/* Contents that are made together. */
static struct record_cell record_contents_cell(const struct place *place)
{
    return (struct record_cell){place->file, place->row, place->column};
}

static bool set_is_made(const struct dataset *ds, const struct record_content *c, uint64_t record)
{
    const struct place place = record_contents_find_content(ds, c, record);
    const struct record_cell cell = record_contents_cell(&place);

    return cell.column == NO_COLUMN || record_set_of(ds)->rf->is_made(&cell);
}

static int set_make(struct read_context *rc, const struct dataset *ds,
                    const struct record_content *c, const uint64_t *record, unsigned n,
                    unsigned n_needed)
{
    struct record_cell cell[RECORD_MAKES];
    unsigned cells = 0, needed = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct place place = record_contents_find_content(ds, c, record[i]);

        cell[cells] = record_contents_cell(&place);
        cells += place.column != NO_COLUMN;
        needed = i < n_needed ? cells : needed;
    }
    return record_set_of(ds)->rf->make(rc, cell, cells, needed);
}

int record_set_read_slab(struct read_context *rc, const struct dataset *ds, const uint64_t *record,
                         unsigned n, uint8_t *dst, struct diag *d)
{
    const struct record_set *set = record_set_of(ds);
    uint64_t row[SLAB_RECORDS];
    int r, all = 0;

    for (unsigned i = 0, k; i < n; i += k) {
        unsigned number = shards_find(&set->files, record[i], &row[0]);
        struct record_file *file = set->files.file[number];

        for (k = 1; i + k < n && shards_find(&set->files, record[i + k], &row[k]) == number;)
            k++;
        r = 0;
        for (unsigned v = 0; v < k && r == 0; v++)
            r = verify_row(rc, set->rf, file, row[v], d);
        if (r == 0)
            r = set->rf->read_rows(rc, file, row, k, dst, i, n, d);
        if (r == 0)
            r = blob_verify(file->blob, d); /* the slab is remembered */
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}

/* Those of n records that are rows of the file of the first. */
static struct record_rows record_contents_rows(const struct dataset *ds,
                                               const struct record_content *c, uint64_t record,
                                               unsigned n, uint8_t *dst)
{
    const struct place place = record_contents_find_content(ds, c, record);
    uint64_t rows = place.file->prepared.index.rows - place.row;

    return (struct record_rows){place.file, place.row, (unsigned)min_u64(n, rows), place.column,
                                dst};
}

static int set_read_many(struct read_context *rc, const struct dataset *ds,
                         const struct record_content *c, const struct selection *sel,
                         uint64_t place, unsigned n, unsigned *ret_n, uint8_t *dst, struct diag *d)
{
    const struct record_format *rf = record_set_of(ds)->rf;
    size_t each = (size_t)record_bytes(c, c->dim);
    AUTO_FREE struct record_rows *rows = NULL;
    AUTO_FREE uint64_t *record = NULL;

    if (sel->in_order) {
        struct record_rows run = record_contents_rows(ds, c, sel->first + place, n, dst);

        *ret_n = run.n;
        return rf->read_column(rc, &run, 1, d);
    }
    *ret_n = n;
    rows = malloc(n * sizeof(*rows));
    record = malloc(n * sizeof(*record));
    if (!rows || !record)
        return -ENOMEM;
    selection_samples(sel, place, n, record);
    for (unsigned i = 0; i < n; i++)
        rows[i] = record_contents_rows(ds, c, record[i], 1, dst + i * each);
    return rf->read_column(rc, rows, n, d);
}

static void set_where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                      char ret[static RECORD_WHERE])
{
    const struct record_format *rf = record_set_of(ds)->rf;
    const struct place place = record_contents_find_content(ds, c, record);

    if (rf->path && place.column != NO_COLUMN &&
        rf->path(place.file, place.row, place.column, ret, RECORD_WHERE))
        return;
    snprintf(ret, RECORD_WHERE, "%s: record %llu", blob_name(place.file->blob),
             (unsigned long long)place.row);
}

static bool record_contents_content_has(const struct dataset *ds, const struct record_content *c,
                                        uint64_t record)
{
    return record_contents_find_content(ds, c, record).column != NO_COLUMN;
}

void record_set_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                       struct text *t)
{
    const struct record_set *set = record_set_of(ds);
    struct extent extent[EXTENTS_MOST];
    uint64_t row;
    unsigned n;

    if (!set->rf->locate) {
        records_locate(ds, sample, only, t);
        return;
    }
    n = dataset_extents(ds, sample, only, extent);
    for (unsigned i = 0; i < n; i++) {
        text_add(t, "%s", i ? "," : "");
        set->rf->locate(set->files.file[shards_find(&set->files, sample, &row)], &extent[i], t);
    }
}

const struct record_ops record_set_contents = {
    .dims = set_dims,
    .read = set_read,
    .read_many = set_read_many,
    .extent = set_extent,
    .as_is = set_as_is,
    .where = set_where,
    .has = record_contents_content_has,
    .is_made = set_is_made,
    .make = set_make,
};

/* What the indexes of the files depend on: also which records there are. */
int record_set_set_identity(const struct dataset *ds, struct text *t)
{
    const struct record_set *set = record_set_of(ds);

    for (unsigned i = 0; i < set->files.n; i++) {
        const char *identity = set->files.file[i]->prepared.identity;

        if (!identity)
            return -ENOENT;
        text_add(t, " %s", identity);
    }
    return 0;
}
