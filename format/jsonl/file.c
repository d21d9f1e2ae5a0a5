/* The pass over a file of JSON lines. A line ends with LF, and CR before it belongs to the end; all
 * else is data. Lines of spaces and tabs are no samples. */
#include "format/jsonl/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/json.h"
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

/* The index says nothing else of the last byte. */
static void jsonl_keep(void *impl, struct kept *k)
{
    kept_flag(k, &((struct jsonl_file *)impl)->ends_with_cr);
}

static int jsonl_ready(void *impl, struct diag *d)
{
    struct jsonl_file *file = impl;
    const struct index *index = &file->base.prepared.index;
    uint64_t bytes[INDEX_GROUP];

    (void)d;
    for (uint64_t row = 0; row < index->rows;) {
        unsigned n = index_numbers(index, row, LINE_BYTES, bytes);

        for (unsigned i = 0; i < n; i++, row++)
            file->covered += bytes[i] + 1;
    }
    return 0;
}

static void jsonl_release(void *p)
{
    struct jsonl_file *file = p;

    free(file->piece);
    free(file->masks);
}

const struct record_file_ops jsonl_file_ops = {
    .size = sizeof(struct jsonl_file),
    .index = {.version = "jsonl 3",
              .keep = jsonl_keep,
              .begin = jsonl_begin,
              .step = jsonl_step,
              .ready = jsonl_ready},
    .shape = {.columns = LINE_NUMBERS, .rising = 1u << LINE_AT},
    .has_places = true,
    .bytes = LINE_BYTES,
    .checks_rows = true,
    .side_by_side = true,
    .cuts = true,
    .release = jsonl_release,
};

/* Samples do not overlap, so if they cover as many bytes as there are, nothing else is there: no
 * mark at the start, no CRLF, no empty line, and the last line has an end. That end may be a CR
 * alone, which is as long as LF. */
bool jsonl_is_lines(const void *p)
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
