/* The pass that makes the index, and the taking of a kept one. It goes group by group; in a group
 * every column that is in the index has a cursor. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "format/parquet/cursor.h"

#define WHOLE_BYTES  (UINT64_C(1) << 20) /* chunks of fixed size up to this are a unit */
#define ROWS_AT_ONCE 4096                /* of a step */

struct parquet_pass {
    unsigned group;
    uint64_t row; /* of the file */
    bool has_begun;
    struct cursor *cursor; /* [n_columns] */
    uint64_t number[INDEX_LEARNED];
};

static void pass_free(struct parquet_file *file)
{
    for (unsigned i = 0; file->pass && file->pass->cursor && i < file->n_columns; i++)
        parquet_cursor_release(&file->pass->cursor[i]);
    if (file->pass)
        free(file->pass->cursor);
    free(file->pass);
    file->pass = NULL;
}

/* ---- columns that are not in the index ---- */

/* Find units by the headers of pages alone. */
static int pass_find_units(struct cursor *c, struct diag *d)
{
    const struct parquet_chunk *chunk = c->walk.chunk;
    uint64_t bytes = 0;
    struct diag why = DIAG_INIT;
    int r = c->n_units ? 0 : parquet_cursor_add_unit(c, chunk->start);

    while (r == 0 && (chunk->unpacked > WHOLE_BYTES || chunk->values > PARQUET_UNIT_VALUES)) {
        r = parquet_walk_page(&c->walk, &why);
        if (r != 1)
            break;
        r = 0;
        if ((bytes >= PARQUET_UNIT_BYTES ||
             c->row - c->unit[c->n_units - 1].row >= PARQUET_UNIT_VALUES) &&
            c->row < c->end) {
            r = parquet_cursor_add_unit(c, c->walk.at - c->walk.header.len);
            bytes = 0;
        }
        bytes += c->walk.header.unpacked;
        c->row += c->walk.header.n;
        parquet_walk_skip(&c->walk);
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

        parquet_cursor_release(c);
        parquet_walk_init(&c->walk, file, pass->group, column->leaf, chunk->start, chunk->end,
                          READ_WAITS);
        c->group = pass->group;
        c->row = group->row;
        c->end = group->row + group->rows;
        if (column->state == NO_SLOT && group->rows)
            r = pass_find_units(c, d);
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
            r = parquet_cursor_fill(file, c, column, d);
        if (r < 0)
            return r;
        pass->number[column->state] = c->made[c->pos].state;
        if (column->place != NO_SLOT)
            pass->number[column->place] = c->made[c->pos].place;
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
    .index = {.version = "parquet 2",
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
