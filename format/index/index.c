/* Reading indexes; format/index/index_make.c makes them. docs/spec/cache-format.md describes the
 * bytes.
 *
 * Rows form groups of 128. The directory has an entry for each group: where its numbers and its
 * keys begin, and for each column the group's least number and the bits that the others need above
 * it. The entry after the last group has no rows: its least numbers are those after the last row.
 * Keys are written in sequence, each as the bytes that differ from the key before; every 16th key
 * is written whole, so that decoding one takes at most 15 others. A constant table of buckets finds
 * rows: where each bucket starts, the rows in it, and 8 bits of each row's hash.
 *
 * index_open() checks that all numbers of all groups are inside their part, and that rising columns
 * rise. Everything about keys is checked where it is used. */
#include "format/index/index.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/search.h"
#include "format/index/index_bytes.h"

static uint64_t stir(uint64_t h)
{
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

uint64_t key_hash(const void *key, size_t len)
{
    const uint8_t *p = key;
    uint8_t tail[8] = {0};
    uint64_t h = stir(len);

    for (; len >= sizeof(tail); p += sizeof(tail), len -= sizeof(tail))
        h = stir(h ^ load_le64(p));
    memcpy(tail, p, len);
    return stir(stir(h ^ load_le64(tail)));
}

/* ---- numbers ---- */

static const uint8_t *group_number(const struct index *index, uint64_t group)
{
    return index->part[GROUPS] + group * index->group_bytes;
}

/* The group of a row, or the entry after the last group. */
static const uint8_t *index_group_of(const struct index *index, uint64_t row)
{
    return group_number(index, row < index->rows ? row / GROUP_ROWS : n_groups(index->rows));
}

/* Where the numbers of the group begin. */
static const uint8_t *index_numbers_of(const struct index *index, const uint8_t *group)
{
    return index->part[NUMBERS] + load_le64(group + AT_NUMBERS);
}

/* Where those of a slot begin. */
static const uint8_t *packed_of(const struct index *index, const uint8_t *group, unsigned slot)
{
    const uint8_t *packed = index_numbers_of(index, group);

    for (unsigned before = 0; before < slot; before++)
        packed += slot_bytes(group, before);
    return packed;
}

/* What number i of a column is above the least of its group; the column's begin at packed. */
static inline uint64_t above_least(const uint8_t *packed, unsigned width, unsigned i)
{
    unsigned bit = i * width;

    if (!width) /* do not touch what follows, which is other numbers */
        return 0;
    return load_le64(packed + bit / 8) >> bit % 8 & UINT64_MAX >> (64 - width);
}

/* The slot of a learned column, or NO_SLOT: all rows have *ret_constant. */
static unsigned index_slot_of(const struct index *index, unsigned column, uint64_t *ret_constant)
{
    const uint8_t *learned = index->learned + (size_t)(column - index->fixed) * LEARNED_BYTES;

    *ret_constant = load_le64(learned + AT_CONSTANT);
    return load_le16(learned + AT_SLOT);
}

void index_row_start(const struct index *index, uint64_t row, unsigned n, uint64_t *ret)
{
    const uint8_t *group = index_group_of(index, row), *packed = index_numbers_of(index, group);
    const uint8_t *width = group + AT_WIDTHS, *least = group + at_least(index->slots, 0);
    unsigned i = (unsigned)(row % GROUP_ROWS), fixed = n < index->fixed ? n : index->fixed;
    unsigned slot = 0;

    for (; slot < fixed; slot++) {
        ret[slot] = load_le64(least + 8 * slot) + above_least(packed, width[slot], i);
        packed += width[slot] * (GROUP_ROWS / 8u);
    }
    for (unsigned column = fixed; column < n; column++) {
        uint64_t constant;

        if (index_slot_of(index, column, &constant) == NO_SLOT) {
            ret[column] = row < index->rows ? constant : 0;
            continue;
        }
        ret[column] = load_le64(least + 8 * slot) + above_least(packed, width[slot], i);
        packed += width[slot++] * (GROUP_ROWS / 8u);
    }
}

void index_row_pair(const struct index *index, uint64_t row, unsigned n, uint64_t *ret,
                    uint64_t *ret_next)
{
    const uint8_t *group = index_group_of(index, row), *packed = index_numbers_of(index, group);
    const uint8_t *width = group + AT_WIDTHS, *least = group + at_least(index->slots, 0);
    unsigned i = (unsigned)(row % GROUP_ROWS);

    if (i + 1 == GROUP_ROWS || row + 1 == index->rows || n > index->fixed) {
        index_row_start(index, row, n, ret);
        index_row_start(index, row + 1, n, ret_next);
        return;
    }
    for (unsigned column = 0; column < n; column++) {
        uint64_t from = load_le64(least + 8 * column);

        ret[column] = from + above_least(packed, width[column], i);
        ret_next[column] = from + above_least(packed, width[column], i + 1);
        packed += width[column] * (GROUP_ROWS / 8u);
    }
}

void index_row(const struct index *index, uint64_t row, uint64_t *ret)
{
    index_row_start(index, row, index->shape.columns, ret);
}

uint64_t index_number(const struct index *index, uint64_t row, unsigned column)
{
    const uint8_t *group = index_group_of(index, row);
    uint64_t constant = 0;
    unsigned slot = column < index->fixed ? column : index_slot_of(index, column, &constant);

    if (slot == NO_SLOT)
        return row < index->rows ? constant : 0;
    return load_le64(group + at_least(index->slots, slot)) +
           above_least(packed_of(index, group, slot), group[AT_WIDTHS + slot],
                       (unsigned)(row % GROUP_ROWS));
}

/* The numbers of rows [first, first + n) of the group; the slot's numbers begin at packed. */
static void unpack(const struct index *index, const uint8_t *group, unsigned slot,
                   const uint8_t *packed, unsigned first, unsigned n, uint64_t *ret)
{
    uint64_t least = load_le64(group + at_least(index->slots, slot));
    unsigned width = group[AT_WIDTHS + slot], bit = first * width;
    uint64_t mask = width ? UINT64_MAX >> (64 - width) : 0;

    for (unsigned i = 0; i < n; i++, bit += width)
        ret[i] = least + (load_le64(packed + bit / 8) >> bit % 8 & mask);
}

unsigned index_numbers(const struct index *index, uint64_t row, unsigned column,
                       uint64_t ret[static INDEX_GROUP])
{
    const uint8_t *group = index_group_of(index, row);
    unsigned first = (unsigned)(row % GROUP_ROWS), slot;
    uint64_t n = row < index->rows ? min_u64(GROUP_ROWS - first, index->rows - row) : 1;
    uint64_t constant = 0;

    slot = column < index->fixed ? column : index_slot_of(index, column, &constant);
    for (unsigned i = 0; i < n && slot == NO_SLOT; i++)
        ret[i] = row < index->rows ? constant : 0;
    if (slot != NO_SLOT)
        unpack(index, group, slot, packed_of(index, group, slot), first, (unsigned)n, ret);
    return (unsigned)n;
}

uint64_t index_first_above(const struct index *index, unsigned column, uint64_t at)
{
    return SEARCH(index->rows, row, index_number(index, row, column) <= at);
}

/* ---- keys ---- */

const uint8_t *index_next_key(const uint8_t *p, const uint8_t *end, uint8_t key[static KEY_MAX],
                              size_t *len)
{
    size_t shared, tail;

    if (end - p < 2)
        return NULL;
    shared = *p++;
    tail = *p++;
    if (tail == LONG_REST) {
        if (end - p < 4)
            return NULL;
        tail = load_le32(p);
        p += 4;
    }
    if (shared > *len || tail > KEY_MAX - shared || tail > (size_t)(end - p))
        return NULL;
    memcpy(key + shared, p, tail);
    *len = shared + tail;
    return p + tail;
}

size_t index_key(const struct index *index, uint64_t row, uint8_t ret[static KEY_MAX])
{
    const uint8_t *group = index_group_of(index, row),
                  *end = index->part[KEYS] + index->part_len[KEYS];
    unsigned i = (unsigned)(row % GROUP_ROWS);
    uint64_t at = load_le64(group + at_keys(index->slots));
    uint64_t more = load_le32(group + at_blocks(index->slots) + 4 * (i / BLOCK_ROWS));
    const uint8_t *p;
    size_t len = 0;

    if (at > index->part_len[KEYS] || more > index->part_len[KEYS] - at)
        return 0;
    p = index->part[KEYS] + at + more;
    for (unsigned n = i % BLOCK_ROWS + 1; n && p; n--)
        p = index_next_key(p, end, ret, &len);
    return p ? len : 0;
}

/* The rows that may have a given hash. */
struct candidates {
    uint64_t at, end;
    uint8_t print;
};

static struct candidates candidates_of(const struct index *index, uint64_t hash)
{
    const uint8_t *start = index->part[STARTS] + 4 * index_bucket_of(hash, n_buckets(index->rows));

    return (struct candidates){
        .at = load_le32(start),
        .end = min_u64(load_le32(start + 4), index->rows),
        .print = print_of(hash),
    };
}

static bool next_candidate(const struct index *index, struct candidates *c, uint64_t *ret)
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

bool index_find(const struct index *index, const void *key, size_t len, uint64_t *ret)
{
    uint8_t found[KEY_MAX];
    struct candidates c;
    uint64_t row;

    if (!len)
        return false;
    c = candidates_of(index, key_hash(key, len));
    while (next_candidate(index, &c, &row)) {
        if (index_key(index, row, found) == len && !memcmp(found, key, len)) {
            *ret = row;
            return true;
        }
    }
    return false;
}

bool index_find_hash(const struct index *index, uint64_t hash,
                     bool (*is_it)(void *ctx, uint64_t row), void *ctx, uint64_t *ret)
{
    struct candidates c = candidates_of(index, hash);
    uint8_t key[KEY_MAX];
    uint64_t row;

    while (next_candidate(index, &c, &row)) {
        if (key_hash(key, index_key(index, row, key)) == hash && is_it(ctx, row)) {
            *ret = row;
            return true;
        }
    }
    return false;
}

/* ---- opening ---- */

/* Set the lengths of the parts that follow from the rows and their shape. false: they overflow. */
static bool set_lengths(struct index *index)
{
    index->group_bytes = group_bytes(index->slots, index->shape.has_keys);
    index->part_len[STARTS] = index->shape.has_keys ? 4 * (n_buckets(index->rows) + 1) : 0;
    index->part_len[ROWS] = index->shape.has_keys ? 4 * index->rows : 0;
    index->part_len[PRINTS] = index->shape.has_keys ? index->rows : 0;
    return checked_mul(n_groups(index->rows) + 1, index->group_bytes, &index->part_len[GROUPS]);
}

/* Find what is before the parts, and the slots: those of learned columns follow in sequence. */
static bool set_slots(struct index *index, const uint8_t **at, uint64_t *left)
{
    uint64_t learned = index->shape.columns - index->fixed;

    if (index->about_len > *left || learned * LEARNED_BYTES > *left - index->about_len)
        return false;
    index->about = *at;
    index->learned = *at + index->about_len;
    *at = index->learned + learned * LEARNED_BYTES;
    *left -= index->about_len + learned * LEARNED_BYTES;
    index->slots = index->fixed;
    for (uint64_t i = 0; i < learned; i++) {
        unsigned slot = load_le16(index->learned + i * LEARNED_BYTES + AT_SLOT);

        if (slot != NO_SLOT && slot != index->slots++)
            return false;
    }
    return set_lengths(index);
}

/* Find the parts after the header; false: their lengths do not add up to the size. */
static bool set_places(struct index *index, const uint8_t *bytes, size_t size)
{
    const uint8_t *at = bytes + HEADER_BYTES;
    uint64_t left = size - HEADER_BYTES;

    if (!set_slots(index, &at, &left))
        return false;
    for (unsigned i = 0; i < N_PARTS; i++) {
        if (index->part_len[i] > left)
            return false;
        index->part[i] = at;
        at += index->part_len[i];
        left -= index->part_len[i];
    }
    return left == 0;
}

/* Are all packed numbers of the group inside their part? */
static bool numbers_fit(const struct index *index, const uint8_t *group)
{
    uint64_t need = NUMBERS_PAD, end;

    for (unsigned slot = 0; slot < index->slots; slot++) {
        unsigned width = group[AT_WIDTHS + slot];

        if (width > WIDTH_MAX && width != 64)
            return false;
        need += slot_bytes(group, slot);
    }
    return checked_add(load_le64(group + AT_NUMBERS), need, &end) &&
           end <= index->part_len[NUMBERS];
}

/* Do the n numbers of a group never fall, after *before? Sets *before to the last of them. */
static bool numbers_rise(const struct index *index, const uint8_t *group, unsigned column,
                         const uint8_t *packed, unsigned n, uint64_t *before)
{
    uint64_t number[GROUP_ROWS];
    bool rise;

    if (!group[AT_WIDTHS + column])
        n = 1; /* all are the same */
    unpack(index, group, column, packed, 0, n, number);
    rise = number[0] >= *before;
    for (unsigned i = 1; i < n; i++)
        rise &= number[i] >= number[i - 1];
    *before = number[n - 1];
    return rise;
}

static bool groups_are_good(const struct index *index)
{
    uint64_t before[INDEX_COLUMNS] = {0}, groups = n_groups(index->rows);

    for (uint64_t i = 0; i <= groups; i++) {
        uint64_t n = i < groups ? min_u64(GROUP_ROWS, index->rows - i * GROUP_ROWS) : 1;
        const uint8_t *group = group_number(index, i), *packed;

        if (!numbers_fit(index, group))
            return false;
        packed = index_numbers_of(index, group);
        for (unsigned slot = 0; slot < index->slots; slot++) {
            if (i == groups && group[AT_WIDTHS + slot])
                return false;
            if (is_rising(&index->shape, slot) &&
                !numbers_rise(index, group, slot, packed, (unsigned)n, &before[slot]))
                return false;
            packed += slot_bytes(group, slot);
        }
    }
    return true;
}

int index_open(const uint8_t *bytes, size_t size, struct index *ret)
{
    struct index index = {0};

    if (size < HEADER_BYTES || memcmp(bytes, INDEX_MAGIC, MAGIC_BYTES) != 0 ||
        (load_le32(bytes + AT_VERSION) != VERSION && load_le32(bytes + AT_VERSION) != LEARNED))
        return -EBADMSG;
    index.shape.learns = load_le32(bytes + AT_VERSION) == LEARNED;
    index.shape.columns = index.fixed = load_le16(bytes + AT_COLUMNS);
    if (index.shape.learns)
        index.fixed = load_le32(bytes + AT_FIXED);
    index.shape.has_keys = load_le16(bytes + AT_HAS_KEYS);
    index.shape.rising = load_le32(bytes + AT_RISING);
    index.rows = load_le64(bytes + AT_ROWS);
    index.about_len = load_le64(bytes + AT_ABOUT);
    index.renamed = load_le64(bytes + AT_RENAMED);
    index.key_bytes = load_le64(bytes + AT_KEY_BYTES);
    index.key_most = load_le32(bytes + AT_KEY_MOST);
    if (index.shape.columns > INDEX_LEARNED || index.fixed > INDEX_COLUMNS ||
        index.fixed > index.shape.columns ||
        (index.shape.learns && index.shape.rising >> index.fixed) || index.key_most > KEY_MAX ||
        (index.shape.has_keys && index.rows > UINT32_MAX))
        return -EBADMSG;
    index.part_len[NUMBERS] = load_le64(bytes + AT_NUMBERS_LEN);
    index.part_len[KEYS] = load_le64(bytes + AT_KEYS_LEN);
    if (!set_places(&index, bytes, size) ||
        index_checksum(0, bytes + AT_COLUMNS, size - AT_COLUMNS) != load_le32(bytes + AT_CRC) ||
        !groups_are_good(&index))
        return -EBADMSG;
    *ret = index;
    return 0;
}
