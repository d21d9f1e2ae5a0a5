#include "format/libsvm/probe.h"

#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "format/libsvm/line.h"

#define PROBE_MOST 32 /* rows that a probe examines */

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
static void see_cells(const struct libsvm_row *row, struct impression *seen)
{
    uint64_t cells = row->n_labels + row->n;

    seen->cells = seen->weak++ ? seen->cells : cells;
    seen->ragged |= cells != seen->cells || row->columns;
}

/* columns: 0 or LIBSVM_FIELD. */
static void libsvm_probe_look_at_row(const uint8_t *line, size_t len, unsigned columns,
                                     struct impression *seen)
{
    struct libsvm_row row = {0};
    struct libsvm_fault fault;

    if (!libsvm_is_row(line, len))
        return;
    if (libsvm_line_parse(line, len, LIBSVM_ANY | columns, &row, &fault) < 0)
        (*((columns ? is_alike_field : is_alike)(line, len) ? &seen->alike : &seen->bad))++;
    else if (has_values(line, len, &row, columns))
        seen->strong++;
    else
        see_cells(&row, seen);
    seen->lists += row.n_labels > 1 && !row.n;
}

unsigned impression_rows(const struct impression *seen)
{
    return seen->strong + seen->weak + seen->alike + seen->bad;
}

struct impression look_at_rows(const uint8_t *head, size_t len, bool whole, unsigned columns)
{
    struct impression seen = {0};
    uint8_t line[FORMAT_HEAD + LIBSVM_PAD];
    size_t at = utf8_mark(head, len);

    while (at < len && impression_rows(&seen) < PROBE_MOST) {
        const uint8_t *start = head + at;
        size_t n = text_next_line(head, len, &at);

        memcpy(line, start, n);
        if (at > len && !whole) { /* the line continues: ignore its last word */
            if (impression_rows(&seen))
                break;
            while (n && !text_is_blank(line[n - 1]))
                n--;
        }
        memset(line + n, 0, LIBSVM_PAD);
        libsvm_probe_look_at_row(line, n, columns, &seen);
    }
    return seen;
}

static bool libsvm_probe_is_named(const struct probed_file *file)
{
    return text_ends_with(file->name, ".svm") || text_ends_with(file->name, ".libsvm");
}

/* Rows of whole numbers, as many in each, are a table, unless the name says what they are. */
static bool is_table(const struct probed_file *file, const struct impression *seen)
{
    return seen->weak > 1 && seen->cells > 1 && !seen->ragged && !libsvm_probe_is_named(file);
}

enum claim libsvm_probe(const struct probed_file *file)
{
    const struct impression seen = look_at_rows(file->head, file->len, file->whole, 0);

    /* Claim broken rows too: the parser of rows reports them best. */
    if (seen.strong ? seen.strong + seen.alike >= seen.bad : seen.alike && !seen.bad)
        return CLAIM_STRONG;
    if (!seen.weak || seen.bad)
        return CLAIM_NONE;
    if (file->is_sibling)
        return CLAIM_WEAK;
    if (seen.lists || is_table(file, &seen))
        return CLAIM_NONE;
    return seen.weak == 1 && seen.cells > 1 && !libsvm_probe_is_named(file) ? CLAIM_GUESS
                                                                            : CLAIM_WEAK;
}

/* Without values, `field:index` looks like a feature of libsvm text, and is taken for one. */
enum claim libfm_probe(const struct probed_file *file)
{
    const struct impression seen = look_at_rows(file->head, file->len, file->whole, LIBSVM_FIELD);

    return seen.strong && seen.strong + seen.alike >= seen.bad + seen.weak ? CLAIM_STRONG
                                                                           : CLAIM_NONE;
}
