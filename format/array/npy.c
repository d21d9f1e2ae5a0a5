/* The header of a .npy, and what it says of the bytes after it. The header is hostile: it is
 * parsed by hand (format/core/npy_head.c), and nothing is ever unpickled. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/array/array.h"

/* Why the first bytes give no header. */
static int refuse_start(const uint8_t *start, size_t have, const char *what, struct diag *d)
{
    uint64_t text;

    if (have < NPY_HEAD_START || memcmp(start, NPY_MAGIC, 6) != 0)
        return diag_set(d, -EBADMSG,
                        "%s: byte 0: expected the header of .npy (93 4e 55 4d 50 59), got "
                        "%zu bytes of something else",
                        what, have);
    if (start[6] < 1 || start[6] > 3 || start[7])
        return diag_set(d, -EBADMSG, "%s: version at byte 6: expected 1.0, 2.0 or 3.0, got %u.%u",
                        what, start[6], start[7]);
    text = start[6] == 1 ? load_le16(start + 8) : load_le32(start + 8);
    return diag_set(d, -EBADMSG,
                    "%s: length of the header at byte 8: expected at most %u bytes, got %llu", what,
                    NPY_HEAD_MAX - 12, (unsigned long long)text);
}

static int refuse_size(const struct npy_head *h, uint64_t len, const char *what, struct diag *d)
{
    bool is_short = h->array_bytes > len - h->bytes;

    return diag_set(d, -EBADMSG, "%s: data at byte %zu: expected %llu bytes, got %llu (%s)", what,
                    h->bytes, (unsigned long long)h->array_bytes,
                    (unsigned long long)(len - h->bytes), is_short ? "cut short" : "too long");
}

int npy_parse(struct array *a, const uint8_t *head, size_t have, uint64_t off, uint64_t len,
              bool exact, const char *what, struct diag *d)
{
    size_t bytes = npy_head_bytes(head, have);
    char other = 0;
    const char *wrong;

    if (!bytes)
        return refuse_start(head, have, what, d);
    if (bytes > len)
        return diag_set(d, -EBADMSG, "%s: header at byte 0: expected %zu bytes, got %llu", what,
                        bytes, (unsigned long long)len);
    wrong = npy_head_parse(head, bytes, UINT64_MAX, &a->head, &other);
    a->samples = other && a->head.ndim ? a->head.dim[0] : 0;
    a->is_beside = other == 'U' || other == 'S' || other == 'a' || !a->head.ndim;
    if (wrong)
        return diag_set(d, other ? -ENODATA : -EBADMSG, "%s: header at byte %u: %s", what,
                        head[6] > 1 ? 12 : 10, wrong);
    if (a->head.array_bytes > len - bytes || (exact && a->head.array_bytes < len - bytes))
        return refuse_size(&a->head, len, what, d);
    a->here.offset = off + bytes;
    a->extra = len - bytes - a->head.array_bytes;
    return array_set_shape(a, what, d);
}

int npy_read(struct array *a, uint64_t off, uint64_t len, bool exact, const char *what,
             struct diag *d)
{
    const struct blob *blob = a->here.held->blob;
    size_t have = (size_t)min_u64(len, NPY_HEAD_START);
    AUTO_FREE uint8_t *head = NULL;
    uint8_t start[NPY_HEAD_START] = {0};
    size_t bytes;
    int r = have ? blob_read(READ_WAITS, blob, start, have, off, d) : 0;

    if (r < 0)
        return r;
    bytes = npy_head_bytes(start, have);
    if (!bytes || bytes > len)
        return npy_parse(a, start, have, off, len, exact, what, d);
    head = malloc(bytes);
    if (!head)
        return -ENOMEM;
    r = blob_read(READ_WAITS, blob, head, bytes, off, d);
    return r < 0 ? r : npy_parse(a, head, bytes, off, len, exact, what, d);
}
