/* Items of fields as bytes: any byte range of a selection's items in sequence.
 *
 * Samples that are neighbours both in the selection and in the source are read in one piece. The
 * selection gives its sample numbers SAMPLES_AT_ONCE at a time. */
#include "format/core/dataset.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "base/real.h"

#define SAMPLES_AT_ONCE 256
#define PIECES_AT_ONCE  128
#define CHUNK           16384 /* bytes converted at once */
#define PLANES_AT_ONCE  64    /* items that are read for conversion */

/* A walk over the items that a byte range touches, in runs of neighbours in the source. */
struct walk {
    const struct field *field;
    const struct selection *sel;
    uint64_t item_bytes;
    uint64_t place;  /* of the next item */
    uint64_t within; /* byte of that item */
    size_t left;     /* bytes still to make */
    uint64_t sample[SAMPLES_AT_ONCE];
    uint64_t known_from; /* the place of sample[0] */
    size_t known;
};

struct run {
    uint64_t sample; /* the first */
    uint64_t off;    /* byte, from the start of its item */
    size_t len;
};

static void field_walk_init(struct walk *w, const struct field *f, const struct selection *sel,
                            uint64_t item_bytes, uint64_t off, size_t len)
{
    w->field = f;
    w->sel = sel;
    w->item_bytes = item_bytes;
    w->left = item_bytes ? len : 0;
    w->place = w->left ? off / item_bytes : 0;
    w->within = w->left ? off % item_bytes : 0;
    w->known_from = w->place;
    w->known = 0;
}

static void walk_know(struct walk *w)
{
    uint64_t items = ceil_div(w->within + w->left, w->item_bytes);

    if (w->place < w->known_from + w->known)
        return;
    w->known_from = w->place;
    w->known = (size_t)min_u64(min_u64(items, SAMPLES_AT_ONCE), w->sel->count - w->place);
    selection_samples(w->sel, w->known_from, w->known, w->sample);
}

/* The next run, at most one piece of the source; false at the end. */
static bool walk_next(struct walk *w, struct run *ret)
{
    uint64_t end;
    size_t i, n;

    if (!w->left)
        return false;
    walk_know(w);
    i = (size_t)(w->place - w->known_from);
    ret->sample = w->sample[i];
    ret->off = w->within;
    ret->len = (size_t)min_u64(w->item_bytes - w->within, w->left);
    end = field_neighbours_end(w->field, ret->sample);
    for (n = 1; i + n < w->known && ret->len < w->left && w->sample[i + n] == ret->sample + n &&
                ret->sample + n < end;
         n++)
        ret->len += (size_t)min_u64(w->item_bytes, w->left - ret->len);
    w->left -= ret->len;
    w->within = 0;
    w->place += n;
    return true;
}

/* The result r of a read of blob. For a field in many blobs only those that are read are checked.
 */
static int read_checked(struct read_context *rc, const struct field *f, const struct blob *blob,
                        int r, struct diag *d)
{
    return r == 0 && f->n_runs ? blob_used(rc, blob, d) : r;
}

/* Bytes [off, off + len) of a sample as stored; they may reach into those of its neighbours. */
static int read_source(struct read_context *rc, const struct field *f, uint64_t sample, void *buf,
                       size_t len, uint64_t off, struct diag *d)
{
    uint64_t at;
    const struct blob *blob = field_place(f, sample, &at);

    return read_checked(rc, f, blob, blob_read(rc, blob, buf, len, at + off, d), d);
}

int field_read_stored(struct read_context *rc, const struct field *f, const struct selection *sel,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct blob_piece pieces[PIECES_AT_ONCE];
    struct walk w;
    struct run run;
    const struct blob *blob = NULL;
    size_t n = 0;
    int all = 0;

    field_walk_init(&w, f, sel, f->stored_bytes, off, len);
    while (walk_next(&w, &run)) {
        uint64_t at;
        const struct blob *next_blob = field_place(f, run.sample, &at);

        if (n && (n == PIECES_AT_ONCE || next_blob != blob)) {
            int r = read_checked(rc, f, blob, blob_read_many(rc, blob, pieces, n, d), d);

            if (!missing_go_on(rc, r, &all))
                return all;
            n = 0;
        }
        blob = next_blob;
        pieces[n++] = (struct blob_piece){dst, run.len, at + run.off};
        dst += run.len;
    }
    if (n)
        missing_go_on(rc, read_checked(rc, f, blob, blob_read_many(rc, blob, pieces, n, d), d),
                      &all);
    return all;
}

