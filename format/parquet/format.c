/* The format: which files are Parquet, which of them are one dataset, what a row has, from the
 * index and the units, and what people are told. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/parquet/file.h"

#define UNITS_AT_ONCE 8 /* that are made ahead of reads of a column */

/* ---- what a row has ---- */

static bool contents_has(const void *p, uint64_t row, unsigned column)
{
    const struct parquet_file *file = p;
    const struct parquet_column *c = &file->column[column];

    return !c->has_null || parquet_state(file, c, row) != STATE_NULL;
}

static int contents_refuse(const struct parquet_file *file, unsigned column, uint64_t row,
                           const char *why, struct diag *d)
{
    return diag_set(d, -EIO, "%s: row %llu: column '%s' cannot be read%s%s",
                    blob_name(file->base.blob), (unsigned long long)row, file->column[column].name,
                    *why ? ": " : "", why);
}

static int contents_dims(const void *p, uint64_t row, unsigned column,
                         uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct parquet_file *file = p;
    const struct parquet_column *c = &file->column[column];
    uint64_t state = parquet_state(file, c, row);

    if (state == STATE_BAD)
        return contents_refuse(file, column, row, c->fault ? c->fault : "", d);
    if (c->shown == SHOWN_NUMBER)
        return 0;
    if (state < STATE_SIZE || state - STATE_SIZE > UINT32_MAX)
        return contents_refuse(file, column, row, "the kept index has another size", d);
    ret[0] = state - STATE_SIZE;
    for (unsigned i = 1; i < c->as.ndim; i++)
        ret[i] = c->as.dim[i];
    return 0;
}

static bool contents_is_copy(const void *p, uint64_t row, unsigned column)
{
    const struct parquet_file *file = p;

    return parquet_place(file, &file->column[column], row) > 0;
}

static bool contents_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct parquet_file *file = p;
    const struct parquet_column *c = &file->column[column];
    uint64_t state = parquet_state(file, c, row), place = parquet_place(file, c, row);
    struct parquet_span unit = {.bytes = {file->base.blob, place, state - STATE_SIZE}};

    if (state < STATE_SIZE || c->n_leaves > 1)
        return false;
    if (!place)
        parquet_unit_find(&(struct record_cell){file, row, column}, &unit);
    *ret = unit.bytes;
    return ret->len && ret->off <= ret->blob->size && ret->len <= ret->blob->size - ret->off;
}

/* The bytes of a row in a unit. */
static int contents_bytes(const struct parquet_file *file, unsigned column, uint64_t row,
                          const struct values *slab, size_t i, const uint8_t **ret, size_t *ret_len,
                          struct diag *d)
{
    enum value_mark mark = i < slab->n ? values_mark(slab, i) : VALUE_BAD;

    if (mark)
        return contents_refuse(file, column, row,
                               mark == VALUE_NULL
                                   ? "expected no null, as the statistics say, got one"
                                   : values_packed_text(slab),
                               d);
    *ret = values_at(slab, i, ret_len);
    return 0;
}

static int contents_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                         uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct parquet_file *file = p;
    uint64_t place = parquet_place(file, &file->column[column], row), first;
    const struct values *slab;
    AUTO_MEMO struct memo_thing *thing = NULL;
    const uint8_t *bytes;
    size_t have;
    int r;

    if (place)
        return blob_read(rc, file->base.blob, dst, len, place + off, d);
    r = parquet_unit_get(rc, &(struct record_cell){file, row, column}, &slab, &first, &thing, d);
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
    return c->shown == SHOWN_ARRAY ? (size_t)(c->width * c->as.dim[0] * c->tail) : c->width;
}

