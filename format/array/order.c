/* Arrays in Fortran's order: the elements of one sample lie apart, so the array is turned into C's
 * order once, in memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/array/array.h"

#define PIECE (UINT64_C(4) << 20) /* read at once */

/* A blob whose bytes are in memory, made of another one. */
struct turned {
    struct blob blob; /* must be first */
    const struct blob *from;
    uint64_t offset; /* there */
    uint8_t *bytes;  /* owned */
};

static const struct turned *turned_of(const struct blob *blob)
{
    return (const struct turned *)blob;
}

static int turned_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                        uint64_t off, struct diag *d)
{
    (void)rc;
    (void)d;
    memcpy(buf, turned_of(blob)->bytes + off, len);
    return 0;
}

static int turned_check(const struct blob *blob)
{
    return blob_check(turned_of(blob)->from);
}

static int turned_identity(const struct blob *blob, char **ret)
{
    AUTO_FREE char *from = NULL;
    int r = blob_identity(turned_of(blob)->from, &from);

    if (r < 0)
        return r;
    return asprintf(ret, "%s in C order from %llu", from,
                    (unsigned long long)turned_of(blob)->offset) < 0
               ? -ENOMEM
               : 0;
}

static void turned_free(struct blob *blob)
{
    struct turned *t = (struct turned *)blob;

    free(t->blob.name);
    free(t->blob.source);
    free(t->bytes);
    free(t);
}

static const struct blob_ops turned_ops = {
    .pread = turned_pread, .check = turned_check, .identity = turned_identity, .free = turned_free};

/* Takes over bytes, also on error. */
static struct blob *turned_new(const struct blob *from, uint64_t offset, uint8_t *bytes,
                               uint64_t size)
{
    struct turned *t = calloc(1, sizeof(*t));

    if (!t) {
        free(bytes);
        return NULL;
    }
    t->blob = *from;
    t->blob.ops = &turned_ops;
    t->blob.size = size;
    t->blob.name = strdup(from->name);
    t->blob.source = from->source ? strdup(from->source) : NULL;
    t->from = from;
    t->offset = offset;
    t->bytes = bytes;
    if (t->blob.name && (t->blob.source || !from->source))
        return &t->blob;
    turned_free(&t->blob);
    return NULL;
}

static int read_all(const struct blob *blob, uint64_t off, uint64_t len, uint8_t *dst,
                    struct diag *d)
{
    for (uint64_t at = 0; at < len; at += PIECE) {
        int r =
            blob_read(READ_WAITS, blob, dst + at, (size_t)min_u64(PIECE, len - at), off + at, d);

        if (r < 0)
            return r;
    }
    return blob_verify(blob, d);
}

/* Copy the elements in C's order: the last axis runs fastest. */
static void array_order_turn(const struct npy_head *h, const uint8_t *src, uint8_t *dst)
{
    size_t width = dtype_info(h->dtype)->bytes;
    uint64_t n = h->array_bytes / width, at = 0;
    uint64_t index[NPY_AXES] = {0}, step[NPY_AXES];

    step[0] = 1;
    for (unsigned i = 1; i < h->ndim; i++)
        step[i] = step[i - 1] * h->dim[i - 1];
    for (uint64_t k = 0; k < n; k++) {
        memcpy(dst + k * width, src + at * width, width);
        for (unsigned i = h->ndim; i-- > 0;) {
            at += step[i];
            if (++index[i] < h->dim[i])
                break;
            at -= step[i] * index[i];
            index[i] = 0;
        }
    }
}

int array_in_c_order(struct array *a, uint64_t *left, const char *what, struct diag *d)
{
    AUTO_FREE uint8_t *src = NULL, *dst = NULL;
    AUTO_BLOB struct blob *blob = NULL;
    struct held_blob *held;
    int r;

    if (!a->head.fortran)
        return 0;
    if (a->head.array_bytes > *left)
        return diag_set(
            d, -EBADMSG,
            "%s: 'fortran_order': expected C order, or at most %llu bytes of such arrays in a "
            "folder, got %llu more; convert with numpy.ascontiguousarray",
            what, (unsigned long long)FORTRAN_MAX, (unsigned long long)a->head.array_bytes);
    src = malloc(a->head.array_bytes);
    dst = malloc(a->head.array_bytes);
    if (!src || !dst)
        return -ENOMEM;
    r = read_all(a->here.held->blob, a->here.offset, a->head.array_bytes, src, d);
    if (r < 0)
        return r;
    array_order_turn(&a->head, src, dst);
    blob = turned_new(a->here.held->blob, a->here.offset, TAKE_PTR(dst), a->head.array_bytes);
    held = blob ? held_blob_new(TAKE_PTR(blob), a->here.held) : NULL;
    if (!held)
        return -ENOMEM;
    held_blob_drop(a->here.held);
    a->here.held = held;
    a->here.offset = 0;
    a->head.fortran = false;
    *left -= a->head.array_bytes;
    return 0;
}
