/* Bytes as a file of JSON lines: each sample is a line, and all lines with more than spaces are
 * samples. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/jsonl/file.h"
#include "fuzz.h"
#include "saw.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

static bool is_blank(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p == end;
}

/* The next line with more than spaces, written again. */
static bool next_line(const uint8_t **at, const uint8_t *end, const uint8_t **ret, size_t *ret_len)
{
    while (*at < end) {
        const uint8_t *line = *at, *lf = memchr(line, '\n', (size_t)(end - line));
        const uint8_t *stop = lf ? lf : end;

        *at = lf ? lf + 1 : end;
        if (is_blank(line, stop))
            continue;
        *ret = line;
        *ret_len = (size_t)(stop - line) - (stop[-1] == '\r');
        return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *at = data, *line;
    const struct format_setup setup = {.keep = &no_store};
    struct source_file source = {.name = "x", .file_name = "x", .folder = ""};
    struct jsonl_file *file;
    size_t line_len;
    uint64_t row = 0, number[LINE_NUMBERS];

    saw_file(&format_jsonl, "x.jsonl", data, len, &setup);
    source.blob = memory_blob_new("x", data, len, len, NULL);
    FUZZ_CHECK(source.blob &&
               record_file_open(&jsonl_file_ops, &(struct record_source){&source, 1, 0, &setup},
                                &file, NULL) == 0);
    while (!prepared_step(&file->base.prepared, NULL))
        ;
    if (len >= 3 && !memcmp(data, "\xef\xbb\xbf", 3))
        at += 3;
    for (; next_line(&at, data + len, &line, &line_len); row++) {
        FUZZ_CHECK(row < file->base.prepared.index.rows);
        index_row(&file->base.prepared.index, row, number);
        FUZZ_CHECK(number[LINE_AT] == (uint64_t)(line - data) && number[LINE_BYTES] == line_len);
        FUZZ_CHECK(record_file_cut(&file->base, number[LINE_AT]) == (line > data ? row + 1 : 0));
    }
    FUZZ_CHECK(row == file->base.prepared.index.rows);
    jsonl_check(file, NULL);
    record_file_drop(&file->base);
    return 0;
}
