/* The fields of Kaldi tables. Each array has several, since a batch shows the arrays padded, with
 * lengths, or concatenated, with offsets; objects, text and audio have one each. */
#include "format/kaldi/set/work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/core/encoder.h"

#define FIELDS_OF_COLUMN (4 * KALDI_ARRAYS_MAX + 6) /* at most */
#define FIELDS_OF_SET    3                          /* index, key, key lines */

static struct field *add_field(struct dataset *ds, const struct kaldi_field *of, const char *suffix,
                               const struct field_ops *ops, enum dtype dtype)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    struct field *f = &ds->field[ds->n_fields++];

    *f = (struct field){.ops = ops, .dtype = dtype, .impl = of};
    f->width = f->item_bytes = dtype_info(dtype)->bytes;
    f->unnamed = of && set->column[of->column].is_alone;
    snprintf(f->name, sizeof(f->name), "%s%s", of ? set->column[of->column].table->name : "",
             suffix);
    return f;
}

static void add_array(struct dataset *ds, const struct kaldi_field *of, const char *suffix,
                      enum field_form form, unsigned in, const struct field_ops *ops,
                      enum dtype dtype)
{
    struct field *f = add_field(ds, of, suffix, ops, dtype);

    f->form = form;
    f->in = in;
}

static struct field *add_bytes(struct dataset *ds, const struct kaldi_field *of, const char *folder,
                               const char *ext, unsigned in, const struct field_ops *ops)
{
    struct field *f = add_field(ds, of, "", ops, DTYPE_U1);

    field_offer_bytes(f, folder, ext, in);
    return f;
}

/* Add the fields of an array of cells that differ in length. in: IN_TAR, unless tar shows the cells
 * in another way. */
static void add_arrays(struct dataset *ds, const struct kaldi_field *of, const char *suffix,
                       unsigned in, enum dtype dtype)
{
    char name[FIELD_NAME_SIZE];

    add_array(ds, of, suffix, FORM_RAGGED,
              in | IN_NPY_SAMPLES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES, &kaldi_ragged_ops,
              dtype);
    add_array(ds, of, suffix, FORM_PADDED, IN_NPY_BATCHES, &kaldi_padded_ops, dtype);
    snprintf(name, sizeof(name), "%s_len", suffix);
    add_array(ds, of, name, FORM_LENGTHS, IN_NPY_BATCHES, &kaldi_lengths_ops, DTYPE_I8);
    snprintf(name, sizeof(name), "%s_offsets", suffix);
    add_array(ds, of, name, FORM_OFFSETS, IN_NPZ_BATCHES, &kaldi_offsets_ops, DTYPE_I8);
}

static unsigned count_waves(const struct kaldi_set *set)
{
    unsigned n = 0;

    for (unsigned i = 0; i < set->n_columns; i++)
        n += set->column[i].table->type == KALDI_WAVE;
    return n;
}

static void add_column(struct dataset *ds, unsigned column, struct kaldi_field *of)
{
    enum kaldi_type type = kaldi_set_of(ds)->column[column].table->type;
    const struct kaldi_type_info *info = &kaldi_types[type];
    bool is_text = type == KALDI_TOKEN || type == KALDI_TOKENS;

    for (unsigned i = 0; i < KALDI_ARRAYS_MAX; i++)
        of[i] = (struct kaldi_field){.column = column, .array = i};
    for (unsigned i = 0; i < info->n_arrays; i++) {
        const struct kaldi_array *array = &info->array[i];
        enum dtype dtype = type == KALDI_BOOL ? DTYPE_BOOL : array->dtype;

        if (array->ndim)
            add_arrays(ds, &of[i], array->suffix, IN_TAR, dtype);
        else
            add_array(ds, &of[i], array->suffix, FORM_ITEM, IN_ARRAYS | IN_TAR, &kaldi_value_ops,
                      dtype);
    }
    if (type == KALDI_WAVE) {
        add_arrays(ds, of, "", 0, DTYPE_I2);
        add_array(ds, of, "_rate", FORM_ITEM, IN_ARRAYS, &kaldi_rate_ops, DTYPE_I4);
    }
    if (is_text)
        add_array(ds, of, "", FORM_TEXT, IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES,
                  &kaldi_string_ops.ops, DTYPE_TEXT);
    add_bytes(ds, of, "ark", "ark", IN_FILES, &kaldi_archive_ops);
    add_bytes(ds, of, "ark", "scp", IN_FILES, &kaldi_script_ops)->names_file = true;
    if (type == KALDI_WAVE)
        add_bytes(ds, of, "wav", "wav", IN_FILE_SAMPLES | IN_TAR, &kaldi_audio_ops.ops)->unnamed =
            count_waves(kaldi_set_of(ds)) == 1;
    if (is_text)
        add_bytes(ds, of, "txt", "txt", IN_FILES | IN_TAR, &kaldi_line_ops.ops);
    add_bytes(ds, of, "raw", "raw", IN_FILE_SAMPLES, &kaldi_object_ops.ops)->unnamed = false;
}

