#include "format/csv/exact.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/core/rounded.h"
#include "format/csv/row.h"

#define KIND_ALL (ROUNDED_WHOLE | ROUNDED_DIGITS)

int csv_exact_init(struct csv_exact *exact, const struct csv_file *file)
{
    *exact = (struct csv_exact){.seen = calloc(file->shape.columns, 1),
                                .exact = calloc(file->shape.columns, sizeof(*exact->exact)),
                                .open = file->shape.columns - file->shape.omitted};
    for (size_t i = 0; i < file->shape.omitted && exact->seen; i++)
        exact->seen[i] = KIND_ALL;
    return exact->seen && exact->exact ? 0 : -ENOMEM;
}

void csv_exact_release(struct csv_exact *exact)
{
    free(exact->seen);
    free(exact->exact);
    exact->seen = NULL;
    exact->exact = NULL;
}

/* What is too large is left to a check. */
static unsigned rounded_kind(const struct csv_cell *cell, bool doubles)
{
    return cell->broken ? 0 : rounded_number(cell->text, cell->len, doubles) & KIND_ALL;
}

/* Could a cell that begins there be of a kind that its column has not had yet? Quick. */
static bool is_doubtful(const struct csv_cell *cell, uint8_t seen)
{
    size_t sign = cell->len && (*cell->text == '-' || *cell->text == '+');
    uint32_t ignored;

    if (seen == KIND_ALL || cell->len < CSV_EXACT_LEN)
        return false;
    return !(seen & ROUNDED_DIGITS) || decimal_digits8(cell->text + sign, &ignored) == 8;
}

/* Look no longer for that kind in the column. */
static void csv_exact_end(struct csv_exact *exact, size_t column, unsigned found)
{
    exact->open -= found & ROUNDED_DIGITS && !(exact->seen[column] & ROUNDED_DIGITS);
    exact->seen[column] |= (uint8_t)found;
}

void csv_exact_see(struct csv_exact *exact, const struct csv_file *file, uint64_t line,
                   const uint8_t *text, size_t len)
{
    const uint8_t *p = text;

    for (size_t column = 0; p && column < file->shape.columns; column++) {
        struct csv_rounded *first;
        struct csv_cell cell;
        unsigned found;

        csv_cell(p, text + len, file->shape.delimiter, &cell, &p);
        if (!is_doubtful(&cell, exact->seen[column]))
            continue;
        found = rounded_kind(&cell, file->doubles);
        if (!found && memchr(cell.text, '.', cell.len) &&
            ++exact->exact[column] == ROUNDED_EXACT_MOST)
            csv_exact_end(exact, column, ROUNDED_DIGITS);
        if (!found || exact->seen[column] & found)
            continue;
        csv_exact_end(exact, column, found);
        first = found == ROUNDED_WHOLE ? &exact->whole : &exact->digits;
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
        blob_name(file->base.blob), rounded->columns, rounded->columns > 1 ? "s have" : " has",
        numbers, file->doubles ? "float64" : "float32", rounded->text,
        (unsigned long long)rounded->line, rounded->column,
        file->doubles ? "The lines in csv/ have all digits" : "-o csv_dtype=float64 shows float64");
}

void csv_exact_note(const struct csv_exact *exact, const struct csv_file *file, struct text *t)
{
    add_note(file, &exact->whole, "whole numbers", t);
    add_note(file, &exact->digits, "numbers of many digits", t);
}
