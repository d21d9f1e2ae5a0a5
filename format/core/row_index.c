#include "format/core/row_index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"

#define VERSION      1
#define GROUP_ROWS   128
#define HEADER_BYTES 96
#define GROUP_BYTES  48
#define WIDTH_MAX    57 /* bits that one load of 64 can give at any bit of a byte */
#define DATA_PAD     8  /* so that a load never leaves the data */

/* The sums of a group, in this order: bytes of text; bytes between rows beyond one per row;
 * features. */
enum { SUM_TEXT, SUM_GAP, SUM_FEATURES, N_SUMS };

/* Of the header, and of a group. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_CRC = 12,
    AT_ROWS = 16,
    AT_GROUPS = 24,
    AT_DATA = 32,
    AT_ABOUT = 40
};
enum { AT_SUMS = 0, AT_LINES = 24, AT_PLACE = 32, AT_WIDTHS = 40 };

static const char magic[8] = "epochrow";

/* ---- reading ---- */

static const uint8_t *group_of(const struct row_index *index, uint64_t row)
{
    return index->group + row / GROUP_ROWS * GROUP_BYTES;
}

static uint64_t group_sum(const uint8_t *group, unsigned sum)
{
    return load_le64(group + AT_SUMS + 8 * sum);
}

/* The sum before row number i of the group. */
static uint64_t sum_in(const struct row_index *index, const uint8_t *group, unsigned sum,
                       unsigned i)
{
    const uint8_t *packed = index->data + load_le64(group + AT_PLACE);
    unsigned width = group[AT_WIDTHS + sum], bit = i * width;

    for (unsigned before = 0; before < sum; before++)
        packed += group[AT_WIDTHS + before] * (GROUP_ROWS / 8);
    return group_sum(group, sum) +
           (load_le64(packed + bit / 8) >> bit % 8 & ((UINT64_C(1) << width) - 1));
}

/* The group after the last one has no rows, only the sums over all. */
static uint64_t sum_before(const struct row_index *index, unsigned sum, uint64_t row)
{
    const uint8_t *group = group_of(index, row);

    return row == index->rows || row % GROUP_ROWS == 0
               ? group_sum(
                     row == index->rows ? index->group + index->n_groups * GROUP_BYTES : group, sum)
               : sum_in(index, group, sum, (unsigned)(row % GROUP_ROWS));
}

struct row_sums row_index_sums(const struct row_index *index, uint64_t row)
{
    return (struct row_sums){
        .text = sum_before(index, SUM_TEXT, row),
        .features = sum_before(index, SUM_FEATURES, row),
    };
}

static uint64_t start_of(const struct row_index *index, uint64_t row)
{
    const uint8_t *group = group_of(index, row);
    unsigned i = (unsigned)(row % GROUP_ROWS);

    return sum_in(index, group, SUM_TEXT, i) + sum_in(index, group, SUM_GAP, i);
}

struct row_place row_index_place(const struct row_index *index, uint64_t row)
{
    struct row_sums before = row_index_sums(index, row), after = row_index_sums(index, row + 1);

    return (struct row_place){
        .start = start_of(index, row),
        .len = after.text - before.text - 1,
        .features = after.features - before.features,
    };
}

