/* The members of a CSR matrix, as scipy.sparse.save_npz writes them: data, indices, indptr, format,
 * shape; and the fields of LibFM's features beside them. Integers have 4 bytes while all of them
 * fit, else 8. */
#include "format/libsvm/fields_parts.h"

#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

#define FORMAT_LEN 3 /* bytes of "csr" */

int libsvm_total_sums(const struct dataset *ds, const struct selection *sel, struct row_sums *ret)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel);

    if (r == 0)
        *ret = libsvm_view_sums(&v, libsvm_view_blocks(&v));
    return r;
}

void libsvm_set_form(struct form *ret, enum dtype dtype, uint64_t dim)
{
    ret->dtype = dtype;
    ret->width = dtype_info(dtype)->bytes;
    ret->ndim = 1;
    ret->dim[0] = dim;
}

int libsvm_form_data(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     struct form *ret)
{
    struct row_sums sums = {0};
    int r = libsvm_total_sums(ds, sel, &sums);

    (void)f;
    libsvm_set_form(ret, DTYPE_F4, sums.features);
    return r;
}

int libsvm_form_field(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    int r = libsvm_form_data(ds, f, sel, ret);

    ret->dtype = DTYPE_U4;
    return r;
}

static int libsvm_fields_matrix_form_indices(const struct dataset *ds, const struct field *f,
                                             const struct selection *sel, struct form *ret)
{
    struct row_sums sums = {0};
    int r = libsvm_total_sums(ds, sel, &sums);

    (void)f;
    libsvm_set_form(ret, libsvm_rows_of(ds)->features > LIBSVM_INT32_LIMIT ? DTYPE_I8 : DTYPE_I4,
                    sums.features);
    return r;
}

static int libsvm_fields_matrix_form_indptr(const struct dataset *ds, const struct field *f,
                                            const struct selection *sel, struct form *ret)
{
    struct row_sums sums = {0};
    int r = libsvm_total_sums(ds, sel, &sums);

    (void)f;
    libsvm_set_form(ret, sums.features >= LIBSVM_INT32_LIMIT ? DTYPE_I8 : DTYPE_I4, sel->count + 1);
    return r;
}

int libsvm_form_format(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    (void)ds;
    (void)f;
    (void)sel;
    ret->dtype = DTYPE_TEXT;
    ret->width = FORMAT_LEN;
    ret->ndim = 0;
    return 0;
}

int libsvm_form_shape(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    (void)ds;
    (void)f;
    (void)sel;
    libsvm_set_form(ret, DTYPE_I8, 2);
    return 0;
}

/* Copy bytes of the slab's elements. */
typedef void slab_elements_fn(const struct libsvm_slab *slab, uint64_t off, size_t len,
                              uint8_t *dst);

static void libsvm_fields_matrix_copy_values(const struct libsvm_slab *slab, uint64_t off,
                                             size_t len, uint8_t *dst)
{
    libsvm_copy_numbers(slab->value, 4, off, len, dst);
}

static void copy_indices(const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    libsvm_copy_numbers(slab->index, 4, off, len, dst);
}

static void copy_wide_indices(const struct libsvm_slab *slab, uint64_t off, size_t len,
                              uint8_t *dst)
{
    libsvm_copy_made(libsvm_make_widened, slab->index, 8, off, len, dst);
}

static void libsvm_fields_matrix_copy_fields(const struct libsvm_slab *slab, uint64_t off,
                                             size_t len, uint8_t *dst)
{
    libsvm_copy_numbers(slab->field, 4, off, len, dst);
}

