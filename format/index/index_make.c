/* Making indexes. Numbers and keys are packed as they come; index_finish() makes the table of
 * buckets and renames repeated keys. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "format/index/index_builder.h"

int index_builder_new(const struct index_shape *shape, struct index_builder **ret)
{
    struct index_builder *b = calloc(1, sizeof(*b));

    assert(shape->columns <= INDEX_COLUMNS);
    if (!b)
        return -ENOMEM;
    b->shape = *shape;
    b->fixed = b->slots = shape->columns;
    b->number = calloc(b->slots + 1u, sizeof(*b->number));
    if (!b->number) {
        free(b);
        return -ENOMEM;
    }
    *ret = b;
    return 0;
}

void index_builder_free(struct index_builder *b)
{
    if (!b)
        return;
    for (unsigned i = 0; i < N_PARTS; i++)
        free(b->part[i].bytes);
    free(b->about);
    free(b->learned);
    free(b->number);
    free(b->hash);
    free(b);
}

/* Append n bytes. NULL: no memory. */
static uint8_t *memory_add(struct memory *m, size_t n)
{
    if (!m->bytes || n > m->capacity - m->len) {
        size_t capacity = m->capacity + m->capacity / 2 + n + 4096;
        uint8_t *grown = realloc(m->bytes, capacity);

        if (!grown)
            return NULL;
        m->bytes = grown;
        m->capacity = capacity;
    }
    m->len += n;
    return m->bytes + m->len - n;
}

static uint8_t *memory_add_zeros(struct memory *m, size_t n)
{
    uint8_t *at = memory_add(m, n);

    return at ? memset(at, 0, n) : NULL;
}

/* ---- numbers ---- */

/* Write what a group's numbers are above the least: 2 * width words of 64 bits. */
static void pack(uint8_t *p, const uint64_t number[static GROUP_ROWS], uint64_t least,
                 unsigned width)
{
    uint64_t word = 0;
    unsigned bits = 0; /* of word */

    for (unsigned i = 0; i < GROUP_ROWS; i++) {
        uint64_t v = number[i] - least;

        word |= v << bits;
        bits += width;
        if (bits < 64)
            continue;
        store_le64(p, word);
        p += 8;
        bits -= 64;
        word = bits ? v >> (width - bits) : 0;
    }
}

/* The entry of the group that a row belongs to, which was added. */
static uint8_t *index_make_group_of(const struct index_builder *b, uint64_t row)
{
    return b->part[GROUPS].bytes + row / GROUP_ROWS * group_bytes(b->slots, b->shape.has_keys);
}

static int pack_column(struct index_builder *b, unsigned column, unsigned n)
{
    uint64_t *number = b->number[column], least = number[0], most = number[n - 1];
    uint8_t *group = index_make_group_of(b, b->rows - 1), *packed;
    unsigned width;

    for (unsigned i = 0; i < n && !is_rising(&b->shape, column); i++) {
        least = min_u64(least, number[i]);
        most = max_u64(most, number[i]);
    }
    width = bit_width(most - least);
    width = width > WIDTH_MAX ? 64 : width;
    group[AT_WIDTHS + column] = (uint8_t)width;
    store_le64(group + at_least(b->slots, column), least);
    if (!width)
        return 0;
    packed = memory_add(&b->part[NUMBERS], width * (GROUP_ROWS / 8));
    if (!packed)
        return -ENOMEM;
    for (unsigned i = n; i < GROUP_ROWS; i++)
        number[i] = least;
    pack(packed, number, least, width);
    return 0;
}

/* Pack the numbers of the group being filled. */
static int pack_group(struct index_builder *b)
{
    unsigned n = (unsigned)((b->rows - 1) % GROUP_ROWS) + 1;
    int r = 0;

    for (unsigned column = 0; column < b->shape.columns && r == 0; column++)
        r = pack_column(b, column, n);
    return r;
}

static int index_make_add_group(struct index_builder *b)
{
    uint8_t *group = memory_add_zeros(&b->part[GROUPS], group_bytes(b->slots, b->shape.has_keys));

    if (!group)
        return -ENOMEM;
    store_le64(group + AT_NUMBERS, b->part[NUMBERS].len);
    return 0;
}