static int read_as_stored(struct read_context *rc, const struct dataset *ds, const struct field *f,
                          const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                          struct diag *d)
{
    (void)ds;
    return field_read_stored(rc, f, sel, off, len, dst, d);
}

static void convert_swapped(const struct field *f, size_t n, const uint8_t *src, uint8_t *dst)
{
    uint64_t parts = dtype_info(f->dtype)->letter == 'c' ? 2 : 1;

    n *= parts;
    switch (f->width / parts) {
    case 2:
        for (size_t i = 0; i < n; i++)
            store_le16(dst + 2 * i, load_be16(src + 2 * i));
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            store_le32(dst + 4 * i, load_be32(src + 4 * i));
        break;
    case 8:
        for (size_t i = 0; i < n; i++)
            store_le64(dst + 8 * i, load_be64(src + 8 * i));
        break;
    default:
        memcpy(dst, src, n * (f->width / parts));
        break;
    }
}

#define TABLE_LEAST 1024 /* elements for which the table of quotients is worth its time */

static void convert_unit(size_t n, const uint8_t *src, uint8_t *dst)
{
    uint32_t quotient[256];

    if (n < TABLE_LEAST) {
        for (size_t i = 0; i < n; i++)
            store_le32(dst + 4 * i, bits_of_f4((float)src[i] / 255.0f));
        return;
    }
    for (unsigned v = 0; v < 256; v++)
        quotient[v] = bits_of_f4((float)v / 255.0f);
    for (size_t i = 0; i < n; i++)
        store_le32(dst + 4 * i, quotient[src[i]]);
}

/* n elements from src (as stored) to dst (as shown). */
static void field_convert(const struct field *f, size_t n, const uint8_t *src, uint8_t *dst)
{
    if (f->dtype == f->stored_dtype)
        convert_swapped(f, n, src, dst);
    else
        convert_unit(n, src, dst);
}

/* Convert the elements of one run. Every item is a whole number of elements. */
static int convert_run(struct read_context *rc, const struct field *f, const struct run *run,
                       uint8_t *dst, struct diag *d)
{
    uint8_t src[CHUNK], out[CHUNK];
    uint64_t off = run->off;
    size_t left = run->len;
    int all = 0;

    while (left) {
        size_t skip = (size_t)(off % f->width);
        size_t n = (size_t)min_u64(CHUNK / f->width, ceil_div(skip + left, f->width));
        size_t made = (size_t)min_u64(left, n * f->width - skip);
        int r = read_source(rc, f, run->sample, src, n * f->stored_width,
                            off / f->width * f->stored_width, d);

        if (!missing_go_on(rc, r, &all))
            break;
        if (r == 0) {
            field_convert(f, n, src, out);
            memcpy(dst, out + skip, made);
        }
        dst += made;
        off += made;
        left -= made;
    }
    return all;
}

/* Whole items, from that place on: as many as fit a chunk are gathered at once. */
static int convert_items(struct read_context *rc, const struct field *f,
                         const struct selection *sel, uint64_t place, uint64_t n, uint8_t *dst,
                         struct diag *d)
{
    uint64_t most = CHUNK / f->stored_bytes;
    uint8_t src[CHUNK];
    int all = 0;

    while (n) {
        uint64_t items = min_u64(n, most);
        int r = field_read_stored(rc, f, sel, place * f->stored_bytes,
                                  (size_t)(items * f->stored_bytes), src, d);

        if (!missing_go_on(rc, r, &all))
            break;
        if (r == 0)
            field_convert(f, (size_t)(items * f->item_bytes / f->width), src, dst);
        dst += items * f->item_bytes;
        place += items;
        n -= items;
    }
    return all;
}

