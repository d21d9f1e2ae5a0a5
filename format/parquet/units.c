/* Units: some pages of a column, decoded together and remembered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "base/search.h"
#include "format/parquet/file.h"

/* A unit, as it is read. */
struct unit_place {
    const struct parquet_file *file;
    unsigned column, group;
    uint64_t row, rows;  /* of the file */
    struct extent bytes; /* of a column of one leaf */
    size_t number;
    struct read_context *rc;
    struct diag *d;
};

static void unit_find(const struct parquet_file *file, unsigned column, uint64_t row,
                      struct unit_place *ret)
{
    unsigned group = (unsigned)search_last_up_to(
        &file->footer.group[0].row, sizeof(*file->footer.group), file->footer.n_groups, row);
    size_t k = (size_t)group * file->n_columns + column, first = (size_t)file->first_unit[k];
    size_t n = (size_t)file->first_unit[k + 1] - first;
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
        .bytes = {file->base.blob, unit->at, (i + 1 < n ? unit[1].at : chunk->end) - unit->at},
        .number = first + i,
    };
}

void parquet_unit_extent(const struct parquet_file *file, unsigned column, uint64_t row,
                         struct extent *ret)
{
    struct unit_place place;

    unit_find(file, column, row, &place);
    *ret = place.bytes;
}

/* Read the pages of each leaf. */
static int unit_read_pages(struct read_context *rc, const struct parquet_file *file,
                           const struct parquet_column *c, unsigned group,
                           const struct extent *bytes, struct page_data *data, bool *ret_cut,
                           struct diag *why)
{
    bool is_whole = c->n_leaves > 1;
    uint64_t held = 0;
    int all = 0;

    *ret_cut = false;
    for (unsigned i = 0; i < c->n_leaves; i++) {
        const struct parquet_chunk *chunk = parquet_chunk_at(&file->footer, group, c->leaf + i);
        AUTO_WALK struct parquet_walk walk;
        size_t n;
        int r =
            parquet_walk_init(&walk, file, group, c->leaf + i, is_whole ? chunk->start : bytes->off,
                              is_whole ? chunk->end : bytes->off + bytes->len, rc);

        if (r == 0)
            r = parquet_walk_unit(&walk, false, &data[i], &n, why);
        *ret_cut |= walk.is_cut;
        if (!missing_go_on(rc, r, &all))
            break;
        held += data[i].v.len + data[i].n * 8; /* with levels, ends and marks */
        if (!is_whole || held <= 4 * (uint64_t)VALUES_BYTES_MAX)
            continue;
        page_data_release(&data[i]);
        *ret_cut = true;
        diag_set(why, -EBADMSG,
                 "expected columns of a group that have 1 GiB in a row group together "
                 "at most, got more");
    }
    return all;
}

int parquet_read_rows(struct read_context *rc, const struct parquet_file *file,
                      const struct parquet_column *c, unsigned group, const struct extent *bytes,
                      size_t n, struct values *ret, struct diag *why)
{
    AUTO_FREE struct page_data *data = calloc(c->n_leaves, sizeof(*data));
    bool is_cut = false;
    size_t have;
    int r = data ? unit_read_pages(rc, file, c, group, bytes, data, &is_cut, why) : -ENOMEM;

    if (r == 0)
        r = blob_verify(file->base.blob, why);
    have = r == 0 ? parquet_count_rows(data) : 0;
    /* Flat pages have a value for each row; if they have others, none is known to be the row's. */
    if (r == 0 && have != n && !is_cut)
        diag_set(why, -EBADMSG, "pages at byte %llu: expected %zu rows, got %zu",
                 (unsigned long long)bytes->off, n, have);
    else if (r == 0)
        r = parquet_rows_make(c, data, n, is_cut, ret, why);
    for (unsigned i = 0; i < c->n_leaves && data; i++)
        page_data_release(&data[i]);
    return r;
}

static int unit_make(void *ctx, void **ret, size_t *ret_size)
{
    const struct unit_place *place = ctx;
    AUTO_VALUES struct values rows = {0};
    struct diag why = DIAG_INIT;
    int r = parquet_read_rows(place->rc, place->file, &place->file->column[place->column],
                              place->group, &place->bytes, (size_t)place->rows, &rows, &why);

    if (r < 0)
        return why.set ? diag_set(place->d, r, "%s", why.text) : r;
    return values_pack(&rows, why.text, ret, ret_size);
}

int parquet_unit_get(struct read_context *rc, const struct parquet_file *file, unsigned column,
                     uint64_t row, const struct values **ret, uint64_t *ret_first,
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
