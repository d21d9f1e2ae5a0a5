/* The bytes of a field of a mix: each sample's are those of its source's field. Contents of records
 * are asked for directly; other fields as the file of one sample shows them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "base/search.h"
#include "format/mix/parts.h"
#include "format/records/record_items.h"

unsigned mix_dataset_find(const struct dataset *ds, uint64_t sample, uint64_t *ret_own)
{
    const struct mix_set *set = mix_set_of(ds);
    unsigned i = (unsigned)search_last_up_to(set->first, sizeof(*set->first), set->setup.n, sample);

    *ret_own = sample - set->first[i];
    return i;
}

struct mix_origin mix_origin_of(const struct dataset *ds, const struct record_content *c,
                                uint64_t sample)
{
    const struct mix_column *column = c ? mix_column_of(ds, c) : NULL;
    struct mix_origin o;

    o.source = mix_dataset_find(ds, sample, &o.sample);
    o.ds = mix_set_of(ds)->setup.ds[o.source];
    o.field = column ? column->field[o.source] : NULL;
    o.record = column ? column->record[o.source] : NULL;
    return o;
}

/* The axes that a file of this sample has. */
static int form_of(const struct mix_origin *o, struct form *ret, uint64_t *ret_bytes,
                   struct diag *d)
{
    struct one_sample one;

    one_sample_init(&one, o->sample);
    one.sel.reason = d;
    return field_form(o->ds, o->field, &one.sel, ret, ret_bytes);
}

/* Bytes of the file of this sample. */
static int origin_read(struct read_context *rc, const struct mix_origin *o, uint64_t off,
                       size_t len, uint8_t *dst, struct diag *d)
{
    struct one_sample one;

    one_sample_init(&one, o->sample);
    return o->field->ops->read(rc, o->ds, o->field, &one.sel, off, len, dst, d);
}

static int mix_contents_content_dims(const struct dataset *ds, const struct record_content *c,
                                     uint64_t sample, uint64_t ret_dim[static RECORD_AXES],
                                     struct diag *d)
{
    const struct mix_origin o = mix_origin_of(ds, c, sample);
    struct form form;
    uint64_t bytes;
    int r;

    if (o.record) {
        r = o.record->ops->dims(o.ds, o.record, o.sample, ret_dim, d);
        if (r == 0 && !o.record->ndim && c->ndim) /* a number, where others have an axis */
            ret_dim[0] = dataset_has(o.ds, o.sample, o.field);
        return r;
    }
    r = form_of(&o, &form, &bytes, d);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < c->ndim; i++)
        ret_dim[i] = i < form.ndim ? form.dim[i] : 1;
    return 0;
}

static int mix_contents_content_read(struct read_context *rc, const struct dataset *ds,
                                     const struct record_content *c, uint64_t sample, uint64_t off,
                                     size_t len, uint8_t *dst, struct diag *d)
{
    const struct mix_origin o = mix_origin_of(ds, c, sample);

    return o.record ? o.record->ops->read(rc, o.ds, o.record, o.sample, off, len, dst, d)
                    : origin_read(rc, &o, off, len, dst, d);
}

static void mix_contents_content_where(const struct dataset *ds, const struct record_content *c,
                                       uint64_t sample, char ret[static RECORD_WHERE])
{
    const struct mix_origin o = mix_origin_of(ds, c, sample);

    snprintf(ret, RECORD_WHERE, "%s: sample %llu", mix_set_of(ds)->setup.shown[o.source],
             (unsigned long long)o.sample);
}

static bool mix_contents_content_has(const struct dataset *ds, const struct record_content *c,
                                     uint64_t sample)
{
    const struct mix_origin o = mix_origin_of(ds, c, sample);

    return dataset_has(o.ds, o.sample, o.field);
}

static bool content_is_made(const struct dataset *ds, const struct record_content *c,
                            uint64_t sample)
{
    const struct mix_origin o = mix_origin_of(ds, c, sample);

    return o.record->ops->is_made(o.ds, o.record, o.sample);
}

