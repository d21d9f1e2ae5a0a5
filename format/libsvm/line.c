#include "format/libsvm/line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/scope.h"
#include "format/libsvm/rounded.h"

const char libsvm_too_long[] = "a row of at most 256 MiB";

/* The position in the line. */
struct cursor {
    const uint8_t *line, *at, *end;
    struct libsvm_fault *fault;
};

static int fail_at(struct cursor *c, const uint8_t *at, const char *expected)
{
    *c->fault = (struct libsvm_fault){.at = (size_t)(at - c->line), .expected = expected};
    return -EBADMSG;
}

static void libsvm_line_skip_blanks(struct cursor *c)
{
    while (c->at < c->end && text_is_blank(*c->at))
        c->at++;
}

/* Does a token end here? */
static bool at_break(const struct cursor *c)
{
    return c->at >= c->end || text_is_blank(*c->at) || *c->at == '#';
}

static bool at_end(const struct cursor *c)
{
    return c->at >= c->end || *c->at == '#';
}

bool libsvm_is_row(const uint8_t *line, size_t len)
{
    struct cursor c = {.line = line, .at = line, .end = line + len};

    libsvm_line_skip_blanks(&c);
    return !at_end(&c);
}

/* Skip white space and a colon; false, and skip nothing, if there is no colon. */
static bool take_colon(struct cursor *c)
{
    const uint8_t *start = c->at;

    libsvm_line_skip_blanks(c);
    if (c->at < c->end && *c->at == ':') {
        c->at++;
        libsvm_line_skip_blanks(c);
        return true;
    }
    c->at = start;
    return false;
}

static int libsvm_line_take_float(struct cursor *c, const struct libsvm_row *row, float *ret,
                                  const char *expected)
{
    const uint8_t *start = c->at;
    const uint8_t *end = start < c->end ? decimal_parse(start, c->end, ret) : NULL;

    if (!end)
        return fail_at(c, start, expected);
    if (row->rounded)
        libsvm_rounded_number(row->rounded, start, (size_t)(end - start),
                              row->at + (uint64_t)(start - c->line));
    c->at = end;
    return 0;
}

/* Take an integer without a sign, up to max; false if there is none. */
static bool libsvm_line_take_integer(struct cursor *c, uint64_t max, uint64_t *ret)
{
    size_t n = digits_parse((const char *)c->at, (size_t)(c->end - c->at), max, ret);

    c->at += n;
    return n;
}

/* Does the row begin with a feature instead of a label: white space, an index, a colon? */
static bool label_is_missing(const struct cursor *c, unsigned columns)
{
    struct cursor ahead = *c;
    uint64_t index;

    return c->at > c->line && !(columns & LIBSVM_WEIGHT) &&
           libsvm_line_take_integer(&ahead, LIBSVM_INDEX_MAX, &index) && take_colon(&ahead);
}

static int libsvm_line_take_labels(struct cursor *c, bool one, struct libsvm_row *row)
{
    for (;;) {
        float v;
        int r = libsvm_line_take_float(c, row, &v, "a number as label");

        if (r < 0)
            return r;
        if (row->n_labels < row->label_capacity)
            row->label[row->n_labels] = v;
        row->n_labels++;
        if (one || c->at >= c->end || *c->at != ',')
            return 0;
        c->at++;
    }
}

/* Take the labels and the weight. */
static int take_start(struct cursor *c, unsigned columns, struct libsvm_row *row)
{
    bool has_fields = columns & LIBSVM_FIELD;
    int r = 0;

    libsvm_line_skip_blanks(c);
    if (has_fields || !label_is_missing(c, columns)) {
        r = libsvm_line_take_labels(c, has_fields, row);
        if (r == 0 && take_colon(c)) {
            row->columns |= LIBSVM_WEIGHT;
            r = libsvm_line_take_float(c, row, &row->weight, "a number as weight");
        }
        if (r == 0 && !at_break(c))
            r = fail_at(c, c->at, "white space after the label");
    }
    for (uint64_t i = row->n_labels; i < row->label_capacity; i++)
        row->label[i] = NAN;
    return r;
}

