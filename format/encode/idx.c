/* idx: the samples as an IDX file of their own, in the source's byte order. */
#include "format/core/encoder.h"

#include <errno.h>

#include "base/bytes.h"
#include "format/encode/idx_types.h"

static uint8_t type_code(enum dtype dtype)
{
    for (unsigned i = 0; i < N_IDX_TYPES; i++)
        if (idx_types[i].dtype == dtype)
            return idx_types[i].code;
    return 0;
}

static int idx_layout(struct layout *l, const struct file_kind *file)
{
    const struct field *f = file->field;
    size_t len = 4 + 4 * (size_t)(f->ndim + 1);
    uint8_t *header;
    int r;

    if (l->selection->count > UINT32_MAX)
        return -EFBIG;
    header = calloc(1, len);
    if (!header)
        return -ENOMEM;
    header[2] = type_code(f->stored_dtype);
    header[3] = (uint8_t)(f->ndim + 1);
    store_be32(header + 4, (uint32_t)l->selection->count);
    for (unsigned i = 0; i < f->ndim; i++)
        store_be32(header + 8 + 4 * i, (uint32_t)field_stored_dim(f, i));
    r = layout_add_bytes(l, header, len);
    return r < 0 ? r : layout_add_stored(l, f);
}

const struct encoder encoder_idx = {
    .name = "idx", .shows = SHOWS_CONTAINER, .in = {IN_IDX, IN_IDX}, .layout = idx_layout};
