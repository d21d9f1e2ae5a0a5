#include "format/libsvm/first.h"

#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "base/text.h"

#define ROWS_MOST 32 /* that are looked at */

static size_t number_len(const uint8_t *at, size_t len)
{
    size_t n = 0;

    while (n < len && memchr("0123456789+-.eE", at[n], 15))
        n++;
    return n;
}

/* Is a line that cannot be read meant as a row? Then it has index:number, or a label and
 * index:anything. */
static bool is_alike(const uint8_t *line, size_t len)
{
    bool has_label = false, has_pair = false, is_first = true;

    for (size_t at = 0, n; at < len; at += n + 1, is_first = false) {
        const uint8_t *colon;
        size_t index = 0;

        for (n = 0; at + n < len && !text_is_blank(line[at + n]);)
            n++;
        colon = memchr(line + at, ':', n);
        while (index < n && line[at + index] >= '0' && line[at + index] <= '9')
            index++;
        if (is_first)
            has_label = n && number_len(line + at, n) == n;
        if (!colon || !index || colon != line + at + index || memchr(colon + 1, ':', n - index - 1))
            continue;
        has_pair = true;
        if (n > index + 1 && number_len(colon + 1, n - index - 1) == n - index - 1)
            return true;
    }
    return has_label && has_pair;
}

/* The same of LibFM: it has digits, a colon, digits, a colon. */
static bool is_alike_field(const uint8_t *line, size_t len)
{
    for (size_t at = 0, n; at < len; at += n + 1) {
        unsigned colons = 0;

        for (n = 0; at + n < len && !text_is_blank(line[at + n]); n++) {
            bool digit = line[at + n] >= '0' && line[at + n] <= '9';

            colons += line[at + n] == ':';
            if (!digit && (line[at + n] != ':' || colons == 2))
                break;
        }
        if (colons == 2)
            return true;
        while (at + n < len && !text_is_blank(line[at + n]))
            n++;
    }
    return false;
}

/* A colon, that of a query id alone as well; of LibFM two for each feature, next to that of a
 * weight. */
static bool has_values(const uint8_t *line, size_t len, const struct libsvm_row *row, bool fields)
{
    uint64_t colons = 0, weight = row->columns & LIBSVM_WEIGHT ? 1 : 0;

    for (size_t i = 0; i < len; i++)
        colons += line[i] == ':';
    if (fields)
        return row->n && colons >= 2 * row->n + weight;
    return colons > 0 && (row->n || row->columns & LIBSVM_QID);
}

/* A row without values. */
static void see_cells(const struct libsvm_row *row, struct libsvm_first *seen)
{
    uint64_t cells = row->n_labels + row->n;

    seen->cells = seen->weak++ ? seen->cells : cells;
    seen->ragged |= cells != seen->cells || row->columns;
}

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

static void see_row(struct libsvm_first *seen, const uint8_t *line, size_t len, unsigned known)
{
    const bool fields = known & LIBSVM_FIELD;
    struct libsvm_row row = {0};
    struct libsvm_fault fault;
    int r = libsvm_line_parse(line, len, LIBSVM_ANY | known, &row, &fault);

    if (!seen->rows++ && !fields)
        seen->header.counts = read_counts(line, len, seen->header.count);
    seen->lists += row.n_labels > 1 && !row.n;
    if (r < 0) {
        (*((fields ? is_alike_field : is_alike)(line, len) ? &seen->alike : &seen->bad))++;
        return;
    }
    if (has_values(line, len, &row, fields))
        seen->strong++;
    else
        see_cells(&row, seen);
    seen->columns = seen->is_found ? seen->columns : row.columns;
    seen->is_found = true;
    seen->has_values |= row.has_values;
    if (seen->rows == 1 || seen->is_found_behind)
        return;
    seen->is_found_behind = true;
    seen->columns_behind = row.columns;
    seen->header.no_labels = seen->header.counts == 2 && begins_with_feature(line, len);
}

struct libsvm_first libsvm_first_rows(uint8_t *text, size_t len, bool whole, unsigned known)
{
    struct libsvm_first seen = {0};

    for (size_t at = 0; at < len && seen.rows < ROWS_MOST;) {
        uint8_t *line = text + at;
        size_t n = text_next_line(text, len, &at);

        if (at > len && !whole) { /* the line continues: ignore its last word */
            while (n && !seen.rows && !text_is_blank(line[n - 1]))
                n--;
            n = seen.rows ? 0 : n;
            line[n] = 0;
        }
        seen.header.lines += !seen.rows;
        if (!libsvm_is_row(line, n))
            continue;
        if (!seen.rows)
            seen.header.bytes = at;
        see_row(&seen, line, n, known);
    }
    if (!seen.header.counts || !seen.has_values || !seen.is_found_behind)
        seen.header = (struct libsvm_header){0};
    else
        seen.columns = seen.columns_behind;
    if (seen.has_values && !(known & LIBSVM_FIELD))
        seen.columns |= LIBSVM_VALUES;
    return seen;
}

struct libsvm_first libsvm_first_of_head(const uint8_t *head, size_t len, bool whole,
                                         unsigned columns)
{
    const size_t mark = utf8_mark(head, len);
    uint8_t text[FORMAT_HEAD + LIBSVM_PAD] = {0};

    memcpy(text, head + mark, len - mark);
    return libsvm_first_rows(text, len - mark, whole, columns);
}

/* ---- is a file libsvm text, or LibFM text? ---- */

static bool first_is_named(const struct probed_file *file)
{
    return text_ends_with(file->name, ".svm") || text_ends_with(file->name, ".libsvm");
}

/* Rows of whole numbers, as many in each, are a table, unless the name says what they are. */
static bool is_table(const struct probed_file *file, const struct libsvm_first *seen)
{
    return seen->weak > 1 && seen->cells > 1 && !seen->ragged && !first_is_named(file);
}

enum claim libsvm_probe(const struct probed_file *file)
{
    const struct libsvm_first seen = libsvm_first_of_head(file->head, file->len, file->whole, 0);

    /* Claim broken rows too: the parser of rows reports them best. */
    if (seen.strong ? seen.strong + seen.alike >= seen.bad : seen.alike && !seen.bad)
        return CLAIM_STRONG;
    if (!seen.weak || seen.bad)
        return CLAIM_NONE;
    if (file->is_sibling)
        return CLAIM_WEAK;
    if (seen.lists || is_table(file, &seen))
        return CLAIM_NONE;
    return seen.weak == 1 && seen.cells > 1 && !first_is_named(file) ? CLAIM_GUESS : CLAIM_WEAK;
}

/* Without values, `field:index` looks like a feature of libsvm text, and is taken for one. */
enum claim libfm_probe(const struct probed_file *file)
{
    const struct libsvm_first seen =
        libsvm_first_of_head(file->head, file->len, file->whole, LIBSVM_FIELD);

    return seen.strong && seen.strong + seen.alike >= seen.bad + seen.weak ? CLAIM_STRONG
                                                                           : CLAIM_NONE;
}
