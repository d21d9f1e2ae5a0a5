#include "format/csv/row.h"

#include <math.h>
#include <string.h>

static bool is_space(uint8_t c, char delimiter)
{
    return (c == ' ' || c == '\t' || c == '\v' || c == '\f') && c != (uint8_t)delimiter;
}

/* The closing quote of the text at p, or NULL. */
static const uint8_t *quoted_end(const uint8_t *p, const uint8_t *end)
{
    return p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
}

void csv_cell(const uint8_t *p, const uint8_t *end, char delimiter, struct csv_cell *ret,
              const uint8_t **ret_next)
{
    const uint8_t *stop, *close = NULL;

    while (p < end && is_space(*p, delimiter))
        p++;
    if (p < end && *p == '"')
        close = quoted_end(p + 1, end);
    stop = memchr(close ? close : p, delimiter, (size_t)(end - (close ? close : p)));
    *ret_next = stop ? stop + 1 : NULL;
    stop = stop ? stop : end;
    while (stop > p && is_space(stop[-1], delimiter))
        stop--;
    ret->broken = memchr(p, '"', (size_t)(stop - p)) && (!close || stop != close + 1);
    if (close && !ret->broken) {
        p++;
        stop = close;
    }
    ret->text = p;
    ret->len = (size_t)(stop - p);
}

bool csv_number(const struct csv_cell *cell, float *ret)
{
    const uint8_t *end;

    if (cell->broken)
        return false;
    if (!cell->len) {
        *ret = NAN;
        return true;
    }
    end = decimal_parse_short(cell->text, ret);
    if (end != cell->text + cell->len)
        end = decimal_parse(cell->text, cell->text + cell->len, ret);
    return end == cell->text + cell->len;
}

size_t csv_parse(const uint8_t *line, size_t len, char delimiter, float *value, size_t most,
                 size_t *ret_bad)
{
    const uint8_t *p = line, *end = line + len;
    size_t n = 0;

    for (*ret_bad = most; p; n++) {
        struct csv_cell cell;
        float number;

        /* Most cells are short numbers between two delimiters. */
        const uint8_t *after = p < end ? decimal_parse_short(p, &number) : NULL;

        if (after && after <= end && (after == end || *after == (uint8_t)delimiter)) {
            p = after == end ? NULL : after + 1;
        } else {
            csv_cell(p, end, delimiter, &cell, &p);
            if (!csv_number(&cell, &number)) {
                number = NAN;
                *ret_bad = n < *ret_bad ? n : *ret_bad;
            }
        }
        if (n < most)
            value[n] = number;
    }
    return n;
}

bool csv_is_empty(const uint8_t *line, size_t len, char comment)
{
    size_t i = 0;

    while (i < len && (is_space(line[i], 0) || line[i] == '\r'))
        i++;
    return i == len || (comment && line[i] == (uint8_t)comment);
}