/* Copy the first n of the rows from their unit, whose first is `first`, and go behind them. */
static int contents_copy(struct record_rows *rows, const struct values *unit, uint64_t first,
                         size_t n, struct diag *d)
{
    const struct parquet_file *file = rows->file;
    size_t width = contents_width(&file->column[rows->column]), len = width, some = n;
    bool is_even = !unit->n_marks && unit->width == width && rows->row - first < unit->n;

    for (; n; n -= some) {
        size_t i = (size_t)(rows->row - first);
        const uint8_t *bytes;
        int r = 0;

        some = is_even ? n : 1;
        if (is_even)
            bytes = unit->bytes + i * width;
        else
            r = contents_bytes(file, rows->column, rows->row, unit, i, &bytes, &len, d);
        if (r == 0 && len != width)
            r = contents_refuse(file, rows->column, rows->row, "the kept index has another size",
                                d);
        if (r < 0)
            return r;
        if (some * width == 8) /* a size that is a constant makes a copy of one instruction */
            memcpy(rows->dst, bytes, 8);
        else
            memcpy(rows->dst, bytes, some * width);
        rows->row += some;
        rows->dst += some * width;
        rows->n -= (unsigned)some;
    }
    return 0;
}

/* Copy the first of the rows, and all that are in its unit. */
static int contents_unit(struct read_context *rc, struct record_rows *rows, unsigned n_rows,
                         struct diag *d)
{
    const struct parquet_file *file = rows->file;
    AUTO_MEMO struct memo_thing *thing = NULL;
    const struct values *unit;
    uint64_t first;
    int r = parquet_unit_get(rc, &(struct record_cell){file, rows->row, rows->column}, &unit,
                             &first, &thing, d);

    for (unsigned i = 0; i < n_rows && r == 0; i++) {
        uint64_t at = rows[i].row - first;

        if (rows[i].n && rows[i].file == file && (!i || at < unit->n))
            r = contents_copy(&rows[i], unit, first,
                              at < unit->n ? (size_t)min_u64(rows[i].n, unit->n - at) : 1, d);
    }
    return r < 0 ? r : blob_used(rc, file->base.blob, d);
}

/* Make the units of some rows at once; of a run also those of columns behind it, as a reader of
 * arrays reads them next. */
static void contents_make(struct read_context *rc, const struct record_rows *rows, unsigned n_rows)
{
    const struct parquet_file *file = rows->file;
    struct record_cell cell[UNITS_AT_ONCE];
    unsigned looks = n_rows > 1 ? UNITS_AT_ONCE : 2, n = 0, needed;

    for (unsigned i = 0; i < looks; i++) {
        const struct record_rows *at = &rows[(size_t)i * n_rows / looks];

        cell[n] = (struct record_cell){at->file, at->row + (n_rows > 1 ? 0 : i * (at->n - 1)),
                                       at->column};
        n += !parquet_is_made(&cell[n]);
    }
    needed = n;
    for (unsigned k = rows->column + 1;
         n && n_rows == 1 && k < file->n_columns &&
         file->column[rows->column].shown == SHOWN_NUMBER && n < UNITS_AT_ONCE;
         k++)
        if (file->column[k].shown == SHOWN_NUMBER)
            cell[n++] = (struct record_cell){file, cell[0].row, k};
    if (n > 1)
        parquet_rows_together(rc, cell, n, needed);
}

static int contents_read_column(struct read_context *rc, struct record_rows *rows, unsigned n_rows,
                                struct diag *d)
{
    int all = 0;

    contents_make(rc, rows, n_rows);
    for (unsigned i = 0; i < n_rows;) {
        int r = rows[i].n ? contents_unit(rc, rows + i, n_rows - i, d) : 0;

        if (!missing_go_on(rc, r, &all))
            break;
        i += r < 0 || !rows[i].n;
    }
    return all;
}

/* ---- what is said of a file ---- */

static void parquet_damage(const void *p, struct text *t)
{
    const struct parquet_file *file = p;

    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];

        if (c->faults)
            text_add(t, "%s: column '%s': %llu rows cannot be read: %s\n",
                     blob_name(file->base.blob), c->name, (unsigned long long)c->faults,
                     c->fault ? c->fault : "");
    }
}

