/* pandas names the columns of an array 0, 1, 2 ..., and writes the numbers of the rows in a first
 * column without a name; R writes names in quotes. So a first line may be names although it has
 * numbers. The lines after it decide where both could be. */
#include "format/csv/head.h"

#include <string.h>

#include "base/bytes.h"
#include "format/csv/row.h"
#include "format/text/lines.h"

#define LINES_JUDGED 32
#define CELL_MOST    64 /* bytes of a number in the head */
#define YEAR_FIRST   1800
#define YEAR_LAST    2200

struct csv_head csv_head_of(const uint8_t *text, size_t len, bool whole, char comment)
{
    return (struct csv_head){
        .text = text,
        .len = len,
        .whole = whole,
        .comment = comment,
        .at = utf8_mark(text, len),
    };
}

/* Not from a line that has nothing else. */
static void strip_mark(struct csv_line *line)
{
    size_t n = 0;

    while (n < line->len && line->text[n] == '#')
        n++;
    if (!n || csv_is_empty(line->text + n, line->len - n, 0, 0))
        return;
    while (line->text[n] == ' ' || line->text[n] == '\t')
        n++;
    *line = (struct csv_line){line->text + n, line->len - n, true};
}

bool csv_head_next(struct csv_head *head, struct csv_line *ret)
{
    while (head->at < head->len) {
        size_t start = head->at, n = text_next_line(head->text, head->len, &head->at);

        if (head->at > head->len && !head->whole)
            return false;
        head->lines++;
        if (csv_is_empty(head->text + start, n, head->begun ? head->tabs : 0, head->comment))
            continue;
        *ret = (struct csv_line){head->text + start, n, false};
        if (!head->begun)
            strip_mark(ret);
        head->begun = true;
        return true;
    }
    return false;
}

/* ---- cells ---- */

static enum csv_cell_type csv_head_type_of(const struct csv_cell *cell)
{
    uint8_t copy[CELL_MOST + DECIMAL_PAD] = {0};
    struct csv_cell copied = *cell;
    float number;

    if (!cell->len)
        return CSV_EMPTY;
    if (cell->len > CELL_MOST)
        return CSV_NAME;
    memcpy(copy, cell->text, cell->len);
    copied.text = copy;
    return csv_number(&copied, &number) ? CSV_NUMBER : CSV_NAME;
}

/* The number that the digits of a cell are; false: it has other characters, or too many. */
static bool csv_head_whole_number(const struct csv_cell *cell, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < cell->len; i++) {
        if (cell->text[i] < '0' || cell->text[i] > '9')
            return false;
        *ret = *ret * 10 + (uint64_t)(cell->text[i] - '0');
    }
    return cell->len && cell->len <= 18;
}

static void see_number(struct csv_cells *cells, const struct csv_cell *cell)
{
    uint64_t number;

    if (!csv_head_whole_number(cell, &number)) {
        cells->whole = cells->rising = cells->by_one = false;
        return;
    }
    if (cells->numbers == 1) {
        cells->low = cells->high = number;
        return;
    }
    cells->rising &= number > cells->high;
    cells->by_one &= number == cells->high + 1;
    cells->high = number > cells->high ? number : cells->high;
}

struct csv_cells csv_count_cells(const struct csv_line *line, char delimiter)
{
    struct csv_cells cells = {.whole = true, .rising = true, .by_one = true};
    const uint8_t *p = line->text;

    while (p) {
        struct csv_cell cell;
        enum csv_cell_type type;

        csv_cell(p, line->text + line->len, delimiter, &cell, &p);
        type = csv_head_type_of(&cell);
        cells.first = cells.n++ ? cells.first : type;
        cells.empty += type == CSV_EMPTY;
        cells.quoted += cell.quoted;
        cells.numbers += type == CSV_NUMBER;
        if (type == CSV_NUMBER)
            see_number(&cells, &cell);
    }
    return cells;
}

