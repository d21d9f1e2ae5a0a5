/* Bytes as an index of rows, of somebody who means harm: the checksum is made right. Either it is
 * refused, or no sum falls, no row leaves the file, and every search ends where it must. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "format/core/row_index.h"
#include "fuzz.h"

#define AT_CRC   12 /* docs/cache-format.md */
#define AT_ROWS  16
#define ROWS_MAX 2000

static void check_row(const struct row_index *index, uint64_t row)
{
    struct row_sums before = row_index_sums(index, row), after = row_index_sums(index, row + 1);
    struct row_place place = row_index_place(index, row);
    uint64_t lines;

    FUZZ_CHECK(before.text < after.text && before.features <= after.features);
    FUZZ_CHECK(place.len == after.text - before.text - 1);
    FUZZ_CHECK(place.features == after.features - before.features);
    FUZZ_CHECK(place.start <= index->end && place.len < index->end - place.start);
    FUZZ_CHECK(row_index_before(index, place.start) == row);
    FUZZ_CHECK(row_index_of_text(index, before.text) == row);
    FUZZ_CHECK(after.features == before.features ||
               row_index_of_feature(index, before.features) == row);
    FUZZ_CHECK(row_index_known_line(index, row, &lines) <= row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE uint8_t *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    struct row_index index;

    if (len)
        memcpy(bytes, data, len);
    if (len > AT_ROWS)
        store_le32(bytes + AT_CRC, (uint32_t)crc32_z(0, bytes + AT_ROWS, len - AT_ROWS));
    if (row_index_open(bytes, len, &index) < 0)
        return 0;
    for (uint64_t row = 0; row < min_u64(index.rows, ROWS_MAX); row++)
        check_row(&index, row);
    if (index.rows)
        check_row(&index, index.rows - 1);
    return 0;
}
