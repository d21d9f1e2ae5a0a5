/* Reading indexes of keys; format/core/key_index_make.c makes them. docs/cache-format.md describes
 * the bytes.
 *
 * Rows form groups of 128. The directory has an entry for each group: where its numbers and its
 * keys begin, and for each column the group's least number and the bits that the others need above
 * it. Keys are written in sequence, each as the bytes that differ from the key before; every 16th
 * key is written whole, so that decoding one takes at most 15 others. A constant table of buckets
 * finds rows: where each bucket starts, the rows in it, and 8 bits of each row's hash.
 *
 * The code trusts nothing that it reads from the bytes: it bounds every access where it makes it,
 * by the lengths of the parts, which key_index_open() has compared with the size. So damage that
 * the checksums miss leads to wrong numbers and wrong keys, never to worse. */
#include "format/core/key_index.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/core/key_index_bytes.h"

static uint64_t stir(uint64_t h)
{
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

uint64_t key_hash(const void *key, size_t len)
{
    const uint8_t *p = key;
    uint8_t rest[8] = {0};
    uint64_t h = stir(len);

    for (; len >= sizeof(rest); p += sizeof(rest), len -= sizeof(rest))
        h = stir(h ^ load_le64(p));
    memcpy(rest, p, len);
    return stir(stir(h ^ load_le64(rest)));
}

/* ---- reading ---- */

static const uint8_t *group_of(const struct key_index *index, uint64_t row)
{
    return index->part[GROUPS] + row / GROUP_ROWS * group_bytes(index->columns);
}

/* The byte where the numbers of the group begin. */
static uint64_t numbers_at(const struct key_index *index, const uint8_t *group)
{
    return min_u64(load_le64(group + AT_NUMBERS), index->part_len[NUMBERS]);
}

static unsigned column_bytes(const uint8_t *group, unsigned column)
{
    return group[AT_WIDTHS + column] * (GROUP_ROWS / 8u);
}

/* The number of row i of the group; the column's numbers begin at byte at. */
static uint64_t number_at(const struct key_index *index, const uint8_t *group, unsigned column,
                          uint64_t at, unsigned i)
{
    uint64_t least = load_le64(group + AT_WIDTHS + index->columns + 8 * column);
    unsigned width = group[AT_WIDTHS + column], bit = i * width;

    at += bit / 8;
    if (!width || width > 64 || at + NUMBERS_PAD > index->part_len[NUMBERS])
        return least;
    return least + (load_le64(index->part[NUMBERS] + at) >> bit % 8 & UINT64_MAX >> (64 - width));
}

void key_index_row(const struct key_index *index, uint64_t row, uint64_t *ret)
{
    const uint8_t *group = group_of(index, row);
    uint64_t at = numbers_at(index, group);

    for (unsigned column = 0; column < index->columns; column++) {
        ret[column] = number_at(index, group, column, at, (unsigned)(row % GROUP_ROWS));
        at += column_bytes(group, column);
    }
}

uint64_t key_index_number(const struct key_index *index, uint64_t row, unsigned column)
{
    const uint8_t *group = group_of(index, row);
    uint64_t at = numbers_at(index, group);

    for (unsigned before = 0; before < column; before++)
        at += column_bytes(group, before);
    return number_at(index, group, column, at, (unsigned)(row % GROUP_ROWS));
}

const uint8_t *key_index_next_key(const uint8_t *p, const uint8_t *end, uint8_t key[static KEY_MAX],
                                  size_t *len)
{
    size_t shared, rest;

    if (end - p < 2)
        return NULL;
    shared = *p++;
    rest = *p++;
    if (rest == LONG_REST) {
        if (end - p < 4)
            return NULL;
        rest = load_le32(p);
        p += 4;
    }
    if (shared > *len || rest > KEY_MAX - shared || rest > (size_t)(end - p))
        return NULL;
    memcpy(key + shared, p, rest);
    *len = shared + rest;
    return p + rest;
}

size_t key_index_key(const struct key_index *index, uint64_t row, uint8_t ret[static KEY_MAX])
{
    const uint8_t *group = group_of(index, row), *end = index->part[KEYS] + index->part_len[KEYS];
    unsigned i = (unsigned)(row % GROUP_ROWS);
    uint64_t at = load_le64(group + AT_KEYS);
    uint64_t more = load_le32(group + AT_BLOCKS + 4 * (i / BLOCK_ROWS));
    const uint8_t *p;
    size_t len = 0;

    if (at > index->part_len[KEYS] || more > index->part_len[KEYS] - at)
        return 0;
    p = index->part[KEYS] + at + more;
    for (unsigned n = i % BLOCK_ROWS + 1; n && p; n--)
        p = key_index_next_key(p, end, ret, &len);
    return p ? len : 0;
}

/* The rows that may have a given hash. */
struct candidates {
    uint64_t at, end;
    uint8_t print;
};

static struct candidates candidates_of(const struct key_index *index, uint64_t hash)
{
    const uint8_t *start = index->part[STARTS] + 4 * bucket_of(hash, n_buckets(index->rows));

    return (struct candidates){
        .at = load_le32(start),
        .end = min_u64(load_le32(start + 4), index->rows),
        .print = print_of(hash),
    };
}

static bool next_candidate(const struct key_index *index, struct candidates *c, uint64_t *ret)
{
    while (c->at < c->end) {
        uint64_t at = c->at++;

        if (index->part[PRINTS][at] != c->print)
            continue;
        *ret = load_le32(index->part[ROWS] + 4 * at);
        if (*ret < index->rows)
            return true;
    }
    return false;
}

bool key_index_find(const struct key_index *index, const void *key, size_t len, uint64_t *ret)
{
    uint8_t found[KEY_MAX];
    struct candidates c;
    uint64_t row;

    if (!len)
        return false;
    c = candidates_of(index, key_hash(key, len));
    while (next_candidate(index, &c, &row)) {
        if (key_index_key(index, row, found) == len && !memcmp(found, key, len)) {
            *ret = row;
            return true;
        }
    }
    return false;
}

bool key_index_find_hash(const struct key_index *index, uint64_t hash,
                         bool (*is_it)(void *ctx, uint64_t row), void *ctx, uint64_t *ret)
{
    struct candidates c = candidates_of(index, hash);
    uint8_t key[KEY_MAX];
    uint64_t row;

    while (next_candidate(index, &c, &row)) {
        if (key_hash(key, key_index_key(index, row, key)) == hash && is_it(ctx, row)) {
            *ret = row;
            return true;
        }
    }
    return false;
}

/* ---- opening ---- */

/* Set the lengths of the parts that follow from the numbers of rows and columns. */
static void set_lengths(struct key_index *index)
{
    index->part_len[GROUPS] = ceil_div(index->rows, GROUP_ROWS) * group_bytes(index->columns);
    index->part_len[STARTS] = 4 * (n_buckets(index->rows) + 1);
    index->part_len[ROWS] = 4 * index->rows;
    index->part_len[PRINTS] = index->rows;
}

/* Find the parts after the header; false: their lengths do not add up to the size. */
static bool set_places(struct key_index *index, const uint8_t *bytes, size_t size)
{
    const uint8_t *at = bytes + HEADER_BYTES;
    uint64_t left = size - HEADER_BYTES;

    if (index->about_len > left)
        return false;
    index->about = at;
    at += index->about_len;
    left -= index->about_len;
    for (unsigned i = 0; i < N_PARTS; i++) {
        if (index->part_len[i] > left)
            return false;
        index->part[i] = at;
        at += index->part_len[i];
        left -= index->part_len[i];
    }
    return left == 0;
}

static bool is_whole(const struct key_index *index, const uint8_t *bytes, size_t size)
{
    size_t head = (size_t)(index->part[NUMBERS] - bytes);

    return key_index_checksum(0, bytes + AT_CRC_REST, head - AT_CRC_REST) ==
               load_le32(bytes + AT_CRC) &&
           key_index_checksum(0, bytes + head, size - head) == load_le32(bytes + AT_CRC_REST);
}

int key_index_open(const uint8_t *bytes, size_t size, struct key_index *ret)
{
    struct key_index index = {0};

    if (size < HEADER_BYTES || memcmp(bytes, KEY_INDEX_MAGIC, MAGIC_BYTES) != 0 ||
        load_le32(bytes + AT_VERSION) != VERSION)
        return -EBADMSG;
    index.rows = load_le64(bytes + AT_ROWS);
    index.columns = load_le32(bytes + AT_COLUMNS);
    index.about_len = load_le64(bytes + AT_ABOUT);
    index.renamed = load_le64(bytes + AT_RENAMED);
    index.key_bytes = load_le64(bytes + AT_KEY_BYTES);
    index.key_most = load_le32(bytes + AT_KEY_MOST);
    if (index.rows > UINT32_MAX || index.columns > KEY_INDEX_COLUMNS || index.key_most > KEY_MAX)
        return -EBADMSG;
    set_lengths(&index);
    index.part_len[NUMBERS] = load_le64(bytes + AT_NUMBERS_LEN);
    index.part_len[KEYS] = load_le64(bytes + AT_KEYS_LEN);
    if (!set_places(&index, bytes, size) || !is_whole(&index, bytes, size))
        return -EBADMSG;
    *ret = index;
    return 0;
}