static int read_elements(struct read_context *rc, const struct dataset *ds,
                         const struct selection *sel, unsigned width, slab_elements_fn *copy,
                         uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel), all = r;

    while (len && r == 0) {
        AUTO_MEMO struct memo_thing *thing = NULL;
        const struct libsvm_slab *slab = NULL;
        uint64_t end, place = libsvm_view_feature_place(&v, off / width, &end);
        size_t n = (size_t)min_u64(len, end * width - off);

        if (!missing_go_on(rc, libsvm_view_slab(rc, &v, place, &slab, &thing, d), &all))
            break;
        if (slab)
            copy(slab, off - slab->features_before * width, n, dst);
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static int libsvm_fields_matrix_read_data(struct read_context *rc, const struct dataset *ds,
                                          const struct field *f, const struct selection *sel,
                                          uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    (void)f;
    return read_elements(rc, ds, sel, 4, libsvm_fields_matrix_copy_values, off, len, dst, d);
}

static int libsvm_fields_matrix_read_field(struct read_context *rc, const struct dataset *ds,
                                           const struct field *f, const struct selection *sel,
                                           uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    (void)f;
    return read_elements(rc, ds, sel, 4, libsvm_fields_matrix_copy_fields, off, len, dst, d);
}

static int libsvm_fields_matrix_read_indices(struct read_context *rc, const struct dataset *ds,
                                             const struct field *f, const struct selection *sel,
                                             uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    bool wide = libsvm_rows_of(ds)->features > LIBSVM_INT32_LIMIT;

    (void)f;
    return read_elements(rc, ds, sel, wide ? 8 : 4, wide ? copy_wide_indices : copy_indices, off,
                         len, dst, d);
}

/* indptr: the sums before each row, and over all. */
static int libsvm_fields_matrix_read_indptr(struct read_context *rc, const struct dataset *ds,
                                            const struct field *f, const struct selection *sel,
                                            uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    uint64_t sums[LIBSVM_BLOCK + 1];
    unsigned width;
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel);

    (void)rc;
    (void)f;
    (void)d;
    if (r < 0)
        return r;
    width = libsvm_view_sums(&v, libsvm_view_blocks(&v)).features >= LIBSVM_INT32_LIMIT ? 8 : 4;
    while (len) {
        struct libsvm_row_at row[LIBSVM_BLOCK];
        uint64_t block = min_u64(off / width / LIBSVM_BLOCK,
                                 libsvm_view_blocks(&v) ? libsvm_view_blocks(&v) - 1 : 0);
        uint64_t start = block * LIBSVM_BLOCK * width;
        unsigned rows = 0;
        size_t n;

        if (sel->count)
            libsvm_view_rows(&v, block, row, &rows);
        sums[0] = libsvm_view_sums(&v, block).features;
        for (unsigned i = 0; i < rows; i++)
            sums[i + 1] = sums[i] + row[i].place.features;
        n = (size_t)min_u64(len, start + (rows + UINT64_C(1)) * width - off);
        if (width == 8) {
            libsvm_copy_numbers(sums, 8, off - start, n, dst);
        } else {
            uint32_t narrow[LIBSVM_BLOCK + 1];

            for (unsigned i = 0; i <= rows; i++)
                narrow[i] = (uint32_t)sums[i];
            libsvm_copy_numbers(narrow, 4, off - start, n, dst);
        }
        dst += n;
        off += n;
        len -= n;
    }
    return 0;
}

int libsvm_read_format(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    (void)rc;
    (void)ds;
    (void)sel;
    (void)d;
    memcpy(dst, (f->ops == &libsvm_csc_format_ops ? "csc" : "csr") + off, len);
    return 0;
}

int libsvm_read_shape(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    const uint64_t shape[2] = {sel->count, libsvm_rows_of(ds)->features};

    (void)rc;
    (void)f;
    (void)d;
    libsvm_copy_numbers(shape, 8, off, len, dst);
    return 0;
}

const struct field_ops libsvm_data_ops = {libsvm_fields_matrix_read_data, libsvm_form_data};
const struct field_ops libsvm_field_ops = {libsvm_fields_matrix_read_field, libsvm_form_field};
const struct field_ops libsvm_indices_ops = {libsvm_fields_matrix_read_indices,
                                             libsvm_fields_matrix_form_indices};
const struct field_ops libsvm_indptr_ops = {libsvm_fields_matrix_read_indptr,
                                            libsvm_fields_matrix_form_indptr};
const struct field_ops libsvm_format_ops = {libsvm_read_format, libsvm_form_format};
const struct field_ops libsvm_shape_ops = {libsvm_read_shape, libsvm_form_shape};
