/* Units: some pages of a column, decoded together and remembered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "base/search.h"
#include "format/parquet/file.h"

unsigned parquet_group_of(const struct parquet_file *file, uint64_t row)
{
    unsigned i = (unsigned)search_last_up_to(
        &file->footer.group[0].row, sizeof(*file->footer.group), file->footer.n_groups, row);

    return i;
}

/* A unit, as it is read. */
struct unit_place {
    const struct parquet_file *file;
    unsigned column, group;
    uint64_t row, rows; /* of the file */
    uint64_t at, end;   /* bytes, of a column of one leaf */
    size_t number;
    struct read_context *rc;
    struct diag *d;
};

static void unit_find(const struct parquet_file *file, unsigned column, uint64_t row,
                      struct unit_place *ret)
{
    unsigned group = parquet_group_of(file, row);
    size_t k = (size_t)group * file->n_columns + column, first = file->first_unit[k];
    size_t n = file->first_unit[k + 1] - first;
    size_t i = search_last_up_to(&file->unit[first].row, sizeof(*file->unit), n, row);
    const struct parquet_unit *unit = &file->unit[first + i];
    const struct parquet_group *g = &file->footer.group[group];
    const struct parquet_chunk *chunk =
        parquet_chunk_at(&file->footer, group, file->column[column].leaf);

    *ret = (struct unit_place){
        .file = file,
        .column = column,
        .group = group,
        .row = unit->row,
        .rows = (i + 1 < n ? unit[1].row : g->row + g->rows) - unit->row,
        .at = unit->at,
        .end = i + 1 < n ? unit[1].at : chunk->end,
        .number = first + i,
    };
}

void parquet_unit_extent(const struct parquet_file *file, unsigned column, uint64_t row,
                         struct extent *ret)
{
    struct unit_place place;

    unit_find(file, column, row, &place);
    *ret = (struct extent){file->base.blob, place.at, place.end - place.at};
}

/* Read the pages of each leaf. */
static int unit_read_pages(const struct unit_place *place, struct page_data *data, bool *ret_cut,
                           struct diag *why)
{
    const struct parquet_column *c = &place->file->column[place->column];
    uint64_t held = 0;
    int r = 0, all = 0;

    *ret_cut = false;
    for (unsigned i = 0; i < c->n_leaves; i++) {
        const struct parquet_chunk *chunk =
            parquet_chunk_at(&place->file->footer, place->group, c->leaf + i);
        bool is_whole = c->n_leaves > 1, cut;
        AUTO_WALK struct parquet_walk walk;

        parquet_walk_init(&walk, place->file, place->group, c->leaf + i,
                          is_whole ? chunk->start : place->at, is_whole ? chunk->end : place->end,
                          place->rc);
        r = parquet_walk_all(&walk, &data[i], &cut, why);
        *ret_cut |= cut || (is_whole && !parquet_group_fits(&data[i], &held, why));
        if (!missing_go_on(place->rc, r, &all))
            break;
    }
    return all;
}

/* Flat pages have a value for each row; if they have others, none is known to be the row's. */
static void unit_check_count(const struct unit_place *place, struct page_data *data, bool is_cut,
                             struct diag *why)
{
    const struct parquet_column *c = &place->file->column[place->column];
    size_t n = parquet_count_rows(data);

    if (n == place->rows || is_cut)
        return;
    diag_set(why, -EBADMSG, "pages at byte %llu: expected %llu rows, got %zu",
             (unsigned long long)place->at, (unsigned long long)place->rows, n);
    for (unsigned i = 0; i < c->n_leaves; i++)
        page_data_release(&data[i]);
}

static uint8_t unit_state(const struct parquet_rows *rows, size_t i)
{
    return values_is_bad(&rows->v, i)     ? STATE_BAD
           : parquet_row_is_null(rows, i) ? STATE_NULL
                                          : STATE_SIZE;
}

/* Rows as one piece of memory. */
static int unit_pack(const struct parquet_rows *rows, const char *fault, void **ret,
                     size_t *ret_size)
{
    size_t ends = rows->v.width ? 0 : rows->n * sizeof(*rows->v.end), text = strlen(fault) + 1;
    struct parquet_slab *slab;
    uint8_t *at;

    *ret_size = sizeof(*slab) + ends + rows->n + rows->v.len + text;
    slab = malloc(*ret_size);
    if (!slab)
        return -ENOMEM;
    at = (uint8_t *)(slab + 1);
    *slab = (struct parquet_slab){.n = rows->n, .width = rows->v.width};
    slab->end = (const uint32_t *)(void *)at;
    if (ends)
        memcpy(at, rows->v.end, ends);
    at += ends;
    slab->bytes = at;
    if (rows->v.len)
        memcpy(at, rows->v.bytes, rows->v.len);
    at += rows->v.len;
    slab->state = at;
    slab->is_good = !rows->v.bad_n && !rows->null;
    if (slab->is_good)
        memset(at, STATE_SIZE, rows->n);
    for (size_t i = 0; i < rows->n && !slab->is_good; i++)
        at[i] = unit_state(rows, i);
    at += rows->n;
    slab->fault = (const char *)at;
    memcpy(at, fault, text);
    *ret = slab;
    return 0;
}

static void unit_free_pages(struct page_data **data)
{
    free(*data);
}

static int unit_make(void *ctx, void **ret, size_t *ret_size)
{
    struct unit_place *place = ctx;
    const struct parquet_column *c = &place->file->column[place->column];
    AUTO(unit_free_pages) struct page_data *data = calloc(c->n_leaves + 1u, sizeof(*data));
    AUTO_ROWS struct parquet_rows rows = {0};
    struct diag why = DIAG_INIT;
    bool is_cut = false;
    int r = data ? unit_read_pages(place, data, &is_cut, &why) : -ENOMEM;

    if (r == 0)
        r = blob_verify(place->file->base.blob, &why);
    if (r == 0) {
        unit_check_count(place, data, is_cut, &why);
        r = parquet_rows_make(c, data, (size_t)min_u64(place->rows, parquet_count_rows(data)),
                              is_cut, &rows);
    }
    for (unsigned i = 0; i < c->n_leaves && data; i++)
        page_data_release(&data[i]);
    if (r < 0)
        return why.set ? diag_set(place->d, r, "%s", why.text) : r;
    return unit_pack(&rows, why.set || !rows.why ? why.text : rows.why, ret, ret_size);
}

int parquet_unit_get(struct read_context *rc, const struct parquet_file *file, unsigned column,
                     uint64_t row, const struct parquet_slab **ret, uint64_t *ret_first,
                     struct memo_thing **ret_thing, struct diag *d)
{
    struct unit_place place;
    struct memo_key key = {{(uintptr_t)file, column, 0, (uintptr_t)unit_make}};
    const struct memo_maker maker = {unit_make, &place, rc};
    int r;

    unit_find(file, column, row, &place);
    place.rc = rc;
    place.d = d;
    key.word[2] = place.number;
    r = memo_get(file->memo, &key, &maker, ret_thing);
    if (r < 0)
        return r;
    *ret = memo_bytes(*ret_thing);
    *ret_first = place.row;
    return 0;
}
