/* What a row shows. A row that cannot be read stays a row, so that its loss is seen: the fields
 * that are lost cannot be read, the others can. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/mindrecord/file.h"

static const char *const faults[] = {
    [FAULT_NO_PAGE] = "expected its page in the file, got the end of the file before",
    [FAULT_PAGE] =
        "expected a row inside the used bytes of its page, got a length that goes past them",
    [FAULT_NO_RAW] = "expected a raw page with its row group, got none",
    [FAULT_MAP] = "expected a MessagePack map of numbers and text, got something else",
    [FAULT_LENGTH] = "expected lengths of fields that are together that of the blob, got others",
    [FAULT_ELEMENTS] = "expected whole elements, got bytes that are left",
    [FAULT_PACKED] = "expected packed integers of the bytes that exist, got others",
    [FAULT_SHAPE] = "expected the elements of its shape, got another number of them",
    [FAULT_LACKS] = "expected a value, got none",
    [FAULT_TYPE] = "expected a value of its type, got another",
    [FAULT_RANGE] = "expected a number that its type has, got a larger one",
    [FAULT_INDEX] = "the kept index is wrong",
};

static uint64_t mindrecord_number(const struct mindrecord *file, uint64_t row, unsigned field,
                                  enum mindrecord_field_number number)
{
    return index_number(&file->base.prepared.index, row, mindrecord_column(field, number));
}

static bool mindrecord_is_fault(uint64_t state)
{
    return state > STATE_GOOD && state < KIND_BIN;
}

/* The bytes of a field in the file. */
static uint64_t mindrecord_place(const struct mindrecord *file, uint64_t row, unsigned field)
{
    bool is_text = file->header.field[field].type == TYPE_TEXT;

    return index_number(&file->base.prepared.index, row,
                        is_text ? MINDRECORD_RAW_AT : MINDRECORD_BLOB_AT) +
           mindrecord_number(file, row, field, FIELD_AT);
}

static int mindrecord_refuse(const struct mindrecord *file, uint64_t row, unsigned field,
                             uint64_t state, struct diag *d)
{
    const struct mindrecord_field *f = &file->header.field[field];
    unsigned column = f->type < TYPE_TEXT ? MINDRECORD_BLOB_AT : MINDRECORD_RAW_AT;

    return diag_set(d, -EIO, "%s: row %llu at byte %llu: field '%s': %s",
                    blob_name(file->base.blob), (unsigned long long)row,
                    (unsigned long long)index_number(&file->base.prepared.index, row, column),
                    f->name, faults[state]);
}

/* ---- the columns ---- */

bool mindrecord_fits(const struct mindrecord_field *f, uint64_t elements, uint64_t *ret_axis)
{
    uint64_t product = 1;
    bool varies = false;

    for (unsigned i = 0; i < f->ndim; i++) {
        varies |= f->dim[i] == DIM_VARIES;
        if (f->dim[i] != DIM_VARIES && !checked_mul(product, f->dim[i], &product))
            return false;
    }
    *ret_axis = varies && product ? elements / product : 0;
    return elements == (varies ? *ret_axis * product : product);
}

/* If all rows that can be read have one size, arrays are of that shape. */
static int mindrecord_add_array(struct mindrecord *file, struct record_column *column)
{
    const struct mindrecord_field *f = &file->header.field[column->field];
    uint64_t least = UINT64_MAX, most = 0;
    bool varies = false;

    for (uint64_t row = 0; row < file->header.rows; row++) {
        uint64_t axis;

        if (mindrecord_is_fault(mindrecord_number(file, row, column->field, FIELD_STATE)) ||
            !mindrecord_fits(f, mindrecord_number(file, row, column->field, FIELD_COUNT), &axis))
            continue;
        least = min_u64(least, axis);
        most = max_u64(most, axis);
    }
    column->ndim = f->ndim;
    for (unsigned i = 0; i < f->ndim; i++) {
        column->dim[i] = f->dim[i] == DIM_VARIES && least == most ? most : f->dim[i];
        varies |= column->dim[i] == DIM_VARIES;
    }
    if (varies)
        column->dim[0] = DIM_VARIES;
    return record_file_add(&file->base, column);
}