/* The items of a byte range that is not of whole items, or of large ones. */
static int convert_range(struct read_context *rc, const struct field *f,
                         const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                         struct diag *d)
{
    struct walk w;
    struct run run;
    int all = 0;

    field_walk_init(&w, f, sel, f->item_bytes, off, len);
    while (walk_next(&w, &run)) {
        if (!missing_go_on(rc, convert_run(rc, f, &run, dst, d), &all))
            break;
        dst += run.len;
    }
    return all;
}

static int read_converted(struct read_context *rc, const struct dataset *ds, const struct field *f,
                          const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                          struct diag *d)
{
    uint64_t item = max_u64(f->item_bytes, 1), head = min_u64((item - off % item) % item, len);
    uint64_t whole = (len - head) / item, middle = whole * item;
    int r, all = 0;

    (void)ds;
    if (!f->stored_bytes || f->stored_bytes > CHUNK / 2 || whole < 2)
        return convert_range(rc, f, sel, off, len, dst, d);
    r = convert_range(rc, f, sel, off, (size_t)head, dst, d);
    if (!missing_go_on(rc, r, &all))
        return all;
    r = convert_items(rc, f, sel, (off + head) / item, whole, dst + head, d);
    if (!missing_go_on(rc, r, &all))
        return all;
    r = convert_range(rc, f, sel, off + head + middle, (size_t)(len - head - middle),
                      dst + head + middle, d);
    missing_go_on(rc, r, &all);
    return all;
}

/* Exchanging the axes takes whole stored items; formats bound the size of such items when they open
 * them. */
