/* The members of a CSR or CSC matrix, as scipy.sparse.save_npz writes them: data, indices, indptr,
 * format, shape; and the fields of LibFM's features with them. Integers have 4 bytes while all of
 * them fit, otherwise 8. */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/libsvm/fields_parts.h"

#define FORMAT_LEN  3 /* bytes of "csr" */
#define INT32_LIMIT (UINT64_C(1) << 31)

static bool by_columns(const struct field *f)
{
    enum libsvm_offer offer = libsvm_field_of(f)->offer;

    return offer == LIBSVM_OFFERS_COLUMN || offer == LIBSVM_OFFERS_BY_ROW ||
           offer == LIBSVM_OFFERS_BY_VALUE;
}

/* The type of integers below limit. */
static enum dtype integers_below(uint64_t limit)
{
    return limit > INT32_LIMIT ? DTYPE_I8 : DTYPE_I4;
}

static int matrix_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    const uint64_t features = libsvm_rows_of(ds)->features;
    enum libsvm_content content = libsvm_field_of(f)->content;
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    uint64_t elements = 2; /* of the shape */
    int r = 0;

    if (content < LIBSVM_SHOWS_FORMAT) {
        r = libsvm_view_open(&v, sel->rc, libsvm_rows_of(ds), sel);
        elements = r < 0 ? 0 : sums_total(&v.sums).size;
    }
    ret->dtype = f->dtype;
    ret->ndim = content != LIBSVM_SHOWS_FORMAT;
    ret->dim[0] = elements;
    if (content == LIBSVM_SHOWS_INDICES) {
        ret->dtype = integers_below(by_columns(f) ? sel->count : features);
    } else if (content == LIBSVM_SHOWS_INDPTR) {
        ret->dtype = integers_below(elements + 1);
        ret->dim[0] = (by_columns(f) ? features : sel->count) + 1;
    }
    ret->width = content == LIBSVM_SHOWS_FORMAT ? FORMAT_LEN : dtype_info(ret->dtype)->bytes;
    return r;
}

/* ---- rows one after another ---- */

/* The sums before each row, and over all. */
static int read_indptr(const struct dataset *ds, unsigned width, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, sel->rc, libsvm_rows_of(ds), sel);
    struct sums_pair before = {0};
    uint64_t place = off / width, sums[LIBSVM_BLOCK];

    off %= width;
    if (r == 0 && len)
        r = sums_before(&v.sums, place, &before);
    while (r == 0 && len) {
        size_t n = (size_t)min_u64(ceil_div(off + len, width), LIBSVM_BLOCK);
        size_t made = (size_t)min_u64(len, n * width - off);

        for (size_t i = 0; i < n && r == 0; i++, place++) {
            sums[i] = before.size;
            if (place < sel->count)
                r = sums_after(&v.sums, place, &before, &before);
        }
        libsvm_copy_numbers(sums, 8, 8, width, off, made, dst);
        dst += made;
        len -= made;
        off = 0;
    }
    return r;
}

static int matrix_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    const uint64_t shape[2] = {sel->count, libsvm_rows_of(ds)->features};
    enum libsvm_content content = libsvm_field_of(f)->content;
    struct form form;
    int r = matrix_form(ds, f, sel, &form);
    unsigned width = (unsigned)form.width;

    if (r < 0)
        return r;
    if (content == LIBSVM_SHOWS_FORMAT)
        memcpy(dst, (by_columns(f) ? "csc" : "csr") + off, len);
    else if (content == LIBSVM_SHOWS_SHAPE)
        libsvm_copy_numbers(shape, 8, 8, 8, off, len, dst);
    else if (by_columns(f))
        return libsvm_csc_read(rc, ds, libsvm_field_of(f), width, sel, off, len, dst, d);
    else if (content == LIBSVM_SHOWS_INDPTR)
        return read_indptr(ds, width, sel, off, len, dst);
    else
        return libsvm_slabs_read(rc, ds, f, width, sel, off, len, dst, d);
    return 0;
}

const struct field_ops libsvm_matrix_ops = {matrix_read, matrix_form};