static int mindrecord_add_bytes(struct mindrecord *file, struct record_column *column)
{
    bool has[N_BYTES_KINDS] = {false};
    unsigned kinds = 0;
    int r = 0;

    for (uint64_t row = 0; row < file->header.rows; row++) {
        uint64_t state = mindrecord_number(file, row, column->field, FIELD_STATE);

        if (state >= KIND_BIN && state < N_STATES)
            has[state - KIND_BIN] = true;
    }
    for (unsigned i = 0; i < N_BYTES_KINDS; i++)
        kinds += has[i];
    has[0] |= !kinds;
    column->has_holes = kinds > 1;
    for (unsigned i = 0; i < N_BYTES_KINDS && r == 0; i++) {
        column->ext = bytes_kind_ext(i);
        column->part = KIND_BIN + i;
        if (has[i])
            r = record_file_add(&file->base, column);
    }
    return r;
}

int mindrecord_set_columns(struct mindrecord *file)
{
    static const enum record_shown shown[] = {[TYPE_BYTES] = RECORD_BYTES,
                                              [TYPE_ARRAY] = RECORD_NUMBERS,
                                              [TYPE_TEXT] = RECORD_TEXT,
                                              [TYPE_INTEGER] = RECORD_NUMBERS,
                                              [TYPE_FLOAT] = RECORD_NUMBERS};
    const struct mindrecord_header *header = &file->header;
    unsigned n_bytes = 0;
    int r = 0;

    for (unsigned i = 0; i < header->n_fields; i++)
        n_bytes += header->field[i].type == TYPE_BYTES;
    for (unsigned i = 0; i < header->n_fields && r == 0; i++) {
        const struct mindrecord_field *f = &header->field[i];
        struct record_column column = {.name = f->name,
                                       .shown = shown[f->type],
                                       .dtype = f->dtype,
                                       .field = i,
                                       .unnamed = f->type == TYPE_BYTES && n_bytes == 1};

        r = f->type == TYPE_BYTES   ? mindrecord_add_bytes(file, &column)
            : f->type == TYPE_ARRAY ? mindrecord_add_array(file, &column)
                                    : record_file_add(&file->base, &column);
    }
    return r;
}

/* ---- contents ---- */

/* Bytes that are lost are where the first kind of the field is. */
bool mindrecord_has(const void *p, uint64_t row, unsigned column)
{
    const struct mindrecord *file = p;
    const struct record_column *shown = &file->base.column[column];
    uint64_t state;

    if (!shown->part)
        return true;
    state = mindrecord_number(file, row, shown->field, FIELD_STATE);
    if (state >= KIND_BIN)
        return state == shown->part;
    return !column || shown[-1].field != shown->field;
}

int mindrecord_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                    struct diag *d)
{
    const struct mindrecord *file = p;
    unsigned field = file->base.column[column].field;
    const struct mindrecord_field *f = &file->header.field[field];
    uint64_t state = mindrecord_number(file, row, field, FIELD_STATE), n, axis = 0;

    if (mindrecord_is_fault(state))
        return mindrecord_refuse(file, row, field, state, d);
    if (f->type > TYPE_TEXT)
        return 0;
    n = mindrecord_number(file, row, field, f->type == TYPE_ARRAY ? FIELD_COUNT : FIELD_LEN);
    if (n > file->base.blob->size || (f->type == TYPE_ARRAY && !mindrecord_fits(f, n, &axis)))
        return mindrecord_refuse(file, row, field, FAULT_INDEX, d);
    ret[0] = n;
    for (unsigned i = 0; i < f->ndim; i++)
        ret[i] = f->dim[i] == DIM_VARIES ? axis : f->dim[i];
    return 0;
}

bool mindrecord_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct mindrecord *file = p;
    unsigned field = file->base.column[column].field;
    enum mindrecord_type type = file->header.field[field].type;

    if (type > TYPE_TEXT || mindrecord_is_fault(mindrecord_number(file, row, field, FIELD_STATE)))
        return false;
    *ret = (struct extent){file->base.blob, mindrecord_place(file, row, field),
                           mindrecord_number(file, row, field, FIELD_LEN)};
    return ret->len && ret->off <= ret->blob->size && ret->len <= ret->blob->size - ret->off;
}