static int take_qid(struct cursor *c, struct libsvm_row *row)
{
    const char *expected = "an integer of 64 bits as qid";
    const uint8_t *start;
    bool negative;
    uint64_t v;

    libsvm_line_skip_blanks(c);
    if (memcmp(c->at, "qid:", 4) != 0) /* what follows the line is none of these */
        return 0;
    c->at += 4;
    libsvm_line_skip_blanks(c);
    start = c->at;
    negative = *start == '-';
    c->at += negative || *start == '+';
    if (!libsvm_line_take_integer(c, (uint64_t)INT64_MAX + negative, &v) || !at_break(c))
        return fail_at(c, start, expected);
    row->columns |= LIBSVM_QID;
    row->qid = (int64_t)(negative ? 0 - v : v);
    return 0;
}

/* Fail unless the row has the columns of the file's rows. */
static int check_columns(struct cursor *c, unsigned columns, const struct libsvm_row *row)
{
    unsigned differ =
        columns & LIBSVM_ANY ? 0 : (columns ^ row->columns) & (LIBSVM_WEIGHT | LIBSVM_QID);

    if (differ & LIBSVM_WEIGHT)
        return fail_at(c, c->line,
                       columns & LIBSVM_WEIGHT
                           ? "label:weight as in the first row, or no weight in any row"
                           : "a label without a weight as in the first row, or a weight in every "
                             "row");
    if (differ & LIBSVM_QID)
        return fail_at(c, c->at,
                       columns & LIBSVM_QID ? "qid: as in the first row, or no qid in any row"
                                            : "no qid as in the first row, or a qid in every row");
    return 0;
}

/* Take the index at c->at. */
static int take_index(struct cursor *c, uint32_t *ret)
{
    const uint8_t *start = c->at;
    uint64_t v;

    c->at += *start == '+';
    if (!libsvm_line_take_integer(c, LIBSVM_INDEX_MAX, &v))
        return fail_at(c, start, "index:value with an index from 0 to 4294967295");
    *ret = (uint32_t)v;
    return 0;
}

/* Take the field at c->at, and the colon behind it. */
static int take_field(struct cursor *c, uint32_t *ret)
{
    static const char expected[] = "field:index:value with a field from 0 to 4294967295";
    const uint8_t *start = c->at;
    uint64_t v;

    if (!libsvm_line_take_integer(c, UINT32_MAX, &v) || !take_colon(c))
        return fail_at(c, start, expected);
    *ret = (uint32_t)v;
    return 0;
}

/* Either all features have a value, or none has: then the values are 1. */
static int libsvm_line_take_value(struct cursor *c, const struct libsvm_row *row, bool *bare,
                                  float *ret)
{
    const uint8_t *start = c->at;
    bool has_colon = c->at < c->end && *c->at == ':';
    float value = 1;
    int r = 0;

    if (has_colon && c->at + 1 < c->end && !text_is_blank(c->at[1]))
        c->at++;
    else
        has_colon = take_colon(c);
    if (row->n && *bare == has_colon)
        return fail_at(c, start,
                       *bare ? "an index without a value as before" : "a colon and a value");
    *bare = !has_colon;
    if (has_colon)
        r = libsvm_line_take_float(c, row, &value, "a number as value");
    if (r == 0 && !at_break(c))
        r = fail_at(c, c->at,
                    has_colon ? "white space after the value" : "a colon after the index");
    if (r == 0)
        *ret = value;
    return r;
}

static void libsvm_line_add_feature(struct libsvm_row *row, const uint32_t *field, uint32_t index,
                                    float value, uint32_t before)
{
    if (row->n < row->capacity) {
        if (field)
            row->field[row->n] = *field;
        row->index[row->n] = index;
        row->value[row->n] = value;
    }
    row->n++;
    row->sorted = row->sorted && index >= before;
    row->has_zero = row->has_zero || !index || (field && !*field);
    row->largest = index > row->largest ? index : row->largest;
    if (field && *field > row->largest_field)
        row->largest_field = *field;
}

/* The quick path for plain features: at most one space or tab, few digits, a colon, few digits.
 * Stops before the first other feature. *before: the index before; becomes the last one. Works on
 * copies, since the compiler must assume that stores into the arrays may change the row. */
