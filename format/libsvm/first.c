#include "format/libsvm/first.h"

#include <string.h>

#include "base/number.h"

#define ROWS_MOST 32 /* that are looked at */

/* The whole numbers of a row that has nothing else. 0: it has. */
static unsigned read_counts(const uint8_t *line, size_t len,
                            uint64_t ret[static LIBSVM_COUNTS_MOST])
{
    unsigned n = 0;

    for (size_t at = 0; at < len;) {
        size_t digits;

        if (text_is_blank(line[at])) {
            at++;
            continue;
        }
        if (n == LIBSVM_COUNTS_MOST)
            return 0;
        digits = number_parse((const char *)line + at, len - at, LIBSVM_INDEX_MAX, &ret[n]);
        at += digits;
        if (!digits || (at < len && !text_is_blank(line[at])))
            return 0;
        n++;
    }
    return n > 1 ? n : 0;
}

static bool begins_with_feature(const uint8_t *line, size_t len)
{
    size_t n = 0;

    while (n < len && line[n] >= '0' && line[n] <= '9')
        n++;
    return n && n < len && line[n] == ':';
}

/* What was seen so far. */
struct first {
    unsigned rows;
    unsigned columns;        /* of the first row that can be read, */
    unsigned columns_behind; /* and of the first such after row 0 */
    bool is_found, is_found_behind, has_values;
    struct libsvm_header header;
};

static void see_row(struct first *first, const uint8_t *line, size_t len, unsigned known)
{
    struct libsvm_row row = {0};
    struct libsvm_fault fault;

    if (!first->rows++ && !(known & LIBSVM_FIELD))
        first->header.counts = read_counts(line, len, first->header.count);
    if (libsvm_line_parse(line, len, LIBSVM_ANY | known, &row, &fault) < 0)
        return;
    first->columns = first->is_found ? first->columns : row.columns;
    first->is_found = true;
    first->has_values |= row.has_values;
    if (first->rows == 1 || first->is_found_behind)
        return;
    first->is_found_behind = true;
    first->columns_behind = row.columns;
    first->header.no_labels = first->header.counts == 2 && begins_with_feature(line, len);
}

bool libsvm_first_rows(const uint8_t *text, size_t len, unsigned known, unsigned *ret_columns,
                       struct libsvm_header *ret_header)
{
    struct first first = {0};
    bool has_header;

    for (size_t at = 0; at < len && first.rows < ROWS_MOST;) {
        const uint8_t *line = text + at;
        size_t n = text_next_line(text, len, &at);

        first.header.lines += !first.rows;
        if (!libsvm_is_row(line, n))
            continue;
        if (!first.rows)
            first.header.bytes = at;
        see_row(&first, line, n, known);
    }
    has_header = first.header.counts && first.has_values && first.is_found_behind;
    *ret_header = has_header ? first.header : (struct libsvm_header){0};
    *ret_columns = (has_header ? first.columns_behind : first.columns) |
                   (first.has_values && !(known & LIBSVM_FIELD) ? LIBSVM_VALUES : 0u);
    return first.is_found;
}
