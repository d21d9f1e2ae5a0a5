#include "format/core/layout.h"

#include <assert.h>
#include <errno.h>
#include <libdeflate.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

void layout_init(struct layout *l, const struct dataset *ds, const struct selection *sel,
                 const struct layout_host *host)
{
    l->dataset = ds;
    l->selection = sel;
    l->host = host;
    l->size = 0;
    l->held = 0;
    l->made = NULL;
    l->made_size = 0;
    l->is_making = l->is_whole = false;
    l->n_used = 0;
    l->n_parts = 0;
    l->capacity = ARRAY_LEN(l->inside_part);
    l->part = l->inside_part;
}

static void drop_made(struct layout *l)
{
    if (l->made && l->host && l->host->give_back)
        l->host->give_back(l->host, l->made, l->made_size);
    else
        free(l->made);
    if (l->made)
        l->held -= l->made_size;
    l->made = NULL;
    l->made_size = 0; /* a caller's buffer is told by that */
    l->is_whole = false;
    l->n_used = 0;
    for (unsigned i = 0; i < l->n_parts; i++)
        l->part[i].is_made = false;
}

void layout_release(struct layout *l)
{
    drop_made(l);
    for (unsigned i = 0; i < l->n_parts; i++)
        free(l->part[i].bytes);
    if (l->part != l->inside_part)
        free(l->part);
    l->n_parts = 0;
}

static int layout_grow(struct layout *l)
{
    unsigned capacity = l->capacity * 4;
    struct part *part = malloc(capacity * sizeof(*part));

    if (!part)
        return -ENOMEM;
    memcpy(part, l->part, l->n_parts * sizeof(*part));
    if (l->part != l->inside_part) {
        free(l->part);
        l->held -= l->capacity * sizeof(*part);
    }
    l->held += capacity * sizeof(*part);
    l->part = part;
    l->capacity = capacity;
    return 0;
}

int layout_add(struct layout *l, const struct part *part)
{
    uint64_t size;

    if (!checked_add(l->size, part->size, &size) || size > INT64_MAX)
        return -EFBIG;
    if (l->n_parts == l->capacity) {
        int r = layout_grow(l);

        if (r < 0)
            return r;
    }
    l->part[l->n_parts++] = *part;
    l->size = size;
    return 0;
}

static int layout_read_bytes(struct read_context *rc, struct layout *l, const struct part *p,
                             uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    (void)rc;
    (void)l;
    (void)d;
    memcpy(dst, p->bytes + off, len);
    return 0;
}

int layout_add_bytes(struct layout *l, uint8_t *bytes, size_t len)
{
    int r =
        bytes
            ? layout_add(l, &(struct part){.size = len, .read = layout_read_bytes, .bytes = bytes})
            : -ENOMEM;

    if (r < 0)
        free(bytes);
    else
        l->held += len;
    return r;
}

void layout_replace_bytes(struct layout *l, unsigned i, uint8_t *bytes)
{
    if (!l->part[i].bytes)
        l->held += (size_t)l->part[i].size;
    free(l->part[i].bytes);
    l->part[i].bytes = bytes;
    l->part[i].read = layout_read_bytes;
}

