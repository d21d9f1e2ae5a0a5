/* The pass that makes the index, and the taking of a kept one. It goes group by group; in a group
 * each column has a cursor, which finds the units, and the states of the rows of a column that is
 * in the index. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/parquet/file.h"

#define CHUNK_AHEAD  (UINT64_C(128) << 20) /* bytes of a chunk that are fetched together */
#define WHOLE_BYTES  (UINT64_C(1) << 20)   /* chunks of fixed size up to this are a unit */
#define ROWS_AT_ONCE 4096                  /* of a step */
#define LACKING_ROWS 65536 /* that a unit has at its end, at most: a file may claim very many */

/* What the index has of a row. */
struct cursor_row {
    uint64_t state, place;
};

/* The place of the pass in a column of a row group. */
struct cursor {
    struct parquet_column *column;
    struct parquet_walk walk;
    struct page_data pending; /* pages of the next unit */
    uint64_t row, end;        /* rows of the file: the next to be made; of the group's end */
    struct cursor_row *made;  /* [n] its own; not yet used: those from pos on */
    size_t n, pos;
};

struct parquet_pass {
    unsigned group;
    uint64_t row; /* of the file */
    bool has_begun;
    uint64_t number[INDEX_LEARNED];
    struct cursor cursor[]; /* [n_columns] */
};

static void cursor_release(struct cursor *c)
{
    parquet_walk_release(&c->walk);
    page_data_release(&c->pending);
    free(c->made);
    *c = (struct cursor){0};
}

static void pass_free(struct parquet_file *file)
{
    for (unsigned i = 0; file->pass && i < file->n_columns; i++)
        cursor_release(&file->pass->cursor[i]);
    free(file->pass);
    file->pass = NULL;
}

/* ---- units and states ---- */

/* Begin a unit at that byte. */
static int cursor_add_unit(struct cursor *c, uint64_t at)
{
    struct parquet_column *column = c->column;
    int r = array_capacity(&column->unit, column->n_units, sizeof(*column->unit));

    if (r == 0) /* a page of Impala may begin after its chunk */
        column->unit[column->n_units++] =
            (struct parquet_unit){min_u64(at, c->walk.chunk->end), c->row};
    return r;
}

static int cursor_add(struct cursor *c, uint64_t state, uint64_t place)
{
    int r = array_capacity(&c->made, c->n, sizeof(*c->made));

    if (r == 0)
        c->made[c->n++] = (struct cursor_row){state, place};
    return r;
}

static void cursor_fault(struct cursor *c, uint64_t rows, const char *why)
{
    c->column->faults += rows;
    if (!c->column->fault)
        c->column->fault = strdup(why);
}

static uint64_t cursor_amount(const struct parquet_column *column, size_t len)
{
    return column->shown == SHOWN_NUMBER  ? 0
           : column->shown == SHOWN_ARRAY ? len / column->width / column->tail
           : column->shown == SHOWN_SIZES ? len / 8
                                          : len;
}

/* Make those rows the next unit, of n: those that it lacks are bad. */
static int cursor_make_unit(struct cursor *c, const struct values *rows, size_t n, uint64_t at,
                            const struct diag *why)
{
    int r = cursor_add_unit(c, at);

    c->n = c->pos = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        enum value_mark mark = i < rows->n ? values_mark(rows, i) : VALUE_BAD;
        uint64_t state = mark == VALUE_NULL ? STATE_NULL : STATE_BAD;
        const uint8_t *bytes;
        size_t len;

        if (mark == VALUE_GOOD) {
            bytes = values_at(rows, i, &len);
            if (len && !c->column->bytes_format)
                c->column->bytes_format = parquet_bytes_format(bytes, len);
            state = STATE_SIZE + cursor_amount(c->column, len);
        } else if (mark == VALUE_NULL) {
            c->column->has_null = true;
        } else {
            cursor_fault(c, 1, why->text);
        }
        r = cursor_add(c, state, 0);
    }
    c->row += r == 0 ? n : 0;
    return r;
}

/* Make a unit of the first `levels` levels of what is pending. is_last: it has all remaining rows
 * of the group. */