char csv_find_delimiter(struct csv_head head)
{
    struct csv_line line, next;
    size_t n;

    if (!csv_head_next(&head, &line))
        return ',';
    for (size_t i = 0; i < line.len; i++)
        if (line.text[i] == ',' || line.text[i] == '\t' || line.text[i] == ';')
            return (char)line.text[i];
    /* The name of a single column may have spaces. */
    n = csv_count_cells(&line, ' ').n;
    return csv_head_next(&head, &next) && csv_count_cells(&next, ' ').n != n ? ',' : ' ';
}

/* ---- names or a row ---- */

/* The lines after the first. */
struct later {
    size_t lines;
    bool is_quoted;  /* some cell is */
    bool is_whole;   /* all numbers are digits only */
    bool lack_first; /* some line has nothing in its first cell */
    bool are_years;  /* some line has nothing but years */
};

static bool are_years(const struct csv_cells *cells)
{
    return cells->numbers && csv_is_row(cells) && cells->whole && cells->low >= YEAR_FIRST &&
           cells->high <= YEAR_LAST;
}

static struct later judge_rest(struct csv_head head, char delimiter)
{
    struct later later = {.is_whole = true};
    struct csv_line line;

    for (; later.lines < LINES_JUDGED && csv_head_next(&head, &line); later.lines++) {
        struct csv_cells cells = csv_count_cells(&line, delimiter);

        later.is_quoted |= cells.quoted > 0;
        later.is_whole &= cells.whole;
        later.lack_first |= cells.first == CSV_EMPTY;
        later.are_years |= are_years(&cells);
    }
    return later;
}

bool csv_rest_is_whole(struct csv_head head, char delimiter)
{
    return judge_rest(head, delimiter).is_whole;
}

/* Are the numbers of a line without names the names of columns? */
static bool numbers_are_names(const struct csv_cells *cells, const struct later *later)
{
    if (!later->lines || !cells->whole || !cells->rising || !cells->numbers)
        return false;
    if (cells->first == CSV_EMPTY && cells->empty == 1)
        return !later->lack_first;
    if (cells->empty || !cells->by_one || cells->n < 2)
        return false;
    if (!cells->low)
        return cells->n > 2 || !later->is_whole;
    return are_years(cells) && !later->are_years;
}

enum csv_first csv_judge_first(struct csv_head head, char delimiter, bool *ret_by_numbers)
{
    struct csv_line line;
    struct csv_cells cells;
    struct later later;

    *ret_by_numbers = false;
    if (!csv_head_next(&head, &line))
        return CSV_FIRST_ROW;
    cells = csv_count_cells(&line, delimiter);
    if (!cells.numbers)
        return cells.empty < cells.n ? CSV_FIRST_NAMES : CSV_FIRST_ROW;
    later = judge_rest(head, delimiter);
    if (csv_is_row(&cells))
        *ret_by_numbers = numbers_are_names(&cells, &later);
    else
        *ret_by_numbers = cells.numbers > 1 && cells.whole && cells.by_one;
    *ret_by_numbers |= later.lines && cells.quoted == cells.n && !later.is_quoted;
    if (*ret_by_numbers)
        return CSV_FIRST_NAMES;
    if (!csv_is_row(&cells) || line.marked)
        return CSV_FIRST_MIXED;
    *ret_by_numbers =
        later.lines && cells.n > 3 && !cells.empty && cells.whole && cells.by_one && cells.low == 1;
    return CSV_FIRST_ROW;
}

enum csv_column csv_judge_column(struct csv_head head, char delimiter, size_t column)
{
    uint64_t seen[LINES_JUDGED];
    struct csv_line line;
    bool repeats = false;

    csv_head_next(&head, &line);
    for (size_t n = 0; n < LINES_JUDGED && csv_head_next(&head, &line); n++) {
        const uint8_t *p = line.text;
        struct csv_cell cell = {0};

        for (size_t i = 0; p && i <= column; i++)
            csv_cell(p, line.text + line.len, delimiter, &cell, &p);
        if (!csv_head_whole_number(&cell, &seen[n]))
            return CSV_COLUMN_OTHER;
        for (size_t i = 0; i < n; i++)
            repeats |= seen[i] == seen[n];
    }
    return repeats ? CSV_COLUMN_REPEATS : CSV_COLUMN_COUNTS;
}
