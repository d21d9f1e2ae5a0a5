/* What numbers of a table are too large for: read as infinite, though they are not. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/csv/file.h"
#include "format/csv/row.h"

#define PIECE (UINT64_C(1) << 20)

/* The first number that is too large, and how many are. */
struct large {
    uint64_t n, at; /* byte of its row */
    size_t column;
    char text[41];
};

/* The number of the line that begins at this byte, from 1. */
static int csv_check_line_number(const struct csv_file *file, uint64_t at, uint64_t *ret,
                                 struct diag *d)
{
    AUTO_FREE uint8_t *piece = malloc(PIECE);
    uint8_t before = 0;
    int r = piece ? 0 : -ENOMEM;

    *ret = 1;
    for (uint64_t from = 0; from < at && r == 0; from += PIECE) {
        size_t n = (size_t)min_u64(PIECE, at - from);

        r = blob_read(READ_WAITS, file->base.blob, piece, n, from, d);
        for (size_t i = 0; i < n && r == 0; before = piece[i++])
            *ret += piece[i] == '\r' || (piece[i] == '\n' && before != '\r');
    }
    return r;
}

static bool is_infinite(const struct csv_file *file, const struct csv_cell *cell)
{
    float f4 = 0;
    double f8 = 0;

    if (!file->doubles)
        return csv_number(cell, &f4) && isinf(f4);
    return decimal_parse_double(cell->text, cell->text + cell->len, &f8) && isinf(f8);
}

static void check_row(const struct csv_file *file, uint64_t at, const uint8_t *line, size_t len,
                      struct large *large)
{
    const uint8_t *p = line;

    for (size_t column = 0; p; column++) {
        struct csv_cell cell;
        size_t sign;

        csv_cell(p, line + len, file->shape.delimiter, &cell, &p);
        sign = cell.len && (*cell.text == '-' || *cell.text == '+');
        if (cell.len == sign || isalpha(cell.text[sign]) || !is_infinite(file, &cell))
            continue;
        if (large->n++)
            continue;
        large->at = at;
        large->column = column;
        memcpy(large->text, cell.text, min_u64(cell.len, sizeof(large->text) - 1));
    }
}

int csv_check(void *p, struct diag *d)
{
    const struct csv_file *file = p;
    AUTO_FREE uint8_t *line = NULL;
    struct large large = {0};
    size_t capacity = 0;
    uint64_t number;
    int r = 0;

    for (uint64_t row = 0; row < file->base.prepared.index.rows; row++) {
        struct extent place;

        if (!csv_extent(file, row, 0, &place))
            continue;
        if (place.len + DECIMAL_PAD > capacity) {
            capacity = 2 * (place.len + DECIMAL_PAD);
            free(line);
            line = malloc(capacity);
            if (!line)
                return -ENOMEM;
        }
        r = blob_read(READ_WAITS, file->base.blob, line, place.len, place.off, d);
        if (r < 0)
            return r;
        memset(line + place.len, 0, DECIMAL_PAD);
        check_row(file, place.off, line, place.len, &large);
    }
    if (!large.n)
        return 0;
    r = csv_check_line_number(file, large.at, &number, d);
    if (r < 0)
        return r;
    return diag_set(
        d, -EBADMSG,
        "%s: line %llu, column %zu: expected a number that %s holds%s, got '%s', which is "
        "read as infinite, as are %llu more",
        blob_name(file->base.blob), (unsigned long long)number, large.column,
        file->doubles ? "float64" : "float32", file->doubles ? "" : ", or csv_dtype=float64",
        large.text, (unsigned long long)large.n - 1);
}
