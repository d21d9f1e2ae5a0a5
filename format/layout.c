#include "format/layout.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/wants.h"

void layout_init(struct layout *l, const struct dataset *ds, const struct selection *sel,
                 const struct layout_host *host)
{
    l->dataset = ds;
    l->selection = sel;
    l->host = host;
    l->size = 0;
    l->n_parts = 0;
    l->room = ARRAY_LEN(l->inside_part);
    l->part = l->inside_part;
}

void layout_release(struct layout *l)
{
    for (unsigned i = 0; i < l->n_parts; i++)
        free(l->part[i].bytes);
    if (l->part != l->inside_part)
        free(l->part);
    l->n_parts = 0;
}

static int layout_grow(struct layout *l)
{
    unsigned room = l->room * 4;
    struct part *part = malloc(room * sizeof(*part));

    if (!part)
        return -ENOMEM;
    memcpy(part, l->part, l->n_parts * sizeof(*part));
    if (l->part != l->inside_part)
        free(l->part);
    l->part = part;
    l->room = room;
    return 0;
}

int layout_add(struct layout *l, const struct part *part)
{
    uint64_t size;

    if (!checked_add(l->size, part->size, &size) || size > INT64_MAX)
        return -EFBIG;
    if (l->n_parts == l->room) {
        int r = layout_grow(l);

        if (r < 0)
            return r;
    }
    l->part[l->n_parts++] = *part;
    l->size = size;
    return 0;
}

static int read_bytes(struct layout *l, const struct part *p, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d)
{
    (void)l;
    (void)d;
    memcpy(dst, p->bytes + off, len);
    return 0;
}

int layout_add_bytes(struct layout *l, uint8_t *bytes, size_t len)
{
    int r = bytes ? layout_add(l, &(struct part){.size = len, .read = read_bytes, .bytes = bytes})
                  : -ENOMEM;

    if (r < 0)
        free(bytes);
    return r;
}

void layout_replace_bytes(struct layout *l, unsigned i, uint8_t *bytes)
{
    free(l->part[i].bytes);
    l->part[i].bytes = bytes;
    l->part[i].read = read_bytes;
}

static int read_zeros(struct layout *l, const struct part *p, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d)
{
    (void)l;
    (void)p;
    (void)off;
    (void)d;
    memset(dst, 0, len);
    return 0;
}

int layout_add_zeros(struct layout *l, uint64_t len)
{
    return layout_add(l, &(struct part){.size = len, .read = read_zeros});
}

static int read_field(struct layout *l, const struct part *p, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d)
{
    return p->field->ops->read(l->dataset, p->field, l->selection, off, len, dst, d);
}

static int read_stored(struct layout *l, const struct part *p, uint64_t off, size_t len,
                       uint8_t *dst, struct diag *d)
{
    return field_read_stored(p->field, l->selection, off, len, dst, d);
}

int layout_add_field(struct layout *l, const struct field *f)
{
    struct part part = {.read = read_field, .field = f};
    struct form form;
    int r = field_form(l->dataset, f, l->selection, &form, &part.size);

    return r < 0 ? r : layout_add(l, &part);
}

int layout_add_stored(struct layout *l, const struct field *f)
{
    struct part part = {.read = read_stored, .field = f};

    if (!checked_mul(l->selection->count, f->stored_bytes, &part.size))
        return -EFBIG;
    return layout_add(l, &part);
}

int layout_read(struct layout *l, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    int all = 0;

    for (unsigned i = 0; i < l->n_parts && len; i++) {
        const struct part *p = &l->part[i];
        size_t n;

        if (off >= p->size) {
            off -= p->size;
            continue;
        }
        n = (size_t)min_u64(len, p->size - off);
        if (!wants_go_on(p->read(l, p, off, n, dst, d), &all))
            break;
        dst += n;
        len -= n;
        off = 0;
    }
    return all;
}

/* Go on with a checksum, up to len bytes. */
static int stream(struct layout *l, uint64_t off, uint64_t len, layout_update_fn *update,
                  struct layout_sum *sum, struct diag *d)
{
    size_t room = (size_t)min_u64(len - sum->done, LAYOUT_STREAM_BYTES);
    AUTO_FREE uint8_t *buf = malloc(room ? room : 1);
    uint64_t at = sum->done;
    int all = 0;

    if (!buf)
        return -ENOMEM;
    while (at < len) {
        size_t n = (size_t)min_u64(len - at, room);

        if (l->host && l->host->cancelled && l->host->cancelled(l->host))
            return -EINTR;
        if (!wants_go_on(layout_read(l, off + at, n, buf, d), &all))
            break;
        if (all == 0)
            *sum = (struct layout_sum){at + n, update(sum->sum, at, buf, n)};
        at += n;
    }
    return all;
}

int layout_checksum(struct layout *l, uint64_t off, uint64_t len, unsigned slot, uint32_t start,
                    layout_update_fn *update, uint32_t *ret, struct diag *d)
{
    const struct layout_host *host = l->host;
    struct wants *wants = wants_of_thread();
    struct layout_sum sum, before;
    bool uses;
    int r;

    if (!host || !host->recall || !host->recall(host, slot, &sum))
        sum = (struct layout_sum){.sum = start};
    if (sum.done >= len) {
        *ret = sum.sum;
        return 0;
    }
    before = sum;
    uses = wants && wants->uses;
    if (wants) /* a checksum is no use: the reader gets the bytes when they are read again */
        wants->uses = false;
    r = stream(l, off, len, update, &sum, d);
    if (wants)
        wants->uses = uses;
    if ((r == 0 || r == -EAGAIN) && sum.done > before.done && host && host->remember)
        host->remember(host, slot, &sum);
    if (r == 0)
        *ret = sum.sum;
    return r;
}

static uint32_t update_crc32(uint32_t sum, uint64_t at, const uint8_t *bytes, size_t n)
{
    (void)at;
    return (uint32_t)crc32_z(sum, bytes, n);
}

int layout_crc32(struct layout *l, uint64_t off, uint64_t len, unsigned slot, uint32_t *ret,
                 struct diag *d)
{
    return layout_checksum(l, off, len, slot, 0, update_crc32, ret, d);
}