/* Add the entry after the last group. */
static int add_end(struct index_builder *b, const uint64_t *end)
{
    int r = b->rows ? pack_group(b) : 0;

    if (r == 0)
        r = index_make_add_group(b);
    for (unsigned column = 0; column < b->shape.columns && r == 0; column++)
        if (is_rising(&b->shape, column))
            store_le64(b->part[GROUPS].bytes + b->part[GROUPS].len -
                           group_bytes(b->slots, b->shape.has_keys) + at_least(b->slots, column),
                       end[column]);
    if (r == 0 && b->shape.learns)
        r = index_learned_pack(b);
    return r == 0 && !memory_add_zeros(&b->part[NUMBERS], NUMBERS_PAD) ? -ENOMEM : r;
}

/* ---- keys ---- */

/* Begin the keys of a block. */
static void start_block(struct index_builder *b, uint64_t row)
{
    uint8_t *group = index_make_group_of(b, row), *keys = group + at_keys(b->slots);
    uint64_t at = b->part[KEYS].len;

    if (row % GROUP_ROWS == 0)
        store_le64(keys, at);
    store_le32(group + at_blocks(b->slots) + 4 * (row % GROUP_ROWS / BLOCK_ROWS),
               (uint32_t)(at - load_le64(keys)));
    b->last_len = 0;
}

/* Write the key of row after that of the row before. */
static int add_key(struct index_builder *b, uint64_t row, const uint8_t *key, size_t len)
{
    size_t shared = 0, tail, length_bytes, most;
    uint8_t *at;

    if (row % BLOCK_ROWS == 0)
        start_block(b, row);
    most = min_u64(min_u64(len, b->last_len), SHARED_MAX);
    while (shared < most && key[shared] == b->last[shared])
        shared++;
    tail = len - shared;
    length_bytes = tail < LONG_REST ? 1 : 5;
    at = memory_add(&b->part[KEYS], 1 + length_bytes + tail);
    if (!at)
        return -ENOMEM;
    at[0] = (uint8_t)shared;
    at[1] = (uint8_t)min_u64(tail, LONG_REST);
    if (tail >= LONG_REST)
        store_le32(at + 2, (uint32_t)tail);
    memcpy(at + 1 + length_bytes, key + shared, tail);
    memcpy(b->last + shared, key + shared, tail);
    b->last_len = len;
    b->key_bytes += len;
    b->key_most = max_u64(b->key_most, len);
    return 0;
}

/* Add the key of the next row, and its hash. */
static int add_next_key(struct index_builder *b, const uint8_t *key, size_t len)
{
    int r = b->rows == UINT32_MAX ? -E2BIG : array_capacity(&b->hash, b->rows, sizeof(*b->hash));

    assert(len >= 1 && len <= KEY_MAX);
    if (r == 0)
        r = add_key(b, b->rows, key, len);
    if (r == 0)
        b->hash[b->rows] = key_hash(key, len);
    return r;
}

static int begin_group(struct index_builder *b)
{
    int r = b->rows ? pack_group(b) : 0;

    return r == 0 ? index_make_add_group(b) : r;
}

int index_add(struct index_builder *b, const void *key, size_t len, const uint64_t *number)
{
    unsigned i = (unsigned)(b->rows % GROUP_ROWS), columns = b->shape.columns;
    uint64_t(*group)[GROUP_ROWS] = b->number; /* of the group being filled */
    int r = 0;

    if (!i)
        r = begin_group(b);
    if (r == 0 && b->shape.has_keys)
        r = add_next_key(b, key, len);
    if (r < 0)
        return r;
    for (unsigned column = 0; column < columns; column++) {
        assert(!is_rising(&b->shape, column) ||
               number[column] >= group[column][(i + GROUP_ROWS - 1) % GROUP_ROWS]);
        group[column][i] = number[column];
    }
    b->rows++;
    return 0;
}

/* ---- finishing ---- */

/* Return the number at p, and increment it. */
static uint32_t count_up(uint8_t *p)
{
    uint32_t n = load_le32(p);

    store_le32(p, n + 1);
    return n;
}