/* The bytes of a cell that a field reads. */
void kaldi_field_span(const struct kaldi_cell *cell, const struct field *f, uint64_t *ret_off,
                      uint64_t *ret_len)
{
    const struct kaldi_field *of = f->impl;

    if (f->ops == &kaldi_ragged_ops || f->ops == &kaldi_padded_ops || f->ops == &kaldi_value_ops)
        kaldi_cell_array_span(cell, of->array, f->dtype, ret_off, ret_len);
    else if (f->ops == &kaldi_string_ops.ops || f->ops == &kaldi_line_ops.ops)
        kaldi_cell_bytes_span(cell, KALDI_AS_LINE, ret_off, ret_len);
    else if (f->ops == &kaldi_audio_ops.ops)
        kaldi_cell_bytes_span(cell, KALDI_AS_WAV, ret_off, ret_len);
    else if (f->ops == &kaldi_archive_ops)
        kaldi_cell_bytes_span(cell, KALDI_AS_ENTRY, ret_off, ret_len);
    else if (f->ops == &kaldi_object_ops.ops)
        kaldi_cell_bytes_span(cell, KALDI_AS_STORED, ret_off, ret_len);
    else /* the index has it */
        *ret_len = 0;
}

int kaldi_fields_init(struct dataset *ds)
{
    struct kaldi_set *set = ds->impl;
    unsigned n = set->n_columns;
    struct field *keys;

    ds->field = calloc((size_t)n * FIELDS_OF_COLUMN + FIELDS_OF_SET, sizeof(*ds->field));
    set->field = calloc((size_t)n * KALDI_ARRAYS_MAX, sizeof(*set->field));
    if (!ds->field || !set->field)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        add_column(ds, i, &set->field[i * KALDI_ARRAYS_MAX]);
    keys = add_field(ds, NULL, "key", &kaldi_key_lines_ops.ops, DTYPE_U1);
    field_offer_bytes(keys, "npy", "txt", IN_FILE_BATCHES);
    dataset_add_numbering(ds);
    ds->field[ds->n_fields - 1].ops = &kaldi_key_ops.ops;
    return 0;
}

/* Set the axes of an item; a size that differs from cell to cell is DIM_VARIES. */
static int set_axes(struct field *f, const struct kaldi_column *c, unsigned array)
{
    f->ndim = kaldi_axes(c, array);
    f->dim = calloc(2, sizeof(*f->dim));
    if (!f->dim)
        return -ENOMEM;
    f->dim[0] = DIM_VARIES;
    f->dim[1] = c->table->type != KALDI_MATRIX && c->table->type != KALDI_WAVE ? 2
                : c->varies                                                    ? DIM_VARIES
                                                                               : c->tail;
    return 0;
}

static bool shows_arrays(const struct field *f)
{
    return f->form == FORM_RAGGED || f->form == FORM_PADDED || f->form == FORM_LENGTHS ||
           f->form == FORM_OFFSETS;
}

int kaldi_fields_finish(struct dataset *ds)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    int r = 0;

    for (unsigned i = 0; i < ds->n_fields && r == 0; i++) {
        struct field *f = &ds->field[i];
        const struct kaldi_field *of = f->impl;
        const struct kaldi_column *c = of ? &set->column[of->column] : NULL;
        const struct kaldi_type_info *info = c ? &kaldi_types[c->table->type] : NULL;

        if (f->numbering && f->form == FORM_TEXT)
            f->width = f->item_bytes = max_u64(set->keys->key_most, 1);
        if (!c)
            continue;
        if (f->form == FORM_RAGGED || f->form == FORM_PADDED || f->ops == &kaldi_value_ops)
            if (info->n_arrays && info->array[of->array].real)
                f->dtype = c->real;
        if (f->form == FORM_RAGGED)
            r = set_axes(f, c, of->array);
        f->mixed = c->varies && shows_arrays(f) && kaldi_axes(c, of->array) > 1;
        f->width = f->item_bytes = dtype_info(f->dtype)->bytes;
    }
    return r;
}
