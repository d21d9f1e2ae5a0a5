/* The fields of libsvm text that have an item for each row: those of decoded rows (label, weight,
 * qid, x), and those of side files (weight, qid, base_margin). */
#include "format/libsvm/fields_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/sample_window.h"

static int libsvm_fields_items_read_items(struct read_context *rc, const struct dataset *ds,
                                          const struct field *f, const struct selection *sel,
                                          uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct libsvm_slab_ops *ops = (const struct libsvm_slab_ops *)f->ops;
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel), all = r;

    while (len && r == 0) {
        AUTO_MEMO struct memo_thing *thing = NULL;
        const struct libsvm_slab *slab = NULL;
        uint64_t place = off / f->item_bytes;
        size_t n = (size_t)min_u64(len, libsvm_view_slab_end(&v, place) * f->item_bytes - off);

        if (!missing_go_on(rc, libsvm_view_slab(rc, &v, place, &slab, &thing, d), &all))
            break;
        if (slab)
            ops->copy(ds, f, slab, off - slab->first * f->item_bytes, n, dst);
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static void copy_label(const struct dataset *ds, const struct field *f,
                       const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    (void)f;
    libsvm_copy_numbers(slab->label, 4, off, len, dst);
}

static void copy_weight(const struct dataset *ds, const struct field *f,
                        const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    (void)f;
    libsvm_copy_numbers(slab->weight, 4, off, len, dst);
}

static void copy_qid(const struct dataset *ds, const struct field *f,
                     const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    (void)f;
    libsvm_copy_numbers(slab->qid, 8, off, len, dst);
}

/* Add the features of row i of the slab that lie in its dense bytes [from, to) to the bytes at
 * dst. */
static void add_dense(const struct libsvm_slab *slab, unsigned i, uint64_t from, uint64_t to,
                      uint8_t *dst)
{
    uint64_t k = i ? slab->end[i - 1] : 0, end = slab->end[i];

    while (k < end) {
        uint32_t index = slab->index[k];
        uint64_t at = UINT64_C(4) * index;
        uint8_t bytes[4];
        float sum = 0;
        uint32_t bits;

        for (; k < end && slab->index[k] == index; k++)
            sum += slab->value[k];
        if (at + 4 <= from)
            continue;
        if (at >= to)
            return;
        memcpy(&bits, &sum, sizeof(bits));
        store_le32(bytes, bits);
        for (unsigned b = 0; b < 4; b++)
            if (at + b >= from && at + b < to)
                dst[at + b - from] = bytes[b];
    }
}

static void copy_x(const struct dataset *ds, const struct field *f, const struct libsvm_slab *slab,
                   uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    memset(dst, 0, len);
    while (len) {
        uint64_t from = off % f->item_bytes;
        size_t n = (size_t)min_u64(len, f->item_bytes - from);

        add_dense(slab, (unsigned)(off / f->item_bytes), from, from + n, dst);
        dst += n;
        off += n;
        len -= n;
    }
}

/* ---- side files ---- */

static void side_weight(const struct libsvm_rows *rows, const struct libsvm_row_at *at,
                        uint8_t *dst)
{
    float v = libsvm_side_weight(at->file->side, at->row);

    (void)rows;
    libsvm_copy_numbers(&v, 4, 0, 4, dst);
}

/* Groups have running numbers over all files. */
static void side_group(const struct libsvm_rows *rows, const struct libsvm_row_at *at, uint8_t *dst)
{
    store_le64(dst, rows->groups[at->number] +
                        libsvm_side_group(&at->file->side[LIBSVM_SIDE_GROUP], at->row));
}

static void side_margin(const struct libsvm_rows *rows, const struct libsvm_row_at *at,
                        uint8_t *dst)
{
    const struct libsvm_side *side = &at->file->side[LIBSVM_SIDE_MARGIN];

    (void)rows;
    libsvm_copy_numbers(side->value + at->row * side->per_row, 4, 0, (size_t)side->per_row * 4,
                        dst);
}

static int read_side(struct read_context *rc, const struct dataset *ds, const struct field *f,
                     const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    const struct libsvm_side_ops *ops = (const struct libsvm_side_ops *)f->ops;
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    int r = libsvm_rows_side(rows, ops->kind, d);
    AUTO_FREE uint8_t *bytes = r == 0 ? malloc(f->item_bytes) : NULL;
    struct sample_window window = {.sel = sel};

    (void)rc;
    if (r < 0 || !bytes)
        return r < 0 ? r : -ENOMEM;
    while (len) {
        uint64_t skip = off % f->item_bytes;
        size_t n = (size_t)min_u64(len, f->item_bytes - skip);
        struct libsvm_row_at at;

        at = libsvm_rows_find(rows, sample_window_at(&window, off / f->item_bytes));
        ops->item(rows, &at, bytes);
        memcpy(dst, bytes + skip, n);
        dst += n;
        off += n;
        len -= n;
    }
    return 0;
}

const struct libsvm_slab_ops libsvm_label_ops = {{.read = libsvm_fields_items_read_items},
                                                 copy_label};
const struct libsvm_slab_ops libsvm_weight_ops = {{.read = libsvm_fields_items_read_items},
                                                  copy_weight};
const struct libsvm_slab_ops libsvm_qid_ops = {{.read = libsvm_fields_items_read_items}, copy_qid};
const struct libsvm_slab_ops libsvm_x_ops = {{.read = libsvm_fields_items_read_items}, copy_x};
const struct libsvm_side_ops libsvm_side_weight_ops = {
    {.read = read_side}, LIBSVM_SIDE_WEIGHT, side_weight};
const struct libsvm_side_ops libsvm_side_group_ops = {
    {.read = read_side}, LIBSVM_SIDE_GROUP, side_group};
const struct libsvm_side_ops libsvm_margin_ops = {
    {.read = read_side}, LIBSVM_SIDE_MARGIN, side_margin};