static void parquet_note(const void *p, struct text *t)
{
    const struct parquet_file *file = p;
    const char *name = blob_name(file->base.blob);

    if (file->notes.len)
        text_add(t, "%s", file->notes.data);
    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];

        if (c->elsewhere)
            text_add(t,
                     "%s: column '%s': values without bytes, whose paths are never opened: %llu\n",
                     name, file->column[c->path_of - 1].name, (unsigned long long)c->elsewhere);
        if (c->has_unknown)
            text_add(t, "%s: column '%s': pages of a type that is not known are skipped\n", name,
                     c->name);
    }
    if (file->footer.said_rows != file->footer.rows)
        text_add(t, "%s: says that it has %llu rows, its row groups have %llu\n", name,
                 (unsigned long long)file->footer.said_rows, (unsigned long long)file->footer.rows);
}

/* Have the leaves of the columns the same units of time, and all or none of them UTC? */
static bool parquet_same_units(const struct parquet_footer *p, const struct parquet_column *a,
                               const struct parquet_footer *q, const struct parquet_column *b)
{
    bool same = a->n_leaves == b->n_leaves;

    for (unsigned i = 0; i < a->n_leaves && same; i++) {
        const struct parquet_node *x = &p->node[p->leaf[a->leaf + i]];
        const struct parquet_node *y = &q->node[q->leaf[b->leaf + i]];

        same = !strcmp(x->unit, y->unit) && (!*x->unit || x->utc == y->utc);
    }
    return same;
}

/* Are columns the same kind of thing in both files? */
static bool parquet_same(const struct parquet_column *a, const struct parquet_column *b)
{
    return !strcmp(a->name, b->name) && a->shown == b->shown && a->as.dtype == b->as.dtype &&
           a->as.shown == b->as.shown && a->tail == b->tail &&
           (a->shown == SHOWN_NUMBER ? a->width == b->width : a->as.ndim == b->as.ndim) &&
           (a->convert == CONVERT_INT96) == (b->convert == CONVERT_INT96);
}

static int parquet_joins(const void *p, const void *other, struct diag *d)
{
    const struct parquet_file *a = p, *b = other;
    const char *name = blob_name(b->base.blob), *first = blob_name(a->base.blob);

    for (unsigned i = 0; i < a->n_columns || i < b->n_columns; i++) {
        const struct parquet_column *x, *y;

        if (i >= a->n_columns || i >= b->n_columns)
            return diag_set(d, -EDOM, "%s: expected the %u columns of %s, got %u", name,
                            a->n_columns, first, b->n_columns);
        x = &a->column[i];
        y = &b->column[i];
        if (!parquet_same(x, y))
            return diag_set(d, -EDOM,
                            "%s: column %u: expected '%s' as in %s, got '%s', or the same name "
                            "with another type",
                            name, i, x->name, first, y->name);
        if (!parquet_same_units(&a->footer, x, &b->footer, y))
            return diag_set(d, -EDOM,
                            "%s: column '%s': expected times in the unit and the zone (UTC or not) "
                            "of %s, got others",
                            name, x->name, first);
        if ((x->classes || y->classes) && !json_equal(x->classes, y->classes))
            return diag_set(d, -EDOM,
                            "%s: column '%s': expected the names of classes of %s, got "
                            "others",
                            name, x->name, first);
    }
    return 0;
}

/* ---- dataset.json ---- */

static void parquet_add_classes(const struct parquet_file *file, const char *indent, struct text *t)
{
    unsigned n = 0;

    for (unsigned i = 0; i < file->n_columns; i++)
        n += file->column[i].classes != NULL;
    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];
        size_t len = strlen(c->name);
        AUTO_TEXT struct text name = {0};
        AUTO_FREE char *names = json_dumps(c->classes, 0);

        t->failed = t->failed || (c->classes && !names);
        if (!names)
            continue;
        len -= len > 6 && !strcmp(c->name + len - 6, "_label") ? 6 : 0;
        if (n > 1 && strcmp(c->name, "label") != 0)
            text_add(&name, "%.*s_", (int)len, c->name);
        text_add(&name, "classes");
        json_add(t, indent, name.data, "%s", names);
        t->failed = t->failed || name.failed;
    }
}

