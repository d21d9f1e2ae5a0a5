/* The members of a sparse matrix, as scipy.sparse.save_npz() writes it: rows of all sources under
 * one another. It is as wide as the widest source. indptr is where the values of each row begin. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/mix/parts.h"

static const struct field *mix_matrix_find_member(const struct dataset *ds, const char *name)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].form == FORM_WHOLE && field_is_in(&ds->field[i], IN_NPZ_BATCHES) &&
            !strcmp(ds->field[i].name, name))
            return &ds->field[i];
    return NULL;
}

static bool all_have(const struct mix_set *set, const char *name)
{
    for (unsigned i = 0; i < set->setup.n; i++)
        if (!mix_matrix_find_member(set->setup.ds[i], name))
            return false;
    return true;
}

/* Read a member of the matrix of a source's first sample. */
static int mix_matrix_read_first(const struct mix_set *set, unsigned i, const char *name,
                                 size_t len, uint8_t *ret, struct diag *d)
{
    const struct field *f = mix_matrix_find_member(set->setup.ds[i], name);
    struct one_sample one;

    one_sample_init(&one, 0);
    return f->ops->read(READ_WAITS, set->setup.ds[i], f, &one.sel, 0, len, ret, d);
}

/* ---- shape, format ---- */

static const char format_text[3] = {'c', 's', 'r'};

/* format is a text, shape two numbers. */
static int mix_matrix_constant_form(const struct dataset *ds, const struct field *f,
                                    const struct selection *sel, struct form *ret)
{
    (void)ds;
    (void)sel;
    ret->ndim = f->dtype != DTYPE_TEXT;
    ret->dim[0] = 2;
    ret->width = f->dtype == DTYPE_TEXT ? sizeof(format_text) : 8;
    return 0;
}

static int mix_matrix_constant_read(struct read_context *rc, const struct dataset *ds,
                                    const struct field *f, const struct selection *sel,
                                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t bytes[16];

    (void)rc;
    (void)d;
    store_le64(bytes, sel->count);
    store_le64(bytes + 8, mix_set_of(ds)->columns);
    if (f->dtype == DTYPE_TEXT)
        memcpy(bytes, format_text, sizeof(format_text));
    memcpy(dst, bytes + off, len);
    return 0;
}

static void add_constant(struct dataset *ds, const char *name, enum dtype dtype)
{
    static const struct field_ops ops = {mix_matrix_constant_read, mix_matrix_constant_form};
    struct field *f = &ds->field[ds->n_fields++];

    *f = (struct field){
        .ops = &ops, .in = IN_NPZ_SAMPLES | IN_NPZ_BATCHES, .form = FORM_WHOLE, .dtype = dtype};
    f->width = f->item_bytes = dtype_info(dtype)->bytes;
    memcpy(f->name, name, strlen(name) + 1);
}

/* ---- data, indices, field ---- */

/* Add the values of the rows, one after another, and *ret_offsets: where each row begins. */
static int add_values(struct dataset *ds, const char *name, struct field **ret_offsets)
{
    struct mix_set *set = mix_set_of(ds);
    struct mix_column *c = &set->column[set->n_columns];
    struct field *f;
    int r = mix_column_init(set, c);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < set->setup.n; i++)
        c->field[i] = mix_matrix_find_member(set->setup.ds[i], name);
    c->content.dtype = c->field[0]->dtype;
    c->content.ndim = 1;
    c->content.dim[0] = DIM_VARIES;
    records_add_byte_arrays(ds, &c->content, name);
    f = &ds->field[ds->n_fields - 2];
    f->in = IN_NPZ_SAMPLES | IN_NPZ_BATCHES;
    *ret_offsets = f + 1;
    return 0;
}

int mix_matrix_add(struct dataset *ds, struct diag *d)
{
    static const char *const members[] = {"data", "indices", "indptr", "format", "shape"};
    static const char *const values[] = {"indices", "field"}; /* next to data */
    struct mix_set *set = mix_set_of(ds);
    struct field *offsets = NULL;
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (!all_have(set, members[i]))
            return 0;
    for (unsigned i = 0; i < set->setup.n && r == 0; i++) {
        uint8_t shape[16];

        r = mix_matrix_read_first(set, i, "shape", sizeof(shape), shape, d);
        if (r == 0)
            set->columns = max_u64(set->columns, load_le64(shape + 8));
    }
    if (r == 0)
        r = add_values(ds, "data", &offsets);
    if (r < 0)
        return r;
    memcpy(offsets->name, "indptr", sizeof("indptr"));
    offsets->in = IN_NPZ_SAMPLES | IN_NPZ_BATCHES;
    for (size_t i = 0; i < ARRAY_LEN(values) && r == 0; i++) {
        if (!all_have(set, values[i]))
            continue;
        r = add_values(ds, values[i], &offsets);
        ds->n_fields -= r == 0; /* they begin where those of data do */
    }
    if (r < 0)
        return r;
    add_constant(ds, "format", DTYPE_TEXT);
    add_constant(ds, "shape", DTYPE_I8);
    return 0;
}
