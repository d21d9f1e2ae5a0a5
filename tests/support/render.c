#include "support/render.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "support/idx_make.h"

#ifdef SLOW_BUILD
#define STEP 5 /* between two ends of a range in a small file */
#else
#define STEP 1
#endif

#define LARGEST (UINT64_C(4) << 30) /* file that is made in memory */

static void list_samples(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    const struct list_selection *list = (const struct list_selection *)sel;

    assert(first <= sel->count && n <= sel->count - first);
    memcpy(ret, list->sample + first, n * sizeof(*ret));
}

void list_selection_init(struct list_selection *ret, const uint64_t *sample, uint64_t count)
{
    ret->sel = (struct selection){.count = count, .samples = list_samples};
    ret->sample = sample;
}

const struct file_kind *find_file_kind(const struct dataset *ds, enum scope scope,
                                       const char *encoder, const char *suffix)
{
    for (unsigned i = 0; i < ds->n_folders; i++)
        for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++)
            if (!strcmp(ds->folder[i].name, encoder) &&
                !strcmp(ds->folder[i].files[scope][k].suffix, suffix))
                return &ds->folder[i].files[scope][k];
    return NULL;
}

/* Why a file that is too large for memory, as no dataset of a test makes, cannot be read.
 * AddressSanitizer marks what is allocated, byte for byte. */
static int find_reason(struct read_context *rc, struct layout *l)
{
    uint8_t piece[4096];
    int r = 0;

    for (uint64_t off = 0; off < l->size && r == 0; off += sizeof(piece))
        r = layout_read(rc, l, off, min_u64(sizeof(piece), l->size - off), piece, NULL);
    return r == 0 ? -ENOMEM : r;
}

int render(struct read_context *rc, const struct dataset *ds, const struct file_kind *kind,
           const struct selection *sel, const struct layout_host *host, struct bytes *ret)
{
    AUTO_LAYOUT struct layout l = {0};
    AUTO_FREE uint8_t *at = NULL;
    int r;

    layout_init(&l, ds, sel, host);
    r = kind->encoder->layout(&l, kind);
    if (r < 0)
        return r;
    if (l.size > LARGEST)
        return find_reason(rc, &l);
    at = malloc(l.size ? l.size : 1);
    if (!at)
        return -ENOMEM;
    r = layout_read(rc, &l, 0, l.size, at, NULL);
    if (r < 0)
        return r;
    *ret = (struct bytes){TAKE_PTR(at), l.size};
    return 0;
}

static bool range_agrees(struct layout *l, const struct bytes *whole, uint64_t off, size_t len)
{
    AUTO_FREE uint8_t *buf = malloc(len + 16);

    memset(buf, 0xa5, len + 16);
    if (layout_read(READ_WAITS, l, off, len, buf + 8, NULL) != 0 ||
        memcmp(buf + 8, whole->at + off, len) != 0) {
        fprintf(stderr, "bytes %llu + %zu differ\n", (unsigned long long)off, len);
        return false;
    }
    for (size_t i = 0; i < 8; i++)
        if (buf[i] != 0xa5 || buf[len + 8 + i] != 0xa5)
            return false;
    return true;
}

bool ranges_agree(const struct dataset *ds, const struct file_kind *kind,
                  const struct selection *sel, const struct bytes *whole, unsigned random_ranges)
{
    AUTO_LAYOUT struct layout l = {0};
    uint64_t rng = 88172645463325252;
    bool good;

    layout_init(&l, ds, sel, NULL);
    good = kind->encoder->layout(&l, kind) == 0 && l.size == whole->len;
    if (whole->len <= 150) {
        for (uint64_t off = 0; off <= whole->len && good; off++)
            for (uint64_t end = off; end <= whole->len && good; end += STEP)
                good = range_agrees(&l, whole, off, end - off);
        return good;
    }
    for (unsigned i = 0; i < random_ranges && good; i++) {
        uint64_t off, len;

        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        off = (rng >> 11) % whole->len;
        len = 1 + rng % min_u64(whole->len - off, i % 4 ? 40 : 100000);
        good = range_agrees(&l, whole, off, len);
    }
    return good;
}

static uint64_t sample_at(const struct selection *sel, uint64_t place)
{
    uint64_t sample = 0;

    selection_samples(sel, place, 1, &sample);
    return sample;
}

static uint8_t stored_byte(const struct field *f, uint64_t sample, uint64_t i)
{
    return idx_pattern(sample * f->stored_bytes + i);
}

/* Element number i of a sample, in the source's order, converted to little-endian. */
static void stored_element(const struct field *f, uint64_t sample, uint64_t i, uint8_t *ret)
{
    for (uint64_t b = 0; b < f->stored_width; b++)
        ret[b] = stored_byte(f, sample, i * f->stored_width + f->stored_width - 1 - b);
}

static void put_float(uint8_t *at, float v)
{
    memcpy(at, &v, 4); /* the tests run on little-endian hosts */
}