static int cursor_close(struct cursor *c, size_t levels, bool is_last, struct diag *why)
{
    struct page_data *data = &c->pending;
    AUTO_VALUES struct values made = {0};
    size_t all = data->n, rows, n;
    int r;

    data->n = levels;
    rows = parquet_count_rows(data);
    n = (size_t)min_u64(c->end - c->row, is_last ? rows + LACKING_ROWS : rows);
    if (is_last && rows != n && !c->walk.is_cut) {
        page_data_release(data);
        diag_set(why, -EBADMSG, "pages at byte %llu: expected %zu rows, got %zu",
                 (unsigned long long)c->walk.unit_at, n, rows);
    }
    r = parquet_rows_make(c->column, data, n, c->walk.is_cut, &made, why);
    if (r == 0)
        r = cursor_make_unit(c, &made, n, c->walk.unit_at, why);
    data->n = all;
    if (levels < all)
        page_data_drop(&c->walk.column, data, levels);
    else
        page_data_release(data);
    c->walk.unit_at = c->walk.page_at;
    return r;
}

/* ---- bytes in place ---- */

/* The levels of the page; only their bytes are read. */
static int cursor_levels(struct cursor *c, struct page_data *ret, size_t *ret_at, const char **why,
                         struct diag *d)
{
    const struct page_header *h = &c->walk.header;
    uint64_t len = 32;
    int r = -ENODATA;

    for (; r == -ENODATA; len *= 8) {
        const uint8_t *bytes;

        len = min_u64(len, h->packed);
        r = parquet_walk_bytes(&c->walk, 0, len, &bytes, d);
        if (r == 0)
            r = page_decode_levels(&c->walk.column, h, bytes, (size_t)len, ret, ret_at, why);
        if (r == -ENODATA && len == h->packed) {
            *why = "expected levels inside the page, got a larger length";
            return -EBADMSG;
        }
    }
    return r;
}

/* The value at byte *at of the body: its place and length. */
static int cursor_hop(struct cursor *c, uint64_t *at, struct diag *d)
{
    uint64_t left = c->walk.header.packed - *at, len = 0, head;
    const uint8_t *bytes;
    int r = left < 4 ? -EBADMSG : parquet_walk_bytes(&c->walk, *at, 4, &bytes, d);

    if (r == 0) {
        len = load_le32(bytes);
        r = len > left - 4 ? -EBADMSG : 0;
    }
    if (r == 0 && len && !c->column->bytes_format) {
        head = min_u64(len, BYTES_MAGIC_SIZE);
        r = parquet_walk_bytes(&c->walk, *at + 4, head, &bytes, d);
        if (r == 0)
            c->column->bytes_format = parquet_bytes_format(bytes, (size_t)head);
    }
    *at += 4 + len;
    return r == 0 ? cursor_add(c, STATE_SIZE + len, c->walk.at + *at - len) : r;
}

/* Make the page a unit, without its values. */
static int cursor_page_in_place(struct cursor *c, struct diag *d)
{
    AUTO_PAGE_DATA struct page_data levels = {0};
    const char *why = "expected a length inside the page, got a larger one";
    size_t values = 0, n = (size_t)min_u64(c->walk.header.n, c->end - c->row);
    struct diag fault = DIAG_INIT;
    int r = cursor_levels(c, &levels, &values, &why, d);
    uint64_t at = values;

    c->n = c->pos = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        bool is_null = levels.def && levels.def[i] < c->walk.column.max_def;

        c->column->has_null |= is_null;
        r = is_null ? cursor_add(c, STATE_NULL, 0) : cursor_hop(c, &at, d);
    }
    if (r == -EBADMSG) {
        diag_set(&fault, r, "page at byte %llu: %s", (unsigned long long)c->walk.page_at, why);
        cursor_fault(c, n - c->n, fault.text);
        for (r = 0; c->n < n && r == 0;)
            r = cursor_add(c, STATE_BAD, 0);
    }
    if (r == 0)
        r = cursor_add_unit(c, c->walk.page_at);
    if (r < 0) {
        c->n = 0;
        return r;
    }
    c->row += n;
    parquet_walk_skip(&c->walk);
    return 0;
}

/* ---- a cursor ---- */

/* Columns of several leaves are made a group at a time. */
static int cursor_group(struct cursor *c, struct diag *why)
{
    const struct parquet_span all = {.file = c->walk.file,
                                     .column = c->column,
                                     .group = c->walk.group,
                                     .row = c->row,
                                     .rows = c->end - c->row,
                                     .bytes = {.off = c->walk.at}};
    AUTO_VALUES struct values rows = {0};
    int r = parquet_read_rows(READ_WAITS, &all, &rows, why);

    return r < 0 ? r : cursor_make_unit(c, &rows, (size_t)all.rows, all.bytes.off, why);
}