static int read_transposed(struct read_context *rc, const struct dataset *ds, const struct field *f,
                           const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                           struct diag *d)
{
    uint64_t rows = f->dim[0], columns = f->dim[1]; /* as files show them */
    uint64_t old = UINT64_MAX;
    AUTO_FREE uint8_t *item = NULL;
    int r = 0, all = 0;

    (void)ds;
    if (!len)
        return 0;
    item = malloc(f->stored_bytes);
    if (!item)
        return -ENOMEM;
    while (len) {
        uint64_t place = off / f->item_bytes, element = off % f->item_bytes / f->width;
        size_t skip = (size_t)(off % f->width), n = (size_t)min_u64(len, f->width - skip);
        uint64_t from = (element % columns) * rows + element / columns;
        uint8_t shown[8];

        if (place != old) {
            uint64_t sample;

            selection_samples(sel, place, 1, &sample);
            r = read_source(rc, f, sample, item, f->stored_bytes, 0, d);
            if (!missing_go_on(rc, r, &all))
                break;
            old = place;
        }
        if (r == 0) {
            field_convert(f, 1, item + from * f->stored_width, shown);
            memcpy(dst, shown + skip, n);
        }
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

/* Bytes [from, from + n) of an item as shown, made of the planes at src. */
static void join_planes(const struct field *f, const uint8_t *src, uint64_t from, size_t n,
                        uint8_t *dst)
{
    uint64_t planes = f->dim[2], pixels = f->dim[0] * f->dim[1];
    uint64_t pixel = from / planes, plane = from % planes;
    size_t i = 0;

    if (planes == 3 && plane == 0)
        for (; i + 3 <= n; i += 3, pixel++) {
            dst[i] = src[pixel];
            dst[i + 1] = src[pixels + pixel];
            dst[i + 2] = src[2 * pixels + pixel];
        }
    for (; i < n; i++) {
        dst[i] = src[plane * pixels + pixel];
        if (++plane == planes) {
            plane = 0;
            pixel++;
        }
    }
}

/* Read whole stored items, some at a time. */
static int read_planes(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    uint64_t most =
        len ? min_u64(ceil_div(off % f->item_bytes + len, f->item_bytes), PLANES_AT_ONCE) : 0;
    AUTO_FREE uint8_t *items = most ? malloc(most * f->stored_bytes) : NULL;
    int all = 0;

    (void)ds;
    if (most && !items)
        return -ENOMEM;
    while (len) {
        uint64_t place = off / f->item_bytes, within = off % f->item_bytes;
        uint64_t n = min_u64(most, ceil_div(within + len, f->item_bytes));
        int r =
            field_read_stored(rc, f, sel, place * f->stored_bytes, n * f->stored_bytes, items, d);

        if (!missing_go_on(rc, r, &all))
            break;
        for (uint64_t i = 0; i < n; i++) {
            size_t made = (size_t)min_u64(f->item_bytes - within, len);

            if (r == 0)
                join_planes(f, items + i * f->stored_bytes, within, made, dst);
            dst += made;
            off += made;
            len -= made;
            within = 0;
        }
    }
    return all;
}

int64_t stored_integer(const struct field *f, const uint8_t *p)
{
    return dtype_integer(f->stored_dtype, f->stored_big_endian, p);
}

int field_integer(struct read_context *rc, const struct dataset *ds, const struct field *f,
                  uint64_t sample, int64_t *ret, struct diag *d)
{
    uint8_t bytes[8];
    struct one_sample one;
    int r;

    one_sample_init(&one, sample);
    r = f->blob ? read_source(rc, f, sample, bytes, f->stored_bytes, 0, d)
                : f->read_stored(rc, ds, f, &one.sel, 0, (size_t)f->stored_bytes, bytes, d);
    if (r == 0)
        *ret = stored_integer(f, bytes);
    return r;
}

/* Read runs of neighbours, so many at a time that finding a number costs little next to copying
 * it. */
static int field_read_number(struct read_context *rc, const struct dataset *ds,
                             const struct field *f, const struct selection *sel, uint64_t off,
                             size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t bytes[8 * SAMPLES_AT_ONCE];
    struct walk w;
    struct run run;

    (void)rc;
    (void)d;
    field_walk_init(&w, f, sel, f->item_bytes, off, len);
    while (walk_next(&w, &run)) {
        size_t n = (size_t)ceil_div(run.off + run.len, 8); /* at most SAMPLES_AT_ONCE */

        for (size_t i = 0; i < n; i++)
            store_le64(bytes + 8 * i, dataset_number(ds, run.sample + i));
        memcpy(dst, bytes + run.off, run.len);
        dst += run.len;
    }
    return 0;
}

static int read_key(struct read_context *rc, const struct dataset *ds, const struct field *f,
                    const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                    struct diag *d)
{
    uint8_t key[KEY_SIZE];
    struct walk w;
    struct run run;

    (void)rc;
    (void)d;
    field_walk_init(&w, f, sel, f->item_bytes, off, len);
    while (walk_next(&w, &run)) {
        while (run.len) {
            size_t n = (size_t)min_u64(run.len, f->item_bytes - run.off);

            dataset_key(ds, run.sample++, key);
            memcpy(dst, key + run.off, n);
            dst += n;
            run.len -= n;
            run.off = 0;
        }
    }
    return 0;
}

const struct field_ops field_as_stored = {.read = read_as_stored};
const struct field_ops field_converted = {.read = read_converted};
const struct field_ops field_transposed = {.read = read_transposed};
const struct field_ops field_planes = {.read = read_planes};
const struct field_ops field_number = {.read = field_read_number};
const struct field_ops field_key = {.read = read_key};

void dataset_add_numbering(struct dataset *ds)
{
    ds->field[ds->n_fields++] = (struct field){
        .name = "index",
        .in = IN_NPY_BATCHES | IN_NPZ_BATCHES | IN_PAGES,
        .numbering = true,
        .ops = &field_number,
        .dtype = DTYPE_I8,
        .width = 8,
        .item_bytes = 8,
    };
    ds->field[ds->n_fields++] = (struct field){
        .name = "key",
        .in = IN_NPZ_BATCHES | IN_PAGES,
        .form = FORM_TEXT,
        .numbering = true,
        .ops = &field_key,
        .dtype = DTYPE_TEXT,
        .width = ds->key_digits,
        .item_bytes = ds->key_digits,
    };
}
