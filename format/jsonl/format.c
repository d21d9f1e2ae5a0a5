/* JSON lines: a sample is a line, served as it is. A line ends with LF, and CR before it belongs to
 * the end; all else is data. Lines of spaces and tabs are no samples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/json.h"
#include "format/jsonl/file.h"
#include "format/records/record_set.h"
#include "format/text/row.h"

#define PIECE                                                                                      \
    (UINT64_C(256) << 10) /* bytes of a step: with their masks they fit into a CPU cache */

/* ---- the index ---- */

/* The line that ends before byte end; last: the byte before that. */
static int jsonl_add_line(struct jsonl_file *file, uint64_t end, uint8_t last)
{
    uint64_t number[LINE_NUMBERS] = {[LINE_AT] = file->line};
    bool counts = file->has_text;

    number[LINE_BYTES] = end - file->line - (end > file->line && last == '\r');
    file->line = end + 1;
    file->has_text = false;
    file->covered += counts ? number[LINE_BYTES] + 1 : 0;
    return counts ? index_add(file->base.prepared.builder, NULL, 0, number) : 0;
}

static bool has_text(const uint8_t *p, const uint8_t *end)
{
    while (p < end && jsonl_is_space(*p))
        p++;
    return p < end;
}

static int scan(struct jsonl_file *file, const uint8_t *piece, size_t len)
{
    struct text_lines lines = text_lines_of(piece, len, file->masks, '\n');
    struct text_line line;
    int r = 0;

    text_masks_find(piece, (len + 63) / 64, '\n', file->masks);
    while (r == 0 && text_lines_next(&lines, &line)) {
        file->has_text = file->has_text || has_text(piece + line.start, piece + line.end);
        r = jsonl_add_line(file, file->at + line.end, line.end ? piece[line.end - 1] : file->last);
    }
    file->has_text = file->has_text || has_text(piece + lines.start, piece + len);
    file->last = piece[len - 1];
    file->at += len;
    return r;
}

static int jsonl_begin(void *impl)
{
    struct jsonl_file *file = impl;

    file->piece = malloc(PIECE + 64); /* masks are of whole words */
    file->masks = malloc(PIECE / 64 * sizeof(*file->masks));
    return file->piece && file->masks ? 0 : -ENOMEM;
}

static int jsonl_step(void *impl, struct diag *d)
{
    struct jsonl_file *file = impl;
    size_t n = (size_t)min_u64(PIECE, file->base.blob->size - file->at), mark = 0;
    int r = n ? blob_read(READ_WAITS, file->base.blob, file->piece, n, file->at, d) : 0;

    /* A byte order mark at the beginning of the file belongs to no sample. */
    if (r == 0 && !file->at)
        file->at = file->line = mark = utf8_mark(file->piece, n);
    if (r == 0 && n > mark)
        r = scan(file, file->piece + mark, n - mark);
    atomic_store(&file->base.prepared.seen, file->at);
    if (r < 0 || file->at < file->base.blob->size)
        return r;
    if (file->line < file->base.blob->size) {
        file->ends_with_cr = file->last == '\r';
        r = jsonl_add_line(file, file->base.blob->size, file->last);
    }
    file->base.prepared.end[LINE_AT] = file->base.blob->size;
    free(TAKE_PTR(file->piece));
    free(TAKE_PTR(file->masks));
    return r < 0 ? r : 1;
}

static void jsonl_keep(void *impl, struct kept *k)
{
    struct jsonl_file *file = impl;

    kept_flag(k, &file->ends_with_cr);
    kept_number(k, &file->covered, UINT64_MAX);
}

static void jsonl_release(void *p)
{
    struct jsonl_file *file = p;

    free(file->piece);
    free(file->masks);
}

const struct record_file_ops jsonl_file_ops = {
    .size = sizeof(struct jsonl_file),
    .index = {.version = "jsonl 4", .keep = jsonl_keep, .begin = jsonl_begin, .step = jsonl_step},
    .shape = {.columns = LINE_NUMBERS, .rising = 1u << LINE_AT},
    .has_places = true,
    .bytes = LINE_BYTES,
    .checks_rows = true,
    .side_by_side = true,
    .cuts = true,
    .release = jsonl_release,
};

/* Samples do not overlap, so if they cover as many bytes as there are, the file has nothing else:
 * no mark at the start, no CRLF, no empty line, and the last line has an end. That end may be a CR
 * alone, which is as long as LF. */
static bool jsonl_is_lines(const void *p)
{
    const struct jsonl_file *file = p;

    return file->covered == file->base.blob->size && !file->ends_with_cr;
}

/* ---- checking ---- */

static int check_line(const struct jsonl_file *file, const struct extent *place, struct diag *d)
{
    AUTO_FREE char *line = malloc(place->len + 1);
    struct diag fault = DIAG_INIT;
    AUTO_JSON json_t *value = NULL;
    uint64_t n;
    int r, read;

    if (!line)
        return -ENOMEM;
    r = blob_read(READ_WAITS, file->base.blob, line, place->len, place->off, d);
    if (r < 0)
        return r;
    read = json_read(line, place->len, "text", json_budget(place->len), &value, &fault);
    if (read == 0 && json_is_object(value))
        return 0;
    r = text_line_number(file->base.blob, place->off, false, &n, d);
    if (r < 0)
        return r;
    return diag_set(d, -EBADMSG, "%s: line %llu at byte %llu: expected an object of JSON, got %s",
                    blob_name(file->base.blob), (unsigned long long)n,
                    (unsigned long long)place->off,
                    read == 0 ? "another value" : diag_text(&fault, read));
}

int jsonl_check(void *p, struct diag *d)
{
    const struct jsonl_file *file = p;
    int r = 0;

    for (uint64_t row = 0; row < file->base.prepared.index.rows && r == 0; row++) {
        const struct extent place = record_file_place(p, row);

        r = check_line(file, &place, d);
    }
    return r;
}

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

static bool line_extent(const void *file, uint64_t row, unsigned column, struct extent *ret)
{
    (void)column;
    *ret = record_file_place(file, row);
    return ret->len > 0;
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
    .extent = line_extent,
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
            if (*p != '\\')
                in_string = *p != '"';
            else if (p + 1 < end && p[1] != '\n')
                p++;
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
    .has_empty_files = true,
    .title = "JSON lines",
    .example = "  with open(root + '/batches/batch=32,seed=7/epoch=0/jsonl/000000.jsonl') as f:\n"
               "      rows = [json.loads(line) for line in f]\n",
};
