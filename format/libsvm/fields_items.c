/* The fields of libsvm text that have an item for each row: those of decoded rows (label, weight,
 * qid, x), and those of side files (weight, qid, base_margin). */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/libsvm/fields_parts.h"

void libsvm_copy_numbers(const void *number, unsigned stored, size_t step, unsigned width,
                         uint64_t off, size_t len, uint8_t *dst)
{
    const uint8_t *bytes = number;

    if (stored == width && step == width && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        memcpy(dst, bytes + off, len);
        return;
    }
    while (len) {
        uint64_t v = 0;
        uint32_t v4 = 0;

        if (stored == 8)
            memcpy(&v, bytes + off / width * step, sizeof(v));
        else
            memcpy(&v4, bytes + off / width * step, sizeof(v4));
        store_le_part(v | v4, width, &off, &len, &dst);
    }
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

        for (; k < end && slab->index[k] == index; k++)
            sum += slab->value[k];
        if (at + 4 <= from)
            continue;
        if (at >= to)
            return;
        libsvm_copy_numbers(&sum, 4, 4, 4, 0, sizeof(bytes), bytes);
        for (unsigned b = 0; b < 4; b++)
            if (at + b >= from && at + b < to)
                dst[at + b - from] = bytes[b];
    }
}

static void copy_x(const struct field *f, const struct libsvm_slab *slab, uint64_t off, size_t len,
                   uint8_t *dst)
{
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

/* The numbers of a slab that a field shows. */
static const void *slab_numbers(const struct libsvm_slab *slab, enum libsvm_content content)
{
    return content == LIBSVM_SHOWS_LABEL     ? (const void *)slab->label
           : content == LIBSVM_SHOWS_WEIGHT  ? slab->weight
           : content == LIBSVM_SHOWS_QID     ? (const void *)slab->qid
           : content == LIBSVM_SHOWS_DATA    ? (const void *)slab->value
           : content == LIBSVM_SHOWS_INDICES ? slab->index
                                             : slab->field;
}

int libsvm_slabs_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      uint64_t each, const struct selection *sel, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d)
{
    const enum libsvm_content content = libsvm_field_of(f)->content;
    const bool of_rows = content < LIBSVM_SHOWS_DATA;
    const unsigned width = (unsigned)(of_rows ? f->width : each);
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, rc, libsvm_rows_of(ds), sel), all = r;

    while (len && r == 0) {
        AUTO_MEMO struct memo_thing *thing = NULL;
        const struct libsvm_slab *slab = NULL;
        uint64_t place = off / each, end, before;
        size_t n;

        if (of_rows)
            end = libsvm_view_slab_end(&v, place);
        else
            r = libsvm_view_feature_place(&v, off / each, &place, &end);
        if (r < 0)
            return r;
        n = (size_t)min_u64(len, end * each - off);
        if (!missing_go_on(rc, libsvm_view_slab(&v, place, &slab, &thing, d), &all))
            break;
        before = !slab ? 0 : (of_rows ? slab->first : slab->features_before) * each;
        if (slab && content == LIBSVM_SHOWS_X)
            copy_x(f, slab, off - before, n, dst);
        else if (slab)
            libsvm_copy_numbers(slab_numbers(slab, content), content == LIBSVM_SHOWS_QID ? 8 : 4,
                                content == LIBSVM_SHOWS_QID ? 8 : 4, width, off - before, n, dst);
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static int read_items(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    return libsvm_slabs_read(rc, ds, f, f->item_bytes, sel, off, len, dst, d);
}

/* ---- side files ---- */

/* The item of a row. Groups have running numbers over all files. */
static int side_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const enum libsvm_content content = libsvm_field_of(items->field)->content;
    const struct libsvm_rows *rows = libsvm_rows_of(items->ds);
    const struct libsvm_row_at at = libsvm_rows_find(rows, sample);
    const struct libsvm_side *side = at.file->side, *value = &side[LIBSVM_SIDE_MARGIN];
    const struct libsvm_side *groups = &side[LIBSVM_SIDE_GROUP];
    uint64_t row = at.row * value->per_row, group;

    (void)before;
    (void)d;
    if (content == LIBSVM_SHOWS_QID) {
        group = rows->groups[at.number] + libsvm_side_group(groups, at.row);
        libsvm_copy_numbers(&group, 8, 8, 8, off, len, dst);
        return 0;
    }
    if (content == LIBSVM_SHOWS_WEIGHT) {
        value = &side[LIBSVM_SIDE_WEIGHT];
        row = !value->per_group ? at.row
              : groups->end     ? libsvm_side_group(groups, at.row)
                                : places_run(&at.file->base.prepared.index, at.row);
    }
    libsvm_copy_numbers(value->value + row, 4, 4, 4, off, len, dst);
    return 0;
}

static int read_side(struct read_context *rc, const struct dataset *ds, const struct field *f,
                     const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    const enum libsvm_content content = libsvm_field_of(f)->content;
    struct record_items items;
    int r = libsvm_rows_side(libsvm_rows_of(ds),
                             content == LIBSVM_SHOWS_WEIGHT ? LIBSVM_SIDE_WEIGHT
                             : content == LIBSVM_SHOWS_QID  ? LIBSVM_SIDE_GROUP
                                                            : LIBSVM_SIDE_MARGIN,
                             d);

    record_items_init(&items, rc, ds, f, sel);
    items.content = NULL;
    return r < 0 ? r : record_items_read_even(&items, f->item_bytes, side_item, off, len, dst, d);
}

const struct field_ops libsvm_item_ops = {.read = read_items};
const struct field_ops libsvm_side_ops = {.read = read_side};
