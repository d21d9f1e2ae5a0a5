/* Values of members: what they are, and how they are read. */
#include "format/records/member_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/number.h"

#define FORTRAN_MOST (UINT64_C(64) << 20) /* bytes of an array whose order is changed */

/* The last part of an extension: it says what the content is. */
static const char *last_part(const char *ext, size_t len)
{
    const char *dot = memrchr(ext, '.', len);

    return dot ? dot + 1 : ext;
}

enum member_shown member_shown_of(const char *ext, size_t len)
{
    static const struct {
        const char *part;
        enum member_shown shown;
    } known[] = {{"cls", MEMBER_AS_INTEGER}, {"index", MEMBER_AS_INTEGER},
                 {"id", MEMBER_AS_INTEGER},  {"npy", MEMBER_AS_ARRAY},
                 {"txt", MEMBER_AS_TEXT},    {"json", MEMBER_AS_TEXT}};
    const char *part = last_part(ext, len);
    size_t part_len = (size_t)(ext + len - part);

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (part_len == strlen(known[i].part) && !memcmp(part, known[i].part, part_len))
            return known[i].shown;
    return MEMBER_AS_BYTES;
}

bool member_integer_parse(const uint8_t *bytes, size_t len, int64_t *ret)
{
    uint64_t v = 0;
    bool negative;

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
    if (!len || digits_parse((const char *)bytes, len, (uint64_t)INT64_MAX + negative, &v) != len)
        return false;
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* ---- the pass ---- */

int member_add_columns(struct member_reader *reader, unsigned n, uint64_t *ret)
{
    int r = reader->columns + n + reader->spare <= INDEX_LEARNED
                ? index_builder_columns(reader->builder, reader->columns + n)
                : -E2BIG;

    if (r < 0)
        return r;
    *ret = reader->columns;
    reader->columns += n;
    return 0;
}

/* The first value of a column says how many columns all have. */
static int member_begin_values(struct member_reader *reader, uint64_t *number, unsigned n,
                               const char **ret_wrong)
{
    int r = number[MEMBER_VALUE] ? 0 : member_add_columns(reader, n, &number[MEMBER_VALUE]);

    if (r != -E2BIG)
        return r;
    *ret_wrong = "expected columns of the index for its value, got too many fields";
    return 0;
}

static int member_read_integer(struct member_reader *reader, uint64_t *number, uint64_t size,
                               uint64_t *row, const char **ret_wrong, struct diag *d)
{
    const uint8_t *bytes = NULL;
    int64_t value = 0;
    int r = size && size <= MEMBER_INTEGER_MAX ? reader->bytes(reader, (size_t)size, &bytes, d) : 0;

    if (r < 0)
        return r;
    if (!bytes || !member_integer_parse(bytes, (size_t)size, &value)) {
        *ret_wrong = "expected a decimal integer, got something else";
        return 0;
    }
    r = member_begin_values(reader, number, 1, ret_wrong);
    if (r == 0 && !*ret_wrong)
        row[number[MEMBER_VALUE]] = (uint64_t)value;
    return r;
}

/* The first of an array's numbers in a row: the bytes of the header, with MEMBER_ARRAY_... */
static uint64_t member_array_word(const struct npy_head *head)
{
    return head->bytes << MEMBER_ARRAY_SHIFT | (head->big_endian ? MEMBER_ARRAY_BIG_ENDIAN : 0) |
           (head->fortran ? MEMBER_ARRAY_FORTRAN : 0);
}

int member_take_array(struct member_reader *reader, uint64_t *number, const struct npy_head *head,
                      uint64_t *row, const char **ret_wrong)
{
    uint64_t *dim = number + MEMBER_DIM;
    int r;

    if (!number[MEMBER_VALUE]) {
        number[MEMBER_TYPE] = head->dtype;
        number[MEMBER_AXES] = head->ndim;
        memcpy(dim, head->dim, head->ndim * sizeof(*dim));
    }
    *ret_wrong = NULL;
    if (head->dtype != number[MEMBER_TYPE])
        *ret_wrong = "expected an array of the type that others before it have, got another type";
    else if (head->ndim != number[MEMBER_AXES])
        *ret_wrong =
            "expected an array with as many axes as others before it have, got another number";
    r = *ret_wrong ? 0 : member_begin_values(reader, number, 1 + head->ndim, ret_wrong);
    if (r < 0 || *ret_wrong)
        return r;
    row += number[MEMBER_VALUE];
    *row++ = member_array_word(head);
    for (unsigned i = 0; i < head->ndim; i++) {
        row[i] = head->dim[i];
        if (dim[i] != head->dim[i])
            dim[0] = dim[i] = DIM_VARIES; /* the first one varies wherever one does */
    }
    return 0;
}

static int member_read_array(struct member_reader *reader, uint64_t *number, uint64_t size,
                             uint64_t *row, const char **ret_wrong, struct diag *d)
{
    size_t start = (size_t)min_u64(size, NPY_HEAD_START), len = 0;
    struct npy_head head;
    const uint8_t *bytes;
    int r = start ? reader->bytes(reader, start, &bytes, d) : 0;

    *ret_wrong = "expected a header of .npy, got none";
    if (r == 0 && start)
        len = npy_head_bytes(bytes, start);
    if (!len || len > size)
        return r;
    r = reader->bytes(reader, len, &bytes, d);
    if (r == 0)
        *ret_wrong = npy_head_parse(bytes, len, size, &head, NULL);
    return r < 0 || *ret_wrong ? r : member_take_array(reader, number, &head, row, ret_wrong);
}

int member_read_value(struct member_reader *reader, uint64_t *number, uint64_t size, uint64_t *row,
                      const char **ret_wrong, struct diag *d)
{
    int r = 0;

    *ret_wrong = NULL;
    if (number[MEMBER_FORM] == MEMBER_AS_INTEGER)
        r = member_read_integer(reader, number, size, row, ret_wrong, d);
    else if (number[MEMBER_FORM] == MEMBER_AS_ARRAY)
        r = member_read_array(reader, number, size, row, ret_wrong, d);
    if (r == 0 && *ret_wrong)
        number[MEMBER_FORM] = MEMBER_AS_BYTES;
    return r;
}

/* ---- a kept index ---- */

bool member_numbers_are_good(const uint64_t *number, unsigned fixed, unsigned columns)
{
    uint64_t value = number[MEMBER_VALUE], n = 0;

    if (number[MEMBER_FORM] >= N_MEMBER_SHOWN || number[MEMBER_AXES] > RECORD_AXES ||
        number[MEMBER_TYPE] >= N_DTYPES || number[MEMBER_TYPE] == DTYPE_TEXT)
        return false;
    if (number[MEMBER_FORM] == MEMBER_AS_INTEGER)
        n = 1;
    if (number[MEMBER_FORM] == MEMBER_AS_ARRAY)
        n = 1 + number[MEMBER_AXES];
    if (!value && !number[MEMBER_AXES] && !number[MEMBER_ROWS]) /* no sample has one */
        return true;
    return !n || (value >= fixed && n <= columns && value <= columns - n);
}

bool member_array_is_good(const struct index *index, uint64_t row, const uint64_t *number,
                          uint64_t size)
{
    uint64_t column = number[MEMBER_VALUE], head = index_number(index, row, (unsigned)column);
    uint64_t bytes = dtype_info((enum dtype)number[MEMBER_TYPE])->bytes;

    for (unsigned i = 0; i < number[MEMBER_AXES]; i++) {
        uint64_t dim = index_number(index, row, (unsigned)column + 1 + i);
        uint64_t expected = number[MEMBER_DIM + i];

        if ((expected != DIM_VARIES && expected != dim) || !checked_mul(bytes, dim, &bytes))
            return false;
    }
    head >>= MEMBER_ARRAY_SHIFT;
    return head <= size && bytes <= size - head;
}

/* ---- columns ---- */

void member_column_make(const struct learned_column *learned, unsigned field,
                        enum member_shown shown, bool has_holes, struct member_column *ret_shows,
                        struct record_column *ret)
{
    const uint64_t *number = learned->number;
    bool is_value = shown == MEMBER_AS_INTEGER || shown == MEMBER_AS_ARRAY;
    const char *part = last_part(learned->name, learned->len);
    bool cut =
        part > learned->name && (is_value || (shown == MEMBER_AS_TEXT && !strcmp(part, "txt")));

    ret_shows->field = field;
    ret_shows->shown = shown;
    record_name(learned->name, cut ? (size_t)(part - learned->name) - 1 : learned->len,
                RECORD_NAME_MAX, ret_shows->name);
    record_name(learned->name, learned->len, RECORD_NAME_MAX, ret_shows->whole);
    if (cut && !strcmp(ret_shows->whole + strlen(ret_shows->whole) - 4, ".npy"))
        ret_shows->whole[strlen(ret_shows->whole) - 4] = '_'; /* numpy takes "x.npy" for "x" */
    record_name(learned->name, learned->len, EXT_SIZE - 1, ret_shows->ext);
    *ret = (struct record_column){
        .name = ret_shows->name,
        .whole = ret_shows->whole,
        .shown = is_value                  ? RECORD_NUMBERS
                 : shown == MEMBER_AS_TEXT ? RECORD_TEXT
                                           : RECORD_BYTES,
        .ext = ret_shows->ext,
        .unnamed = shown == MEMBER_AS_BYTES || !strcmp(learned->name, "txt"),
        .dtype = DTYPE_I8,
        .has_holes = has_holes,
    };
    if (is_value)
        ret->without = RECORD_NOT_TAR;
    else if (shown == MEMBER_AS_TEXT)
        ret->without = RECORD_NOT_TAR | RECORD_NOT_ARRAYS;
    else if (number[MEMBER_FORM] == MEMBER_AS_INTEGER || number[MEMBER_FORM] == MEMBER_AS_ARRAY)
        ret->without = RECORD_NOT_ARRAYS; /* another column has them */
    if (shown == MEMBER_AS_ARRAY) {
        ret->dtype = (enum dtype)number[MEMBER_TYPE];
        ret->ndim = (unsigned)number[MEMBER_AXES];
        memcpy(ret->dim, number + MEMBER_DIM, ret->ndim * sizeof(ret->dim[0]));
    }
}

int member_columns_make(const struct column_table *table, unsigned more,
                        bool (*is_complete)(const void *ctx, unsigned field), const void *ctx,
                        struct member_column **ret_shows, struct record_column **ret,
                        unsigned *ret_n)
{
    struct member_column *shows = calloc(2 * (size_t)table->n + more + 1, sizeof(*shows));
    struct record_column *column = calloc(2 * (size_t)table->n + more + 1, sizeof(*column));
    unsigned n = 0;

    *ret_shows = shows;
    *ret = column;
    if (!shows || !column)
        return -ENOMEM;
    for (unsigned i = 0; i < table->n; i++) {
        const struct learned_column *learned = &table->column[i];
        enum member_shown form = (enum member_shown)learned->number[MEMBER_FORM];
        bool has_holes = !is_complete(ctx, i);

        member_column_make(learned, i, MEMBER_AS_BYTES, has_holes, &shows[n], &column[n]);
        n++;
        if (form == MEMBER_AS_BYTES || !learned->number[MEMBER_ROWS])
            continue;
        member_column_make(learned, i, form, has_holes, &shows[n], &column[n]);
        n++;
    }
    *ret_n = n;
    return 0;
}

/* ---- contents ---- */

void member_array_dims(const struct index *index, uint64_t row, const uint64_t *number,
                       uint64_t ret[static RECORD_AXES])
{
    for (unsigned i = 0; i < number[MEMBER_AXES]; i++)
        ret[i] = index_number(index, row, (unsigned)number[MEMBER_VALUE] + 1 + i);
}

uint64_t member_array_head(const struct index *index, uint64_t row, const uint64_t *number)
{
    return index_number(index, row, (unsigned)number[MEMBER_VALUE]) >> MEMBER_ARRAY_SHIFT;
}

void member_integer_read(const struct index *index, uint64_t row, const uint64_t *number,
                         uint64_t off, size_t len, uint8_t *dst)
{
    uint8_t bytes[8];

    store_le64(bytes, index_number(index, row, (unsigned)number[MEMBER_VALUE]));
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
static int member_values_read_converted(struct read_context *rc, const struct stored_array *a,
                                        uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    bool fortran = a->flags & MEMBER_ARRAY_FORTRAN, swapped = a->flags & MEMBER_ARRAY_BIG_ENDIAN;
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

int member_array_read(struct read_context *rc, const struct extent *bytes,
                      const struct index *index, uint64_t row, const uint64_t *number, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    struct stored_array a = {
        .bytes = *bytes,
        .width = dtype_info((enum dtype)number[MEMBER_TYPE])->bytes,
        .flags = index_number(index, row, (unsigned)number[MEMBER_VALUE]),
        .elements = 1,
        .ndim = (unsigned)number[MEMBER_AXES],
    };

    member_array_dims(index, row, number, a.dim);
    if (!(a.flags & (MEMBER_ARRAY_FORTRAN | MEMBER_ARRAY_BIG_ENDIAN)))
        return blob_read(rc, a.bytes.blob, dst, len, a.bytes.off + off, d);
    for (unsigned i = 0; i < a.ndim; i++)
        a.elements *= a.dim[i]; /* at most the bytes of the member: of the pass, or of
                                 * member_array_is_good() */
    if (a.flags & MEMBER_ARRAY_FORTRAN && a.elements * a.width > FORTRAN_MOST)
        return diag_set(d, -EBADMSG,
                        "%s: byte %llu: expected an array of at most 64 MiB in Fortran order, got "
                        "%llu bytes; numpy.ascontiguousarray() makes it one in C order",
                        blob_name(a.bytes.blob), (unsigned long long)a.bytes.off,
                        (unsigned long long)(a.elements * a.width));
    return member_values_read_converted(rc, &a, off, len, dst, d);
}
