/* What numbers of a table are too large for: read as infinite, though they are not. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "format/core/rounded.h"
#include "format/csv/file.h"
#include "format/csv/row.h"
#include "format/text/row.h"

#define AT_ONCE 64 /* rows that are read together */

struct check {
    const struct csv_file *file;
    struct extent line[AT_ONCE];
    /* The first number that is too large, and how many are. */
    uint64_t n;
    struct rounded_first first; /* at the byte of its row */
    size_t column;
};

static bool is_infinite(const struct csv_file *file, const struct csv_cell *cell)
{
    float f4 = 0;
    double f8 = 0;

    if (!file->doubles)
        return csv_number(cell, &f4) && isinf(f4);
    return decimal_parse_double(cell->text, cell->text + cell->len, &f8) && isinf(f8);
}

static int check_row(void *ctx, unsigned row, const uint8_t *line, struct diag *d)
{
    struct check *check = ctx;
    const uint8_t *p = line, *end = line + check->line[row].len;

    (void)d;
    for (size_t column = 0; p; column++) {
        struct csv_cell cell;
        size_t sign;

        csv_cell(p, end, check->file->shape.delimiter, &cell, &p);
        sign = cell.len && (*cell.text == '-' || *cell.text == '+');
        if (cell.len == sign || isalpha(cell.text[sign]) || !is_infinite(check->file, &cell) ||
            check->n++)
            continue;
        rounded_set_first(&check->first, cell.text, cell.len, check->line[row].off);
        check->column = column;
    }
    return 0;
}

int csv_check(void *p, struct diag *d)
{
    const struct csv_file *file = p;
    const uint64_t rows = file->base.prepared.index.rows;
    struct check check = {.file = file};
    uint64_t number = 0;
    int r = 0;

    for (uint64_t row = 0; row < rows && r == 0; row += AT_ONCE) {
        unsigned n = (unsigned)min_u64(rows - row, AT_ONCE);

        for (unsigned i = 0; i < n; i++)
            check.line[i] = record_file_place(p, row + i);
        r = text_rows_parse(READ_WAITS, check.line, n, check_row, &check, d);
    }
    if (r == 0 && check.n)
        r = text_line_number(file->base.blob, check.first.at, true, &number, d);
    if (r < 0 || !check.n)
        return r;
    return diag_set(
        d, -EBADMSG,
        "%s: line %llu, column %zu: expected a number that %s holds%s, got '%s', which is "
        "read as infinite, as are %llu more",
        blob_name(file->base.blob), (unsigned long long)number, check.column,
        file->doubles ? "float64" : "float32", file->doubles ? "" : ", or csv_dtype=float64",
        check.first.text, (unsigned long long)check.n - 1);
}