static void parquet_add_times(const struct parquet_file *file, const char *indent, struct text *t)
{
    unsigned n = 0;

    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];
        bool is_time = *c->value->unit, is_int96 = c->convert == CONVERT_INT96;

        if ((c->shown != SHOWN_NUMBER && c->shown != SHOWN_ARRAY) || (!is_time && !is_int96))
            continue;
        if (!n++)
            json_open(t, indent, "times", "{");
        json_open(t, NULL, c->name, "{");
        json_add_text(t, NULL, "unit", is_time ? c->value->unit : "us");
        json_add(t, NULL, "utc", "%s", c->value->utc ? "true" : "false");
        json_close(t, NULL, "}");
    }
    if (n)
        json_close(t, indent, "}");
}

static void parquet_describe(struct record_file *const *files, unsigned n, const char *indent,
                             struct text *t)
{
    const struct parquet_file *file = (const struct parquet_file *)files[0];

    (void)n;
    parquet_add_classes(file, indent, t);
    parquet_add_times(file, indent, t);
    if (file->footer.writer)
        json_add_text(t, indent, "written_by", file->footer.writer);
}

static bool parquet_class_name(const void *p, int64_t number, struct text *t)
{
    const struct parquet_file *file = p;

    for (unsigned i = 0; i < file->n_columns; i++) {
        const json_t *classes = file->column[i].classes;

        if (strcmp(file->column[i].name, "label") != 0 || !classes || number < 0 ||
            (uint64_t)number >= json_array_size(classes))
            continue;
        text_add(t, "%s", json_string_value(json_array_get(classes, (size_t)number)));
        return true;
    }
    return false;
}

static const struct record_format parquet_records = {
    .format = &format_parquet,
    .file = &parquet_file_ops,
    .has_groups = true,
    .text_folder = "json",
    .joins = parquet_joins,
    .has = contents_has,
    .dims = contents_dims,
    .extent = contents_extent,
    .is_copy = contents_is_copy,
    .read = contents_read,
    .read_column = contents_read_column,
    .is_made = parquet_is_made,
    .make = parquet_rows_together,
    .damage = parquet_damage,
    .note = parquet_note,
    .check = parquet_check,
    .checked = parquet_checked,
    .describe = parquet_describe,
    .class_name = parquet_class_name,
};

/* ---- the format ---- */

/* The ends of all files are fetched at once, so that footers do not come one after another. */
static int parquet_open_folder(struct source_file *files, size_t n,
                               const struct format_setup *setup, struct finds *finds)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t size = files[i].blob->size, len = min_u64(size, PARQUET_TAIL_READ);

        blob_fetch(files[i].blob, size - len, len, NULL);
    }
    return record_set_open_folder(&parquet_records, files, n, setup, finds);
}

/* Files that say something of a folder of others, and have no rows. */
static bool parquet_is_aside(const char *name)
{
    return !strcmp(name, "_metadata") || !strcmp(name, "_common_metadata");
}

static enum claim parquet_probe(const struct probed_file *file)
{
    if (file->len < PARQUET_MAGIC ||
        (memcmp(file->head, "PAR1", 4) != 0 && memcmp(file->head, "PARE", 4) != 0))
        return CLAIM_NONE;
    return parquet_is_aside(file->name) ? CLAIM_ASIDE : CLAIM_NAMED;
}

const struct format format_parquet = {
    .name = "parquet",
    .probe = parquet_probe,
    .open_folder = parquet_open_folder,
    .title = "Parquet",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  for field in batch.files: print(field, batch[field].shape)\n",
};
