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

void parquet_unit_find(const struct record_cell *cell, struct parquet_span *ret)
{
    const struct parquet_file *file = cell->file;
    const struct parquet_column *c = &file->column[cell->column];
    const struct parquet_footer *footer = &file->footer;
    unsigned group = (unsigned)search_last_up_to(&footer->group[0].row, sizeof(*footer->group),
                                                 footer->n_groups, cell->row);
    size_t i = search_last_up_to(&c->unit[0].row, sizeof(*c->unit), c->n_units, cell->row);
    const struct parquet_unit *unit = &c->unit[i];
    uint64_t end = footer->group[group].row + footer->group[group].rows;
    bool is_last = i + 1 == c->n_units || unit[1].row == end;
    uint64_t bytes_end = is_last ? parquet_chunk_at(footer, group, c->leaf)->end : unit[1].at;

    *ret = (struct parquet_span){.file = file,
                                 .column = c,
                                 .group = group,
                                 .row = unit->row,
                                 .rows = (is_last ? end : unit[1].row) - unit->row,
                                 .bytes = {file->base.blob, unit->at, bytes_end - unit->at}};
}

/* Bytes of it unpacked, about. */
static uint64_t unit_unpacked(const struct parquet_span *place)
{
    const struct parquet_chunk *chunk =
        parquet_chunk_at(&place->file->footer, place->group, place->column->leaf);

    return (uint64_t)((double)place->bytes.len / (double)(chunk->end - chunk->start) *
                      (double)chunk->unpacked);
}

/* Read the pages of each leaf. */
static int unit_read_pages(struct read_context *rc, const struct parquet_span *place,
                           struct page_data *data, bool *ret_cut, struct diag *why)
{
    const struct parquet_column *c = place->column;
    bool is_whole = c->n_leaves > 1;
    uint64_t held = 0;
    int all = 0;

