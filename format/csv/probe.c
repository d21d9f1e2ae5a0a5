/* Is a file a table of numbers? Its name decides first. Without one that says so, its first lines
 * must be numbers, in as many cells each, two at least: libsvm_probe() leaves such text to this
 * format. */
#include <string.h>

#include "base/text.h"
#include "format/csv/file.h"
#include "format/csv/head.h"
#include "format/csv/row.h"

#define PROBE_LINES 8

/* The first lines. */
struct impression {
    size_t lines;
    size_t cells;       /* of the first line */
    bool alike;         /* all have as many */
    bool rest_is_rows;  /* all but the first are rows */
    bool begins_number; /* some line begins with a number */
};

static struct impression csv_probe_look(struct csv_head head, char delimiter)
{
    struct impression seen = {.alike = true, .rest_is_rows = true};
    struct csv_line line;

    for (; seen.lines < PROBE_LINES && csv_head_next(&head, &line); seen.lines++) {
        struct csv_cells cells = csv_count_cells(&line, delimiter);

        seen.cells = seen.lines ? seen.cells : cells.n;
        head.tabs = csv_tabs(delimiter, seen.cells);
        seen.alike &= cells.n == seen.cells;
        seen.rest_is_rows &= !seen.lines || csv_is_row(&cells);
        seen.begins_number |= cells.first == CSV_NUMBER || (cells.numbers && csv_is_row(&cells));
    }
    return seen;
}

static bool csv_probe_is_table(const struct impression *seen)
{
    return seen->lines > 1 && seen->cells > 1 && seen->alike && seen->rest_is_rows &&
           seen->begins_number;
}

/* Text with colons in it may be libsvm text under a wrong name: its rows claim more. */
static enum claim named_claim(const struct probed_file *file, const struct impression *seen)
{
    bool is_cut = seen->lines < 2 && !file->whole;

    if (!seen->begins_number && !is_cut)
        return CLAIM_NONE;
    return memchr(file->head, ':', file->len) ? CLAIM_WEAK : CLAIM_STRONG;
}

bool csv_is_named(const char *name)
{
    return text_ends_with(name, ".csv") || text_ends_with(name, ".tsv");
}

enum claim csv_probe(const struct probed_file *file)
{
    bool named = csv_is_named(file->name);
    const struct format_options *options = file->options;
    const struct csv_head head =
        csv_head_of(file->head, file->len, file->whole, options ? options->comment : 0);
    struct impression seen;

    if (memchr(file->head, '\0', file->len) && !named)
        return CLAIM_NONE;
    seen = csv_probe_look(head, options && options->delimiter ? options->delimiter
                                                              : csv_find_delimiter(head));
    if (named)
        return named_claim(file, &seen);
    if (file->is_sibling && named_claim(file, &seen))
        return seen.alike && seen.rest_is_rows ? CLAIM_WEAK : CLAIM_GUESS;
    return csv_probe_is_table(&seen) ? CLAIM_WEAK : CLAIM_NONE;
}

const char *csv_hint(const struct probed_file *file)
{
    static const char marks[] = "|:^";

    if (!csv_is_named(file->name) || !file->len)
        return NULL;
    if (file->head[0] == '#')
        return "if lines that begin with # are comments: -o csv_comment='#'";
    for (const char *mark = marks; *mark; mark++) {
        const struct csv_head head = csv_head_of(file->head, file->len, file->whole, 0);
        const struct impression seen = csv_probe_look(head, *mark);

        if (csv_probe_is_table(&seen))
            return "if another character is between cells: -o csv_delimiter=CHAR";
    }
    return NULL;
}