static int read_zeros(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    (void)rc;
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

static int layout_read_field(struct read_context *rc, struct layout *l, const struct part *p,
                             uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    return p->field->ops->read(rc, l->dataset, p->field, l->selection, off, len, dst, d);
}

static int read_stored(struct read_context *rc, struct layout *l, const struct part *p,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct field *f = p->field;

    return f->read_stored ? f->read_stored(rc, l->dataset, f, l->selection, off, len, dst, d)
                          : field_read_stored(rc, f, l->selection, off, len, dst, d);
}

int layout_add_headed(struct layout *l, uint8_t *header, size_t len, const struct field *f,
                      uint64_t bytes)
{
    int r = layout_add_bytes(l, header, len);

    return r < 0 ? r
                 : layout_add(l,
                              &(struct part){.size = bytes, .read = layout_read_field, .field = f});
}

int layout_add_field(struct layout *l, const struct field *f)
{
    struct part part = {.read = layout_read_field, .field = f};
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

/* Do the sources still have the versions from which the file was made? */
static int check_used(struct read_context *rc, const struct layout *l, struct diag *d)
{
    int r = 0;

    for (unsigned i = 0; i < l->n_used && r == 0; i++)
        r = blob_used(rc, l->used[i], d);
    return r;
}

static int layout_read_part(struct read_context *rc, struct layout *l, const struct part *p,
                            uint64_t start, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const uint8_t *made;
    int r;

    if (!p->is_made)
        return p->read(rc, l, p, off, len, dst, d);
    made = l->made + start + off;
    r = check_used(rc, l, d);
    if (r == 0 && dst != made)
        memcpy(dst, made, len);
    return r;
}

static int layout_read_parts(struct read_context *rc, struct layout *l, uint64_t off, size_t len,
                             uint8_t *dst, struct diag *d)
{
    uint64_t start = 0;
    int all = 0;

    for (unsigned i = 0; i < l->n_parts && len; i++) {
        const struct part *p = &l->part[i];
        uint64_t from = max_u64(off, start) - start;
        size_t n;

        if (from < p->size) {
            n = (size_t)min_u64(len, p->size - from);
            if (!missing_go_on(rc, layout_read_part(rc, l, p, start, from, n, dst, d), &all))
                break;
            dst += n;
            len -= n;
        }
        start += p->size;
    }
    return all;
}

int layout_read(struct read_context *rc, struct layout *l, uint64_t off, size_t len, uint8_t *dst,
                struct diag *d)
{
    bool lends = !off && len == l->size && !l->made;
    int r;

    if (!lends)
        return layout_read_parts(rc, l, off, len, dst, d);
    l->made = dst;
    r = layout_read_parts(rc, l, off, len, dst, d);
    l->made = NULL;
    for (unsigned i = 0; i < l->n_parts; i++)
        l->part[i].is_made = false;
    return r;
}

/* Have a place for the bytes that checksums go over, if the file is small. Only a
 * context that checks late knows afterwards what they were read from. */
static void layout_make_room(struct read_context *rc, struct layout *l)
{
    if (l->made || !rc || !rc->checks_late || l->size > LAYOUT_MADE_BYTES)
        return;
    l->made_size = (size_t)l->size;
    l->made = l->host && l->host->buffer ? l->host->buffer(l->host, l->made_size, &l->made_size)
                                         : malloc(l->made_size);
    if (l->made)
        l->held += l->made_size;
    else
        l->made_size = 0;
}

/* May what is made be read? Not later, if it is from too many blobs. */
static bool note_used(struct read_context *rc, struct layout *l)
{
    static_assert(LAYOUT_USED == USED_MAX, "used has room for all that a context notes");

    if (!l->made || !l->made_size)
        return l->made;
    l->n_used = used_noted(rc, l->used);
    if (l->n_used < LAYOUT_USED)
        return true;
    if (!l->is_making) /* a part that needs a checksum of others asks in the middle of it */
        drop_made(l);
    return false;
}

int layout_make(struct read_context *rc, struct layout *l, struct diag *d)
{
    int r;

    if (l->size > LAYOUT_MADE_BYTES)
        return -EFBIG;
    layout_make_room(rc, l);
    l->is_making = true;
    r = l->made ? layout_read_parts(rc, l, 0, (size_t)l->size, l->made, d) : -ENOMEM;
    l->is_making = false;
    if (r == 0)
        r = blob_verify_used(rc, d);
    if (r == 0 && !note_used(rc, l))
        r = -EFBIG;
    for (unsigned i = 0; i < l->n_parts && r == 0; i++)
        l->part[i].is_made = true;
    l->is_whole = r == 0;
    return r;
}

int layout_lend(struct read_context *rc, const struct layout *l, const uint8_t **ret,
                struct diag *d)
{
    *ret = l->made;
    return check_used(rc, l, d);
}

/* All bytes of the range are made now, or none: then its parts are read as before. */
static void note_made(struct layout *l, const struct layout_range *range)
{
    uint64_t start = 0;

    for (unsigned i = 0; i < l->n_parts; i++) {
        struct part *p = &l->part[i];

        if (start >= range->off && start + p->size <= range->off + range->len)
            p->is_made = true;
        start += p->size;
    }
}

/* A checksum in progress. */
struct streamed {
    const struct layout_range *range;
    uint64_t at; /* how far its range has been read, missing bytes included */
    struct layout_sum sum;
    int all; /* as of missing_go_on() */
};

/* What the host knows of n checksums that begin with start. */
static void host_recall(const struct layout *l, const struct layout_range *range, unsigned n,
                        uint32_t start, struct layout_sum *ret)
{
    for (unsigned i = 0; i < n; i++)
        ret[i] = (struct layout_sum){.sum = start};
    if (l->host && l->host->recall)
        l->host->recall(l->host, range, n, ret);
}

/* Have the host remember n checksums, if one is further than it knew. */
static void host_remember(const struct layout *l, const struct layout_range *range,
                          const struct streamed *s, unsigned n, struct layout_sum *known)
{
    bool any = false;

    for (unsigned i = 0; i < n; i++) {
        any = any || s[i].sum.done > known[i].done;
        known[i] = s[i].sum;
    }
    if (any && l->host && l->host->remember)
        l->host->remember(l->host, range, n, known);
}

/* Continue a checksum up to byte number to of its range. false: it cannot continue, and s->all says
 * why. The bytes stay where they are made, or go through buf. */
static bool stream(struct read_context *rc, struct layout *l, struct streamed *s, uint64_t to,
                   layout_update_fn *update, uint8_t *buf, struct diag *d)
{
    while (s->at < to) {
        size_t n = (size_t)min_u64(to - s->at, LAYOUT_STREAM_BYTES);
        uint64_t off = s->range->off + s->at;
        uint8_t *bytes = l->made ? l->made + off : buf;

        if (read_cancelled(rc)) {
            s->all = -EINTR;
            return false;
        }
        if (!missing_go_on(rc, layout_read(rc, l, off, n, bytes, d), &s->all))
            return false;
        if (s->all == 0)
            s->sum = (struct layout_sum){s->at + n, update(s->sum.sum, s->at, bytes, n)};
        s->at += n;
    }
    return true;
}

/* How far into its len bytes a checksum is after step of steps. */
static uint64_t share_of(uint64_t len, uint64_t step, uint64_t steps)
{
    return min_u64(len, ceil_div(len, steps) * step);
}

/* Continue all checksums, an even share of each at a time. 0 or -errno. */
static int stream_together(struct read_context *rc, struct layout *l, struct streamed *s,
                           unsigned n, layout_update_fn *update, uint8_t *buf, struct diag *d)
{
    uint64_t steps = 0;
    int all = 0;

    for (unsigned i = 0; i < n; i++)
        steps = max_u64(steps, ceil_div(s[i].range->len, LAYOUT_STREAM_BYTES));
    for (uint64_t step = 1; step <= steps; step++)
        for (unsigned i = 0; i < n; i++)
            if (!stream(rc, l, &s[i], share_of(s[i].range->len, step, steps), update, buf, d))
                return s[i].all;
    for (unsigned i = 0; i < n; i++)
        all = all ? all : s[i].all;
    return all;
}

int layout_checksums(struct read_context *rc, struct layout *l, const struct layout_range *range,
                     unsigned n, uint32_t start, layout_update_fn *update, uint32_t *ret,
                     struct diag *d)
{
    AUTO_FREE uint8_t *buf = malloc(LAYOUT_STREAM_BYTES);
    AUTO_FREE struct streamed *s = malloc(n * sizeof(*s));
    AUTO_FREE struct layout_sum *known = malloc(n * sizeof(*known));
    int r;

    if (!buf || !s || !known)
        return -ENOMEM;
    layout_make_room(rc, l);
    host_recall(l, range, n, start, known);
    for (unsigned i = 0; i < n; i++)
        s[i] = (struct streamed){.range = &range[i], .at = known[i].done, .sum = known[i]};
    r = stream_together(rc, l, s, n, update, buf, d);
    if (r == 0 || r == -EAGAIN) {
        int changed = blob_verify_used(rc, d);

        if (changed < 0)
            return changed;
        if (r == 0 && note_used(rc, l))
            for (unsigned i = 0; i < n; i++)
                if (!known[i].done)
                    note_made(l, &range[i]);
        host_remember(l, range, s, n, known);
    }
    for (unsigned i = 0; i < n && r == 0; i++)
        ret[i] = s[i].sum.sum;
    return r;
}

int layout_checksum(struct read_context *rc, struct layout *l, uint64_t off, uint64_t len,
                    unsigned slot, uint32_t start, layout_update_fn *update, uint32_t *ret,
                    struct diag *d)
{
    const struct layout_range range = {off, len, slot};
    struct layout_sum sum;

    host_recall(l, &range, 1, start, &sum);
    if (sum.done >= len) {
        *ret = sum.sum;
        return 0;
    }
    return layout_checksums(rc, l, &range, 1, start, update, ret, d);
}

uint32_t layout_update_crc32(uint32_t sum, uint64_t at, const uint8_t *bytes, size_t n)
{
    (void)at;
    return libdeflate_crc32(sum, bytes, n);
}