bool mindrecord_unpack(const uint8_t *packed, uint64_t len, uint64_t n, unsigned width,
                       uint8_t *dst)
{
    uint64_t at = 4 + ceil_div(n, 4);

    if (len < at || load_be32(packed) != n)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        unsigned bytes = 1u << (packed[4 + i / 4] >> (6 - 2 * (i % 4)) & 3);
        uint64_t v = 0, sign = UINT64_C(1) << (8 * bytes - 1);

        if (len - at < bytes)
            return false;
        for (unsigned k = 0; k < bytes; k++)
            v |= (uint64_t)packed[at + k] << 8 * k;
        v = (v ^ sign) - sign;
        if (width == 4 && v + (UINT64_C(1) << 31) > UINT32_MAX)
            return false;
        if (width == 4)
            store_le32(dst + 4 * i, (uint32_t)v);
        else
            store_le64(dst + 8 * i, v);
        at += bytes;
    }
    return at == len;
}

struct unpacking {
    const struct mindrecord *file;
    struct read_context *rc;
    uint64_t row;
    unsigned field;
    struct diag *d;
};

static int make_unpacked(void *ctx, void **ret, size_t *ret_size)
{
    const struct unpacking *u = ctx;
    const struct mindrecord *file = u->file;
    uint64_t len = mindrecord_number(file, u->row, u->field, FIELD_LEN);
    uint64_t n = mindrecord_number(file, u->row, u->field, FIELD_COUNT);
    const struct mindrecord_field *f = &file->header.field[u->field];
    unsigned width = dtype_info(f->dtype)->bytes;
    AUTO_FREE uint8_t *packed = NULL, *all = NULL;
    uint64_t axis;
    int r;

    if (len > file->base.blob->size || n > len || !mindrecord_fits(f, n, &axis))
        return mindrecord_refuse(file, u->row, u->field, FAULT_INDEX, u->d);
    packed = malloc((size_t)len + 1);
    all = malloc((size_t)(n * width) + 1);
    if (!packed || !all)
        return -ENOMEM;
    r = blob_read(u->rc, file->base.blob, packed, (size_t)len,
                  mindrecord_place(file, u->row, u->field), u->d);
    if (r == 0)
        r = blob_verify(file->base.blob, u->d);
    if (r < 0)
        return r;
    if (!mindrecord_unpack(packed, len, n, width, all))
        return mindrecord_refuse(file, u->row, u->field, FAULT_PACKED, u->d);
    *ret = TAKE_PTR(all);
    *ret_size = (size_t)(n * width) + 1;
    return 0;
}

static int read_packed(struct read_context *rc, const struct mindrecord *file, uint64_t row,
                       unsigned field, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct unpacking unpacking = {file, rc, row, field, d};
    const struct memo_maker maker = {make_unpacked, &unpacking, rc};
    const struct memo_key key = {{(uintptr_t)file, row, field, (uintptr_t)make_unpacked}};
    AUTO_MEMO struct memo_thing *thing = NULL;
    int r = memo_get(file->memo, &key, &maker, &thing);

    if (r == 0)
        memcpy(dst, (const uint8_t *)memo_bytes(thing) + off, len);
    return r;
}

int mindrecord_content(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct mindrecord *file = p;
    unsigned field = file->base.column[column].field;
    const struct mindrecord_field *f = &file->header.field[field];
    uint64_t state = mindrecord_number(file, row, field, FIELD_STATE);
    uint8_t bytes[8];

    if (mindrecord_is_fault(state))
        return mindrecord_refuse(file, row, field, state, d);
    if (f->packed)
        return read_packed(rc, file, row, field, off, len, dst, d);
    if (f->type <= TYPE_TEXT)
        return blob_read(rc, file->base.blob, dst, len, mindrecord_place(file, row, field) + off,
                         d);
    store_le64(bytes, mindrecord_number(file, row, field, FIELD_AT));
    memcpy(dst, bytes + off, len);
    return 0;
}