static int64_t stored_value(const struct field *f, uint64_t sample)
{
    uint64_t v = 0;
    unsigned shift = 64 - 8 * (unsigned)f->stored_width;

    for (uint64_t b = 0; b < f->stored_width; b++)
        v = v << 8 | stored_byte(f, sample, b);
    return f->stored_dtype == DTYPE_U1 ? (int64_t)v : (int64_t)(v << shift) >> shift;
}

static void model_item(const struct dataset *ds, const struct field *f, uint64_t sample,
                       uint8_t *ret)
{
    const bool exchanged = f->ops == &field_transposed;

    if (f->ops == &field_number) {
        memcpy(ret, &sample, 8);
    } else if (f->ops == &field_key) {
        char key[32];

        snprintf(key, sizeof(key), "%0*llu", (int)ds->key_digits, (unsigned long long)sample);
        memcpy(ret, key, f->item_bytes);
    } else if (f->ops == &field_one_hot) {
        for (uint64_t i = 0; i < f->dim[0]; i++)
            put_float(ret + 4 * i, (int64_t)i == stored_value(f, sample) ? 1 : 0);
    } else {
        uint64_t elements = f->item_bytes / f->width;

        for (uint64_t i = 0; i < elements; i++) {
            uint64_t from = i;
            uint8_t element[8];

            if (exchanged)
                from = i % f->dim[1] * f->dim[0] + i / f->dim[1];
            stored_element(f, sample, from, element);
            if (f->derived)
                put_float(ret + 4 * i, (float)element[0] / 255.0f);
            else
                memcpy(ret + i * f->width, element, f->width);
        }
    }
}

void model_items(const struct dataset *ds, const struct field *f, const struct selection *sel,
                 struct bytes *ret)
{
    ret->len = sel->count * f->item_bytes;
    ret->at = malloc(ret->len ? ret->len : 1);
    for (uint64_t i = 0; i < sel->count; i++)
        model_item(ds, f, sample_at(sel, i), ret->at + i * f->item_bytes);
}

void model_stored(const struct field *f, const struct selection *sel, struct bytes *ret)
{
    ret->len = sel->count * f->stored_bytes;
    ret->at = malloc(ret->len ? ret->len : 1);
    for (uint64_t i = 0; i < sel->count; i++)
        for (uint64_t k = 0; k < f->stored_bytes; k++)
            ret->at[i * f->stored_bytes + k] = stored_byte(f, sample_at(sel, i), k);
}

void model_npy(const struct dataset *ds, const struct field *f, const struct selection *sel,
               struct bytes *ret)
{
    static const char *const descr[] = {"|u1", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8"};
    char *header = calloc(1, 8192), first[32] = "";
    unsigned axes = f->ndim + !sel->single;
    size_t len = 10, rest;
    struct bytes items;

    memcpy(header, "\x93NUMPY\x01", 8);
    if (f->dtype == DTYPE_TEXT)
        len += (size_t)snprintf(header + len, 8192 - len, "{'descr': '|S%d'", (int)f->width);
    else
        len += (size_t)snprintf(header + len, 8192 - len, "{'descr': '%s'", descr[f->dtype]);
    len += (size_t)snprintf(header + len, 8192 - len, ", 'fortran_order': False, 'shape': (");
    for (unsigned i = 0; i < axes; i++) {
        uint64_t dim = sel->single ? f->dim[i] : i ? f->dim[i - 1] : sel->count;

        if (!i)
            snprintf(first, sizeof(first), "%llu", (unsigned long long)dim);
        len += (size_t)snprintf(header + len, 8192 - len, "%s%llu", i ? ", " : "",
                                (unsigned long long)dim);
    }
    len += (size_t)snprintf(header + len, 8192 - len, "%s), }", axes == 1 ? "," : "");
    for (size_t i = axes ? strlen(first) : 21; i < 21; i++)
        header[len++] = ' ';
    do
        header[len++] = ' ';
    while ((len + 1) % 64);
    header[len++] = '\n';
    rest = len - 10;
    header[8] = (char)(rest & 0xff);
    header[9] = (char)(rest >> 8);
    model_items(ds, f, sel, &items);
    ret->len = len + items.len;
    ret->at = malloc(ret->len);
    memcpy(ret->at, header, len);
    memcpy(ret->at + len, items.at, items.len);
    free(header);
    free(items.at);
}

void model_cls(const struct field *f, const struct selection *sel, struct bytes *ret)
{
    int width = f->stored_dtype == DTYPE_U1   ? 3
                : f->stored_dtype == DTYPE_I1 ? 4
                : f->stored_dtype == DTYPE_I2 ? 6
                                              : 11;

    ret->len = sel->count * (uint64_t)(width + 1);
    ret->at = malloc(ret->len + 1);
    for (uint64_t i = 0; i < sel->count; i++) {
        char *line = (char *)ret->at + i * (uint64_t)(width + 1);
        char text[32];
        int n = snprintf(text, sizeof(text), "%*lld", sel->single ? 0 : width,
                         (long long)stored_value(f, sample_at(sel, i)));

        memset(line, '\n', (size_t)width + 1);
        memcpy(line, text, (size_t)n);
    }
}
