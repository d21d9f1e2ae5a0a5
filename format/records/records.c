/* The fields of records, and what a dataset of records does. record_arrays.c and record_texts.c
 * make the bytes. */
#include "format/records/records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/index/index.h"
#include "format/records/record_ops.h"

#define CHECKED_AT_ONCE (UINT64_C(1) << 20) /* bytes */

/* ---- fields ---- */

static struct field *records_add_field(struct dataset *ds, const struct record_content *c,
                                       const char *name, const char *suffix,
                                       const struct field_ops *ops, enum dtype dtype)
{
    struct field *f = &ds->field[ds->n_fields++];

    *f = (struct field){.ops = ops, .dtype = dtype, .impl = c};
    f->width = f->item_bytes = dtype_info(dtype)->bytes;
    snprintf(f->name, sizeof(f->name), "%s%s", name, suffix);
    return f;
}

static void records_add_array(struct dataset *ds, const struct record_content *c, const char *name,
                              const char *suffix, enum field_form form, unsigned in)
{
    static const struct field_ops *const ops[] = {
        [FORM_ITEM] = &record_item_ops,       [FORM_RAGGED] = &record_ragged_ops,
        [FORM_PADDED] = &record_padded_ops,   [FORM_LENGTHS] = &record_numbers_ops,
        [FORM_OFFSETS] = &record_numbers_ops, [FORM_TEXT] = &record_string_ops.ops,
        [FORM_SHAPES] = &record_shapes_ops,
    };
    bool counts = form == FORM_LENGTHS || form == FORM_OFFSETS || form == FORM_SHAPES;
    struct field *f = records_add_field(ds, c, name, suffix, ops[form],
                                        counts              ? DTYPE_I8
                                        : form == FORM_TEXT ? DTYPE_TEXT
                                                            : c->dtype);

    f->form = form;
    f->in = in;
}

struct field *records_add_item(struct dataset *ds, const struct record_content *c, const char *name,
                               unsigned in)
{
    records_add_array(ds, c, name, "", FORM_ITEM, in);
    return &ds->field[ds->n_fields - 1];
}

void records_add_arrays(struct dataset *ds, const struct record_content *c, const char *name,
                        unsigned tar)
{
    records_add_array(ds, c, name, "", FORM_RAGGED,
                      IN_NPY_SAMPLES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES | tar);
    records_add_array(ds, c, name, "", FORM_PADDED, IN_NPY_BATCHES);
    records_add_array(ds, c, name, "_len", FORM_LENGTHS, IN_NPY_BATCHES);
    records_add_array(ds, c, name, "_offsets", FORM_OFFSETS, IN_NPZ_BATCHES);
    if (c->pads_axes)
        records_add_array(ds, c, name, "_shape", FORM_SHAPES, IN_NPZ_BATCHES);
}

struct field *records_add_bytes(struct dataset *ds, const struct record_content *c,
                                const char *name, const char *folder, const char *ext, unsigned in)
{
    struct field *f = records_add_field(ds, c, name, "", &record_bytes_ops, DTYPE_U1);

    field_offer_bytes(f, folder, ext, in);
    return f;
}

void records_add_byte_arrays(struct dataset *ds, const struct record_content *c, const char *name)
{
    records_add_array(ds, c, name, "", FORM_RAGGED, IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES);
    records_add_array(ds, c, name, "_offsets", FORM_OFFSETS, IN_NPZ_BATCHES);
}

void records_add_strings(struct dataset *ds, const struct record_content *c, const char *name)
{
    records_add_array(ds, c, name, "", FORM_TEXT, IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES);
}

struct field *records_add_lines(struct dataset *ds, const struct record_content *c,
                                const char *name, const char *ext)
{
    struct field *f = records_add_field(ds, c, name, "", &record_line_ops.ops, DTYPE_U1);

    field_offer_bytes(f, ext, ext, IN_FILES | IN_TAR);
    return f;
}

void records_add_keys(struct dataset *ds)
{
    struct field *f = records_add_field(ds, NULL, "key", "", &record_key_line_ops.ops, DTYPE_U1);

    field_offer_bytes(f, "npy", "txt", IN_FILE_BATCHES);
    dataset_add_numbering(ds);
    ds->field[ds->n_fields - 1].ops = &record_key_ops.ops;
}

/* Set the type and the axes of a field from its content. */
static int finish_field(struct field *f, const struct record_content *c)
{
    bool counts = f->form == FORM_LENGTHS || f->form == FORM_OFFSETS || f->form == FORM_SHAPES;

    if (f->form == FORM_TEXT || f->form == FORM_BYTES)
        return 0;
    for (unsigned i = 1; i < c->ndim && f->form != FORM_ITEM && !c->pads_axes; i++)
        f->mixed = f->mixed || c->dim[i] == DIM_VARIES;
    if (counts)
        return 0;
    f->dtype = c->dtype;
    f->width = dtype_info(f->dtype)->bytes;
    f->item_bytes = f->form == FORM_ITEM ? record_bytes(c, c->dim) : f->width;
    if (f->form == FORM_PADDED)
        return 0;
    f->ndim = c->ndim;
    f->dim = calloc(c->ndim + 1, sizeof(*f->dim));
    if (!f->dim)
        return -ENOMEM;
    memcpy(f->dim, c->dim, c->ndim * sizeof(*f->dim));
    return 0;
}

