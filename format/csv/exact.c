#include "format/csv/exact.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/csv/row.h"

enum { KIND_WHOLE = 1, KIND_DIGITS = 2, KIND_ALL = 3 };

#define DIGITS_F4    9  /* that tell each float32 from all others */
#define DIGITS_EXACT 15 /* of a whole number that float64 holds, whatever they are */
#define WHOLE_MOST   64 /* digits that are compared */
#define WHOLE_F4     16777216.0

/* The text of a number: its digits without zeros in front, and behind a point without those at the
 * end. */
struct digits {
    char whole[WHOLE_MOST + 1]; /* those before the point, if is_whole */
    size_t n;
    bool is_whole; /* no exponent, and nothing behind the point */
};

static struct digits digits_of(const struct csv_cell *cell)
{
    struct digits digits = {.is_whole = true};
    bool behind_point = false;
    size_t zeros = 0; /* at the end so far */

    for (size_t i = 0; i < cell->len; i++) {
        uint8_t c = cell->text[i];

        if (c == '.') {
            behind_point = true;
        } else if (isdigit(c) && (digits.n || c != '0' || behind_point)) {
            digits.is_whole &= !behind_point || c == '0';
            if (!behind_point && digits.n < WHOLE_MOST)
                digits.whole[digits.n] = (char)c;
            zeros = c == '0' ? zeros + 1 : 0;
            digits.n += digits.n || c != '0';
        } else if (!isdigit(c) && c != '+' && c != '-') {
            digits.is_whole = false;
            break;
        }
    }
    digits.n -= behind_point ? min_u64(zeros, digits.n) : 0;
    return digits;
}

/* Which kind of number the cell has that is not shown as written; 0: none. */
static unsigned rounded(const struct csv_cell *cell, bool doubles)
{
    const struct digits digits = digits_of(cell);
    char shown[400];
    double f8;
    float f4;

    if (cell->broken || !cell->len || digits.n < CSV_EXACT_LEN || digits.n > WHOLE_MOST ||
        decimal_parse_double(cell->text, cell->text + cell->len, &f8) != cell->text + cell->len)
        return 0;
    decimal_parse(cell->text, cell->text + cell->len, &f4);
    if (!isfinite(f8) || (!doubles && !isfinite(f4))) /* too large: a check says so */
        return 0;
    if (digits.is_whole && digits.n > DIGITS_EXACT) {
        snprintf(shown, sizeof(shown), "%.0f", fabs(doubles ? f8 : (double)f4));
        return strncmp(shown, digits.whole, WHOLE_MOST) ? KIND_WHOLE : 0;
    }
    if (doubles || (double)f4 == f8)
        return 0;
    if (digits.is_whole)
        return KIND_WHOLE;
    return digits.n > DIGITS_F4 || fabs(f8) >= WHOLE_F4 ? KIND_DIGITS : 0;
}

int csv_exact_init(struct csv_exact *exact, const struct csv_file *file)
{
    *exact = (struct csv_exact){.seen = calloc(file->shape.columns, 1)};
    for (size_t i = 0; i < file->shape.omitted && exact->seen; i++)
        exact->seen[i] = KIND_ALL;
    return exact->seen ? 0 : -ENOMEM;
}

void csv_exact_release(struct csv_exact *exact)
{
    free(exact->seen);
    exact->seen = NULL;
}

/* Could a cell that begins there be of a kind that its column has not had yet? Quick. */
static bool is_doubtful(const struct csv_cell *cell, uint8_t seen)
{
    size_t sign = cell->len && (*cell->text == '-' || *cell->text == '+');
    uint32_t ignored;

    if (seen == KIND_ALL || cell->len < CSV_EXACT_LEN)
        return false;
    return !(seen & KIND_DIGITS) || decimal_digits8(cell->text + sign, &ignored) == 8;
}

void csv_exact_see(struct csv_exact *exact, const struct csv_file *file, uint64_t line,
                   const uint8_t *text, size_t len)
{
    const uint8_t *p = text;

    for (size_t column = 0; p && column < file->shape.columns; column++) {
        struct csv_rounded *first;
        struct csv_cell cell;
        unsigned kind;

        csv_cell(p, text + len, file->shape.delimiter, &cell, &p);
        kind = is_doubtful(&cell, exact->seen[column]) ? rounded(&cell, file->doubles) : 0;
        if (!kind || exact->seen[column] & kind)
            continue;
        exact->seen[column] |= (uint8_t)kind;
        first = kind == KIND_WHOLE ? &exact->whole : &exact->digits;
        if (first->columns++)
            continue;
        first->line = line;
        first->column = column;
        snprintf(first->text, sizeof(first->text), "%.*s", (int)min_u64(cell.len, 40),
                 (const char *)cell.text);
    }
}

static void add_note(const struct csv_file *file, const struct csv_rounded *rounded,
                     const char *numbers, struct text *t)
{
    if (!rounded->columns)
        return;
    text_add(
        t, "%s: %zu column%s %s that %s rounds. The first is '%s', line %llu, column %zu. %s\n",
        blob_name(file->blob), rounded->columns, rounded->columns > 1 ? "s have" : " has", numbers,
        file->doubles ? "float64" : "float32", rounded->text, (unsigned long long)rounded->line,
        rounded->column,
        file->doubles ? "The lines in csv/ have all digits" : "-o csv_dtype=float64 shows float64");
}

void csv_exact_note(const struct csv_exact *exact, const struct csv_file *file, struct text *t)
{
    add_note(file, &exact->whole, "whole numbers", t);
    add_note(file, &exact->digits, "numbers of many digits", t);
}
