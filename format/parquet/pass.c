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

struct cursor {
    struct parquet_walk walk;
    struct page_data pending; /* pages of the next unit */
    unsigned group;
    uint64_t row, end;       /* rows of the file: the next to be made; of the group's end */
    struct cursor_row *made; /* [n] its own; not yet used: those from pos on */
    size_t n, pos;
    struct parquet_unit *unit; /* [n_units] of the group; its own */
    size_t n_units;
};

struct parquet_pass {
    unsigned group;
    uint64_t row; /* of the file */
    bool has_begun;
    struct cursor *cursor; /* [n_columns] */
    uint64_t number[INDEX_LEARNED];
};

static void cursor_release(struct cursor *c)
{
    parquet_walk_release(&c->walk);
    page_data_release(&c->pending);
    free(c->made);
    free(c->unit);
    *c = (struct cursor){0};
}

static void pass_free(struct parquet_file *file)
{
    for (unsigned i = 0; file->pass && file->pass->cursor && i < file->n_columns; i++)
        cursor_release(&file->pass->cursor[i]);
    if (file->pass)
        free(file->pass->cursor);
    free(file->pass);
    file->pass = NULL;
}

/* ---- units and states ---- */

/* Begin a unit at that byte. */
static int cursor_add_unit(struct cursor *c, uint64_t at)
{
    int r = array_capacity(&c->unit, c->n_units, sizeof(*c->unit));

    if (r == 0) /* a page of Impala may begin after its chunk */
        c->unit[c->n_units++] = (struct parquet_unit){min_u64(at, c->walk.chunk->end), c->row};
    return r;
}

static int cursor_add(struct cursor *c, uint64_t state, uint64_t place)
{
    int r = array_capacity(&c->made, c->n, sizeof(*c->made));

    if (r == 0)
        c->made[c->n++] = (struct cursor_row){state, place};
    return r;
}

static void pass_fault(struct parquet_column *column, uint64_t rows, const char *why)
{
    column->faults += rows;
    if (!column->fault)
        column->fault = strdup(why);
}

static uint64_t cursor_amount(const struct parquet_column *column, size_t len)
{
    return column->shown == SHOWN_NUMBER  ? 0
           : column->shown == SHOWN_ARRAY ? len / column->width / column->tail
           : column->shown == SHOWN_SIZES ? len / 8
                                          : len;
}

/* Make those rows the next unit, of n: those that it lacks are bad. */
static int cursor_make_unit(struct cursor *c, struct parquet_column *column,
                            const struct values *rows, size_t n, uint64_t at,
                            const struct diag *why)
{
    int r = cursor_add_unit(c, at);

    c->n = c->pos = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        enum value_mark mark = i < rows->n ? values_mark(rows, i) : VALUE_BAD;
        const uint8_t *bytes;
        size_t len;

        if (mark == VALUE_BAD) {
            pass_fault(column, 1, why->text);
            r = cursor_add(c, STATE_BAD, 0);
            continue;
        }
        bytes = values_at(rows, i, &len);
        if (len && !column->bytes_kind)
            column->bytes_kind = parquet_kind(bytes, len);
        column->has_null |= mark == VALUE_NULL;
        r = cursor_add(c, mark == VALUE_NULL ? STATE_NULL : STATE_SIZE + cursor_amount(column, len),
                       0);
    }
    c->row += r == 0 ? n : 0;
    return r;
}

/* Make a unit of the first `levels` levels of what is pending. is_last: it has all remaining rows
 * of the group. */
static int cursor_close(struct cursor *c, struct parquet_column *column, size_t levels,
                        bool is_last, struct diag *why)
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
    r = parquet_rows_make(column, data, n, c->walk.is_cut, &made, why);
    if (r == 0)
        r = cursor_make_unit(c, column, &made, n, c->walk.unit_at, why);
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
static int cursor_hop(struct cursor *c, struct parquet_column *column, uint64_t *at, struct diag *d)
{
    struct parquet_walk *w = &c->walk;
    uint64_t left = w->header.packed - *at, len;
    const uint8_t *bytes;
    int r;

    if (left < 4)
        return -EBADMSG;
    r = parquet_walk_bytes(w, *at, 4, &bytes, d);
    if (r < 0)
        return r;
    len = load_le32(bytes);
    if (len > left - 4)
        return -EBADMSG;
    if (len && !column->bytes_kind) {
        size_t head = (size_t)min_u64(len, BYTES_KIND_HEAD);

        r = parquet_walk_bytes(w, *at + 4, head, &bytes, d);
        if (r < 0)
            return r;
        column->bytes_kind = parquet_kind(bytes, head);
    }
    *at += 4 + len;
    return cursor_add(c, STATE_SIZE + len, w->at + *at - len);
}

