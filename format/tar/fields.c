/* What a shard shows: the columns of its fields, and their contents. */
#include "format/tar/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/tar/header.h"

#define FORTRAN_MOST (UINT64_C(64) << 20) /* bytes of an array whose order is changed */

/* ---- columns ---- */

/* The last part of an extension: it says what the content is. */
static const char *last_part(const char *ext, size_t len)
{
    const char *dot = memrchr(ext, '.', len);

    return dot ? dot + 1 : ext;
}

enum tar_shown tar_shown_of(const char *ext, size_t len)
{
    static const struct {
        const char *part;
        enum tar_shown shown;
    } known[] = {{"cls", TAR_SHOWN_INTEGER}, {"index", TAR_SHOWN_INTEGER},
                 {"id", TAR_SHOWN_INTEGER},  {"npy", TAR_SHOWN_ARRAY},
                 {"txt", TAR_SHOWN_TEXT},    {"json", TAR_SHOWN_TEXT}};
    const char *part = last_part(ext, len);
    size_t part_len = (size_t)(ext + len - part);

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (part_len == strlen(known[i].part) && !memcmp(part, known[i].part, part_len))
            return known[i].shown;
    return TAR_SHOWN_BYTES;
}

bool tar_integer_parse(const uint8_t *bytes, size_t len, int64_t *ret)
{
    uint64_t v = 0;
    bool negative;
    size_t digits;

    while (len && strchr(" \t\r\n", bytes[len - 1]) && bytes[len - 1])
        len--;
    while (len && strchr(" \t\r\n", *bytes) && *bytes) {
        bytes++;
        len--;
    }
    negative = len && *bytes == '-';
    if (len && (*bytes == '-' || *bytes == '+')) {
        bytes++;
        len--;
    }
    for (digits = 0; digits < len && bytes[digits] >= '0' && bytes[digits] <= '9'; digits++)
        if (!checked_mul(v, 10, &v) || !checked_add(v, (uint64_t)(bytes[digits] - '0'), &v))
            return false;
    if (!digits || digits < len || v > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* Add a column of that form. But for bytes the last part of an extension is not in its name:
 * "label.cls" is `label`, "seg.txt" is `seg`, unless it is all of it. */
static void add_column(struct tar_shard *shard, unsigned field, enum tar_shown shown)
{
    const struct learned_column *learned = &shard->table.column[field];
    const uint64_t *number = learned->number;
    struct tar_column *shows = &shard->shows[shard->n_columns];
    struct record_column *column = &shard->column[shard->n_columns++];
    bool is_array = shown == TAR_SHOWN_INTEGER || shown == TAR_SHOWN_ARRAY;
    const char *part = last_part(learned->name, learned->len);
    bool cut =
        part > learned->name && (is_array || (shown == TAR_SHOWN_TEXT && !strcmp(part, "txt")));

    shows->field = field;
    shows->shown = shown;
    record_name(learned->name, cut ? (size_t)(part - learned->name) - 1 : learned->len,
                RECORD_NAME_MAX, shows->name);
    record_name(learned->name, learned->len, EXT_SIZE - 1, shows->ext);
    *column = (struct record_column){
        .name = shows->name,
        .shown = is_array                  ? RECORD_NUMBERS
                 : shown == TAR_SHOWN_TEXT ? RECORD_TEXT
                                           : RECORD_BYTES,
        .ext = shows->ext,
        .unnamed = shown == TAR_SHOWN_BYTES || !strcmp(learned->name, "txt"),
        .dtype = DTYPE_I8,
        .has_holes = number[TAR_FIELD_ROWS] + shard->faults < shard->prepared.index.rows,
    };
    if (is_array)
        column->without = RECORD_NOT_TAR;
    else if (shown == TAR_SHOWN_TEXT)
        column->without = RECORD_NOT_TAR | RECORD_NOT_ARRAYS;
    else if (number[TAR_FIELD_SHOWN] == TAR_SHOWN_INTEGER ||
             number[TAR_FIELD_SHOWN] == TAR_SHOWN_ARRAY)
        column->without = RECORD_NOT_ARRAYS; /* another column has them */
    if (shown == TAR_SHOWN_ARRAY) {
        column->dtype = (enum dtype)number[TAR_FIELD_TYPE];
        column->ndim = (unsigned)number[TAR_FIELD_AXES];
        memcpy(column->dim, number + TAR_FIELD_DIM, column->ndim * sizeof(column->dim[0]));
    }
}

int tar_columns_make(struct tar_shard *shard)
{
    unsigned n = shard->table.n;

    shard->column = calloc(2 * (size_t)n + 1, sizeof(*shard->column));
    shard->shows = calloc(2 * (size_t)n + 1, sizeof(*shard->shows));
    if (!shard->column || !shard->shows)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        enum tar_shown shown = (enum tar_shown)tar_field_number(shard, i, TAR_FIELD_SHOWN);

        add_column(shard, i, TAR_SHOWN_BYTES);
        if (shown != TAR_SHOWN_BYTES && tar_field_number(shard, i, TAR_FIELD_ROWS))
            add_column(shard, i, shown);
    }
    return 0;
}

/* ---- contents ---- */

static uint64_t number_at(const struct tar_shard *shard, uint64_t row, uint64_t column)
{
    return index_number(&shard->prepared.index, row, (unsigned)column);
}

/* A faulty sample has all fields, so that its loss is seen. */
bool tar_has(const void *file, uint64_t row, unsigned column)
{
    const struct tar_shard *shard = file;
    uint64_t place = tar_field_number(shard, shard->shows[column].field, TAR_FIELD_PLACE);

    return number_at(shard, row, place) || number_at(shard, row, TAR_FAULT);
}

static int check_fault(const struct tar_shard *shard, uint64_t row, struct diag *d)
{
    static const char *const faults[N_TAR_FAULTS] = {
        [TAR_TWICE] = "two members of one extension",
        [TAR_IS_SPARSE] = "a sparse member, which is never expanded",
        [TAR_CUT] = "the end of the file",
    };
    uint64_t fault = number_at(shard, row, TAR_FAULT);

    if (!fault)
        return 0;
    return diag_set(d, -EBADMSG, "%s: byte %llu: want a sample, found %s", blob_name(shard->blob),
                    (unsigned long long)number_at(shard, row, TAR_AT),
                    fault < N_TAR_FAULTS ? faults[fault] : "a fault");
}

int tar_dims(const void *file, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
             struct diag *d)
{
    const struct tar_shard *shard = file;
    const struct tar_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    int r = check_fault(shard, row, d);

    if (r < 0)
        return r;
    if (shows->shown != TAR_SHOWN_ARRAY && shows->shown != TAR_SHOWN_INTEGER)
        ret[0] = number_at(shard, row, number[TAR_FIELD_PLACE] + 1);
    for (unsigned i = 0; shows->shown == TAR_SHOWN_ARRAY && i < number[TAR_FIELD_AXES]; i++)
        ret[i] = number_at(shard, row, number[TAR_FIELD_VALUE] + 1 + i);
    return 0;
}

/* The place of a member's bytes in the archive, without a header of .npy. */
static struct extent find_bytes(const struct tar_shard *shard, uint64_t row, unsigned column)
{
    const struct tar_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    uint64_t head = 0;

    if (shows->shown == TAR_SHOWN_ARRAY)
        head = number_at(shard, row, number[TAR_FIELD_VALUE]) >> TAR_ARRAY_SHIFT;
    return (struct extent){
        shard->blob,
        number_at(shard, row, TAR_AT) + TAR_BLOCK * number_at(shard, row, number[TAR_FIELD_PLACE]) +
            head,
        number_at(shard, row, number[TAR_FIELD_PLACE] + 1) - head,
    };
}

bool tar_extent(const void *file, uint64_t row, unsigned column, struct extent *ret)
{
    const struct tar_shard *shard = file;

    if (shard->shows[column].shown == TAR_SHOWN_INTEGER || number_at(shard, row, TAR_FAULT))
        return false;
    *ret = find_bytes(shard, row, column);
    return ret->len > 0;
}

/* An integer, which the index has. */
static void read_integer(const struct tar_shard *shard, uint64_t row, unsigned field, uint64_t off,
                         size_t len, uint8_t *dst)
{
    uint8_t bytes[8];

    store_le64(bytes, number_at(shard, row, tar_field_number(shard, field, TAR_FIELD_VALUE)));
    memcpy(dst, bytes + off, len);
}

/* Where the element at a place in C order is in Fortran's. */
static uint64_t fortran_place(const uint64_t *dim, unsigned ndim, uint64_t place)
{
    uint64_t result = 0, index[RECORD_AXES];

    for (unsigned i = ndim; i-- > 0; place /= dim[i])
        index[i] = place % dim[i];
    for (unsigned i = ndim; i-- > 0;)
        result = result * dim[i] + index[i];
    return result;
}

/* An array in the source, whose elements need not be as the mount shows them. */
struct stored_array {
    struct extent bytes;
    size_t width;
    uint64_t flags, elements;
    unsigned ndim;
    uint64_t dim[RECORD_AXES];
};

/* Bytes [off, off + len) of the array in C order and little-endian. */
static int read_converted(struct read_context *rc, const struct stored_array *a, uint64_t off,
                          size_t len, uint8_t *dst, struct diag *d)
{
    bool fortran = a->flags & TAR_ARRAY_FORTRAN, swapped = a->flags & TAR_ARRAY_BIG_ENDIAN;
    uint64_t first = off / a->width, end = ceil_div(off + len, a->width);
    uint64_t from = fortran ? 0 : first, to = fortran ? a->elements : end;
    AUTO_FREE uint8_t *bytes = malloc((size_t)((to - from) * a->width));
    int r = bytes ? 0 : -ENOMEM;

    if (r == 0)
        r = blob_read(rc, a->bytes.blob, bytes, (size_t)((to - from) * a->width),
                      a->bytes.off + from * a->width, d);
    for (uint64_t i = first; i < end && r == 0; i++) {
        uint64_t place = fortran ? fortran_place(a->dim, a->ndim, i) : i;
        const uint8_t *element = bytes + (place - from) * a->width;

        for (size_t k = 0; k < a->width; k++) {
            uint64_t at = i * a->width + k;

            if (at >= off && at < off + len)
                dst[at - off] = element[swapped ? a->width - 1 - k : k];
        }
    }
    return r;
}

static int read_array(struct read_context *rc, const struct tar_shard *shard, uint64_t row,
                      unsigned column, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const uint64_t *number = shard->table.column[shard->shows[column].field].number;
    struct stored_array a = {
        .bytes = find_bytes(shard, row, column),
        .width = dtype_info((enum dtype)number[TAR_FIELD_TYPE])->bytes,
        .flags = number_at(shard, row, number[TAR_FIELD_VALUE]),
        .elements = 1,
        .ndim = (unsigned)number[TAR_FIELD_AXES],
    };
    int r = tar_dims(shard, row, column, a.dim, d);

    if (r < 0)
        return r;
    if (!(a.flags & (TAR_ARRAY_FORTRAN | TAR_ARRAY_BIG_ENDIAN)))
        return blob_read(rc, a.bytes.blob, dst, len, a.bytes.off + off, d);
    for (unsigned i = 0; i < a.ndim; i++)
        a.elements *= a.dim[i]; /* at most the bytes of the member: of the pass, or take() */
    if (a.flags & TAR_ARRAY_FORTRAN && a.elements * a.width > FORTRAN_MOST)
        return diag_set(d, -EBADMSG,
                        "%s: byte %llu: want an array of at most 64 MiB in Fortran order, found "
                        "%llu bytes; numpy.ascontiguousarray() makes it one in C order",
                        blob_name(shard->blob), (unsigned long long)a.bytes.off,
                        (unsigned long long)(a.elements * a.width));
    return read_converted(rc, &a, off, len, dst, d);
}

int tar_read(struct read_context *rc, const void *file, uint64_t row, unsigned column, uint64_t off,
             size_t len, uint8_t *dst, struct diag *d)
{
    const struct tar_shard *shard = file;
    const struct tar_column *shows = &shard->shows[column];
    struct extent e;
    int r = check_fault(shard, row, d);

    if (r < 0)
        return r;
    switch (shows->shown) {
    case TAR_SHOWN_INTEGER:
        read_integer(shard, row, shows->field, off, len, dst);
        return 0;
    case TAR_SHOWN_ARRAY:
        return read_array(rc, shard, row, column, off, len, dst, d);
    default:
        e = find_bytes(shard, row, column);
        return blob_read(rc, e.blob, dst, len, e.off + off, d);
    }
}