/* Make the table of buckets from the current hashes; rows of a bucket keep their order. */
static int index_make_make_table(struct index_builder *b)
{
    uint64_t buckets = n_buckets(b->rows), sum = 0;
    uint8_t *start, *row_at, *print;

    b->part[STARTS].len = b->part[ROWS].len = b->part[PRINTS].len = 0;
    start = memory_add_zeros(&b->part[STARTS], 4 * (buckets + 1));
    row_at = memory_add(&b->part[ROWS], 4 * b->rows);
    print = memory_add(&b->part[PRINTS], b->rows);
    if (!start || !row_at || !print)
        return -ENOMEM;
    for (uint64_t row = 0; row < b->rows; row++)
        count_up(start + 4 * index_bucket_of(b->hash[row], buckets));
    for (uint64_t i = 0; i <= buckets; i++) {
        uint64_t n = load_le32(start + 4 * i);

        store_le32(start + 4 * i, (uint32_t)sum);
        sum += n;
    }
    for (uint64_t row = 0; row < b->rows; row++) {
        uint32_t at = count_up(start + 4 * index_bucket_of(b->hash[row], buckets));

        store_le32(row_at + 4 * (size_t)at, (uint32_t)row);
        print[at] = print_of(b->hash[row]);
    }
    /* Each start has moved to its bucket's end, which is the next bucket's start. */
    memmove(start + 4, start, 4 * buckets);
    store_le32(start, 0);
    return 0;
}

static struct index index_make_index_of(const struct index_builder *b)
{
    struct index index = {
        .shape = b->shape,
        .rows = b->rows,
        .about = b->about,
        .about_len = b->about_len,
        .renamed = b->renamed,
        .key_bytes = b->key_bytes,
        .key_most = (unsigned)b->key_most,
        .fixed = b->fixed,
        .slots = b->slots,
        .learned = b->learned,
        .group_bytes = group_bytes(b->slots, b->shape.has_keys),
    };

    for (unsigned i = 0; i < N_PARTS; i++) {
        index.part[i] = b->part[i].bytes;
        index.part_len[i] = b->part[i].len;
    }
    return index;
}

/* A row that repeats an earlier row's key, and the number that its new name gets. */
struct repeat {
    uint32_t row, first, number;
};

struct hashed_row {
    uint64_t hash;
    uint64_t row;
};

struct repeats {
    struct repeat *repeat; /* [n] */
    size_t n;
    struct hashed_row *bucket; /* [capacity] */
    uint64_t capacity;
};

static void repeats_release(struct repeats *repeats)
{
    free(repeats->repeat);
    free(repeats->bucket);
}