/* Make the page a unit, without its values. */
static int cursor_page_in_place(struct cursor *c, struct parquet_column *column, struct diag *d)
{
    AUTO_PAGE_DATA struct page_data levels = {0};
    const char *why = "expected a length inside the page, got a larger one";
    size_t values = 0, n = (size_t)min_u64(c->walk.header.n, c->end - c->row);
    uint64_t at;
    struct diag fault = DIAG_INIT;
    int r = cursor_levels(c, &levels, &values, &why, d);

    at = values;
    c->n = c->pos = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (!levels.def || levels.def[i] == c->walk.column.max_def) {
            r = cursor_hop(c, column, &at, d);
            continue;
        }
        column->has_null = true;
        r = cursor_add(c, STATE_NULL, 0);
    }
    if (r == -EBADMSG) {
        diag_set(&fault, r, "page at byte %llu: %s", (unsigned long long)c->walk.page_at, why);
        pass_fault(column, n - c->n, fault.text);
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
static int cursor_group(struct parquet_file *file, struct cursor *c, struct parquet_column *column,
                        struct diag *why)
{
    const struct extent bytes = {.off = c->walk.at};
    AUTO_VALUES struct values rows = {0};
    size_t n = (size_t)(c->end - c->row);
    int r = parquet_read_rows(READ_WAITS, file, column, c->group, &bytes, n, &rows, why);

    return r < 0 ? r : cursor_make_unit(c, column, &rows, n, bytes.off, why);
}

/* Make the states of the next unit. 0, or -errno with the reason in d: it is called again. */
static int cursor_fill(struct parquet_file *file, struct cursor *c, struct parquet_column *column,
                       struct diag *d)
{
    struct diag why = DIAG_INIT;
    int r = 0;

    while (c->pos == c->n && r == 0) {
        size_t levels = 0;
        bool is_group = column->n_leaves > 1;

        r = is_group ? 0 : parquet_walk_unit(&c->walk, true, &c->pending, &levels, &why);
        if (is_group)
            r = cursor_group(file, c, column, &why);
        else if (r == 1 && !levels)
            r = cursor_page_in_place(c, column, &why);
        else if (r >= 0)
            r = cursor_close(c, column, levels, r == 0, &why);
    }
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : 0;
}

/* Find the units of a column that is not in the index by the headers of pages alone. */
static int cursor_find_units(struct cursor *c, struct diag *d)
{
    struct parquet_walk *w = &c->walk;
    uint64_t bytes = 0;
    struct diag why = DIAG_INIT;
    int r = c->n_units ? 0 : cursor_add_unit(c, w->chunk->start);

    while (r == 0 && (w->chunk->unpacked > WHOLE_BYTES || w->chunk->values > PARQUET_UNIT_VALUES)) {
        r = parquet_walk_page(w, &why);
        if (r != 1)
            break;
        r = 0;
        if ((bytes >= PARQUET_UNIT_BYTES ||
             c->row - c->unit[c->n_units - 1].row >= PARQUET_UNIT_VALUES) &&
            c->row < c->end) {
            r = cursor_add_unit(c, w->page_at);
            bytes = 0;
        }
        bytes += w->header.unpacked;
        c->row += w->header.n;
        parquet_walk_skip(w);
    }
    return r == -EBADMSG || r == 0 ? 0 : diag_set(d, r, "%s", diag_text(&why, r));
}

/* ---- groups ---- */

static int pass_begin_group(struct parquet_file *file, struct diag *d)
{
    struct parquet_pass *pass = file->pass;
    const struct parquet_group *group = &file->footer.group[pass->group];
    int r = 0;

    for (unsigned i = 0; i < file->n_columns && r == 0; i++) {
        const struct parquet_column *column = &file->column[i];
        const struct parquet_chunk *chunk =
            parquet_chunk_at(&file->footer, pass->group, column->leaf);
        struct cursor *c = &pass->cursor[i];

        cursor_release(c);
        r = parquet_walk_init(&c->walk, file, pass->group, column->leaf, chunk->start, chunk->end,
                              READ_WAITS);
        c->walk.has_places = column->place != NO_SLOT;
        /* The pass reads all of these bytes, or bytes that lie close together: a round trip for
         * each would take longer than what is between them. */
        if (column->state != NO_SLOT && group->rows &&
            (chunk->end - chunk->start) / group->rows < MISSING_GAP)
            blob_fetch(file->base.blob, chunk->start,
                       min_u64(chunk->end - chunk->start, CHUNK_AHEAD), NULL);
        c->group = pass->group;
        c->row = group->row;
        c->end = group->row + group->rows;
        if (r == 0 && column->state == NO_SLOT && group->rows)
            r = cursor_find_units(c, d);
    }
    pass->row = group->row;
    pass->has_begun = r == 0;
    return r;
}
/* Add the units of a group to those of the file. */
static int pass_end_group(struct parquet_file *file)
{
    struct parquet_pass *pass = file->pass;
    uint64_t *first = &file->first_unit[(size_t)pass->group * file->n_columns];

    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct cursor *c = &pass->cursor[i];

        first[i + 1] = first[i];
        for (size_t u = 0; u < c->n_units; u++) {
            int r = array_capacity(&file->unit, (size_t)first[i + 1], sizeof(*file->unit));

            if (r < 0)
                return r;
            file->unit[first[i + 1]++] = c->unit[u];
        }
    }
    atomic_store(&file->base.prepared.seen,
                 parquet_chunk_at(&file->footer, pass->group, file->footer.n_leaves - 1)->end);
    pass->has_begun = false;
    pass->group++;
    return 0;
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
            r = cursor_fill(file, c, column, d);
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
    struct parquet_pass *pass = file->pass;
    int r = 0;

    for (unsigned n = 0; n < ROWS_AT_ONCE && r == 0 && pass->group < file->footer.n_groups;) {
        const struct parquet_group *group = &file->footer.group[pass->group];

        if (!pass->has_begun)
            r = pass_begin_group(file, d);
        for (; n < ROWS_AT_ONCE && r == 0 && pass->row < group->row + group->rows; n++) {
            r = pass_add_row(file, d);
            pass->row += r == 0;
        }
        if (r == 0 && pass->row == group->row + group->rows)
            r = pass_end_group(file);
    }
    return r < 0 ? r : pass->group == file->footer.n_groups;
}

