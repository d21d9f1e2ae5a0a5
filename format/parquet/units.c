/* Units: some pages of a column, decoded together and remembered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "base/search.h"
#include "format/parquet/file.h"

#define WORKERS    8                    /* that decode units, at most */
#define ALONE_MORE (UINT64_C(64) << 10) /* bytes around a row that are unpacked with it */
#define ALONE_PART 4                    /* of the unit, so much is better than all of it */

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

/* Bytes of it unpacked, about. */
static uint64_t unit_unpacked(const struct unit_place *place)
{
    const struct parquet_chunk *chunk = parquet_chunk_at(&place->file->footer, place->group,
                                                         place->file->column[place->column].leaf);

    return (uint64_t)((double)place->bytes.len / (double)(chunk->end - chunk->start) *
                      (double)chunk->unpacked);
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
    int r = data ? 0 : -ENOMEM;

    if (r == 0) {
        data->v = *ret; /* memory that is used again */
        *ret = (struct values){0};
        r = unit_read_pages(rc, file, c, group, bytes, data, &is_cut, why);
    }
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

static struct memo_key unit_key(const struct unit_place *place)
{
    return (struct memo_key){
        {(uintptr_t)place->file, place->column, place->number, (uintptr_t)unit_make}};
}

/* ---- rows of many units ----
 * A batch of a shuffled plan may need a row of each of many units, which the memo cannot hold
 * together. Then each unit is decoded once, and its rows of the batch are remembered instead, as
 * units of one row. Few large rows of a unit are unpacked without the rest of it. */

/* A row of the rows of its unit; rows NULL: it is looked for, not made. */
struct unit_copy {
    const struct values *rows;
    size_t i;
};

static int unit_make_row(void *ctx, void **ret, size_t *ret_size)
{
    const struct unit_copy *copy = ctx;
    AUTO_VALUES struct values one = {0};
    const uint8_t *bytes;
    size_t len;
    int r;

    if (!copy->rows || copy->i >= copy->rows->n || values_mark(copy->rows, copy->i))
        return -ENODATA;
    bytes = values_at(copy->rows, copy->i, &len);
    r = values_append_one(&one, bytes, len);
    return r < 0 ? r : values_pack(&one, "", ret, ret_size);
}

static struct memo_key unit_row_key(const struct record_cell *cell)
{
    return (struct memo_key){
        {(uintptr_t)cell->file, cell->column, cell->row, (uintptr_t)unit_make_row}};
}

static int unit_row_get(struct read_context *rc, const struct record_cell *cell,
                        struct unit_copy *copy, struct memo_thing **ret)
{
    const struct parquet_file *file = cell->file;
    const struct memo_key key = unit_row_key(cell);
    const struct memo_maker maker = {unit_make_row, copy, rc};

    return memo_get(file->memo, &key, &maker, ret);
}

int parquet_unit_get(struct read_context *rc, const struct parquet_file *file, unsigned column,
                     uint64_t row, const struct values **ret, uint64_t *ret_first,
                     struct memo_thing **ret_thing, struct diag *d)
{
    const struct record_cell cell = {file, row, column};
    struct unit_place place = {.row = row};
    const struct memo_maker maker = {unit_make, &place, rc};
    bool is_number = file->column[column].shown == SHOWN_NUMBER; /* of which none is made alone */
    int r = is_number ? -ENODATA : unit_row_get(rc, &cell, &(struct unit_copy){0}, ret_thing);

    if (r < 0) {
        struct memo_key key;

        unit_find(file, column, row, &place);
        place.rc = rc;
        place.d = d;
        key = unit_key(&place);
        r = memo_get(file->memo, &key, &maker, ret_thing);
    }
    if (r < 0)
        return r;
    *ret = memo_bytes(*ret_thing);
    *ret_first = place.row;
    return 0;
}

bool parquet_is_made(const struct record_cell *cell)
{
    const struct parquet_file *file = cell->file;
    const struct parquet_column *c = &file->column[cell->column];
    const struct memo_key row = unit_row_key(cell);
    struct unit_place place;
    struct memo_key unit;

    unit_find(file, cell->column, cell->row, &place);
    unit = unit_key(&place);
    return parquet_state(file, c, cell->row) < STATE_SIZE ||
           parquet_place(file, c, cell->row) > 0 || c->n_leaves > 1 || memo_has(file->memo, &row) ||
           memo_has(file->memo, &unit);
}

struct unit_cell {
    struct record_cell cell;
    struct unit_place place;
    bool is_needed;
};

struct together {
    struct read_context *rc, peek; /* of what is needed now; of what comes after */
    struct unit_cell cell[RECORD_MAKES];
    unsigned first[RECORD_MAKES + 1]; /* [n + 1] of the cells of each unit */
    unsigned n;
    bool remembers; /* the units, instead of rows */
    bool is_large;  /* the memo does not hold all units of the column */
    _Atomic unsigned next;
    _Atomic bool is_missing;
};

static int unit_cells_compare(const void *a, const void *b)
{
    const struct unit_place *x = &((const struct unit_cell *)a)->place;
    const struct unit_place *y = &((const struct unit_cell *)b)->place;

    return x->file != y->file ? (x->file < y->file ? -1 : 1)
                              : (x->number > y->number) - (x->number < y->number);
}

/* Append a row of a unit, whose pages are walked, without other rows. -ENODATA: they are needed. */
static int unit_read_row(struct parquet_walk *walk, const struct unit_place *p, uint64_t wanted,
                         struct values *ret)
{
    const struct parquet_column *c = &p->file->column[p->column];
    uint64_t row = p->row, at = 0, state = STATE_NULL;
    struct diag why = DIAG_INIT;
    const uint8_t *bytes;
    int r = parquet_walk_page(walk, &why);

    while (r == 1 && wanted - row >= walk->header.n) {
        row += walk->header.n;
        parquet_walk_skip(walk);
        r = parquet_walk_page(walk, &why);
    }
    if (r != 1)
        return r == 0 || r == -EBADMSG ? -ENODATA : r;
    for (; row <= wanted && state != STATE_BAD; row++) {
        at += state == STATE_NULL ? 0 : 4 + state - STATE_SIZE;
        state = parquet_state(p->file, c, row);
    }
    if (state < STATE_SIZE)
        return -ENODATA;
    if (at > walk->header.unpacked) /* a damaged index: also before a sum exceeds 2^64 */
        return -ENODATA;
    r = parquet_walk_value(walk, at, state - STATE_SIZE, &bytes);
    return r < 0 ? r : values_append_one(ret, bytes, (size_t)(state - STATE_SIZE));
}

/* Read that row of a unit alone, into rows. -ENODATA: all of its page is needed. */
static int unit_read_alone(struct read_context *rc, const struct unit_place *p, uint64_t wanted,
                           struct values *rows)
{
    const struct blob *blob = p->file->base.blob;
    AUTO_WALK struct parquet_walk walk;
    const uint8_t *all;
    int r = parquet_walk_init(&walk, p->file, p->group, p->file->column[p->column].leaf,
                              p->bytes.off, p->bytes.off + p->bytes.len, rc);

    values_clear(rows);
    if (r == 0)
        r = unit_read_row(&walk, p, wanted, rows);
    if (r == -EAGAIN) { /* the pieces are few of what is missing */
        walk.at = p->bytes.off;
        parquet_walk_bytes(&walk, 0, min_u64(p->bytes.len, PARQUET_AT_ONCE), &all, NULL);
    }
    return r == 0 ? blob_verify(blob, NULL) : r;
}

/* Are the cells [first, end), of one unit, rather made alone? */
static bool unit_is_sparse(const struct together *t, unsigned first, unsigned end)
{
    const struct unit_place *p = &t->cell[first].place;
    const struct parquet_column *c = &p->file->column[p->column];
    bool waits = p->file->base.blob->ops->fetch && !(t->rc && t->rc->collects); /* for each piece */
    uint64_t bytes = 0, low = UINT64_MAX, high = 0;

    for (unsigned i = first; i < end; i++) {
        low = min_u64(low, t->cell[i].cell.row);
        high = max_u64(high, t->cell[i].cell.row);
        bytes += parquet_state(p->file, c, t->cell[i].cell.row) + ALONE_MORE;
    }
    if (end - first > 1 && high - low < end - first) /* in stored order: the next are read soon */
        return false;
    return t->is_large && !waits && c->shown == SHOWN_BYTES && c->convert == CONVERT_COPY &&
           parquet_chunk_at(&p->file->footer, p->group, c->leaf)->codec == CODEC_SNAPPY &&
           bytes * ALONE_PART <= unit_unpacked(p);
}

/* Remember number i of the rows, which were read with result r; NULL: they are remembered. What
 * fails is read alone later. */
static void unit_keep_row(struct together *t, struct read_context *rc, int r,
                          const struct record_cell *cell, const struct values *rows, size_t i)
{
    struct unit_copy copy = {rows, i};
    AUTO_MEMO struct memo_thing *thing = NULL;

    if (r == -EAGAIN && rc != &t->peek)
        atomic_store(&t->is_missing, true);
    if (r == 0 && rows)
        unit_row_get(rc, cell, &copy, &thing);
}

/* Make cells [first, end), which are of one unit. rows: memory that is used again. */
static void unit_make_cells(struct together *t, unsigned first, unsigned end, struct values *rows)
{
    const struct unit_place *p = &t->cell[first].place;
    struct read_context *rc = &t->peek;
    AUTO_MEMO struct memo_thing *unit = NULL;
    const struct values *got;
    struct diag why = DIAG_INIT;
    uint64_t row;
    int r;

    for (unsigned i = first; i < end; i++)
        rc = t->cell[i].is_needed ? t->rc : rc;
    if (rc == &t->peek && atomic_load(&t->is_missing))
        return;
    for (; first < end && unit_is_sparse(t, first, end); first++) {
        r = unit_read_alone(rc, p, t->cell[first].cell.row, rows);
        if (r == -ENODATA)
            break;
        unit_keep_row(t, rc, r, &t->cell[first].cell, rows, 0);
    }
    if (first == end)
        return;
    values_clear(rows);
    r = t->remembers ? parquet_unit_get(rc, p->file, p->column, t->cell[first].cell.row, &got, &row,
                                        &unit, NULL)
                     : parquet_read_rows(rc, p->file, &p->file->column[p->column], p->group,
                                         &p->bytes, (size_t)p->rows, rows, &why);
    for (unsigned i = first; i < end; i++)
        unit_keep_row(t, rc, r, &t->cell[i].cell, t->remembers ? NULL : rows,
                      (size_t)(t->cell[i].cell.row - p->row));
}

static void unit_work(void *ctx, unsigned worker)
{
    struct together *t = ctx;
    AUTO_VALUES struct values rows = {0};
    unsigned i;

    (void)worker;
    while ((i = atomic_fetch_add(&t->next, 1)) < t->n)
        unit_make_cells(t, t->first[i], t->first[i + 1], &rows);
}

int parquet_rows_together(struct read_context *rc, const struct record_cell *cell, unsigned n,
                          unsigned n_needed)
{
    struct together t = {.rc = rc};
    const struct parquet_column *column;
    const struct parquet_file *file;
    uint64_t bytes = 0, all = 0;
    unsigned cells = 0;

    for (unsigned i = 0; i < n; i++) {
        struct unit_cell *to = &t.cell[cells];

        if (parquet_is_made(&cell[i]))
            continue;
        *to = (struct unit_cell){.cell = cell[i], .is_needed = i < n_needed};
        unit_find(cell[i].file, cell[i].column, cell[i].row, &to->place);
        cells++;
    }
    qsort(t.cell, cells, sizeof(*t.cell), unit_cells_compare);
    for (unsigned i = 0; i < cells; i++)
        if (!i || unit_cells_compare(&t.cell[i - 1], &t.cell[i])) {
            bytes += unit_unpacked(&t.cell[i].place);
            t.first[t.n++] = i;
        }
    t.first[t.n] = cells;
    if (!t.n)
        return 0;
    file = t.cell[0].place.file;
    column = &file->column[t.cell[0].place.column];
    t.remembers = bytes <= memo_held(file->memo).limit / 2;
    if (!t.remembers && column->shown == SHOWN_NUMBER) /* of which none is made alone */
        return 0;
    for (unsigned g = 0; g < file->footer.n_groups; g++)
        all += parquet_chunk_at(&file->footer, g, column->leaf)->unpacked;
    t.is_large = !t.remembers || all > memo_held(file->memo).limit / 2;
    read_context_peek(&t.peek, rc);
    pool_run(file->pool, (unsigned)min_u64(t.n, WORKERS), unit_work, &t);
    read_context_release(&t.peek);
    return t.is_missing ? -EAGAIN : 0;
}
