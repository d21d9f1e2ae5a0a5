/* Bytes as an index of keys, of somebody who means harm: the checksums are made right. Whatever
 * comes out, no access leaves the bytes, no key is too long, and rows that are found are rows. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/core/key_index_bytes.h"
#include "fuzz.h"

#define ROWS_MOST 24 /* that are looked at, spread over all */

/* Where the checked beginning ends; anything, where the numbers are no index's. */
static size_t head_of(const uint8_t *bytes, size_t len)
{
    uint64_t groups = ceil_div(load_le64(bytes + AT_ROWS), GROUP_ROWS), all, head;

    if (!checked_mul(groups, group_bytes(load_le32(bytes + AT_COLUMNS)), &all) ||
        !checked_add(all, load_le64(bytes + AT_ABOUT), &head) || head > len - HEADER_BYTES)
        return len;
    return (size_t)head + HEADER_BYTES;
}

static bool is_any(void *ctx, uint64_t row)
{
    FUZZ_CHECK(row < *(const uint64_t *)ctx);
    return false;
}

static void check_row(const struct key_index *index, uint64_t row)
{
    uint64_t number[KEY_INDEX_COLUMNS], found, rows = index->rows;
    uint8_t key[KEY_MAX];
    size_t len = key_index_key(index, row, key);

    FUZZ_CHECK(len <= KEY_MAX);
    key_index_row(index, row, number);
    for (unsigned column = 0; column < index->columns; column++)
        FUZZ_CHECK(key_index_number(index, row, column) == number[column]);
    FUZZ_CHECK(!key_index_find(index, key, len, &found) || found < rows);
    FUZZ_CHECK(!key_index_find_hash(index, key_hash(key, len), is_any, &rows, &found));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE uint8_t *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    struct key_index index;
    uint64_t found;
    unsigned sum = 0;

    if (len)
        memcpy(bytes, data, len);
    if (len >= HEADER_BYTES) {
        size_t head = head_of(bytes, len);

        store_le32(bytes + AT_CRC_REST, key_index_checksum(0, bytes + head, len - head));
        store_le32(bytes + AT_CRC, key_index_checksum(0, bytes + AT_CRC_REST, head - AT_CRC_REST));
    }
    if (key_index_open(bytes, len, &index) < 0)
        return 0;
    for (size_t i = 0; i < index.about_len; i++)
        sum += index.about[i];
    FUZZ_CHECK(sum <= 255 * index.about_len);
    for (uint64_t i = 0, n = min_u64(index.rows, ROWS_MOST); i < n; i++)
        check_row(&index, (i + 1) * index.rows / n - 1); /* rows are below 2^32 */
    FUZZ_CHECK(!key_index_find(&index, "absent", 6, &found) || found < index.rows);
    return 0;
}
