/* JSON lines: a sample is a line, served as it is. */
#include <string.h>

#include "base/bytes.h"
#include "format/jsonl/file.h"
#include "format/records/record_set.h"
#include "format/text/row.h"

extern const struct format format_jsonl;

/* ---- what a line shows ---- */

enum { JSON, LINES, TEXT, N_COLUMNS };

static const struct record_column columns[N_COLUMNS] = {
    [JSON] = {"json", RECORD_BYTES, "json", .unnamed = true},
    [LINES] = {"lines", RECORD_TEXT, "jsonl", .unnamed = true,
               .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR},
    [TEXT] = {"text", RECORD_TEXT, .unnamed = true, .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR},
};

static uint64_t line_length(const void *file, uint64_t row, unsigned column)
{
    (void)column;
    return record_file_place(file, row).len;
}

static uint64_t line_place(const void *file, uint64_t row, unsigned column)
{
    (void)column;
    return record_file_place(file, row).off;
}

/* A mark may be before the first line. */
static int line_verify(struct read_context *rc, const void *file, uint64_t row, struct diag *d)
{
    const struct extent line = record_file_place(file, row);

    return text_row_verify(rc, line.blob, line.off == JSONL_BOM ? JSONL_BOM : 0, line.off, line.len,
                           false, d);
}

static const struct record_format jsonl = {
    .format = &format_jsonl,
    .file = &jsonl_file_ops,
    .has_groups = true,
    .text_folder = "jsonl",
    .column = columns,
    .n_columns = N_COLUMNS,
    .length = line_length,
    .place = line_place,
    .verify = line_verify,
    .check = jsonl_check,
    .lines_are_file = jsonl_is_lines,
};

/* ---- which files ---- */

/* Where the object that begins at p ends; NULL: not before end. */
static const uint8_t *object_end(const uint8_t *p, const uint8_t *end)
{
    bool in_string = false;
    unsigned depth = 0;

    for (; p < end && *p != '\n'; p++) {
        if (in_string) {
            p += *p == '\\';
            in_string = p >= end || *p != '"';
        } else if (*p == '"') {
            in_string = true;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if ((*p == '}' || *p == ']') && !--depth) {
            return p + 1;
        }
    }
    return NULL;
}

/* How many lines at the start of the head are objects, up to most; *ret_cut: the next one is cut
 * off by the end of the head, *ret_bad: it is none. */
static unsigned count_objects(const struct probed_file *file, unsigned most, bool *ret_cut,
                              bool *ret_bad)
{
    const uint8_t *p = file->head + utf8_mark(file->head, file->len);
    const uint8_t *end = file->head + file->len;
    unsigned n = 0;

    *ret_cut = *ret_bad = false;
    while (n < most) {
        while (p < end && jsonl_is_space(*p))
            p++;
        if (p >= end)
            return n;
        *ret_bad = *p != '{';
        if (*ret_bad)
            return n;
        const uint8_t *after = object_end(p, end);

        if (!after) {
            *ret_cut = !file->whole && !memchr(p, '\n', (size_t)(end - p));
            *ret_bad = !*ret_cut;
            return n;
        }
        for (p = after; p < end && *p != '\n' && jsonl_is_space(*p);)
            p++;
        *ret_bad = p < end && *p != '\n';
        if (*ret_bad)
            return n;
        n++;
    }
    return n;
}

/* One object in a file of another name is more likely a description of something. */
static enum claim jsonl_probe(const struct probed_file *file)
{
    bool named = file->is_sibling || text_ends_with(file->name, ".jsonl") ||
                 text_ends_with(file->name, ".ndjson"),
         cut, bad;
    unsigned n = count_objects(file, 2, &cut, &bad);

    if (named)
        return n || cut ? CLAIM_STRONG : CLAIM_NONE;
    if (n < 2 && !(n && cut))
        return CLAIM_NONE;
    return text_ends_with(file->name, ".json") ? CLAIM_STRONG : CLAIM_WEAK;
}

const struct format format_jsonl = {
    .name = "jsonl",
    .probe = jsonl_probe,
    .records = &jsonl,
    .title = "JSON lines",
    .example = "  with open(root + '/batches/batch=32,seed=7/epoch=0/jsonl/000000.jsonl') as f:\n"
               "      rows = [json.loads(line) for line in f]\n",
};
