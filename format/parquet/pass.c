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
#define FAULT_MAX    sizeof(((struct diag *)NULL)->text)

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
static int pass_find_units(struct parquet_file *file, struct cursor *c, struct diag *d)
{
    const struct parquet_chunk *chunk = c->walk.chunk;
    uint64_t bytes = 0;
    struct diag why = DIAG_INIT;
    int r = c->n_units ? 0 : parquet_cursor_add_unit(c, chunk->start);

    (void)file;
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
            r = pass_find_units(file, c, d);
    }
    pass->row = group->row;
    pass->has_begun = r == 0;
    return r;
}

/* Add the units of a group to those of the file. */
static int pass_end_group(struct parquet_file *file)
{
    struct parquet_pass *pass = file->pass;
    size_t k = (size_t)pass->group * file->n_columns;

    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct cursor *c = &pass->cursor[i];

        for (size_t u = 0; u < c->n_units; u++) {
            int r = array_capacity(&file->unit, file->n_units, sizeof(*file->unit));

            if (r < 0)
                return r;
            file->unit[file->n_units++] = c->unit[u];
        }
        file->first_unit[k + i + 1] = file->n_units;
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
        pass->number[column->state] = c->state[c->pos];
        if (column->place != NO_SLOT)
            pass->number[column->place] = c->place[c->pos];
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
    if (r < 0 || pass->group < file->footer.n_groups)
        return r;
    r = blob_verify(file->base.blob, d);
    return r < 0 ? r : 1;
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

/* Numbers of 8 bytes: of each column whether it has nulls, its kind, faults, and the length of the
 * text of the first, which follows; units up to each column of each group; the units. */
static void pass_put(struct text *t, uint64_t v)
{
    uint8_t bytes[8];

    store_le64(bytes, v);
    text_add_bytes(t, (const char *)bytes, sizeof(bytes));
}

static int pass_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct parquet_file *file = impl;
    size_t k = (size_t)file->footer.n_groups * file->n_columns;

    (void)index;
    (void)d;
    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];

        pass_put(ret, c->has_null);
        pass_put(ret, c->bytes_are);
        pass_put(ret, c->faults);
        pass_put(ret, c->fault ? strlen(c->fault) : 0);
        text_add(ret, "%s", c->fault ? c->fault : "");
    }
    for (size_t i = 0; i <= k; i++)
        pass_put(ret, file->first_unit[i]);
    for (size_t i = 0; i < file->n_units; i++) {
        pass_put(ret, file->unit[i].at);
        pass_put(ret, file->unit[i].row);
    }
    pass_free(file);
    return 0;
}

/* The kept bytes that are left; a number past their end is 0, and they are bad. */
struct kept_about {
    const uint8_t *at;
    size_t left;
    bool failed;
};

static uint64_t pass_get(struct kept_about *k)
{
    uint64_t v = 0;

    if (k->left < 8) {
        k->failed = true;
        return 0;
    }
    v = load_le64(k->at);
    k->at += 8;
    k->left -= 8;
    return v;
}

/* Are the units of each column of each group inside their chunk, and do their rows rise? */
static bool pass_units_fit(const struct parquet_file *file)
{
    for (size_t k = 0; k < (size_t)file->footer.n_groups * file->n_columns; k++) {
        unsigned g = (unsigned)(k / file->n_columns);
        const struct parquet_group *group = &file->footer.group[g];
        const struct parquet_chunk *chunk =
            parquet_chunk_at(&file->footer, g, file->column[k % file->n_columns].leaf);
        uint64_t row = group->row, at = chunk->start;

        if (file->first_unit[k] > file->first_unit[k + 1] ||
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
    return true;
}

static int pass_load_units(struct parquet_file *file, struct kept_about *about)
{
    size_t k = (size_t)file->footer.n_groups * file->n_columns;

    for (size_t i = 0; i <= k; i++)
        file->first_unit[i] = pass_get(about);
    if (about->failed || file->first_unit[k] != about->left / 16 || about->left % 16)
        return -EBADMSG;
    file->n_units = file->first_unit[k];
    file->unit = calloc(file->n_units + 1, sizeof(*file->unit));
    if (!file->unit)
        return -ENOMEM;
    for (size_t i = 0; i < file->n_units; i++) {
        file->unit[i].at = pass_get(about);
        file->unit[i].row = pass_get(about);
    }
    for (size_t i = 0; i < k; i++)
        if (file->first_unit[i] > file->n_units)
            return -EBADMSG;
    return !file->first_unit[0] && pass_units_fit(file) ? 0 : -EBADMSG;
}

static int pass_load_column(struct parquet_column *c, struct kept_about *about)
{
    uint64_t len;

    c->has_null = pass_get(about) != 0;
    c->bytes_are = (unsigned)pass_get(about);
    c->faults = pass_get(about);
    len = pass_get(about);
    if (about->failed || len > about->left || len > FAULT_MAX)
        return -EBADMSG;
    c->fault = len ? strndup((const char *)about->at, (size_t)len) : NULL;
    about->at += len;
    about->left -= (size_t)len;
    return len && !c->fault ? -ENOMEM : 0;
}

/* Forget what a kept index said, or what is freed. */
static void pass_forget(struct parquet_file *file)
{
    for (unsigned i = 0; i < file->n_columns; i++) {
        struct parquet_column *c = &file->column[i];

        free(c->fault);
        c->fault = NULL;
        c->has_null = false;
        c->bytes_are = UINT_MAX;
        c->faults = 0;
    }
    free(file->unit);
    file->unit = NULL;
    file->n_units = 0;
}

/* A kept index is hostile: numbers of its rows are checked where they are used. */
static int pass_load(void *impl, const struct index *index)
{
    struct parquet_file *file = impl;
    struct kept_about about = {index->about, index->about_len, false};
    int r =
        index->rows == file->footer.rows && index->shape.columns == file->n_slots ? 0 : -EBADMSG;

    for (unsigned i = 0; i < file->n_columns && r == 0; i++)
        r = pass_load_column(&file->column[i], &about);
    if (r == 0)
        r = pass_load_units(file, &about);
    if (r == 0)
        return 0;
    pass_forget(file);
    memset(file->first_unit, 0,
           ((size_t)file->footer.n_groups * file->n_columns + 1) * sizeof(*file->first_unit));
    return r;
}

static int pass_ready(void *impl, struct diag *d)
{
    (void)d;
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
    pass_forget(file);
    parquet_footer_release(&file->footer);
    json_decref(file->features);
    free(file->column);
    free(file->record);
    free(file->first_unit);
    text_release(&file->notes);
}

const struct record_file_ops parquet_file_ops = {
    .size = sizeof(struct parquet_file),
    .index = {.version = "parquet 1",
              .load = pass_load,
              .begin = pass_begin,
              .step = pass_step,
              .about = pass_about,
              .ready = pass_ready},
    .shape = {.learns = true},
    .side_by_side = true,
    .open = pass_open,
    .release = pass_release,
};