/* Make the states of the next unit. 0, or -errno with the reason in d: it is called again. */
static int cursor_fill(struct cursor *c, struct diag *d)
{
    struct diag why = DIAG_INIT;
    int r = 0;

    while (c->pos == c->n && r == 0) {
        size_t levels = 0;
        bool is_group = c->column->n_leaves > 1;

        r = is_group ? 0 : parquet_walk_unit(&c->walk, true, &c->pending, &levels, &why);
        if (is_group)
            r = cursor_group(c, &why);
        else if (r == 1 && !levels)
            r = cursor_page_in_place(c, &why);
        else if (r >= 0)
            r = cursor_close(c, levels, r == 0, &why);
        c->column->has_unknown |= c->walk.has_unknown;
    }
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : 0;
}

/* Find the units of a column that is not in the index by the headers of pages alone. */
static int cursor_find_units(struct cursor *c, struct diag *d)
{
    struct parquet_walk *w = &c->walk;
    uint64_t bytes = 0, first = c->row;
    struct diag why = DIAG_INIT;
    int r = cursor_add_unit(c, w->chunk->start);

    while (r == 0 && (w->chunk->unpacked > WHOLE_BYTES || w->chunk->values > PARQUET_UNIT_VALUES)) {
        r = parquet_walk_page(w, &why);
        if (r != 1)
            break;
        r = 0;
        if ((bytes >= PARQUET_UNIT_BYTES || c->row - first >= PARQUET_UNIT_VALUES) &&
            c->row < c->end) {
            r = cursor_add_unit(c, w->page_at);
            bytes = 0;
            first = c->row;
        }
        bytes += w->header.unpacked;
        c->row += w->header.n;
        parquet_walk_skip(w);
    }
    c->column->has_unknown |= w->has_unknown;
    return r == -EBADMSG || r == 0 ? 0 : diag_set(d, r, "%s", diag_text(&why, r));
}

/* ---- groups ---- */

static int pass_begin_column(struct parquet_file *file, struct parquet_column *column,
                             struct cursor *c, struct diag *d)
{
    const struct parquet_group *group = &file->footer.group[file->pass->group];
    const struct parquet_chunk *chunk =
        parquet_chunk_at(&file->footer, file->pass->group, column->leaf);
    uint64_t len = chunk->end - chunk->start;
    int r;

    cursor_release(c);
    r = parquet_walk_init(&c->walk, file, file->pass->group, column->leaf, chunk->start, chunk->end,
                          READ_WAITS);
    c->walk.has_places = column->place != NO_SLOT;
    c->column = column;
    c->row = group->row;
    c->end = group->row + group->rows;
    while (column->n_units && column->unit[column->n_units - 1].row >= c->row)
        column->n_units--; /* of a try that failed */
    /* The pass reads all of these bytes, or bytes that lie close together: a round trip for each
     * would take longer than what is between them. */
    if (column->state != NO_SLOT && group->rows && len / group->rows < MISSING_GAP)
        blob_fetch(file->base.blob, chunk->start, min_u64(len, CHUNK_AHEAD), NULL);
    return r == 0 && column->state == NO_SLOT && group->rows ? cursor_find_units(c, d) : r;
}

static int pass_begin_group(struct parquet_file *file, struct diag *d)
{
    struct parquet_pass *pass = file->pass;
    int r = 0;

    for (unsigned i = 0; i < file->n_columns && r == 0; i++)
        r = pass_begin_column(file, &file->column[i], &pass->cursor[i], d);
    pass->row = file->footer.group[pass->group].row;
    pass->has_begun = r == 0;
    return r;
}

/* Add the next row to the index. */
static int pass_add_row(struct parquet_file *file, struct diag *d)
{
    struct parquet_pass *pass = file->pass;
    int r = 0;

    for (unsigned i = 0; i < file->n_columns; i++) {
        struct parquet_column *column = &file->column[i];
        struct cursor *c = &pass->cursor[i];

        if (column->state == NO_SLOT)
            continue;
        if (c->pos == c->n)
            r = cursor_fill(c, d);
        if (r < 0)
            return r;
        pass->number[column->state] = c->made[c->pos].state;
        if (column->place != NO_SLOT)
            pass->number[column->place] = c->made[c->pos].place;
        if (column->path_of && c->made[c->pos].state > STATE_SIZE)
            column->elsewhere +=
                pass->number[file->column[column->path_of - 1].state] == STATE_NULL;
    }
    r = index_add(file->base.prepared.builder, NULL, 0, pass->number);
    for (unsigned i = 0; i < file->n_columns && r == 0; i++)
        pass->cursor[i].pos += file->column[i].state != NO_SLOT;
    return r;
}

