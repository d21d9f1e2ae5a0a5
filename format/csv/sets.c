/* What is a header in one file is none in another, if each is judged alone: its rows may be too
 * few, or numbers that look like names. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"
#include "format/core/siblings.h"
#include "format/csv/file.h"
#include "format/csv/head.h"
#include "format/csv/row.h"
#include "format/index/index.h"

#define CHANCE_COLUMNS 8 /* numbers one after another are a row by chance up to there */

/* The first line of a file. */
struct first {
    struct source_file *file;
    uint64_t columns; /* 0: it has no line, or cannot be read */
    uint64_t line;    /* its hash */
    enum csv_first judged;
    bool may_be_row;   /* names that are nothing but numbers */
    bool is_by_chance; /* such a row is not unlikely */
};

static int csv_sets_read_first(struct first *first, const struct format_options *options)
{
    AUTO_FREE uint8_t *text = NULL;
    struct csv_head head, later;
    struct csv_line line;
    struct csv_cells cells;
    bool whole, by_numbers;
    size_t len;
    char delimiter;
    int r = csv_read_head(first->file->blob, &text, &len, &whole, NULL);

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    head = later = csv_head_of(text, len, whole, options->comment);
    if (!csv_head_next(&later, &line))
        return 0;
    delimiter = options->delimiter ? options->delimiter : csv_find_delimiter(head);
    cells = csv_count_cells(&line, delimiter);
    first->columns = cells.n;
    head.tabs = later.tabs = csv_tabs(delimiter, cells.n);
    first->line = key_hash(line.text, line.len);
    first->judged = csv_judge_first(head, delimiter, &by_numbers);
    first->may_be_row =
        first->judged == CSV_FIRST_NAMES && csv_is_row(&cells) && cells.quoted < cells.n;
    first->is_by_chance =
        !cells.empty && cells.n <= CHANCE_COLUMNS && csv_rest_is_whole(later, delimiter);
    return 0;
}

static int csv_sets_compare_lines(const void *a, const void *b)
{
    const struct first *x = *(const struct first *const *)a, *y = *(const struct first *const *)b;

    if (x->columns != y->columns)
        return x->columns < y->columns ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Files with the same first line: it is names in all of them, or in none. */
static int decide_same(struct first *first, size_t n)
{
    AUTO_FREE struct first **by_line = calloc(n, sizeof(*by_line));

    if (!by_line)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        by_line[i] = &first[i];
    qsort(by_line, n, sizeof(*by_line), csv_sets_compare_lines);
    for (size_t i = 0, end; i < n; i = end) {
        bool any = false;

        for (end = i; end < n && !csv_sets_compare_lines(&by_line[i], &by_line[end]); end++)
            any |= by_line[end]->judged == CSV_FIRST_NAMES;
        for (size_t k = i; k < end && end - i > 1 && any && by_line[k]->columns; k++)
            by_line[k]->file->decided = CSV_NAMES;
    }
    return 0;
}

/* Where a part of as many columns begins with a row, numbers are a row as well. A table that was
 * cut has names in its first part only, but not by chance. */
static int decide_set(struct first *first, const struct siblings *siblings,
                      const struct sibling_set *set)
{
    AUTO_FREE uint64_t *row_columns = calloc(set->n, sizeof(*row_columns)); /* of parts with rows */
    size_t n_rows = 0;

    if (!row_columns)
        return -ENOMEM;
    for (size_t i = 0; i < set->n; i++) {
        const struct first *part = &first[siblings->member[set->first + i].file];

        if (part->judged == CSV_FIRST_ROW && part->file->decided != CSV_NAMES)
            row_columns[n_rows++] = part->columns;
    }
    qsort(row_columns, n_rows, sizeof(*row_columns), search_compare);
    for (size_t i = 0; i < set->n; i++) {
        struct first *part = &first[siblings->member[set->first + i].file];

        if (part->may_be_row && !part->file->decided && (i || part->is_by_chance) &&
            bsearch(&part->columns, row_columns, n_rows, sizeof(*row_columns), search_compare))
            part->file->decided = CSV_ROWS;
    }
    return 0;
}

int csv_decide(struct source_file *file, size_t n, const struct format_setup *setup)
{
    AUTO_FREE struct first *first = calloc(n, sizeof(*first));
    AUTO_FREE const char **name = calloc(n, sizeof(*name));
    AUTO_SIBLINGS struct siblings siblings = {0};
    int r = first && name ? 0 : -ENOMEM;

    if (n < 2 || setup->options.header != CSV_HEADER_AUTO)
        return r;
    for (size_t i = 0; i < n && r == 0; i++) {
        first[i].file = &file[i];
        name[i] = setup->is_list ? "" : file[i].name; /* they may have the same name */
        r = csv_sets_read_first(&first[i], &setup->options);
    }
    if (r == 0)
        r = decide_same(first, n);
    if (r == 0)
        r = siblings_find(name, n, &siblings);
    for (size_t i = 0; i < siblings.n && r == 0; i++)
        r = decide_set(first, &siblings, &siblings.set[i]);
    return r;
}
