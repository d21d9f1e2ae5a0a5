/* The members of a CSC matrix, as scipy.sparse.save_npz writes them: of each column the values, the
 * rows they are in, ascending, or sorted by value, and where the next column begins. The matrix of
 * a selection is made as a whole, and remembered: any of its bytes needs all of its rows. */
#include "format/libsvm/fields_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_context.h"

#define MATRIX_MAX (UINT64_C(256) << 20) /* bytes */
#define ROWS_MAX   (UINT64_C(1) << 25)

/* An entry: of a column, once they are turned. */
struct cell {
    float value;
    uint32_t row, field, column;
};

struct matrix {
    uint64_t *end;     /* [features + 1] entries of the columns before */
    struct cell *cell; /* [entries] */
};

/* The input of making one. */
struct work {
    struct read_context *rc;
    struct libsvm_view *v;
    uint64_t features, entries;
    bool by_value;
    struct diag *d;
    struct cell *cell; /* [entries] in the order of rows; owned */
};

static void work_release(struct work *w)
{
    free(w->cell);
}

static int libsvm_fields_csc_not_as_indexed(const struct work *w)
{
    return diag_set(w->d, -ESTALE,
                    "csc: %s: the rows are not what they were when they were indexed",
                    blob_name(libsvm_rows_file(w->v->rows, 0)->base.blob));
}

/* Collect the entries of all rows. */
static int libsvm_fields_csc_read_rows(struct work *w)
{
    const struct selection *sel = w->v->sel;
    int all = 0;

    for (uint64_t place = 0, next; place < sel->count; place = next) {
        AUTO_MEMO struct memo_thing *thing = NULL;
        const struct libsvm_slab *slab = NULL;
        int r = read_cancelled(w->rc) ? -EINTR : 0;

        next = libsvm_view_slab_end(w->v, place);
        if (r == 0)
            r = libsvm_view_slab(w->v, place, &slab, &thing, w->d);
        if (!missing_go_on(w->rc, r, &all))
            break;
        if (!slab || all)
            continue;
        if (slab->features_before > w->entries || !slab->n ||
            slab->end[slab->n - 1] > w->entries - slab->features_before)
            return libsvm_fields_csc_not_as_indexed(w);
        for (uint64_t i = 0, k = 0; i < slab->n; i++)
            for (; k < slab->end[i]; k++)
                w->cell[slab->features_before + k] =
                    (struct cell){slab->value[k], (uint32_t)(place + i),
                                  slab->field ? slab->field[k] : 0, slab->index[k]};
    }
    return all;
}

/* Sort the entries by column, stably, so that rows ascend in each. */
static int libsvm_fields_csc_turn(const struct work *w, struct matrix *m)
{
    uint64_t *next = m->end + 1;

    /* Count, then sum: end[c + 1] is where column c begins, and moves up as it is filled. */
    memset(m->end, 0, (w->features + 1) * sizeof(*m->end));
    for (uint64_t i = 0; i < w->entries; i++) {
        if (w->cell[i].column >= w->features)
            return libsvm_fields_csc_not_as_indexed(w);
        if (w->cell[i].column + UINT64_C(1) < w->features)
            next[w->cell[i].column + 1]++;
    }
    for (uint64_t c = 1; c < w->features; c++)
        next[c] += next[c - 1];
    for (uint64_t i = 0; i < w->entries; i++)
        m->cell[next[w->cell[i].column]++] = w->cell[i];
    return 0;
}

/* By value, those that are no numbers last; then by row. */
static int compare_cells(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    int x_nan = isnan(x->value), y_nan = isnan(y->value);

    if (x_nan != y_nan)
        return x_nan - y_nan;
    if (!x_nan && x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->field > y->field) - (x->field < y->field);
}

static int make_matrix(void *ctx, void **ret, size_t *ret_size)
{
    struct work *w = ctx;
    uint64_t bytes = (w->features + 1) * sizeof(uint64_t) + w->entries * sizeof(struct cell);
    struct matrix *m;
    int r;

    if (w->features > MATRIX_MAX || w->entries > MATRIX_MAX || bytes > MATRIX_MAX ||
        w->v->sel->count > ROWS_MAX)
        return diag_set(w->d, -EFBIG,
                        "csc: expected a batch whose columns take at most %llu MiB of memory, got "
                        "%llu rows with %llu entries in %llu columns: take a smaller batch, or npz",
                        (unsigned long long)(MATRIX_MAX >> 20),
                        (unsigned long long)w->v->sel->count, (unsigned long long)w->entries,
                        (unsigned long long)w->features);
    w->cell = calloc(w->entries + 1, sizeof(*w->cell));
    r = w->cell ? libsvm_fields_csc_read_rows(w) : -ENOMEM;
    if (r < 0)
        return r;
    m = malloc(sizeof(*m) + bytes);
    if (!m)
        return -ENOMEM;
    m->end = (uint64_t *)(void *)(m + 1);
    m->cell = (struct cell *)(void *)(m->end + w->features + 1);
    r = libsvm_fields_csc_turn(w, m);
    if (r < 0) {
        free(m);
        return r;
    }
    for (uint64_t c = 0; c < w->features && w->by_value; c++)
        if (m->end[c + 1] - m->end[c] > 1) /* of millions of columns most have no cell, or one */
            qsort(m->cell + m->end[c], m->end[c + 1] - m->end[c], sizeof(*m->cell), compare_cells);
    *ret = m;
    *ret_size = sizeof(*m) + bytes;
    return 0;
}

int libsvm_csc_read(struct read_context *rc, const struct dataset *ds,
                    const struct libsvm_field *shown, unsigned width, const struct selection *sel,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    static const char key_of_matrices[2]; /* by row, by value */
    const enum libsvm_content content = shown->content;
    const bool by_value = shown->offer == LIBSVM_OFFERS_BY_VALUE;
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    const struct memo_key key = {{(uintptr_t)rows, sel->id[0], sel->id[1], sel->id[2],
                                  (uintptr_t)&key_of_matrices[by_value]}};
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    AUTO_MEMO struct memo_thing *thing = NULL;
    AUTO(work_release)
    struct work w = {.rc = rc, .v = &v, .features = rows->features, .by_value = by_value, .d = d};
    const struct memo_maker maker = {make_matrix, &w, rc};
    const struct matrix *m;
    int r = libsvm_view_open(&v, rc, rows, sel);

    if (r < 0)
        return r;
    w.entries = sums_total(&v.sums).size;
    r = memo_get(rows->memo, &key, &maker, &thing);
    if (r < 0)
        return r;
    m = memo_bytes(thing);
    if (content == LIBSVM_SHOWS_INDPTR)
        libsvm_copy_numbers(m->end, 8, 8, width, off, len, dst);
    else
        libsvm_copy_numbers(content == LIBSVM_SHOWS_DATA      ? (const void *)&m->cell->value
                            : content == LIBSVM_SHOWS_INDICES ? &m->cell->row
                                                              : &m->cell->field,
                            4, sizeof(*m->cell), width, off, len, dst);
    return 0;
}
