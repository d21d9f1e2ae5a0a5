/* Bytes as a table. Whatever the pass takes by its bit masks, the parser takes too: each row has
 * the columns of the first, all numbers; no line of numbers is omitted; what is read in pieces is
 * what is read at once. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "format/csv/file.h"
#include "format/csv/row.h"
#include "fuzz.h"
#include "saw.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

static void check_row(const struct csv_file *file, const uint8_t *data, uint64_t row)
{
    const struct csv_shape *shape = &file->shape;
    AUTO_FREE float *value = malloc(shape->columns * sizeof(*value));
    AUTO_FREE uint8_t *line = NULL, *once = NULL, *pieces = NULL;
    uint64_t number[ROW_NUMBERS], dim[RECORD_AXES];
    size_t bad, bytes;

    index_row(&file->base.prepared.index, row, number);
    line = calloc(number[ROW_BYTES] + DECIMAL_PAD, 1);
    FUZZ_CHECK(value && line);
    memcpy(line, data + number[ROW_AT], number[ROW_BYTES]);
    FUZZ_CHECK(!csv_is_empty(line, number[ROW_BYTES], csv_tabs(shape->delimiter, shape->columns),
                             shape->comment));
    FUZZ_CHECK(csv_parse(line, number[ROW_BYTES], shape->delimiter, value, shape->columns, &bad) ==
               shape->columns);
    FUZZ_CHECK(bad == shape->columns);
    FUZZ_CHECK(csv_records.dims(file, row, 0, dim, NULL) == 0);
    bytes = dim[0] * (file->doubles ? 8 : 4);
    once = malloc(bytes + 1);
    pieces = malloc(bytes + 1);
    FUZZ_CHECK(once && pieces);
    FUZZ_CHECK(!bytes || csv_records.read(READ_WAITS, file, row, 0, 0, bytes, once, NULL) == 0);
    for (uint64_t at = 0; at < bytes; at += 3)
        FUZZ_CHECK(csv_records.read(READ_WAITS, file, row, 0, at, (size_t)min_u64(3, bytes - at),
                                    pieces + at, NULL) == 0);
    FUZZ_CHECK(!memcmp(once, pieces, bytes));
}

/* Lines with cells, behind the header. */
static uint64_t count_lines(const uint8_t *data, size_t len, const struct csv_shape *shape)
{
    uint64_t n = 0;

    for (size_t at = shape->rows_at, end; at < len; at = end + 1) {
        for (end = at; end < len && data[end] != '\n' && data[end] != '\r';)
            end++;
        n += !csv_is_empty(data + at, end - at, csv_tabs(shape->delimiter, shape->columns),
                           shape->comment);
    }
    return n;
}

extern const struct format format_csv;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char delimiters[] = {0, ',', ' ', '|'};
    struct format_setup setup = {.keep = &no_store};
    struct source_file source = {.name = "x", .file_name = "x", .folder = ""};
    struct csv_file *file;
    int r = 0;

    if (!len)
        return 0;
    setup.options.delimiter = delimiters[data[0] % 4];
    setup.options.comment = data[0] & 4 ? '#' : 0;
    setup.options.label_column = data[0] & 8 ? "0" : NULL;
    setup.options.doubles = data[0] & 16;
    setup.options.header = data[0] & 32   ? CSV_HEADER_YES
                           : data[0] & 64 ? CSV_HEADER_NO
                                          : CSV_HEADER_AUTO;
    data++;
    len--;
    saw_file(&format_csv, "x.csv", data, len, &setup);
    source.blob = memory_blob_new("x", data, len, len, NULL);
    FUZZ_CHECK(source.blob);
    if (record_file_open(&csv_file_ops, &(struct record_source){&source, 1, 0, &setup}, &file,
                         NULL) < 0)
        return 0;
    while (r == 0)
        r = prepared_step(&file->base.prepared, NULL);
    if (r == 1) {
        FUZZ_CHECK(file->base.prepared.index.rows == count_lines(data, len, &file->shape));
        FUZZ_CHECK(csv_check(file, NULL) == 0 || csv_check(file, NULL) == -EBADMSG);
        for (uint64_t row = 0; row < file->base.prepared.index.rows; row++)
            check_row(file, data, row);
    }
    record_file_drop(&file->base);
    return 0;
}
