#include "format/idx/header.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/encode/idx_types.h"

static int idx_header_read_type(const struct blob *blob, uint8_t code, enum dtype *ret,
                                struct diag *d)
{
    for (unsigned i = 0; i < N_IDX_TYPES; i++) {
        if (idx_types[i].code == code) {
            *ret = idx_types[i].dtype;
            return 0;
        }
    }
    return diag_set(d, -EBADMSG, "%s: type at byte 2: expected 08, 09, 0b, 0c, 0d or 0e, got %02x",
                    blob_name(blob), code);
}

/* The first four bytes: magic, type and number of axes. */
static int read_start(const struct blob *blob, struct idx_header *h, struct diag *d)
{
    uint8_t start[4];
    int r;

    if (blob->size < sizeof(start))
        return diag_set(d, -EBADMSG, "%s: header at byte 0: expected at least 4 bytes, got %llu",
                        blob_name(blob), (unsigned long long)blob->size);
    r = blob_read(READ_WAITS, blob, start, sizeof(start), 0, d);
    if (r < 0)
        return r;
    if (start[0] || start[1])
        return diag_set(d, -EBADMSG, "%s: magic at byte 0: expected 00 00, got %02x %02x",
                        blob_name(blob), start[0], start[1]);
    if (!start[3])
        return diag_set(d, -EBADMSG, "%s: number of dimensions at byte 3: expected 1 to 255, got 0",
                        blob_name(blob));
    h->axes = start[3];
    h->payload = 4 + 4 * (uint64_t)h->axes;
    return idx_header_read_type(blob, start[2], &h->dtype, d);
}

static int read_dims(const struct blob *blob, struct idx_header *h, struct diag *d)
{
    uint8_t dims[4 * IDX_AXES_MAX];
    int r;

    if (blob->size < h->payload)
        return diag_set(d, -EBADMSG,
                        "%s: header at byte 0: expected %llu bytes for %u dimensions, got %llu",
                        blob_name(blob), (unsigned long long)h->payload, h->axes,
                        (unsigned long long)blob->size);
    r = blob_read(READ_WAITS, blob, dims, 4 * (size_t)h->axes, 4, d);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < h->axes; i++)
        h->dim[i] = load_be32(dims + 4 * i);
    return 0;
}

/* The bytes of one sample; 0 if an axis has size 0, however large the others are. */
static bool item_bytes(const struct idx_header *h, uint64_t *ret)
{
    uint64_t bytes = dtype_info(h->dtype)->bytes;
    bool fits = true;

    for (unsigned i = 1; i < h->axes; i++) {
        if (!h->dim[i]) {
            *ret = 0;
            return true;
        }
    }
    for (unsigned i = 1; i < h->axes && fits; i++)
        fits = checked_mul(bytes, h->dim[i], &bytes);
    *ret = bytes;
    return fits;
}

static int check_payload(const struct blob *blob, struct idx_header *h, struct diag *d)
{
    uint64_t found = blob->size - h->payload, want = 0;
    bool fits = item_bytes(h, &h->item_bytes) && checked_mul(h->item_bytes, h->dim[0], &want);

    if (!fits)
        return diag_set(d, -EBADMSG,
                        "%s: dimensions at byte 4: expected a product below 2^64 bytes, got "
                        "more, and %llu bytes of data",
                        blob_name(blob), (unsigned long long)found);
    if (found != want)
        return diag_set(d, -EBADMSG, "%s: data at byte %llu: expected %llu bytes, got %llu (%s)",
                        blob_name(blob), (unsigned long long)h->payload, (unsigned long long)want,
                        (unsigned long long)found, found < want ? "cut short" : "too long");
    return 0;
}

int idx_header_read(const struct blob *blob, struct idx_header *ret, struct diag *d)
{
    struct idx_header h;
    int r = read_start(blob, &h, d);

    if (r == 0)
        r = read_dims(blob, &h, d);
    if (r == 0)
        r = check_payload(blob, &h, d);
    if (r == 0)
        *ret = h;
    return r;
}

bool idx_header_fits(const uint8_t *head, size_t len, uint64_t size)
{
    struct idx_header h = {.axes = len >= 4 ? head[3] : 0};
    uint64_t item = 0, data = 0;
    unsigned type = 0;

    h.payload = 4 + 4 * (uint64_t)h.axes;
    while (type < N_IDX_TYPES && len >= 4 && idx_types[type].code != head[2])
        type++;
    if (!h.axes || type == N_IDX_TYPES || len < h.payload || size < h.payload)
        return false;
    h.dtype = idx_types[type].dtype;
    for (unsigned i = 0; i < h.axes; i++)
        h.dim[i] = load_be32(head + 4 + 4 * i);
    return item_bytes(&h, &item) && checked_mul(item, h.dim[0], &data) && size - h.payload == data;
}