int records_finish(struct dataset *ds, uint64_t samples)
{
    int r = 0;

    dataset_set_samples(ds, samples);
    for (unsigned i = 0; i < ds->n_fields && r == 0; i++) {
        struct field *f = &ds->field[i];

        if (f->ops == &record_key_ops.ops)
            f->width = f->item_bytes = ds->keys ? max_u64(ds->keys->key_most, 1) : ds->key_digits;
        if (f->impl)
            r = finish_field(f, f->impl);
    }
    return r;
}

const struct record_content *records_content_of(const struct field *f)
{
    static const struct field_ops *const ops[] = {&record_item_ops, &record_ragged_ops,
                                                  &record_string_ops.ops};

    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (f->ops == ops[i])
            return f->impl;
    return NULL;
}

/* ---- what a dataset of records does ---- */

/* The first of the neighbours that show one content; NULL: not this one. */
static const struct record_content *next_content(const struct dataset *ds, unsigned i)
{
    const struct record_content *c = ds->field[i].impl;

    return i && c == ds->field[i - 1].impl ? NULL : c;
}

unsigned records_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                         struct extent *ret)
{
    unsigned n = 0;

    if (only) {
        const struct record_content *c = only->impl;

        return c && only->form != FORM_LENGTHS && only->form != FORM_OFFSETS &&
               only->form != FORM_SHAPES && c->ops->extent && c->ops->extent(ds, c, sample, ret);
    }
    for (unsigned i = 0; i < ds->n_fields && n < EXTENTS_MOST; i++) {
        const struct record_content *c = next_content(ds, i);

        if (c && c->ops->extent)
            n += c->ops->extent(ds, c, sample, &ret[n]);
    }
    return n;
}

void records_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                    struct text *t)
{
    struct extent extent[EXTENTS_MOST];
    unsigned n = dataset_extents(ds, sample, only, extent);

    for (unsigned i = 0; i < n; i++)
        text_add(t, "%s%s:%llu+%llu", i ? "," : "", blob_name(extent[i].blob),
                 (unsigned long long)extent[i].off, (unsigned long long)extent[i].len);
}

/* Make the contents of this record and of those behind it together, where they are costly; now and
 * then, because these are remembered. */
static void make_checked(const struct dataset *ds, const struct record_content *c, uint64_t record)
{
    uint64_t next[RECORD_MAKES];
    unsigned n = (unsigned)min_u64(c->make_at_once, ds->samples - record);

    if (n < 2 || record % c->make_at_once)
        return;
    for (unsigned i = 0; i < n; i++)
        next[i] = record + i;
    c->ops->make(READ_WAITS, ds, c, next, n, n);
}

static int records_check_content(const struct dataset *ds, const struct record_content *c,
                                 uint64_t record, uint8_t *buffer, struct diag *d)
{
    uint64_t dim[RECORD_AXES], bytes;
    int r = c->ops->dims(ds, c, record, dim, d);

    if (r < 0 || !c->is_parsed)
        return r;
    if (c->ops->check)
        return c->ops->check(READ_WAITS, ds, c, record, d);
    bytes = record_bytes(c, dim);
    for (uint64_t at = 0; at < bytes && r == 0; at += CHECKED_AT_ONCE)
        r = c->ops->read(READ_WAITS, ds, c, record, at,
                         (size_t)min_u64(CHECKED_AT_ONCE, bytes - at), buffer, d);
    return r;
}

int records_check(const struct dataset *ds, void (*report)(void *ctx, const char *text), void *ctx,
                  struct diag *d)
{
    AUTO_FREE uint8_t *buffer = malloc(CHECKED_AT_ONCE);

    if (!buffer)
        return -ENOMEM;
    for (uint64_t record = 0; record < ds->samples; record++) {
        struct diag last = DIAG_INIT;

        for (unsigned i = 0; i < ds->n_fields; i++) {
            const struct record_content *c = next_content(ds, i);
            struct diag reason = DIAG_INIT;
            int r;

            if (c && c->is_parsed)
                make_checked(ds, c, record);
            r = c ? records_check_content(ds, c, record, buffer, &reason) : 0;

            if (blob_says_nothing(r))
                return diag_set(d, r, "%s", diag_text(&reason, r));
            if (r == 0 || (last.set && !strcmp(last.text, diag_text(&reason, r))))
                continue;
            report(ctx, diag_text(&reason, r));
            last.set = false;
            diag_set(&last, r, "%s", diag_text(&reason, r));
        }
    }
    return 0;
}
