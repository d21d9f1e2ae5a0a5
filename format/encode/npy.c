/* npy: numpy's array file. */
#include "format/encode/npy.h"
#include "format/core/encoder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/core/npy_head.h"

int npy_header(struct layout *l, const struct field *f, uint8_t **ret_header, size_t *ret_len,
               uint64_t *ret_bytes)
{
    struct form form;
    uint64_t bytes;
    int r = field_form(l->dataset, f, l->selection, &form, &bytes);

    if (r == 0)
        r = npy_head_write(&form, ret_header, ret_len);
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