static int pass_step(void *impl, struct diag *d)
{
    struct parquet_file *file = impl;
    const struct parquet_footer *footer = &file->footer;
    struct parquet_pass *pass = file->pass;
    int r = 0;

    for (unsigned n = 0; n < ROWS_AT_ONCE && r == 0 && pass->group < footer->n_groups;) {
        const struct parquet_group *group = &footer->group[pass->group];

        if (!pass->has_begun)
            r = pass_begin_group(file, d);
        for (; n < ROWS_AT_ONCE && r == 0 && pass->row < group->row + group->rows; n++) {
            r = pass_add_row(file, d);
            pass->row += r == 0;
        }
        if (r == 0 && pass->row == group->row + group->rows) {
            atomic_store(&file->base.prepared.seen,
                         parquet_chunk_at(footer, pass->group++, footer->n_leaves - 1)->end);
            pass->has_begun = false;
        }
    }
    return r < 0 ? r : pass->group == footer->n_groups;
}

static int pass_begin(void *impl)
{
    struct parquet_file *file = impl;

    file->pass = calloc(1, sizeof(*file->pass) + file->n_columns * sizeof(struct cursor));
    return file->pass ? index_builder_columns(file->base.prepared.builder, file->n_slots) : -ENOMEM;
}

/* ---- what is kept with the rows ---- */

static void pass_keep(void *impl, struct kept *k)
{
    struct parquet_file *file = impl;

    for (unsigned i = 0; i < file->n_columns; i++) {
        struct parquet_column *c = &file->column[i];

        kept_flag(k, &c->has_null);
        kept_flag(k, &c->has_unknown);
        kept_number(k, &c->bytes_format, PARQUET_BYTES_FORMATS);
        kept_number(k, &c->elsewhere, c->path_of ? UINT64_MAX : 0);
        kept_number(k, &c->faults, UINT64_MAX);
        kept_text(k, &c->fault);
        kept_number(k, &c->n_units, k->left / sizeof(*c->unit));
        kept_array(k, &c->unit, c->n_units * sizeof(*c->unit));
    }
}

/* Is there a unit where each group begins, are all inside their chunk, and do their rows rise? */
static bool pass_units_fit(const struct parquet_footer *footer, const struct parquet_column *c)
{
    size_t i = 0;

    for (unsigned g = 0; g < footer->n_groups; g++) {
        const struct parquet_chunk *chunk = parquet_chunk_at(footer, g, c->leaf);
        uint64_t row = footer->group[g].row, end = row + footer->group[g].rows, at = chunk->start;

        if (row < end && (i == c->n_units || c->unit[i].row != row))
            return false;
        for (; i < c->n_units && c->unit[i].row < end; i++) {
            if (c->unit[i].row < row || c->unit[i].at < at || c->unit[i].at > chunk->end)
                return false;
            row = c->unit[i].row + 1;
            at = c->unit[i].at;
        }
    }
    return i == c->n_units;
}

/* Numbers of rows are checked where they are used. */
static int pass_load(void *impl, const struct index *index)
{
    const struct parquet_file *file = impl;
    bool good = index->rows == file->footer.rows && index->shape.columns == file->n_slots;

    for (unsigned i = 0; i < file->n_columns; i++)
        good = good && pass_units_fit(&file->footer, &file->column[i]);
    return good ? 0 : -EBADMSG;
}

static int pass_ready(void *impl, struct diag *d)
{
    (void)d;
    pass_free(impl);
    return parquet_columns_ready(impl);
}

/* ---- the file ---- */

static int pass_open(void *p, const struct record_source *source, struct diag *d)
{
    struct parquet_file *file = p;
    int r = parquet_footer_read(file->base.blob, &file->footer, d);

    file->memo = source->setup->memo;
    file->pool = source->setup->pool;
    if (r == 0)
        r = parquet_hub_read(file);
    return r < 0 ? r : parquet_columns_make(file, d);
}

static void pass_release(void *p)
{
    struct parquet_file *file = p;

    pass_free(file);
    parquet_footer_release(&file->footer);
    json_decref(file->features);
    free(file->column);
    text_release(&file->notes);
}

const struct record_file_ops parquet_file_ops = {
    .size = sizeof(struct parquet_file),
    .index = {.version = "parquet 5",
              .keep = pass_keep,
              .load = pass_load,
              .begin = pass_begin,
              .step = pass_step,
              .ready = pass_ready},
    .shape = {.learns = true},
    .side_by_side = true,
    .open = pass_open,
    .release = pass_release,
};