static int by_hash_and_row(const void *pa, const void *pb)
{
    const struct hashed_row *a = pa, *b = pb;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static int by_row(const void *pa, const void *pb)
{
    const struct repeat *a = pa, *b = pb;

    return (a->row > b->row) - (a->row < b->row);
}

/* Find, among rows of one hash in their order, those that repeat an earlier row's key. Overwrites
 * row[]. */
static int find_in_rows(const struct index *index, struct hashed_row *row, uint64_t n,
                        struct repeats *repeats)
{
    uint8_t first[KEY_MAX], other[KEY_MAX];
    int r = 0;

    while (n > 1 && r == 0) {
        size_t len = index_key(index, row[0].row, first);
        uint64_t first_row = row[0].row, others = 0;

        for (uint64_t i = 1; i < n && r == 0; i++) {
            if (index_key(index, row[i].row, other) != len || memcmp(first, other, len) != 0) {
                row[others++] = row[i];
                continue;
            }
            r = array_capacity(&repeats->repeat, repeats->n, sizeof(*repeats->repeat));
            if (r == 0)
                repeats->repeat[repeats->n++] =
                    (struct repeat){.row = (uint32_t)row[i].row, .first = (uint32_t)first_row};
        }
        n = others;
    }
    return r;
}

static int find_in_bucket(const struct index_builder *b, const struct index *index, uint64_t start,
                          uint64_t end, struct repeats *repeats)
{
    uint64_t n = end - start, next;
    struct hashed_row *bucket = repeats->bucket;
    int r = 0;

    if (n > repeats->capacity) {
        bucket = realloc(bucket, 2 * n * sizeof(*bucket));
        if (!bucket)
            return -ENOMEM;
        repeats->bucket = bucket;
        repeats->capacity = 2 * n;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = load_le32(index->part[ROWS] + 4 * (start + i));

        bucket[i] = (struct hashed_row){.hash = b->hash[row], .row = row};
    }
    qsort(bucket, n, sizeof(*bucket), by_hash_and_row);
    for (uint64_t i = 0; i < n && r == 0; i = next) {
        next = i + 1;
        while (next < n && bucket[next].hash == bucket[i].hash)
            next++;
        r = find_in_rows(index, bucket + i, next - i, repeats);
    }
    return r;
}

static bool has_print_twice(const uint8_t *print, uint64_t n)
{
    uint64_t seen[256 / 64] = {0};

    for (uint64_t i = 0; i < n; i++) {
        uint64_t bit = UINT64_C(1) << print[i] % 64;

        if (seen[print[i] / 64] & bit)
            return true;
        seen[print[i] / 64] |= bit;
    }
    return false;
}

/* Find all repeats; those of one first row are adjacent, in the order of their rows. */
static int find_repeats(const struct index_builder *b, const struct index *index,
                        struct repeats *repeats)
{
    uint64_t buckets = n_buckets(b->rows);
    int r = 0;

    repeats->n = 0;
    for (uint64_t i = 0; i < buckets && r == 0; i++) {
        uint64_t start = load_le32(index->part[STARTS] + 4 * i);
        uint64_t end = load_le32(index->part[STARTS] + 4 * (i + 1));

        if (has_print_twice(index->part[PRINTS] + start, end - start))
            r = find_in_bucket(b, index, start, end, repeats);
    }
    return r;
}

/* Write <key>~<number>, with the key cut if the name would be too long. Returns the length. */
static size_t index_make_make_name(const uint8_t *key, size_t len, uint32_t number,
                                   uint8_t ret[static KEY_MAX])
{
    char end[16];
    size_t end_len = (size_t)snprintf(end, sizeof(end), "~%u", (unsigned)number);

    len = min_u64(len, KEY_MAX - end_len);
    memcpy(ret, key, len);
    memcpy(ret + len, end, end_len);
    return len + end_len;
}

/* Names of different keys differ, since what precedes the last ~ is the key, unless a key was
 * cut. */
static void number_repeats(const struct index *index, struct repeats *repeats)
{
    uint8_t key[KEY_MAX], name[KEY_MAX];
    uint32_t number = 0;
    size_t len = 0;

    for (size_t i = 0; i < repeats->n; i++) {
        struct repeat *repeat = &repeats->repeat[i];
        uint64_t row;

        if (i && repeat->first == repeat[-1].first) {
            number++;
        } else {
            len = index_key(index, repeat->first, key);
            number = 2;
        }
        while (index_find(index, name, index_make_make_name(key, len, number, name), &row))
            number++;
        repeat->number = number;
    }
}

/* Write all keys again, the repeats with their new names. */
static int rename_repeats(struct index_builder *b, const struct repeats *repeats)
{
    struct memory old = b->part[KEYS];
    const uint8_t *p = old.bytes, *end = old.bytes + old.len;
    const struct repeat *repeat = repeats->repeat, *repeats_end = repeat + repeats->n;
    uint8_t key[KEY_MAX], name[KEY_MAX];
    size_t len = 0;
    int r = 0;

    b->part[KEYS] = (struct memory){0};
    b->key_bytes = b->key_most = 0;
    for (uint64_t row = 0; row < b->rows && r == 0; row++) {
        p = index_next_key(p, end, key, &len);
        assert(p);
        if (repeat < repeats_end && repeat->row == row) {
            size_t name_len = index_make_make_name(key, len, repeat++->number, name);

            b->hash[row] = key_hash(name, name_len);
            r = add_key(b, row, name, name_len);
        } else {
            r = add_key(b, row, key, len);
        }
    }
    free(old.bytes);
    return r;
}

/* Make all keys differ, and the table of buckets. */
static int make_distinct(struct index_builder *b,
                         void (*renamed)(void *ctx, uint64_t row, uint64_t first), void *ctx)
{
    AUTO(repeats_release) struct repeats repeats = {0};

    /* Repeat if cut keys got the same name; that affects only rows already reported to renamed().
     * No new name was a key before, so each round has more distinct keys. */
    for (bool again = false;; again = true) {
        int r = index_make_make_table(b);
        struct index index = index_make_index_of(b);

        if (r == 0)
            r = find_repeats(b, &index, &repeats);
        if (r < 0 || !repeats.n)
            return r;
        number_repeats(&index, &repeats);
        qsort(repeats.repeat, repeats.n, sizeof(*repeats.repeat), by_row);
        r = rename_repeats(b, &repeats);
        if (r < 0)
            return r;
        if (!again)
            b->renamed = repeats.n;
        for (size_t i = 0; i < repeats.n && renamed && !again; i++)
            renamed(ctx, repeats.repeat[i].row, repeats.repeat[i].first);
    }
}

static int copy_about(struct index_builder *b, const void *about, size_t about_len)
{
    b->about = malloc(about_len + 1);
    if (!b->about)
        return -ENOMEM;
    if (about_len)
        memcpy(b->about, about, about_len);
    b->about_len = about_len;
    return 0;
}

static void index_make_make_header(struct index_builder *b, const struct iovec *pieces)
{
    uint32_t crc;

    memcpy(b->header + AT_MAGIC, INDEX_MAGIC, MAGIC_BYTES);
    store_le32(b->header + AT_VERSION, b->shape.learns ? LEARNED : VERSION);
    store_le16(b->header + AT_COLUMNS, (uint16_t)b->shape.columns);
    store_le16(b->header + AT_HAS_KEYS, b->shape.has_keys);
    store_le32(b->header + AT_RISING, b->shape.rising);
    store_le64(b->header + AT_ROWS, b->rows);
    store_le64(b->header + AT_ABOUT, b->about_len);
    store_le64(b->header + AT_NUMBERS_LEN, b->part[NUMBERS].len);
    store_le64(b->header + AT_KEYS_LEN, b->part[KEYS].len);
    store_le64(b->header + AT_RENAMED, b->renamed);
    store_le64(b->header + AT_KEY_BYTES, b->key_bytes);
    store_le32(b->header + AT_KEY_MOST, (uint32_t)b->key_most);
    store_le32(b->header + AT_FIXED, b->shape.learns ? b->fixed : 0);
    crc = index_checksum(0, b->header + AT_COLUMNS, HEADER_BYTES - AT_COLUMNS);
    for (unsigned i = 1; i < INDEX_PIECES; i++)
        crc = index_checksum(crc, pieces[i].iov_base, pieces[i].iov_len);
    store_le32(b->header + AT_CRC, crc);
}

int index_finish(struct index_builder *b, const uint64_t *end,
                 void (*renamed)(void *ctx, uint64_t row, uint64_t first), void *ctx,
                 struct index *ret)
{
    int r = add_end(b, end);

    for (unsigned i = 0; i < N_PARTS && r == 0; i++) /* an empty part is not NULL */
        r = memory_add(&b->part[i], 0) ? 0 : -ENOMEM;
    if (r == 0 && b->shape.has_keys)
        r = make_distinct(b, renamed, ctx);
    if (r < 0)
        return r;
    free(b->hash);
    b->hash = NULL;
    *ret = index_make_index_of(b);
    return 0;
}

int index_bytes(struct index_builder *b, const void *about, size_t about_len, struct index *ret,
                struct iovec ret_pieces[static INDEX_PIECES])
{
    int r = copy_about(b, about, about_len);

    if (r < 0)
        return r;
    *ret = index_make_index_of(b);
    ret_pieces[0] = (struct iovec){b->header, HEADER_BYTES};
    ret_pieces[1] = (struct iovec){b->about, b->about_len};
    ret_pieces[2] = (struct iovec){b->learned, (b->shape.columns - b->fixed) * LEARNED_BYTES};
    for (unsigned i = 0; i < N_PARTS; i++)
        ret_pieces[3 + i] = (struct iovec){b->part[i].bytes, b->part[i].len};
    for (unsigned i = 0; i < INDEX_PIECES; i++)
        if (!ret_pieces[i].iov_base) /* of no bytes: memcpy() wants an address all the same */
            ret_pieces[i].iov_base = b->header;
    index_make_make_header(b, ret_pieces);
    return 0;
}