static void take_plain(struct cursor *c, struct libsvm_row *row, uint32_t *before)
{
    const uint8_t *done = c->at, *const end = c->end;
    const uint64_t capacity = row->capacity;
    uint32_t *const indexes = row->index, last = *before, largest = row->largest;
    float *const values = row->value;
    uint64_t n = row->n;
    bool sorted = row->sorted, has_zero = row->has_zero;

    for (;;) {
        const uint8_t *at = done + (*done == ' ');
        uint32_t index = 0;
        unsigned digits = decimal_digits8(at, &index);
        float value;

        if (!digits || digits == 8 || at[digits] != ':')
            break;
        at = decimal_parse_short(at + digits + 1, &value);
        if (!at || !(at == end || text_is_blank(*at))) /* no number goes beyond the end */
            break;
        if (n < capacity) {
            indexes[n] = index;
            values[n] = value;
        }
        n++;
        sorted = sorted && index >= last;
        has_zero = has_zero || !index;
        largest = index > largest ? index : largest;
        last = index;
        done = at;
    }
    c->at = done;
    *before = last;
    row->n = n;
    row->sorted = sorted;
    row->has_zero = has_zero;
    row->largest = largest;
}

static int take_features(struct cursor *c, unsigned columns, struct libsvm_row *row)
{
    bool bare = false, has_fields = columns & LIBSVM_FIELD;
    const uint8_t *first = c->at;
    uint32_t before = 0;

    row->sorted = true;
    for (;;) {
        const uint8_t *start;
        uint32_t index, field = 1;
        float value = 0;
        int r;

        if (!bare && !row->rounded && !(columns & (LIBSVM_FROM_ONE | LIBSVM_FIELD)))
            take_plain(c, row, &before);
        libsvm_line_skip_blanks(c);
        if (at_end(c)) {
            row->has_values = row->n && !bare;
            return row->n && bare && columns & LIBSVM_VALUES
                       ? fail_at(c, first, "index:value, as in other rows")
                       : 0;
        }
        start = c->at;
        first = row->n ? first : start;
        r = has_fields ? take_field(c, &field) : 0;
        if (r == 0 && has_fields && at_break(c))
            r = fail_at(c, c->at, "an index from 0 to 4294967295");
        if (r == 0)
            r = take_index(c, &index);
        if (r == 0 && (!index || !field) && (columns & LIBSVM_FROM_ONE))
            r = fail_at(c, start,
                        has_fields ? "a field and an index from 1 as index_base=1 says"
                                   : "an index from 1 as index_base=1 says");
        if (r == 0)
            r = libsvm_line_take_value(c, row, &bare, &value);
        if (r < 0)
            return r;
        libsvm_line_add_feature(row, has_fields ? &field : NULL, index, value, before);
        before = index;
    }
}

int libsvm_line_parse(const uint8_t *line, size_t len, unsigned columns, struct libsvm_row *row,
                      struct libsvm_fault *fault)
{
    struct cursor c = {.line = line, .at = line, .end = line + len, .fault = fault};
    int r;

    row->n_labels = row->n = 0;
    row->weight = 1;
    row->qid = 0;
    row->columns = 0;
    row->largest = row->largest_field = 0;
    row->has_zero = false;
    r = len > LIBSVM_LINE_MAX ? fail_at(&c, line, libsvm_too_long) : take_start(&c, columns, row);
    if (r == 0 && !(columns & LIBSVM_FIELD))
        r = take_qid(&c, row);
    if (r == 0)
        r = check_columns(&c, columns, row);
    return r < 0 ? r : take_features(&c, columns, row);
}

/* A feature while its row is being sorted. */
struct entry {
    uint32_t index, field;
    float value;
    uint64_t place; /* in the line */
};

static int libsvm_line_compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

int libsvm_row_sort(uint32_t *index, uint32_t *field, float *value, uint64_t n)
{
    AUTO_FREE struct entry *entries = calloc(n ? n : 1, sizeof(*entries));

    if (!entries)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        entries[i] = (struct entry){index[i], field ? field[i] : 0, value[i], i};
    qsort(entries, n, sizeof(*entries), libsvm_line_compare_entries);
    for (uint64_t i = 0; i < n; i++) {
        index[i] = entries[i].index;
        value[i] = entries[i].value;
        if (field)
            field[i] = entries[i].field;
    }
    return 0;
}
