/* npy: numpy's array file, format 1.0; byte for byte what numpy.save (1.23 and later) writes. */
#include "format/encode/npy.h"
#include "format/core/encoder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"

#define NPY_ALIGN       64
#define NPY_PREFIX      10 /* magic, version, length of the rest */
#define NPY_GROW_DIGITS 21 /* numpy leaves room for the first axis to grow to that many digits */

static int header_text(const struct form *form, uint8_t **ret, size_t *ret_len)
{
    AUTO_TEXT struct text t = {0};
    char descr[DTYPE_DESCR_SIZE];
    char *bytes;
    size_t len;
    int r;

    dtype_descr(form->dtype, form->width, false, descr);
    text_add(&t, "\x93NUMPY%c%c%c%c", 1, 1, 1, 1); /* the last four are set below */
    text_add(&t, "{'descr': '%s', 'fortran_order': False, 'shape': ", descr);
    form_shape_text(form, &t);
    text_add(&t, ", }");
    if (form->ndim)
        text_add(&t, "%*s", (int)(NPY_GROW_DIGITS - decimal_digits(form->dim[0])), "");
    text_add(&t, "%*s\n", (int)(NPY_ALIGN - (t.len + 1) % NPY_ALIGN), "");
    r = text_finish(&t, &bytes, &len);
    if (r < 0)
        return r;
    bytes[6] = 1;
    bytes[7] = 0;
    store_le16((uint8_t *)bytes + 8, (uint16_t)(len - NPY_PREFIX));
    *ret = (uint8_t *)bytes;
    *ret_len = len;
    return 0;
}

int npy_header(struct layout *l, const struct field *f, uint8_t **ret_header, size_t *ret_len,
               uint64_t *ret_bytes)
{
    struct form form;
    uint64_t bytes;
    int r = field_form(l->dataset, f, l->selection, &form, &bytes);

    if (r == 0)
        r = header_text(&form, ret_header, ret_len);
    if (r < 0)
        return r;
    if (!checked_add(*ret_len, bytes, ret_bytes)) {
        free(*ret_header);
        return -EFBIG;
    }
    return 0;
}

int npy_add(struct layout *l, const struct field *f)
{
    uint64_t bytes;
    uint8_t *header;
    size_t len;
    int r = npy_header(l, f, &header, &len, &bytes);

    return r < 0 ? r : layout_add_headed(l, header, len, f, bytes - len);
}

static int npy_layout(struct layout *l, const struct file_kind *file)
{
    return npy_add(l, file->field);
}

const struct encoder encoder_npy = {.name = "npy",
                                    .shows = SHOWS_ITEMS,
                                    .in = {IN_NPY_SAMPLES, IN_NPY_BATCHES, IN_NPY_BATCHES},
                                    .layout = npy_layout};
