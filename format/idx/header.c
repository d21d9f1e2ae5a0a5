#include "format/idx/header.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/encode/idx_types.h"

/* The bytes of one sample; 0 if an axis has size 0, however large the others are. */
static bool idx_header_item_bytes(const struct idx_header *h, uint64_t *ret)
{
    bool fits = true;

    *ret = dtype_info(h->dtype)->bytes;
    for (unsigned i = 1; i < h->axes; i++) {
        if (!h->dim[i]) {
            *ret = 0;
            return true;
        }
        fits = fits && checked_mul(*ret, h->dim[i], ret);
    }
    return fits;
}

static int idx_header_check_data(const char *name, uint64_t size, struct idx_header *h,
                                 struct diag *d)
{
    uint64_t got = size - h->payload, expected = 0;

    if (!idx_header_item_bytes(h, &h->item_bytes) ||
        !checked_mul(h->item_bytes, h->dim[0], &expected))
        return diag_set(d, -EBADMSG,
                        "%s: dimensions at byte 4: expected a product below 2^64 bytes, got "
                        "more, and %llu bytes of data",
                        name, (unsigned long long)got);
    if (got != expected)
        return diag_set(d, -EBADMSG, "%s: data at byte %llu: expected %llu bytes, got %llu (%s)",
                        name, (unsigned long long)h->payload, (unsigned long long)expected,
                        (unsigned long long)got, got < expected ? "cut short" : "too long");
    return 0;
}

int idx_header_parse(const char *name, const uint8_t *head, size_t len, uint64_t size,
                     struct idx_header *ret, struct diag *d)
{
    struct idx_header h = {.axes = 0};
    unsigned type = 0;
    int r;

    if (len < 4)
        return diag_set(d, -EBADMSG, "%s: header at byte 0: expected at least 4 bytes, got %llu",
                        name, (unsigned long long)size);
    if (head[0] || head[1])
        return diag_set(d, -EBADMSG, "%s: magic at byte 0: expected 00 00, got %02x %02x", name,
                        head[0], head[1]);
    if (!head[3])
        return diag_set(d, -EBADMSG, "%s: number of dimensions at byte 3: expected 1 to 255, got 0",
                        name);
    while (type < N_IDX_TYPES && idx_types[type].code != head[2])
        type++;
    if (type == N_IDX_TYPES)
        return diag_set(d, -EBADMSG,
                        "%s: type at byte 2: expected 08, 09, 0b, 0c, 0d or 0e, got %02x", name,
                        head[2]);
    h = (struct idx_header){
        .dtype = idx_types[type].dtype, .axes = head[3], .payload = 4 + 4 * (uint64_t)head[3]};
    if (len < h.payload)
        return diag_set(d, -EBADMSG,
                        "%s: header at byte 0: expected %llu bytes for %u dimensions, got %llu",
                        name, (unsigned long long)h.payload, h.axes, (unsigned long long)size);
    for (unsigned i = 0; i < h.axes; i++)
        h.dim[i] = load_be32(head + 4 + 4 * i);
    r = idx_header_check_data(name, size, &h, d);
    if (r == 0)
        *ret = h;
    return r;
}

int idx_header_read(const struct blob *blob, struct idx_header *ret, struct diag *d)
{
    uint8_t head[IDX_HEADER_MAX];
    size_t len = (size_t)min_u64(sizeof(head), blob->size);
    int r = len ? blob_read(READ_WAITS, blob, head, len, 0, d) : 0;

    return r < 0 ? r : idx_header_parse(blob_name(blob), head, len, blob->size, ret, d);
}