/* Each source makes its own. */
static int content_make(struct read_context *rc, const struct dataset *ds,
                        const struct record_content *c, const uint64_t *sample, unsigned n,
                        unsigned n_needed)
{
    const struct mix_column *column = mix_column_of(ds, c);
    const struct mix_set *set = mix_set_of(ds);
    int all = 0;

    for (unsigned i = 0; i < set->setup.n; i++) {
        uint64_t there[RECORD_MAKES], at;
        unsigned some = 0, needed = 0;
        int r;

        for (unsigned k = 0; k < n; k++) {
            if (mix_dataset_find(ds, sample[k], &at) != i)
                continue;
            needed += k < n_needed;
            there[some++] = at;
        }
        r = some ? column->record[i]->ops->make(rc, set->setup.ds[i], column->record[i], there,
                                                some, needed)
                 : 0;
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}

const struct record_ops mix_contents = {
    .dims = mix_contents_content_dims,
    .read = mix_contents_content_read,
    .where = mix_contents_content_where,
    .has = mix_contents_content_has,
    .is_made = content_is_made,
    .make = content_make,
};

/* ---- files of bytes ---- */

static int mix_contents_count_bytes(void *ctx, uint64_t sample, const struct sums_pair *before,
                                    struct sums_pair *ret)
{
    struct record_items *items = ctx;
    const struct mix_origin o = mix_origin_of(items->ds, items->content, sample);
    struct form form;

    (void)before;
    ret->size = 0;
    return dataset_has(o.ds, o.sample, o.field) ? form_of(&o, &form, &ret->size, items->reason) : 0;
}

static int mix_contents_bytes_form(const struct dataset *ds, const struct field *f,
                                   const struct selection *sel, struct form *ret)
{
    struct record_items items;

    record_items_init(&items, NULL, ds, f, sel);
    return record_items_form(&items, mix_contents_count_bytes, ret);
}

static int bytes_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct mix_origin o = mix_origin_of(items->ds, items->content, sample);

    (void)before;
    return origin_read(items->rc, &o, off, len, dst, d);
}

static int mix_contents_bytes_read(struct read_context *rc, const struct dataset *ds,
                                   const struct field *f, const struct selection *sel, uint64_t off,
                                   size_t len, uint8_t *dst, struct diag *d)
{
    struct record_items items;

    record_items_init(&items, rc, ds, f, sel);
    return record_items_read(&items, mix_contents_count_bytes, 1, bytes_item, off, len, dst, d);
}

const struct field_ops mix_bytes_ops = {mix_contents_bytes_read, mix_contents_bytes_form};

/* ---- items as they are stored, or as if they were ---- */

static int stored_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct mix_origin o = mix_origin_of(items->ds, items->content, sample);
    struct one_sample one;

    (void)before;
    one_sample_init(&one, o.sample);
    return o.field->read_stored
               ? o.field->read_stored(items->rc, o.ds, o.field, &one.sel, off, len, dst, d)
               : field_read_stored(items->rc, o.field, &one.sel, off, len, dst, d);
}

int mix_read_stored(struct read_context *rc, const struct dataset *ds, const struct field *f,
                    const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                    struct diag *d)
{
    struct record_items items;

    record_items_init(&items, rc, ds, f, sel);
    return record_items_read_even(&items, f->stored_bytes, stored_item, off, len, dst, d);
}

int mix_read_shown(struct read_context *rc, const struct dataset *ds, const struct field *f,
                   const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                   struct diag *d)
{
    return f->ops->read(rc, ds, f, sel, off, len, dst, d);
}

/* ---- the number of the source ---- */

static int source_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    struct sample_window window = {.sel = sel};

    (void)rc;
    (void)f;
    (void)d;
    while (len) {
        size_t skip = (size_t)(off % 8), n = (size_t)min_u64(8 - skip, len);
        uint8_t bytes[8];
        uint64_t there;

        store_le64(bytes, mix_dataset_find(ds, sample_window_at(&window, off / 8), &there));
        memcpy(dst, bytes + skip, n);
        dst += n;
        off += n;
        len -= n;
    }
    return 0;
}

const struct field_ops mix_source_ops = {.read = source_read};