/* The first row of [0, rows] with number(row) > at; the numbers never decrease. */
static uint64_t first_above(const struct row_index *index, uint64_t at,
                            uint64_t (*number)(const struct row_index *index, uint64_t row))
{
    uint64_t low = 0, high = index->rows;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (number(index, middle) > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint64_t text_before(const struct row_index *index, uint64_t row)
{
    return sum_before(index, SUM_TEXT, row);
}

static uint64_t features_before(const struct row_index *index, uint64_t row)
{
    return sum_before(index, SUM_FEATURES, row);
}

uint64_t row_index_before(const struct row_index *index, uint64_t offset)
{
    return offset ? first_above(index, offset - 1, start_of) : 0;
}

uint64_t row_index_of_text(const struct row_index *index, uint64_t at)
{
    return first_above(index, at, text_before) - 1;
}

uint64_t row_index_of_feature(const struct row_index *index, uint64_t at)
{
    return first_above(index, at, features_before) - 1;
}

uint64_t row_index_known_line(const struct row_index *index, uint64_t row, uint64_t *ret_lines)
{
    *ret_lines = load_le64(group_of(index, row) + AT_LINES);
    return row / GROUP_ROWS * GROUP_ROWS;
}

static uint32_t checksum(const struct iovec pieces[static ROW_INDEX_PIECES])
{
    uLong crc = crc32_z(0, (const uint8_t *)pieces[0].iov_base + AT_ROWS, HEADER_BYTES - AT_ROWS);

    for (unsigned i = 1; i < ROW_INDEX_PIECES; i++)
        crc = crc32_z(crc, pieces[i].iov_base, pieces[i].iov_len);
    return (uint32_t)crc;
}

/* Are all bits of the group inside the data? */
static bool group_fits(const uint8_t *group, uint64_t data_bytes)
{
    uint64_t need = DATA_PAD, end;

    for (unsigned sum = 0; sum < N_SUMS; sum++) {
        if (group[AT_WIDTHS + sum] > WIDTH_MAX)
            return false;
        need += group[AT_WIDTHS + sum] * (GROUP_ROWS / 8);
    }
    return checked_add(load_le64(group + AT_PLACE), need, &end) && end <= data_bytes;
}

/* Do the sums of a group of n rows never decrease, up to those of the next group? A row has at
 * least one byte of text. */
static bool group_rises(const struct row_index *index, const uint8_t *group, unsigned n)
{
    for (unsigned sum = 0; sum < N_SUMS; sum++) {
        uint64_t least = sum == SUM_TEXT, end = group_sum(group + GROUP_BYTES, sum);
        uint64_t before = group_sum(group, sum), now;

        if (before > end || sum_in(index, group, sum, 0) != before)
            return false;
        for (unsigned i = 1; i < n; i++, before = now) {
            now = sum_in(index, group, sum, i);
            if (now < before || now - before < least)
                return false;
        }
        if (before > end || end - before < least)
            return false;
    }
    return true;
}

/* Are all sums possible sums over rows, from 0 on? */
static bool groups_are_good(struct row_index *index, uint64_t data_bytes)
{
    for (unsigned sum = 0; sum < N_SUMS; sum++)
        if (sum != SUM_GAP && group_sum(index->group, sum) != 0)
            return false;
    for (uint64_t i = 0; i < index->n_groups; i++) {
        const uint8_t *group = index->group + i * GROUP_BYTES;

        if (!group_fits(group, data_bytes) ||
            !group_rises(index, group, (unsigned)min_u64(GROUP_ROWS, index->rows - i * GROUP_ROWS)))
            return false;
    }
    return checked_add(sum_before(index, SUM_TEXT, index->rows),
                       sum_before(index, SUM_GAP, index->rows), &index->end);
}

int row_index_open(const uint8_t *bytes, size_t size, struct row_index *ret)
{
    struct row_index index = {0};
    struct iovec pieces[ROW_INDEX_PIECES] = {{.iov_base = (void *)(uintptr_t)bytes}};
    uint64_t groups_bytes, data_bytes;

    if (size < HEADER_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0 ||
        load_le32(bytes + AT_VERSION) != VERSION)
        return -EBADMSG;
    index.rows = load_le64(bytes + AT_ROWS);
    index.n_groups = load_le64(bytes + AT_GROUPS);
    data_bytes = load_le64(bytes + AT_DATA);
    if (index.n_groups != ceil_div(index.rows, GROUP_ROWS) ||
        !checked_mul(index.n_groups + 1, GROUP_BYTES, &groups_bytes) ||
        groups_bytes > size - HEADER_BYTES || data_bytes != size - HEADER_BYTES - groups_bytes)
        return -EBADMSG;
    index.group = bytes + HEADER_BYTES;
    index.data = index.group + groups_bytes;
    pieces[1] = (struct iovec){(void *)(uintptr_t)index.group, groups_bytes};
    pieces[2] = (struct iovec){(void *)(uintptr_t)index.data, data_bytes};
    if (checksum(pieces) != load_le32(bytes + AT_CRC) || !groups_are_good(&index, data_bytes))
        return -EBADMSG;
    for (unsigned i = 0; i < ROW_INDEX_ABOUT; i++)
        index.about[i] = load_le64(bytes + AT_ABOUT + 8 * i);
    *ret = index;
    return 0;
}

/* ---- making ---- */

struct memory {
    uint8_t *bytes; /* owned */
    size_t len, capacity;
};

struct row_index_builder {
    uint64_t rows;
    uint64_t end;                        /* of the last row in the file, with its one byte */
    uint64_t sum[N_SUMS];                /* over all rows */
    uint64_t before[N_SUMS][GROUP_ROWS]; /* sums before the rows of the group being filled */
    uint64_t lines;                      /* before its first row */
    uint8_t header[HEADER_BYTES];
    struct memory groups, data;
};

int row_index_builder_new(struct row_index_builder **ret)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : -ENOMEM;
}

void row_index_builder_free(struct row_index_builder *b)
{
    if (!b)
        return;
    free(b->groups.bytes);
    free(b->data.bytes);
    free(b);
}

/* Append n zero bytes. NULL: no memory. */
static uint8_t *memory_add(struct memory *m, size_t n)
{
    uint8_t *at;

    if (!m->bytes || m->len + n > m->capacity) {
        size_t capacity = m->capacity + m->capacity / 2 + n + 4096;
        uint8_t *grown = realloc(m->bytes, capacity);

        if (!grown)
            return NULL;
        m->bytes = grown;
        m->capacity = capacity;
    }
    at = m->bytes + m->len;
    memset(at, 0, n);
    m->len += n;
    return at;
}

/* Write the bits of v at bit number bit of p, where p is zero. */
static void put_bits(uint8_t *p, unsigned bit, uint64_t v)
{
    p += bit / 8;
    for (v <<= bit % 8; v; v >>= 8)
        *p++ |= (uint8_t)v;
}

static int add_group(struct row_index_builder *b, const uint64_t sums[static N_SUMS])
{
    uint8_t *group = memory_add(&b->groups, GROUP_BYTES);

    if (!group)
        return -ENOMEM;
    for (unsigned sum = 0; sum < N_SUMS; sum++)
        store_le64(group + AT_SUMS + 8 * sum, sums[sum]);
    store_le64(group + AT_LINES, b->lines);
    store_le64(group + AT_PLACE, b->data.len);
    return 0;
}

/* Pack the rows of the group being filled. */
static int pack_group(struct row_index_builder *b)
{
    unsigned n = (unsigned)((b->rows - 1) % GROUP_ROWS) + 1;
    uint64_t first[N_SUMS];
    int r;

    for (unsigned sum = 0; sum < N_SUMS; sum++)
        first[sum] = b->before[sum][0];
    r = add_group(b, first);
    for (unsigned sum = 0; sum < N_SUMS && r == 0; sum++) {
        unsigned width = bit_width(b->before[sum][n - 1] - first[sum]);
        uint8_t *packed = memory_add(&b->data, width * (GROUP_ROWS / 8));

        assert(width <= WIDTH_MAX);
        if (!packed)
            return -ENOMEM;
        b->groups.bytes[b->groups.len - GROUP_BYTES + AT_WIDTHS + sum] = (uint8_t)width;
        for (unsigned i = 0; i < n && width; i++)
            put_bits(packed, i * width, b->before[sum][i] - first[sum]);
    }
    return r;
}

int row_index_add(struct row_index_builder *b, const struct row_place *place, uint64_t lines)
{
    unsigned i = (unsigned)(b->rows % GROUP_ROWS);
    int r = !i && b->rows ? pack_group(b) : 0;

    if (r < 0)
        return r;
    assert(place->start >= b->end);
    if (!i)
        b->lines = lines;
    b->sum[SUM_GAP] += place->start - b->end;
    for (unsigned sum = 0; sum < N_SUMS; sum++)
        b->before[sum][i] = b->sum[sum];
    b->sum[SUM_TEXT] += place->len + 1;
    b->sum[SUM_FEATURES] += place->features;
    b->end = place->start + place->len + 1;
    b->rows++;
    return 0;
}

int row_index_finish(struct row_index_builder *b, const uint64_t about[static ROW_INDEX_ABOUT],
                     struct row_index *ret, struct iovec ret_pieces[static ROW_INDEX_PIECES])
{
    int r = b->rows ? pack_group(b) : 0;

    if (r == 0)
        r = add_group(b, b->sum);
    if (r < 0 || !memory_add(&b->data, DATA_PAD))
        return -ENOMEM;
    *ret = (struct row_index){
        .rows = b->rows,
        .n_groups = ceil_div(b->rows, GROUP_ROWS),
        .group = b->groups.bytes,
        .data = b->data.bytes,
    };
    memcpy(b->header + AT_MAGIC, magic, sizeof(magic));
    store_le32(b->header + AT_VERSION, VERSION);
    store_le64(b->header + AT_ROWS, ret->rows);
    store_le64(b->header + AT_GROUPS, ret->n_groups);
    store_le64(b->header + AT_DATA, b->data.len);
    for (unsigned i = 0; i < ROW_INDEX_ABOUT; i++) {
        ret->about[i] = about[i];
        store_le64(b->header + AT_ABOUT + 8 * i, about[i]);
    }
    ret_pieces[0] = (struct iovec){b->header, HEADER_BYTES};
    ret_pieces[1] = (struct iovec){b->groups.bytes, b->groups.len};
    ret_pieces[2] = (struct iovec){b->data.bytes, b->data.len};
    store_le32(b->header + AT_CRC, checksum(ret_pieces));
    return 0;
}