static int pass_begin(void *impl)
{
    struct parquet_file *file = impl;

    file->pass = calloc(1, sizeof(*file->pass));
    if (!file->pass)
        return -ENOMEM;
    file->pass->cursor = calloc(file->n_columns, sizeof(*file->pass->cursor));
    return file->pass->cursor ? index_builder_columns(file->base.prepared.builder, file->n_slots)
                              : -ENOMEM;
}

/* ---- what is kept with the rows ---- */

static size_t pass_chunks(const struct parquet_file *file)
{
    return file->first_unit ? (size_t)file->footer.n_groups * file->n_columns : 0;
}

static void pass_keep_units(struct parquet_file *file, struct kept *k)
{
    size_t n = (size_t)file->first_unit[pass_chunks(file)];

    if (!k->out) {
        free(file->unit);
        file->unit = k->at && !k->error ? calloc(n + 1, sizeof(*file->unit)) : NULL;
        if (k->at && !file->unit && !k->error)
            k->error = -ENOMEM;
    }
    for (size_t i = 0; i < n && !k->error; i++) {
        kept_number(k, &file->unit[i].at, UINT64_MAX);
        kept_number(k, &file->unit[i].row, UINT64_MAX);
    }
}

static void pass_keep(void *impl, struct kept *k)
{
    struct parquet_file *file = impl;

    for (unsigned i = 0; i < file->n_columns; i++) {
        struct parquet_column *c = &file->column[i];

        kept_flag(k, &c->has_null);
        kept_number(k, &c->bytes_kind, PARQUET_KINDS);
        kept_number(k, &c->elsewhere, c->path_of ? UINT64_MAX : 0);
        kept_number(k, &c->faults, UINT64_MAX);
        kept_text(k, &c->fault);
    }
    for (size_t i = 0; file->first_unit && i <= pass_chunks(file); i++)
        kept_number(k, &file->first_unit[i], k->left / sizeof(*file->unit));
    if (file->first_unit)
        pass_keep_units(file, k);
}

/* Are the units of each column of each group inside their chunk, and do their rows rise? */
static bool pass_units_fit(const struct parquet_file *file)
{
    size_t n = pass_chunks(file);

    for (size_t k = 0; k < n; k++) {
        unsigned g = (unsigned)(k / file->n_columns);
        const struct parquet_group *group = &file->footer.group[g];
        const struct parquet_chunk *chunk =
            parquet_chunk_at(&file->footer, g, file->column[k % file->n_columns].leaf);
        uint64_t row = group->row, at = chunk->start;

        if (file->first_unit[k] > file->first_unit[k + 1] ||
            file->first_unit[k + 1] > file->first_unit[n] ||
            (group->rows && file->first_unit[k] == file->first_unit[k + 1]))
            return false;
        for (size_t i = file->first_unit[k]; i < file->first_unit[k + 1]; i++) {
            const struct parquet_unit *unit = &file->unit[i];
            bool is_first = i == file->first_unit[k];

            if (unit->at < at || unit->at > chunk->end || unit->row >= group->row + group->rows ||
                (is_first ? unit->row != group->row : unit->row <= row))
                return false;
            at = unit->at;
            row = unit->row;
        }
    }
    return !file->first_unit[0];
}

/* Numbers of rows are checked where they are used. */
static int pass_load(void *impl, const struct index *index)
{
    const struct parquet_file *file = impl;

    return index->rows == file->footer.rows && index->shape.columns == file->n_slots &&
                   pass_units_fit(file)
               ? 0
               : -EBADMSG;
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
    if (r == 0)
        r = parquet_columns_make(file, d);
    if (r < 0)
        return r;
    file->first_unit =
        calloc((size_t)file->footer.n_groups * file->n_columns + 1, sizeof(*file->first_unit));
    return file->first_unit ? 0 : -ENOMEM;
}

static void pass_release(void *p)
{
    struct parquet_file *file = p;

    pass_free(file);
    parquet_footer_release(&file->footer);
    json_decref(file->features);
    free(file->column);
    free(file->first_unit);
    text_release(&file->notes);
}

const struct record_file_ops parquet_file_ops = {
    .size = sizeof(struct parquet_file),
    .index = {.version = "parquet 3",
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
