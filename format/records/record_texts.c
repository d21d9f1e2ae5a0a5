/* Contents of records as bytes; and texts and keys: as lines, and as elements of the width of the
 * longest. */
#include "format/records/record_ops.h"

#include <string.h>

#include "base/checked.h"

/* ---- the bytes of one record ---- */

static int record_texts_bytes_form(const struct dataset *ds, const struct field *f,
                                   const struct selection *sel, struct form *ret)
{
    struct record_items items;
    uint64_t dim[RECORD_AXES];
    int r;

    record_items_init(&items, NULL, ds, f, sel);
    r = record_dims(&items, record_items_sample(&items, 0), dim, sel->reason);
    if (r < 0)
        return r;
    ret->ndim = 1;
    ret->dim[0] = dim[0];
    return 0;
}

static int record_texts_bytes_read(struct read_context *rc, const struct dataset *ds,
                                   const struct field *f, const struct selection *sel, uint64_t off,
                                   size_t len, uint8_t *dst, struct diag *d)
{
    const struct record_content *c = f->impl;
    struct record_items items;

    record_items_init(&items, rc, ds, f, sel);
    return len ? c->ops->read(rc, ds, c, record_items_sample(&items, 0), off, len, dst, d) : 0;
}

const struct field_ops record_bytes_ops = {record_texts_bytes_read, record_texts_bytes_form};

/* ---- texts ---- */

static int count_line(void *ctx, uint64_t sample, const struct sums_pair *before,
                      struct sums_pair *ret)
{
    struct record_items *items = ctx;
    uint64_t dim[RECORD_AXES];
    int r = record_dims(items, sample, dim, items->reason);

    (void)before;
    if (r == 0)
        ret->size = dim[0] + 1;
    return r;
}

static int count_key(void *ctx, uint64_t sample, const struct sums_pair *before,
                     struct sums_pair *ret)
{
    struct record_items *items = ctx;
    uint8_t key[KEY_SIZE];

    (void)before;
    ret->size = dataset_key(items->ds, sample, key) + 1;
    return 0;
}

static int key_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t key[KEY_SIZE];
    size_t bytes = dataset_key(items->ds, sample, key), n;

    (void)before;
    (void)d;
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, items->pad, len - n);
    if (n)
        memcpy(dst, key + off, n);
    return 0;
}

static const struct record_text_ops *text_ops(const struct record_items *items)
{
    return (const struct record_text_ops *)items->field->ops;
}

static int lines_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    struct record_items t;

    record_items_init(&t, NULL, ds, f, sel);
    return record_items_form(&t, text_ops(&t)->number, ret);
}

static int lines_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    struct record_items t;

    record_items_init(&t, rc, ds, f, sel);
    t.pad = '\n';
    record_items_read_runs(&t, true);
    return record_items_read(&t, text_ops(&t)->number, 1, text_ops(&t)->item, off, len, dst, d);
}

static int strings_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct record_items t;
    int r;

    record_items_init(&t, NULL, ds, f, sel);
    r = record_items_sums(&t, text_ops(&t)->number, &sums);
    if (r < 0)
        return r;
    ret->ndim = 0;
    if (!sel->single)
        ret->dim[ret->ndim++] = sel->count;
    ret->width = max_u64(sums_most(&sums), 2) - 1;
    return 0;
}

static int strings_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    struct record_items t;
    struct form form;
    int r = strings_form(ds, f, sel, &form);

    record_items_init(&t, rc, ds, f, sel);
    return r < 0 ? r : record_items_read_even(&t, form.width, text_ops(&t)->item, off, len, dst, d);
}

const struct record_text_ops record_line_ops = {
    {lines_read, lines_form}, count_line, record_padded_item};
const struct record_text_ops record_string_ops = {
    {strings_read, strings_form}, count_line, record_padded_item};
const struct record_text_ops record_key_line_ops = {{lines_read, lines_form}, count_key, key_item};
const struct record_text_ops record_key_ops = {{strings_read, strings_form}, count_key, key_item};
