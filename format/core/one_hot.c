/* The field of a label as rows of float32 with one 1. */
#include "format/core/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

#define ONE_HOT_AT_ONCE 512 /* labels that are read at once */

/* The label at p, as files show it. false: it is no number from 0 to classes - 1. */
static bool one_hot_label(const struct field *label, const uint8_t *p, uint64_t classes,
                          uint64_t *ret)
{
    if (dtype_info(label->dtype)->letter == 'f') {
        double real = dtype_real(label->dtype, p);

        *ret = real >= 0 && real < (double)classes ? (uint64_t)real : classes;
        return *ret < classes && (double)*ret == real;
    }
    *ret = (uint64_t)dtype_integer(label->dtype, false, p);
    return *ret < classes;
}

static int one_hot_bad(const struct dataset *ds, const struct field *f, uint64_t sample,
                       const uint8_t *p, struct diag *d)
{
    const struct field *label = f->base_field;
    char got[32];

    if (dtype_info(label->dtype)->letter == 'f')
        snprintf(got, sizeof(got), "%g", dtype_real(label->dtype, p));
    else
        snprintf(got, sizeof(got), "%lld", (long long)dtype_integer(label->dtype, false, p));
    return diag_set(d, -EBADMSG, "%s: %s of sample %llu: expected 0 to %llu, got %s",
                    blob_name(f->blob ? f->blob : ds->blob[0]), label->name,
                    (unsigned long long)sample, (unsigned long long)f->dim[0] - 1, got);
}

/* Write bytes [off, off + len) of the rows of n labels. first: the place of the first one. */
static int one_hot_rows(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t first, const uint8_t *labels,
                        uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    static const uint8_t one[4] = {0, 0, 0x80, 0x3f}; /* 1.0f, little-endian */
    size_t n = (size_t)ceil_div(off + len, f->item_bytes);

    memset(dst, 0, len);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = labels + i * f->base_field->width;
        uint64_t value, sample;

        if (!one_hot_label(f->base_field, p, f->dim[0], &value)) {
            selection_samples(sel, first + i, 1, &sample);
            return one_hot_bad(ds, f, sample, p, d);
        }
        for (uint64_t k = 0; k < 4; k++) {
            uint64_t at = i * f->item_bytes + 4 * value + k;

            if (at >= off && at < off + len)
                dst[at - off] = one[k];
        }
    }
    return 0;
}

/* Labels are read as their own field reads them, so any field of numbers can be one. */
static int one_hot_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    const struct field *label = f->base_field;
    uint8_t labels[8 * ONE_HOT_AT_ONCE];
    int all = 0;

    while (len) {
        uint64_t first = off / f->item_bytes, within = off % f->item_bytes;
        size_t n = (size_t)min_u64(ONE_HOT_AT_ONCE, ceil_div(within + len, f->item_bytes));
        size_t made = (size_t)min_u64(len, n * f->item_bytes - within);
        int r = label->ops->read(rc, ds, label, sel, first * label->width, n * (size_t)label->width,
                                 labels, d);

        if (r == 0)
            r = one_hot_rows(ds, f, sel, first, labels, within, made, dst, d);
        if (!missing_go_on(rc, r, &all))
            return all;
        off += made;
        dst += made;
        len -= made;
    }
    return all;
}

const struct field_ops field_one_hot = {.read = one_hot_read};