    *ret_cut = false;
    for (unsigned i = 0; i < c->n_leaves; i++) {
        const struct parquet_chunk *chunk =
            parquet_chunk_at(&place->file->footer, place->group, c->leaf + i);
        uint64_t at = is_whole ? chunk->start : place->bytes.off;
        uint64_t end = is_whole ? chunk->end : at + place->bytes.len;
        AUTO_WALK struct parquet_walk walk;
        size_t n;
        int r = parquet_walk_init(&walk, place->file, place->group, c->leaf + i, at, end, rc);

        if (r == 0)
            r = parquet_walk_unit(&walk, false, &data[i], &n, why);
        *ret_cut |= walk.is_cut;
        if (!missing_go_on(rc, r, &all))
            break;
        /* With levels, places and marks: */
        held += data[i].v.used + data[i].n * (data[i].v.width ? 4 : 14);
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

int parquet_read_rows(struct read_context *rc, const struct parquet_span *place, struct values *ret,
                      struct diag *why)
{
    AUTO_FREE struct page_data *data = calloc(place->column->n_leaves, sizeof(*data));
    size_t have, n = (size_t)place->rows;
    bool is_cut = false;
    int r = data ? 0 : -ENOMEM;

    if (r == 0) {
        data->v = *ret; /* memory that is used again */
        *ret = (struct values){0};
        r = unit_read_pages(rc, place, data, &is_cut, why);
    }
    if (r == 0)
        r = blob_verify(place->file->base.blob, why);
    have = r == 0 ? parquet_count_rows(data) : 0;
    /* Flat pages have a value for each row; if they have others, none is known to be the row's. */
    if (r == 0 && have != n && !is_cut)
        diag_set(why, -EBADMSG, "pages at byte %llu: expected %zu rows, got %zu",
                 (unsigned long long)place->bytes.off, n, have);
    else if (r == 0)
        r = parquet_rows_make(place->column, data, n, is_cut, ret, why);
    for (unsigned i = 0; i < place->column->n_leaves && data; i++)
        page_data_release(&data[i]);
    return r;
}

/* What the memo makes of a cell. */
struct unit_making {
    struct read_context *rc;
    const struct parquet_span *place;
    struct diag *d;
};

static int unit_make(void *ctx, void **ret, size_t *ret_size)
{
    const struct unit_making *m = ctx;
    AUTO_VALUES struct values rows = {0};
    struct diag why = DIAG_INIT;
    int r = parquet_read_rows(m->rc, m->place, &rows, &why);

    if (r < 0)
        return why.set ? diag_set(m->d, r, "%s", why.text) : r;
    return values_pack(&rows, why.text, ret, ret_size);
}

/* The key of a unit, by its first row; or of that row alone, as another function makes it. */
static struct memo_key unit_key(const struct parquet_column *c, uint64_t row,
                                int (*make)(void *ctx, void **ret, size_t *ret_size))
{
    return (struct memo_key){{(uintptr_t)c, row, (uintptr_t)make}};
}

/* ---- rows of many units ----
 * A batch of a shuffled plan may need a row of each of many units, which the memo cannot hold
 * together. Then each unit is decoded once, and its rows of the batch are remembered instead, as
 * units of one row. Few large rows of a unit are unpacked without the rest of it. */

/* The bytes of a row; NULL: it is looked for, not made. */
struct unit_copy {
    const uint8_t *bytes;
    size_t len;
};

static int unit_make_row(void *ctx, void **ret, size_t *ret_size)
{
    const struct unit_copy *copy = ctx;
    struct {
        struct values v;
        struct values_place place;
        uint8_t text, bytes[];
    } *made = copy->bytes ? malloc(sizeof(*made) + copy->len) : NULL;

    if (!made)
        return copy->bytes ? -ENOMEM : -ENODATA;
    made->v = (struct values){.n = 1,
                              .len = copy->len,
                              .bytes = memcpy(made->bytes, copy->bytes, copy->len),
                              .used = copy->len,
                              .place = &made->place,
                              .mark = &made->text};
    made->place = (struct values_place){0, (uint32_t)copy->len};
    made->text = 0;
    *ret = made;
    *ret_size = sizeof(*made) + copy->len;
    return 0;
}

static int unit_row_get(struct read_context *rc, const struct parquet_span *place, uint64_t row,
                        struct unit_copy *copy, struct memo_thing **ret)
{
    const struct memo_key key = unit_key(place->column, row, unit_make_row);
    const struct memo_maker maker = {unit_make_row, copy, rc};

    return memo_get(place->file->memo, &key, &maker, ret);
}

int parquet_unit_get(struct read_context *rc, const struct record_cell *cell,
                     const struct values **ret, uint64_t *ret_first, struct memo_thing **ret_thing,
                     struct diag *d)
{
    struct parquet_span place;
    struct unit_making making = {rc, &place, d};
    const struct memo_maker maker = {unit_make, &making, rc};
    struct memo_key key;
    int r = -ENODATA;

    parquet_unit_find(cell, &place);
    key = unit_key(place.column, place.row, unit_make);
    *ret_first = cell->row;
    if (place.column->shown != SHOWN_NUMBER) /* of which none is made alone */
        r = unit_row_get(rc, &place, cell->row, &(struct unit_copy){0}, ret_thing);
    if (r < 0) {
        *ret_first = place.row;
        r = memo_get(place.file->memo, &key, &maker, ret_thing);
    }
    if (r == 0)
        *ret = memo_bytes(*ret_thing);
    return r;
}

bool parquet_is_made(const struct record_cell *cell)
{
    struct parquet_span place;
    const struct parquet_file *file = cell->file;
    const struct parquet_column *c = &file->column[cell->column];
    const struct memo_key row = unit_key(c, cell->row, unit_make_row);
    struct memo_key unit;

    parquet_unit_find(cell, &place);
    unit = unit_key(c, place.row, unit_make);
    return parquet_state(file, c, cell->row) < STATE_SIZE ||
           parquet_place(file, c, cell->row) > 0 || c->n_leaves > 1 || memo_has(file->memo, &row) ||
           memo_has(file->memo, &unit);
}

struct unit_cell {
    struct parquet_span place;
    uint64_t row;
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
    const struct parquet_span *x = &((const struct unit_cell *)a)->place;
    const struct parquet_span *y = &((const struct unit_cell *)b)->place;

    return x->column != y->column ? (x->column < y->column ? -1 : 1)
                                  : (x->row > y->row) - (x->row < y->row);
}

/* Find a row of a unit, whose pages are walked, without other rows. -ENODATA: they are needed. */
static int unit_read_row(struct parquet_walk *walk, const struct unit_cell *cell,
                         struct unit_copy *ret)
{
    const struct parquet_span *p = &cell->place;
    uint64_t row = p->row, at = 0, state = STATE_NULL;
    struct diag why = DIAG_INIT;
    int r = parquet_walk_page(walk, &why);

    while (r == 1 && cell->row - row >= walk->header.n) {
        row += walk->header.n;
        parquet_walk_skip(walk);
        r = parquet_walk_page(walk, &why);
    }
    if (r != 1)
        return r == 0 || r == -EBADMSG ? -ENODATA : r;
    for (; row <= cell->row && state != STATE_BAD; row++) {
        at += state == STATE_NULL ? 0 : 4 + state - STATE_SIZE;
        state = parquet_state(p->file, p->column, row);
    }
    /* A damaged index: also before a sum exceeds 2^64. */
    if (state < STATE_SIZE || at > walk->header.unpacked)
        return -ENODATA;
    ret->len = (size_t)(state - STATE_SIZE);
    return parquet_walk_value(walk, at, ret->len, &ret->bytes);
}

/* Remember a row, which was read with result r, without bytes if it is remembered. What fails is
 * read alone later. */
static void unit_keep_row(struct together *t, struct read_context *rc, int r,
                          const struct unit_cell *cell, struct unit_copy *copy)
{
    AUTO_MEMO struct memo_thing *thing = NULL;

    if (r == -EAGAIN && rc != &t->peek)
        atomic_store(&t->is_missing, true);
    if (r == 0 && copy->bytes)
        unit_row_get(rc, &cell->place, cell->row, copy, &thing);
}

/* Make a cell alone. -ENODATA: all of its page is needed. */
static int unit_make_alone(struct together *t, struct read_context *rc,
                           const struct unit_cell *cell)
{
    const struct parquet_span *p = &cell->place;
    struct unit_copy copy = {0};
    AUTO_WALK struct parquet_walk walk;
    const uint8_t *all;
    int r = parquet_walk_init(&walk, p->file, p->group, p->column->leaf, p->bytes.off,
                              p->bytes.off + p->bytes.len, rc);

    if (r == 0)
        r = unit_read_row(&walk, cell, &copy);
    if (r == -EAGAIN) { /* the pieces are few of what is missing */
        walk.at = p->bytes.off;
        parquet_walk_bytes(&walk, 0, min_u64(p->bytes.len, PARQUET_AT_ONCE), &all, NULL);
    }
    if (r == 0)
        r = blob_verify(p->file->base.blob, NULL);
    if (r != -ENODATA)
        unit_keep_row(t, rc, r, cell, &copy);
    return r;
}

/* Are the cells [first, end), of one unit, rather made alone? */
static bool unit_is_sparse(const struct together *t, unsigned first, unsigned end)
{
    const struct parquet_span *p = &t->cell[first].place;
    const struct parquet_column *c = p->column;
    bool waits = p->file->base.blob->ops->fetch && !(t->rc && t->rc->collects); /* for each piece */
    uint64_t bytes = 0, low = UINT64_MAX, high = 0;

    for (unsigned i = first; i < end; i++) {
        low = min_u64(low, t->cell[i].row);
        high = max_u64(high, t->cell[i].row);
        bytes += parquet_state(p->file, c, t->cell[i].row) + ALONE_MORE;
    }
    if (end - first > 1 && high - low < end - first) /* in stored order: the next are read soon */
        return false;
    return t->is_large && !waits && c->shown == SHOWN_BYTES && c->convert == CONVERT_COPY &&
           parquet_chunk_at(&p->file->footer, p->group, c->leaf)->codec == CODEC_SNAPPY &&
           bytes * ALONE_PART <= unit_unpacked(p);
}

/* Make cells [first, end), which are of one unit. rows: memory that is used again. */
static void unit_make_cells(struct together *t, unsigned first, unsigned end, struct values *rows)
{
    const struct parquet_span *p = &t->cell[first].place;
    const struct memo_key key = unit_key(p->column, p->row, unit_make);
    struct read_context *rc = &t->peek;
    AUTO_MEMO struct memo_thing *unit = NULL;
    struct diag why = DIAG_INIT;
    int r;

    for (unsigned i = first; i < end; i++)
        rc = t->cell[i].is_needed ? t->rc : rc;
    if (rc == &t->peek && atomic_load(&t->is_missing))
        return;
    while (first < end && unit_is_sparse(t, first, end) &&
           unit_make_alone(t, rc, &t->cell[first]) != -ENODATA)
        first++;
    if (first == end)
        return;
    values_clear(rows);
    r = t->remembers
            ? memo_get(p->file->memo, &key,
                       &(struct memo_maker){unit_make, &(struct unit_making){rc, p, NULL}, rc},
                       &unit)
            : parquet_read_rows(rc, p, rows, &why);
    for (; first < end; first++) {
        size_t i = (size_t)(t->cell[first].row - p->row);
        struct unit_copy copy = {0};

        if (r == 0 && !t->remembers && i < rows->n && !values_mark(rows, i))
            copy.bytes = values_at(rows, i, &copy.len);
        unit_keep_row(t, rc, r, &t->cell[first], &copy);
    }
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
    uint64_t bytes = 0, all = 0, held;
    const struct parquet_span *p = &t.cell[0].place;
    unsigned cells = 0;

    for (unsigned i = 0; i < n; i++) {
        struct unit_cell *to = &t.cell[cells];

        if (parquet_is_made(&cell[i]))
            continue;
        *to = (struct unit_cell){.row = cell[i].row, .is_needed = i < n_needed};
        parquet_unit_find(&cell[i], &to->place);
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
    held = memo_held(p->file->memo).limit / 2;
    t.remembers = bytes <= held;
    if (!t.remembers && p->column->shown == SHOWN_NUMBER) /* of which none is made alone */
        return 0;
    for (unsigned g = 0; g < p->file->footer.n_groups; g++)
        all += parquet_chunk_at(&p->file->footer, g, p->column->leaf)->unpacked;
    t.is_large = !t.remembers || all > held;
    read_context_peek(&t.peek, rc);
    pool_run(p->file->pool, (unsigned)min_u64(t.n, WORKERS), unit_work, &t);
    read_context_release(&t.peek);
    return t.is_missing ? -EAGAIN : 0;
}
