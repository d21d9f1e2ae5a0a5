/* Bytes as a hostile index: the checksum is made right. Whatever comes out, no
 * access leaves the bytes, no key is too long, no number of a rising column falls, and rows that
 * are found are rows. If it passes for the places of rows of text, none of these leaves the file.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/index/index_bytes.h"
#include "format/libsvm/places.h"
#include "fuzz.h"

#define ROWS_MOST 24               /* that are looked at, spread over all */
#define FILE_SIZE (UINT64_MAX - 1) /* any number of an index may be a place in it */

static bool is_any(void *ctx, uint64_t row)
{
    FUZZ_CHECK(row < *(const uint64_t *)ctx);
    return false;
}

static void check_numbers(const struct index *index, uint64_t row)
{
    uint64_t number[INDEX_LEARNED], next[INDEX_LEARNED], group[INDEX_GROUP];

    index_row(index, row, number);
    index_row(index, row + 1, next);
    for (unsigned column = 0; column < index->shape.columns; column++) {
        unsigned n = index_numbers(index, row, column, group);

        FUZZ_CHECK(index_number(index, row, column) == number[column]);
        fuzz_saw(&number[column], sizeof(number[column]));
        FUZZ_CHECK(group[0] == number[column]);
        FUZZ_CHECK(group[n - 1] == index_number(index, row + n - 1, column));
        if (!is_rising(&index->shape, column))
            continue;
        FUZZ_CHECK(number[column] <= next[column]);
        FUZZ_CHECK(index_first_above(index, column, number[column]) > row);
        FUZZ_CHECK(!number[column] || index_first_above(index, column, number[column] - 1) <= row);
    }
}

static void check_key(const struct index *index, uint64_t row)
{
    uint64_t found, rows = index->rows;
    uint8_t key[KEY_MAX];
    size_t len = index_key(index, row, key);

    FUZZ_CHECK(len <= KEY_MAX);
    fuzz_saw(key, len);
    FUZZ_CHECK(!index_find(index, key, len, &found) || found < rows);
    FUZZ_CHECK(!index_find_hash(index, key_hash(key, len), is_any, &rows, &found));
}

static void check_place(const struct index *index, uint64_t row)
{
    struct row_sums before = places_sums(index, row), after = places_sums(index, row + 1);
    struct row_place place = places_row(index, row);

    FUZZ_CHECK(before.text < after.text && before.features <= after.features);
    FUZZ_CHECK(place.len == after.text - before.text - 1);
    FUZZ_CHECK(place.features == after.features - before.features);
    FUZZ_CHECK(place.start <= FILE_SIZE && place.len <= FILE_SIZE - place.start);
    FUZZ_CHECK(places_before(index, place.start) == row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE uint8_t *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    struct index index;
    uint64_t found;
    unsigned sum = 0;
    bool has_places;

    if (len)
        memcpy(bytes, data, len);
    if (len >= HEADER_BYTES)
        store_le32(bytes + AT_CRC, index_checksum(0, bytes + AT_COLUMNS, len - AT_COLUMNS));
    if (index_open(bytes, len, &index) < 0)
        return 0;
    fuzz_saw(&index.rows, sizeof(index.rows));
    for (size_t i = 0; i < index.about_len; i++)
        sum += index.about[i];
    FUZZ_CHECK(sum <= 255 * index.about_len);
    has_places = places_fit(&index, FILE_SIZE);
    for (uint64_t i = 0, n = min_u64(index.rows, ROWS_MOST); i < n; i++) {
        uint64_t row = index.rows / n * i + index.rows % n;

        check_numbers(&index, row);
        if (index.shape.has_keys)
            check_key(&index, row);
        if (has_places)
            check_place(&index, row);
    }
    FUZZ_CHECK(!index.shape.has_keys || !index_find(&index, "absent", 6, &found) ||
               found < index.rows);
    return 0;
}
