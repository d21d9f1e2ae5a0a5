#include "format/csv/row.h"

#include <math.h>
#include <string.h>

#include "format/text/lines.h"

static bool csv_row_is_space(uint8_t c, char delimiter)
{
    return text_is_blank(c) && (c != (uint8_t)delimiter || c == ' ');
}

/* The delimiter at p or after it, or NULL. Blanks are one together, but not at the end. */
static const uint8_t *find_delimiter(const uint8_t *p, const uint8_t *end, char delimiter,
                                     const uint8_t **ret_next)
{
    const uint8_t *stop = p;

    *ret_next = NULL;
    if (delimiter != ' ') {
        stop = memchr(p, delimiter, (size_t)(end - p));
        *ret_next = stop ? stop + 1 : NULL;
        return stop;
    }
    while (stop < end && !text_is_blank(*stop))
        stop++;
    for (p = stop; p < end && text_is_blank(*p);)
        p++;
    *ret_next = p < end ? p : NULL;
    return stop;
}

void csv_cell(const uint8_t *p, const uint8_t *end, char delimiter, struct csv_cell *ret,
              const uint8_t **ret_next)
{
    const uint8_t *stop, *close = NULL;

    while (p < end && csv_row_is_space(*p, delimiter))
        p++;
    if (p < end && *p == '"')
        close = memchr(p + 1, '"', (size_t)(end - p - 1));
    stop = find_delimiter(close ? close : p, end, delimiter, ret_next);
    stop = stop ? stop : end;
    while (stop > p && csv_row_is_space(stop[-1], delimiter))
        stop--;
    ret->broken = memchr(p, '"', (size_t)(stop - p)) && (!close || stop != close + 1);
    ret->quoted = close && !ret->broken;
    if (ret->quoted) {
        p++;
        stop = close;
    }
    ret->text = p;
    ret->len = (size_t)(stop - p);
}

/* Numbers of both widths: the other pointer is NULL. */
struct out {
    float *f4;
    double *f8;
};

static inline const uint8_t *parse_short(const uint8_t *p, struct out ret)
{
    return ret.f4 ? decimal_parse_short(p, ret.f4) : decimal_parse_short_double(p, ret.f8);
}

static inline const uint8_t *parse_any(const uint8_t *p, const uint8_t *end, struct out ret)
{
    return ret.f4 ? decimal_parse(p, end, ret.f4) : decimal_parse_double(p, end, ret.f8);
}

static inline void set_nan(struct out ret)
{
    if (ret.f4)
        *ret.f4 = NAN;
    else
        *ret.f8 = (double)NAN;
}

static inline bool csv_row_number_of(const struct csv_cell *cell, struct out ret)
{
    const uint8_t *stop = cell->text + cell->len, *end;

    if (cell->broken)
        return false;
    if (!cell->len) {
        set_nan(ret);
        return true;
    }
    end = parse_short(cell->text, ret);
    if (end != stop)
        end = parse_any(cell->text, stop, ret);
    return end == stop;
}

bool csv_number(const struct csv_cell *cell, float *ret)
{
    return csv_row_number_of(cell, (struct out){.f4 = ret});
}

static inline size_t csv_row_parse(const uint8_t *line, size_t len, char delimiter,
                                   struct out value, size_t most, size_t *ret_bad)
{
    const uint8_t *p = line, *end = line + len;
    size_t n = 0;

    for (*ret_bad = most; p; n++) {
        float f4;
        double f8;
        const struct out number = value.f4 ? (struct out){.f4 = &f4} : (struct out){.f8 = &f8};
        /* Most cells are short numbers between two delimiters. */
        const uint8_t *after = p < end ? parse_short(p, number) : NULL;
        struct csv_cell cell;

        if (after && after <= end &&
            (after == end ||
             (*after == (uint8_t)delimiter &&
              (delimiter != ' ' || (after + 1 < end && !text_is_blank(after[1])))))) {
            p = after == end ? NULL : after + 1;
        } else {
            csv_cell(p, end, delimiter, &cell, &p);
            if (!csv_row_number_of(&cell, number)) {
                set_nan(number);
                *ret_bad = n < *ret_bad ? n : *ret_bad;
            }
        }
        if (n < most && value.f4)
            value.f4[n] = f4;
        else if (n < most)
            value.f8[n] = f8;
    }
    return n;
}

size_t csv_parse(const uint8_t *line, size_t len, char delimiter, float *value, size_t most,
                 size_t *ret_bad)
{
    return csv_row_parse(line, len, delimiter, (struct out){.f4 = value}, most, ret_bad);
}

size_t csv_parse_doubles(const uint8_t *line, size_t len, char delimiter, double *value,
                         size_t most, size_t *ret_bad)
{
    return csv_row_parse(line, len, delimiter, (struct out){.f8 = value}, most, ret_bad);
}

bool csv_is_empty(const uint8_t *line, size_t len, size_t tabs, char comment)
{
    size_t i = 0, seen = 0;

    for (; i < len && (text_is_blank(line[i]) || line[i] == '\r'); i++)
        seen += line[i] == '\t';
    return i == len ? !tabs || seen != tabs : comment && line[i] == (uint8_t)comment;
}
