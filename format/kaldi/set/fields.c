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

static void add_field(struct dataset *ds, const struct kaldi_field *of, const char *suffix,
                      enum field_role role, const struct field_ops *ops, enum dtype dtype)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    struct field *f = &ds->field[ds->n_fields++];

    *f = (struct field){.role = role, .ops = ops, .dtype = dtype, .impl = of};
    f->width = f->item_bytes = dtype_info(dtype)->bytes;
    f->unnamed = of && set->column[of->column].is_alone;
    snprintf(f->name, sizeof(f->name), "%s%s", of ? set->column[of->column].table->name : "",
             suffix);
}

/* Add the fields of an array of cells that differ in length. */
static void add_array(struct dataset *ds, const struct kaldi_field *of, const char *suffix,
                      enum field_role role, enum dtype dtype)
{
    char name[FIELD_NAME_SIZE];

    add_field(ds, of, suffix, role, &kaldi_ragged_ops, dtype);
    add_field(ds, of, suffix, FIELD_PADDED, &kaldi_padded_ops, dtype);
    snprintf(name, sizeof(name), "%s_len", suffix);
    add_field(ds, of, name, FIELD_LENGTHS, &kaldi_lengths_ops, DTYPE_I8);
    snprintf(name, sizeof(name), "%s_offsets", suffix);
    add_field(ds, of, name, FIELD_OFFSETS, &kaldi_offsets_ops, DTYPE_I8);
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

    for (unsigned i = 0; i < KALDI_ARRAYS_MAX; i++)
        of[i] = (struct kaldi_field){.column = column, .array = i};
    for (unsigned i = 0; i < info->n_arrays; i++) {
        const struct kaldi_array *array = &info->array[i];
        enum dtype dtype = type == KALDI_BOOL ? DTYPE_BOOL : array->dtype;

        if (array->ndim)
            add_array(ds, &of[i], array->suffix, FIELD_RAGGED, dtype);
        else
            add_field(ds, &of[i], array->suffix, FIELD_VALUE, &kaldi_value_ops, dtype);
    }
    if (type == KALDI_WAVE) {
        add_array(ds, of, "", FIELD_DECODED, DTYPE_I2);
        add_field(ds, of, "_rate", FIELD_PARSED, &kaldi_rate_ops, DTYPE_I4);
        add_field(ds, of, "", FIELD_AUDIO, &kaldi_audio_ops.ops, DTYPE_U1);
        ds->field[ds->n_fields - 1].unnamed = count_waves(kaldi_set_of(ds)) == 1;
    }
    if (type == KALDI_TOKEN || type == KALDI_TOKENS) {
        add_field(ds, of, "", FIELD_STRING, &kaldi_string_ops.ops, DTYPE_TEXT);
        add_field(ds, of, "", FIELD_LINE, &kaldi_line_ops.ops, DTYPE_U1);
    }
    add_field(ds, of, "", FIELD_OBJECT, &kaldi_object_ops.ops, DTYPE_U1);
    add_field(ds, of, "", FIELD_ARCHIVE, &kaldi_archive_ops, DTYPE_U1);
    add_field(ds, of, "", FIELD_SCRIPT, &kaldi_script_ops, DTYPE_U1);
}

int kaldi_fields_init(struct dataset *ds)
{
    struct kaldi_set *set = ds->impl;
    unsigned n = set->n_columns;

    ds->field = calloc((size_t)n * FIELDS_OF_COLUMN + FIELDS_OF_SET, sizeof(*ds->field));
    set->field = calloc((size_t)n * KALDI_ARRAYS_MAX, sizeof(*set->field));
    if (!ds->field || !set->field)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        add_column(ds, i, &set->field[i * KALDI_ARRAYS_MAX]);
    add_field(ds, NULL, "key", FIELD_KEY_LINES, &kaldi_key_lines_ops.ops, DTYPE_U1);
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
    return f->role == FIELD_RAGGED || f->role == FIELD_DECODED || f->role == FIELD_PADDED ||
           f->role == FIELD_LENGTHS || f->role == FIELD_OFFSETS;
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

        if (f->role == FIELD_KEY)
            f->width = f->item_bytes = max_u64(set->keys->key_most, 1);
        if (!c)
            continue;
        if (f->role == FIELD_RAGGED || f->role == FIELD_PADDED || f->role == FIELD_VALUE)
            if (info->n_arrays && info->array[of->array].real)
                f->dtype = c->real;
        if (f->role == FIELD_RAGGED || f->role == FIELD_DECODED)
            r = set_axes(f, c, of->array);
        f->mixed = c->varies && shows_arrays(f) && kaldi_axes(c, of->array) > 1;
        f->width = f->item_bytes = dtype_info(f->dtype)->bytes;
    }
    return r;
}
