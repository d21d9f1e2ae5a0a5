/* The index against arrays of its input, and damaged bytes of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "format/index/index.h"
#include "support/random.h"
#include "support/unit.h"

/* Places in the bytes, from docs/spec/cache-format.md. */
enum { AT_CRC = 12, AT_COLUMNS = 16, HEADER = 80 };

static const char about[] = "what its maker\0added";

/* The input. */
struct rows {
    uint64_t n, capacity;
    struct index_shape shape;
    uint8_t (*key)[KEY_MAX];
    size_t *len;
    uint64_t (*number)[INDEX_COLUMNS]; /* [n + 1] */
};

static void rows_init(struct rows *rows, uint64_t capacity, unsigned columns)
{
    *rows = (struct rows){.capacity = capacity, .shape = {.columns = columns, .has_keys = true}};
    rows->key = calloc(capacity + 1, sizeof(*rows->key));
    rows->len = calloc(capacity + 1, sizeof(*rows->len));
    rows->number = calloc(capacity + 1, sizeof(*rows->number));
    assert_true(rows->key && rows->len && rows->number);
}

static void rows_release(struct rows *rows)
{
    free(rows->key);
    free(rows->len);
    free(rows->number);
}
#define AUTO_ROWS AUTO(rows_release)

static void rows_add(struct rows *rows, const void *key, size_t len)
{
    assert_true(rows->n < rows->capacity && len <= KEY_MAX);
    memcpy(rows->key[rows->n], key, len);
    rows->len[rows->n++] = len;
}

static void rows_add_text(struct rows *rows, const char *key)
{
    rows_add(rows, key, strlen(key));
}

/* Numbers of all widths, constant ones, and ones that change between groups. */
static uint64_t random_number(uint64_t *rng, unsigned column, uint64_t row)
{
    switch (column % 8) {
    case 0:
        return row * 1000 + random_below(rng, 1000);
    case 1:
        return UINT64_MAX;
    case 2:
        return random_next(rng);
    case 3:
        return UINT64_MAX - random_below(rng, UINT64_C(1) << 57);
    case 4:
        return random_below(rng, 2) ? 0 : UINT64_C(1) << 57;
    case 5:
        return random_below(rng, 2) ? 0 : UINT64_MAX;
    case 6:
        return row / 128 % 2 ? random_below(rng, 12) : 7;
    default:
        return random_below(rng, 2);
    }
}

/* What a rising column adds from row to row: little, nothing, much, all there is. */
static uint64_t random_step(uint64_t *rng, unsigned column, uint64_t row)
{
    switch (column % 5) {
    case 0:
        return 1;
    case 1:
        return random_below(rng, 50) ? random_below(rng, 1000) : UINT64_C(1) << 30;
    case 2:
        return row == 5 ? UINT64_MAX : 0;
    case 3:
        return row / 128 % 2 ? random_below(rng, 3) : 0;
    default:
        return row % 100 == 7 ? UINT64_C(1) << 58 : random_below(rng, 2);
    }
}

static bool is_rising(const struct rows *rows, unsigned column)
{
    return rows->shape.rising >> column & 1;
}

static void rows_add_numbers(struct rows *rows, uint64_t *rng)
{
    for (unsigned column = 0; column < rows->shape.columns; column++) {
        uint64_t sum = is_rising(rows, column) ? random_below(rng, 3) : 0, row;

        for (row = 0; row < rows->n; row++) {
            uint64_t step = random_step(rng, column, row);

            rows->number[row][column] =
                is_rising(rows, column) ? sum : random_number(rng, column, row);
            sum = step < UINT64_MAX - sum ? sum + step : UINT64_MAX;
        }
        rows->number[row][column] = is_rising(rows, column) ? sum : 0;
    }
}

/* ---- kinds of keys, all different ---- */

static size_t speech_key(uint64_t row, uint64_t *rng, uint8_t *ret)
{
    (void)rng;
    return (size_t)snprintf((char *)ret, KEY_MAX, "%u-%u-%04u", (unsigned)(100 + row / 2500),
                            (unsigned)(120000 + row / 50), (unsigned)(row % 50));
}

static size_t byte_key(uint64_t row, uint64_t *rng, uint8_t *ret)
{
    (void)rng;
    ret[0] = (uint8_t)row;
    ret[1] = (uint8_t)(row >> 8);
    return row < 256 ? 1 : 2;
}

/* Any bytes; NULs at both ends are common. */
static size_t any_key(uint64_t row, uint64_t *rng, uint8_t *ret)
{
    size_t len = random_below(rng, 30);

    for (size_t i = 0; i < len; i++)
        ret[i] = (uint8_t)(random_below(rng, 3) ? 0 : random_next(rng));
    store_le32(ret + len, (uint32_t)row);
    return len + 4;
}

/* Keys of special lengths, and with special numbers of shared bytes; a key is often the start of
 * the next. */
static size_t long_key(uint64_t row, uint64_t *rng, uint8_t *ret)
{
    static const size_t lens[] = {4, 253, 254, 255, 256, 257, 258, 259, 260, 512, 1023, 1024};
    size_t len = lens[random_below(rng, ARRAY_LEN(lens))];

    memset(ret, 'k', len);
    store_le32(ret + (random_below(rng, 2) ? 0 : len - 4), (uint32_t)row | 0x80000000);
    if (random_below(rng, 2) && len > 300)
        ret[random_below(rng, 200) + 4]++;
    return len;
}

static size_t (*const kinds[])(uint64_t row, uint64_t *rng, uint8_t *ret) = {speech_key, byte_key,
                                                                             any_key, long_key};

/* ---- building ---- */

struct built {
    struct index_builder *builder;
    struct index index; /* in the builder's memory */
    uint8_t *bytes;     /* as stored, in memory of exactly that size for ASan */
    size_t size;
};

static void built_release(struct built *built)
{
    index_builder_free(built->builder);
    free(built->bytes);
}
#define AUTO_BUILT AUTO(built_release)

struct reported {
    uint64_t n;
    uint64_t row[1000], first[1000];
};

static void remember(void *ctx, uint64_t row, uint64_t first)
{
    struct reported *reported = ctx;

    reported->row[reported->n % 1000] = row;
    reported->first[reported->n++ % 1000] = first;
}

static void build(const struct rows *rows, struct reported *ret_reported, struct built *ret)
{
    struct iovec pieces[INDEX_PIECES];
    uint8_t *at;

    *ret = (struct built){0};
    assert_int_equal(index_builder_new(&rows->shape, &ret->builder), 0);
    for (uint64_t i = 0; i < rows->n; i++)
        assert_int_equal(index_add(ret->builder, rows->shape.has_keys ? rows->key[i] : NULL,
                                   rows->len[i], rows->number[i]),
                         0);
    assert_int_equal(index_finish(ret->builder, rows->number[rows->n],
                                  ret_reported ? remember : NULL, ret_reported, &ret->index),
                     0);
    assert_int_equal(index_bytes(ret->builder, about, sizeof(about), &ret->index, pieces), 0);
    for (unsigned i = 0; i < INDEX_PIECES; i++)
        ret->size += pieces[i].iov_len;
    at = ret->bytes = malloc(ret->size);
    assert_non_null(at);
    for (unsigned i = 0; i < INDEX_PIECES; i++) {
        memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
        at += pieces[i].iov_len;
    }
}

/* ---- the input is found ---- */

static bool has_key(const struct rows *rows, const void *key, size_t len)
{
    for (uint64_t i = 0; i < rows->n; i++)
        if (rows->len[i] == len && !memcmp(rows->key[i], key, len))
            return true;
    return false;
}

static void check_absent(const struct rows *rows, const struct index *index, const uint8_t *key,
                         size_t len)
{
    uint64_t found;

    if (len <= KEY_MAX && !has_key(rows, key, len))
        assert_false(index_find(index, key, len, &found));
}

static void check_neighbours(const struct rows *rows, const struct index *index, uint64_t row)
{
    uint8_t key[KEY_MAX + 1];
    size_t len = rows->len[row];

    memcpy(key, rows->key[row], len);
    key[len] = 0;
    check_absent(rows, index, key, len - 1);
    check_absent(rows, index, key, len + 1);
    key[len - 1] ^= 1;
    check_absent(rows, index, key, len);
}

struct asked {
    uint64_t want, n;
};

static bool is_wanted(void *ctx, uint64_t row)
{
    struct asked *asked = ctx;

    asked->n++;
    return row == asked->want;
}

static void check_key(const struct rows *rows, const struct index *index, uint64_t row)
{
    uint8_t key[KEY_MAX];
    uint64_t found = UINT64_MAX, hash = key_hash(rows->key[row], rows->len[row]);
    struct asked asked = {.want = row};

    assert_int_equal(index_key(index, row, key), rows->len[row]);
    assert_memory_equal(key, rows->key[row], rows->len[row]);
    assert_true(index_find(index, rows->key[row], rows->len[row], &found));
    assert_int_equal(found, row);
    found = UINT64_MAX;
    assert_true(index_find_hash(index, hash, is_wanted, &asked, &found));
    assert_int_equal(found, row);
    asked = (struct asked){.want = UINT64_MAX};
    assert_false(index_find_hash(index, hash, is_wanted, &asked, &found));
    assert_true(asked.n >= 1);
    if (rows->n < 200 || row % 64 == 0)
        check_neighbours(rows, index, row);
}

/* The first row with a number above at, by going through them. */
static uint64_t first_above(const struct rows *rows, unsigned column, uint64_t at)
{
    uint64_t row = 0;

    while (row < rows->n && rows->number[row][column] <= at)
        row++;
    return row;
}

static void check_rising(const struct rows *rows, const struct index *index, unsigned column)
{
    assert_int_equal(index_first_above(index, column, UINT64_MAX), rows->n);
    for (uint64_t row = 0; row <= rows->n; row += rows->n < 200 ? 1 : 50) {
        uint64_t at = rows->number[row][column];

        assert_int_equal(index_first_above(index, column, at), first_above(rows, column, at));
        if (at)
            assert_int_equal(index_first_above(index, column, at - 1),
                             first_above(rows, column, at - 1));
    }
}

/* Numbers of one group from row on, to the end of the group, and not beyond the last row. */
static void check_group(const struct rows *rows, const struct index *index, uint64_t row,
                        unsigned column)
{
    uint64_t number[INDEX_GROUP], n = row < rows->n ? INDEX_GROUP - row % INDEX_GROUP : 1;

    if (row < rows->n && n > rows->n - row)
        n = rows->n - row;
    assert_int_equal(index_numbers(index, row, column, number), n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(number[i], rows->number[row + i][column]);
}

static void check_numbers(const struct rows *rows, const struct index *index)
{
    uint64_t number[INDEX_COLUMNS], first[INDEX_COLUMNS], next[INDEX_COLUMNS];

    for (uint64_t row = 0; row <= rows->n; row++) {
        index_row(index, row, number);
        if (row < rows->n)
            index_row_pair(index, row, rows->shape.columns, first, next);
        for (unsigned column = 0; column < rows->shape.columns; column++) {
            assert_int_equal(number[column], rows->number[row][column]);
            if (row < rows->n) {
                assert_int_equal(first[column], rows->number[row][column]);
                assert_int_equal(next[column], rows->number[row + 1][column]);
            }
            assert_int_equal(index_number(index, row, column), rows->number[row][column]);
            if (row % 50 == 0 || row == rows->n)
                check_group(rows, index, row, column);
        }
    }
    for (unsigned column = 0; column < rows->shape.columns; column++)
        if (is_rising(rows, column))
            check_rising(rows, index, column);
}

static void check_index(const struct rows *rows, const struct index *index)
{
    uint64_t key_bytes = 0, found;
    size_t most = 0;

    assert_int_equal(index->rows, rows->n);
    assert_memory_equal(&index->shape, &rows->shape, sizeof(rows->shape));
    assert_int_equal(index->about_len, sizeof(about));
    assert_memory_equal(index->about, about, sizeof(about));
    check_numbers(rows, index);
    for (uint64_t row = 0; row < rows->n && rows->shape.has_keys; row++) {
        check_key(rows, index, row);
        key_bytes += rows->len[row];
        most = rows->len[row] > most ? rows->len[row] : most;
    }
    assert_int_equal(index->key_bytes, key_bytes);
    assert_int_equal(index->key_most, most);
    if (!rows->shape.has_keys)
        return;
    assert_false(index_find(index, "", 0, &found));
    assert_false(index_find(index, NULL, 0, &found));
}

static void check_built(const struct rows *rows, struct built *built)
{
    struct index opened;

    check_index(rows, &built->index);
    index_builder_free(TAKE_PTR(built->builder));
    assert_int_equal(index_open(built->bytes, built->size, &opened), 0);
    assert_int_equal(opened.renamed, built->index.renamed);
    check_index(rows, &opened);
}

UNIT_TEST(test_index__random_rows__what_went_in)
{
    static const uint64_t numbers[] = {0, 1, 2, 15, 16, 17, 127, 128, 129, 256, 257, 3000};
    static const unsigned columns[] = {7, 0, 1, INDEX_COLUMNS};
    uint64_t rng = RANDOM_SEED;

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            AUTO_ROWS struct rows rows;
            AUTO_BUILT struct built built;
            struct reported reported = {0};

            rows_init(&rows, numbers[i], columns[(k + i) % ARRAY_LEN(columns)]);
            rows.shape.rising = k % 2 && columns[(k + i) % ARRAY_LEN(columns)] > 1 ? 0x2a : 0;
            for (uint64_t row = 0; row < numbers[i]; row++)
                rows.len[row] = kinds[k](row, &rng, rows.key[row]);
            rows.n = numbers[i];
            rows_add_numbers(&rows, &rng);
            build(&rows, &reported, &built);
            assert_int_equal(reported.n, 0);
            assert_int_equal(built.index.renamed, 0);
            check_built(&rows, &built);
        }
    }
    index_builder_free(NULL);
}

/* Rows without keys; all columns rise. */
UNIT_TEST(test_index__rising_columns__found)
{
    static const uint64_t numbers[] = {0, 1, 2, 127, 128, 129, 255, 256, 257, 1000};
    static const unsigned columns[] = {1, 4, 5, INDEX_COLUMNS};
    uint64_t rng = RANDOM_SEED;

    for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            AUTO_ROWS struct rows rows;
            AUTO_BUILT struct built built;

            rows_init(&rows, numbers[i], columns[c]);
            rows.shape.has_keys = false;
            rows.shape.rising = (1u << columns[c]) - 1;
            rows.n = numbers[i];
            rows_add_numbers(&rows, &rng);
            build(&rows, NULL, &built);
            check_built(&rows, &built);
        }
    }
}

UNIT_TEST(test_index__no_about__empty)
{
    const struct index_shape shape = {.has_keys = true};
    AUTO_INDEX_BUILDER struct index_builder *b = NULL;
    struct iovec pieces[INDEX_PIECES];
    struct index index;

    assert_int_equal(index_builder_new(&shape, &b), 0);
    assert_int_equal(index_add(b, "a", 1, NULL), 0);
    assert_int_equal(index_finish(b, NULL, NULL, NULL, &index), 0);
    assert_int_equal(index_bytes(b, NULL, 0, &index, pieces), 0);
    assert_int_equal(index.about_len, 0);
}

/* ---- repeated keys ---- */

/* Rename by the header's rule, comparing all keys. Returns the number of renamed ones. */
static uint64_t rename_all(struct rows *rows, struct reported *ret)
{
    AUTO_ROWS struct rows names;

    rows_init(&names, 2 * rows->n, 0);
    *ret = (struct reported){0};
    for (uint64_t i = 0; i < rows->n; i++)
        rows_add(&names, rows->key[i], rows->len[i]);
    for (uint64_t i = 0; i < rows->n; i++) {
        uint8_t name[KEY_MAX + 16];
        uint64_t first = 0;
        size_t len = names.len[i];

        while (names.len[first] != len || memcmp(names.key[first], names.key[i], len) != 0)
            first++;
        if (first == i)
            continue;
        memcpy(name, names.key[i], len);
        for (unsigned n = 2; n == 2 || has_key(&names, name, rows->len[i]); n++)
            rows->len[i] = len + (size_t)snprintf((char *)name + len, 16, "~%u", n);
        memcpy(rows->key[i], name, rows->len[i]);
        rows_add(&names, name, rows->len[i]);
        remember(ret, i, first);
    }
    return ret->n;
}

static void check_renamed(struct rows *rows)
{
    AUTO_BUILT struct built built;
    struct reported reported = {0}, want;
    uint64_t n;

    build(rows, &reported, &built);
    n = rename_all(rows, &want);
    assert_int_equal(built.index.renamed, n);
    assert_int_equal(reported.n, n);
    assert_memory_equal(reported.row, want.row, sizeof(want.row));
    assert_memory_equal(reported.first, want.first, sizeof(want.first));
    check_built(rows, &built);
}

UNIT_TEST(test_index__repeated__first_free_name)
{
    static const char *const given[] = {"a", "b", "a", "a~2", "a", "b", "a~2", "a~4", "b", "c"};
    static const char *const want[] = {"a",   "b",     "a~3", "a~2", "a~5",
                                       "b~2", "a~2~2", "a~4", "b~3", "c"};
    AUTO_ROWS struct rows rows;

    rows_init(&rows, ARRAY_LEN(given), 2);
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        rows_add_text(&rows, given[i]);
    check_renamed(&rows);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(rows.len[i], strlen(want[i]));
        assert_memory_equal(rows.key[i], want[i], strlen(want[i]));
    }
}

/* Few different keys, which often look like new names. */
UNIT_TEST(test_index__many_repeated__first_free_names)
{
    uint64_t rng = RANDOM_SEED;

    for (unsigned i = 0; i < 60; i++) {
        AUTO_ROWS struct rows rows;
        uint64_t n = 1 + random_below(&rng, 400), kinds_of_keys = 1 + random_below(&rng, 200);

        rows_init(&rows, n, 1);
        for (uint64_t row = 0; row < n; row++) {
            char key[32];
            unsigned kind = (unsigned)random_below(&rng, kinds_of_keys);
            int len = snprintf(key, sizeof(key), random_below(&rng, 4) ? "%c%u" : "%c%u~%u", 0,
                               kind, (unsigned)random_below(&rng, 20));

            rows_add(&rows, key, (size_t)len);
        }
        rows_add_numbers(&rows, &rng);
        check_renamed(&rows);
    }
}

/* Keys too long for "~2" after them: they are cut, even if different keys become equal then. */
UNIT_TEST(test_index__long_repeated__cut_and_different)
{
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;
    struct reported reported = {0};
    uint8_t key[KEY_MAX];

    rows_init(&rows, 300, 0);
    memset(key, 'x', sizeof(key));
    for (unsigned i = 0; i < 300; i++) {
        key[KEY_MAX - 1] = (uint8_t)('a' + i % 3);
        rows_add(&rows, key, i % 5 ? KEY_MAX : KEY_MAX - 1);
    }
    build(&rows, &reported, &built);
    assert_int_equal(built.index.renamed, 300 - 4);
    assert_int_equal(reported.n, 300 - 4);
    assert_int_equal(built.index.key_most, KEY_MAX);
    for (uint64_t i = 0; i < reported.n; i++) {
        uint64_t row = reported.row[i], first = reported.first[i];

        assert_true(!i || row > reported.row[i - 1]);
        assert_int_equal(rows.len[row], rows.len[first]);
        assert_memory_equal(rows.key[row], rows.key[first], rows.len[first]);
        rows.len[row] = index_key(&built.index, row, rows.key[row]);
        assert_int_equal(rows.len[row], KEY_MAX);
        assert_memory_equal(rows.key[row], "xxxxxxxxxxxx", 12);
    }
    check_built(&rows, &built); /* each is found at its row, so they differ */
}

/* The hash's mixing step, from docs/spec/cache-format.md. */
static uint64_t stir(uint64_t x)
{
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 32;
}

/* Keys of one hash, with some of others and some repeated: the second word compensates for the
 * first, so the hash is the same. */
static void rows_add_colliding(struct rows *rows, uint64_t n, uint64_t *rng)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t first = random_next(rng);
        uint8_t key[16];

        store_le64(key, first);
        store_le64(key + 8, i % 10 == 9 ? first : stir(stir(16) ^ first) ^ 42);
        if (i >= n / 2 && i % 2)
            memcpy(key, rows->key[i - n / 2], sizeof(key));
        rows_add(rows, key, sizeof(key));
    }
}

UNIT_TEST(test_index__same_hash__reported_apart)
{
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;
    uint64_t rng = RANDOM_SEED, found;
    struct asked asked = {.want = 33};

    rows_init(&rows, 200, 1);
    rows_add_colliding(&rows, 200, &rng);
    assert_int_equal(key_hash(rows.key[0], 16), stir(stir(stir(42))));
    build(&rows, NULL, &built);
    assert_true(index_find_hash(&built.index, stir(stir(stir(42))), is_wanted, &asked, &found));
    assert_int_equal(asked.n, 34 - 3); /* in the order of rows; 9, 19 and 29 have other hashes */
    check_renamed(&rows);
}

/* ---- many ---- */

#define MANY UINT64_C(1000000)

static void build_many(struct index_builder **ret_builder, uint8_t **ret_bytes, size_t *ret_size)
{
    const struct index_shape shape = {.columns = 7, .has_keys = true};
    struct index_builder *b = NULL;
    struct iovec pieces[INDEX_PIECES];
    struct index index;
    uint64_t rng = RANDOM_SEED;
    size_t size = 0;

    assert_int_equal(index_builder_new(&shape, &b), 0);
    for (uint64_t row = 0; row < MANY; row++) {
        uint8_t key[KEY_MAX];
        uint64_t number[7] = {3,  0, row * 60000 + random_below(&rng, 60000),
                              40, 1, 500 + random_below(&rng, 1000),
                              0};

        assert_int_equal(index_add(b, key, speech_key(row, &rng, key), number), 0);
    }
    assert_int_equal(index_finish(b, NULL, NULL, NULL, &index), 0);
    assert_int_equal(index_bytes(b, about, sizeof(about), &index, pieces), 0);
    for (unsigned i = 0; i < INDEX_PIECES; i++)
        size += pieces[i].iov_len;
    *ret_bytes = calloc(1, size + 1); /* one more than the index has */
    assert_non_null(*ret_bytes);
    *ret_size = 0;
    for (unsigned i = 0; i < INDEX_PIECES; i++) {
        memcpy(*ret_bytes + *ret_size, pieces[i].iov_base, pieces[i].iov_len);
        *ret_size += pieces[i].iov_len;
    }
    *ret_builder = b;
}

/* Call everything on an index whose numbers may be anything. */
static void use(const struct index *index, uint64_t *rng, unsigned n)
{
    uint64_t number[INDEX_COLUMNS], found = 0, sum = 0;
    uint8_t key[KEY_MAX];

    for (unsigned i = 0; i < n && index->rows; i++) {
        uint64_t row = i < 2 ? (index->rows - 1) * i : random_below(rng, index->rows);
        struct asked asked = {.want = row};
        size_t len = index_key(index, row, key);

        assert_true(len <= KEY_MAX);
        if (index_find(index, key, len, &found))
            assert_true(found < index->rows);
        if (index_find_hash(index, key_hash(key, len), is_wanted, &asked, &found))
            assert_int_equal(found, row);
        index_row(index, row, number);
        for (unsigned column = 0; column < index->shape.columns; column++)
            assert_int_equal(index_number(index, row, column), number[column]);
    }
    index_find(index, "absent", 6, &found);
    for (size_t i = 0; i < index->about_len; i++)
        sum += index->about[i];
    assert_true(sum < UINT64_MAX && index->key_most <= KEY_MAX);
}

/* A large index; it is checked as a whole too. */
UNIT_TEST(test_index__a_million_rows__small_and_found)
{
    AUTO_INDEX_BUILDER struct index_builder *b = NULL;
    AUTO_FREE uint8_t *bytes = NULL;
    struct index index, damaged;
    uint64_t rng = RANDOM_SEED, found;
    size_t size, head;

    build_many(&b, &bytes, &size);
    if (size > 24 * MANY)
        fail_msg("%llu rows take %zu bytes", (unsigned long long)MANY, size);
    assert_int_equal(index_open(bytes, size, &index), 0);
    assert_int_equal(index.rows, MANY);
    for (uint64_t row = 0; row < MANY; row += 7) {
        uint8_t key[KEY_MAX], have[KEY_MAX];
        size_t len = speech_key(row, &rng, key);

        assert_int_equal(index_key(&index, row, have), len);
        assert_memory_equal(key, have, len);
        assert_true(index_find(&index, key, len, &found));
        assert_int_equal(found, row);
        assert_int_equal(index_number(&index, row, 2) / 60000, row);
        key[0] = 'x';
        assert_false(index_find(&index, key, len, &found));
    }
    for (unsigned i = 0; i < 10000; i++) {
        struct asked asked = {.want = UINT64_MAX};

        assert_false(index_find_hash(&index, random_next(&rng), is_wanted, &asked, &found));
        assert_int_equal(asked.n, 0);
    }
    assert_int_equal(index_open(bytes, size + 1, &damaged), -EBADMSG);
    assert_int_equal(index_open(bytes, size - 1, &damaged), -EBADMSG);
    head = HEADER + sizeof(about) + ((MANY + 127) / 128 + 1) * (48 + 9 * 7);
    for (unsigned i = 0; i < 40; i++) {
        size_t at = i < 5 ? HEADER + i : random_below(&rng, i < 20 ? head : size);
        uint8_t was = bytes[at];

        bytes[at] ^= (uint8_t)(1 + random_below(&rng, 255));
        assert_int_equal(index_open(bytes, size, &damaged), -EBADMSG);
        bytes[at] = was;
    }
}

/* ---- damage ---- */

static void build_few(uint64_t n, struct built *ret)
{
    AUTO_ROWS struct rows rows;
    uint64_t rng = RANDOM_SEED;

    rows_init(&rows, n, 7);
    rows.shape.rising = 0x12;
    for (rows.n = 0; rows.n < n; rows.n++)
        rows.len[rows.n] = kinds[rows.n == 100 ? 3 : 0](rows.n, &rng, rows.key[rows.n]);
    rows_add_numbers(&rows, &rng);
    build(&rows, NULL, ret);
}

/* Every truncation, every byte changed, and bytes appended. */
UNIT_TEST(test_index__damaged__ebadmsg)
{
    static const uint64_t few[] = {0, 1, 129, 300};
    uint64_t rng = RANDOM_SEED;

    for (size_t i = 0; i < ARRAY_LEN(few); i++) {
        AUTO_BUILT struct built built;
        AUTO_FREE uint8_t *longer = NULL;
        struct index index;

        build_few(few[i], &built);
        for (size_t len = 0; len < built.size; len++) {
            AUTO_FREE uint8_t *cut = malloc(len ? len : 1);

            memcpy(cut, built.bytes, len);
            assert_int_equal(index_open(cut, len, &index), -EBADMSG);
        }
        for (size_t at = 0; at < built.size; at++) {
            uint8_t flip = (uint8_t)(1u << random_below(&rng, 8));

            built.bytes[at] ^= flip;
            assert_int_equal(index_open(built.bytes, built.size, &index), -EBADMSG);
            built.bytes[at] = (uint8_t) ~(built.bytes[at] ^ flip);
            assert_int_equal(index_open(built.bytes, built.size, &index), -EBADMSG);
            built.bytes[at] = (uint8_t)~built.bytes[at];
        }
        longer = calloc(1, built.size + 48);
        memcpy(longer, built.bytes, built.size);
        for (size_t more = 1; more <= 48; more++)
            assert_int_equal(index_open(longer, built.size + more, &index), -EBADMSG);
        assert_int_equal(index_open(built.bytes, built.size, &index), 0);
    }
}

/* Make the checksum fit the bytes, as an attacker would. */
static void mend(uint8_t *bytes, size_t size)
{
    store_le32(bytes + AT_CRC, (uint32_t)crc32_z(0, bytes + AT_COLUMNS, size - AT_COLUMNS));
}

static void use_mended(const struct built *good, uint8_t *bytes, uint64_t *rng, unsigned *opened)
{
    struct index index;

    mend(bytes, good->size);
    if (index_open(bytes, good->size, &index) == 0) {
        use(&index, rng, 12);
        ++*opened;
    }
    memcpy(bytes, good->bytes, good->size);
}

UNIT_TEST(test_index__hostile__nothing_outside_is_read)
{
    static const uint64_t few[] = {1, 20, 140};
    static const uint8_t values[] = {0, 1, 0x80, 0xfe, 0xff};
    uint64_t rng = RANDOM_SEED;

    for (size_t i = 0; i < ARRAY_LEN(few); i++) {
        AUTO_BUILT struct built good;
        AUTO_FREE uint8_t *bytes = NULL;
        unsigned opened = 0;

        build_few(few[i], &good);
        bytes = malloc(good.size);
        memcpy(bytes, good.bytes, good.size);
        for (size_t at = 0; at < good.size; at++) {
            bytes[at] ^= (uint8_t)(1u << random_below(&rng, 8));
            use_mended(&good, bytes, &rng, &opened);
            for (size_t v = 0; v < ARRAY_LEN(values); v++) {
                bytes[at] = values[v];
                use_mended(&good, bytes, &rng, &opened);
            }
        }
        assert_true(opened > good.size);
        for (unsigned n = 0; n < 3000; n++) {
            for (uint64_t places = 1 + random_below(&rng, 20); places; places--) {
                size_t at = HEADER + random_below(&rng, good.size - HEADER);
                size_t len = 1 + random_below(&rng, 8);

                len = len < good.size - at ? len : good.size - at;
                memset(bytes + at, random_below(&rng, 2) ? 0xff : (int)random_below(&rng, 256),
                       len);
            }
            use_mended(&good, bytes, &rng, &opened);
        }
    }
}

/* A key that shares more bytes than the key before has, or is longer than a key can be, or than the
 * remaining bytes. */
UNIT_TEST(test_index__damaged_keys__empty)
{
    enum { KEYS = HEADER + sizeof(about) + 2 * 48 + 8, LAST = KEYS + 4 + 3 + 6 + KEY_MAX };
    static const struct {
        size_t at;
        uint8_t value;
        uint64_t row;
    } cases[] = {
        {KEYS, 1, 0},       /* the first has none before */
        {KEYS + 4, 3, 1},   /* "aa" has no three bytes */
        {KEYS + 5, 255, 1}, /* a length of what follows is that of no key */
        {LAST + 2, 2, 3},   /* 255 + 770 bytes */
        {LAST + 776, 2, 4}, /* one byte more than there is */
        {LAST + 776, 255, 4},
    };
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;
    uint8_t key[KEY_MAX];

    memset(key, 'k', sizeof(key));
    rows_init(&rows, 5, 0);
    rows_add_text(&rows, "aa");
    rows_add_text(&rows, "ab");
    rows_add(&rows, key, sizeof(key));
    key[KEY_MAX - 1] = 'l';
    rows_add(&rows, key, sizeof(key));
    rows_add_text(&rows, "c");
    build(&rows, NULL, &built);
    assert_int_equal(load_le32(built.bytes + LAST + 2), KEY_MAX - 255);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t was = built.bytes[cases[i].at];
        struct index index;

        built.bytes[cases[i].at] = cases[i].value;
        mend(built.bytes, built.size);
        assert_int_equal(index_open(built.bytes, built.size, &index), 0);
        if (index_key(&index, cases[i].row, key) != 0)
            fail_msg("case %zu", i);
        built.bytes[cases[i].at] = was;
    }
}

/* Places of a group at the end of their parts, past it, and so large that they wrap. */
UNIT_TEST(test_index__damaged_places__nothing_behind)
{
    enum { GROUP = HEADER + sizeof(about), NUMBERS_LEN = 64 * 16 + 8, KEYS_LEN = 2 * 3 };
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;

    rows_init(&rows, 2, 1);
    rows_add_text(&rows, "a");
    rows_add_text(&rows, "b");
    rows.number[1][0] = UINT64_MAX;
    build(&rows, NULL, &built);
    for (int more = -6; more < 20; more++) {
        struct index index;
        uint8_t key[KEY_MAX];

        store_le64(built.bytes + GROUP, (more < 0 ? 0 : 1) + (uint64_t)more);
        mend(built.bytes, built.size);
        assert_int_equal(index_open(built.bytes, built.size, &index), -EBADMSG);
        store_le64(built.bytes + GROUP, 0);
        store_le64(built.bytes + GROUP + 17, (more < 0 ? 0 : KEYS_LEN) + (uint64_t)more);
        mend(built.bytes, built.size);
        assert_int_equal(index_open(built.bytes, built.size, &index), 0);
        assert_int_equal(index_key(&index, 0, key), 0);
    }
}

/* Numbers of a rising column that fall: inside a group, from one group to the next, and after the
 * last row. */
/* Equal rows have equal bytes: nothing of the group before is left in one that is not full. */
UNIT_TEST(test_index__group_not_full__rest_is_zero)
{
    enum { GROUP = HEADER + sizeof(about), GROUP_LEN = 8 + 9, NUMBERS = GROUP + 3 * GROUP_LEN };
    enum { FULL_BYTES = 14 * 16, REST_BYTES = 2 * 16 }; /* of 127 x 127, and of 9 - 7 */
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;

    rows_init(&rows, 130, 1);
    rows.shape.has_keys = false;
    rows.shape.rising = 0;
    for (uint64_t row = 0; row < 128; row++)
        rows.number[row][0] = row * row;
    rows.number[128][0] = 7;
    rows.number[129][0] = 9;
    rows.number[130][0] = 0;
    rows.n = 130;
    build(&rows, NULL, &built);
    assert_int_equal(built.bytes[GROUP + 8], 14);
    assert_int_equal(built.bytes[GROUP + GROUP_LEN + 8], 2);
    assert_int_equal(built.bytes[NUMBERS + FULL_BYTES], 2 << 2);
    for (size_t i = 1; i < REST_BYTES; i++)
        assert_int_equal(built.bytes[NUMBERS + FULL_BYTES + i], 0);
}

UNIT_TEST(test_index__falling_numbers__ebadmsg)
{
    enum { GROUP = HEADER + sizeof(about), GROUP_LEN = 8 + 9, NUMBERS = GROUP + 3 * GROUP_LEN };
    static const struct {
        size_t at;
        uint8_t value;
    } cases[] = {
        {GROUP + 9, 100},               /* the first row's number, above those of the next group */
        {NUMBERS + 1, 0xff},            /* row 1, above row 2 */
        {GROUP + GROUP_LEN + 9, 1},     /* below the last row of the group before */
        {GROUP + 2 * GROUP_LEN + 9, 1}, /* after the last row */
    };
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;

    rows_init(&rows, 130, 1);
    rows.shape.has_keys = false;
    rows.shape.rising = 1;
    for (uint64_t row = 0; row <= 130; row++)
        rows.number[row][0] = row;
    rows.n = 130;
    build(&rows, NULL, &built);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t was = built.bytes[cases[i].at];
        struct index index;

        built.bytes[cases[i].at] = cases[i].value;
        mend(built.bytes, built.size);
        if (index_open(built.bytes, built.size, &index) != -EBADMSG)
            fail_msg("case %zu", i);
        built.bytes[cases[i].at] = was;
        mend(built.bytes, built.size);
        assert_int_equal(index_open(built.bytes, built.size, &index), 0);
    }
}

/* Widths that no load can give, and packed numbers after the last row: all within the bytes. */
UNIT_TEST(test_index__damaged_widths__ebadmsg)
{
    enum { GROUP = HEADER + sizeof(about), GROUP_LEN = 8 + 9, WIDTH = 8 };
    static const struct {
        size_t at;
        uint8_t value;
    } cases[] = {
        {GROUP + WIDTH, 58},            /* instead of 64 */
        {GROUP + WIDTH, 63},            /* the same */
        {GROUP + GROUP_LEN + WIDTH, 1}, /* of rows that there are not */
    };
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;

    rows_init(&rows, 2, 1);
    rows.shape.has_keys = false;
    rows.number[1][0] = UINT64_MAX;
    rows.n = 2;
    build(&rows, NULL, &built);
    store_le64(built.bytes + GROUP + GROUP_LEN, 0); /* the last entry shares the first's numbers */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t was = built.bytes[cases[i].at];
        struct index index;

        mend(built.bytes, built.size);
        assert_int_equal(index_open(built.bytes, built.size, &index), 0);
        built.bytes[cases[i].at] = cases[i].value;
        mend(built.bytes, built.size);
        if (index_open(built.bytes, built.size, &index) != -EBADMSG)
            fail_msg("case %zu", i);
        built.bytes[cases[i].at] = was;
    }
}

UNIT_TEST(test_index__too_many_columns__ebadmsg)
{
    AUTO_ROWS struct rows rows;
    AUTO_BUILT struct built built;
    struct index index;

    rows_init(&rows, 0, INDEX_COLUMNS + 1);
    rows.shape.columns = INDEX_COLUMNS;
    build(&rows, NULL, &built);
    assert_int_equal(index_open(built.bytes, built.size, &index), 0);
    built.bytes = realloc(built.bytes, built.size + 9); /* the group after the last row grows */
    assert_non_null(built.bytes);
    memset(built.bytes + built.size, 0, 9);
    built.size += 9;
    store_le16(built.bytes + AT_COLUMNS, INDEX_COLUMNS + 1);
    mend(built.bytes, built.size);
    assert_int_equal(index_open(built.bytes, built.size, &index), -EBADMSG);
}

/* ---- columns that are learned ---- */

enum { WIDE = 1000, WIDE_ROWS = 1000, AT_START = 2 };

/* When a column comes: at the start of groups, inside them, with others, never in a row. */
static uint64_t comes_at(unsigned column)
{
    return column < AT_START ? 0 : column % 10 == 0 ? 700 : column * 7 % 300;
}

/* The number of a column: most are the same in all rows from where they come; many in a group. */
static uint64_t wide_number(uint64_t row, unsigned column)
{
    if (row < comes_at(column))
        return 0;
    switch (column % 5) {
    case 0:
        return column == 0 ? row * 1000 : row * column;
    case 1:
        return column; /* constant, if it comes with the first row */
    case 2:
        return row / 128;
    case 3:
        return 0; /* always constant */
    default:
        return row == 555 ? UINT64_MAX : 7;
    }
}

static void build_wide(uint64_t rows, bool has_keys, struct built *ret)
{
    const struct index_shape shape = {
        .columns = AT_START, .rising = 1, .has_keys = has_keys, .learns = true};
    AUTO_FREE uint64_t *number = calloc(WIDE, sizeof(*number));
    unsigned columns = AT_START;
    struct iovec pieces[INDEX_PIECES];

    *ret = (struct built){0};
    assert_int_equal(index_builder_new(&shape, &ret->builder), 0);
    for (uint64_t row = 0; row < rows; row++) {
        char key[16];
        size_t len = (size_t)snprintf(key, sizeof(key), "k%u", (unsigned)row);

        for (unsigned column = columns; column < WIDE; column++)
            if (comes_at(column) <= row)
                columns = column + 1;
        assert_int_equal(index_builder_columns(ret->builder, columns), 0);
        for (unsigned column = 0; column < columns; column++)
            number[column] = wide_number(row, column);
        assert_int_equal(index_add(ret->builder, has_keys ? key : NULL, has_keys ? len : 0, number),
                         0);
    }
    number[0] = rows * 1000;
    assert_int_equal(index_finish(ret->builder, number, NULL, NULL, &ret->index), 0);
    assert_int_equal(index_bytes(ret->builder, about, sizeof(about), &ret->index, pieces), 0);
    for (unsigned i = 0; i < INDEX_PIECES; i++) {
        ret->bytes = realloc(ret->bytes, ret->size + pieces[i].iov_len);
        assert_non_null(ret->bytes);
        memcpy(ret->bytes + ret->size, pieces[i].iov_base, pieces[i].iov_len);
        ret->size += pieces[i].iov_len;
    }
}

static void check_wide_row(const struct index *index, uint64_t row, bool is_end)
{
    uint64_t number[WIDE], first[100], group[INDEX_GROUP];

    index_row(index, row, number);
    index_row_start(index, row, index->shape.columns < 100 ? index->shape.columns : 100, first);
    for (unsigned column = 0; column < index->shape.columns; column++) {
        uint64_t want = !is_end ? wide_number(row, column) : column ? 0 : row * 1000;

        assert_int_equal(number[column], want);
        assert_true(column >= 100 || first[column] == want);
        if (row % 50)
            continue;
        assert_int_equal(index_number(index, row, column), want);
        assert_true(index_numbers(index, row, column, group) >= 1);
        assert_int_equal(group[0], want);
    }
}

static void check_wide(const struct index *index, uint64_t rows)
{
    assert_int_equal(index->rows, rows);
    assert_true(index->shape.learns && index->fixed == AT_START);
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t found;
        char key[16];
        size_t len = (size_t)snprintf(key, sizeof(key), "k%u", (unsigned)row);

        check_wide_row(index, row, false);
        if (index->shape.has_keys) {
            assert_true(index_find(index, key, len, &found));
            assert_int_equal(found, row);
        }
    }
    check_wide_row(index, rows, true);
    if (rows > 1)
        assert_int_equal(index_first_above(index, 0, 1000), 2);
}

UNIT_TEST(test_index__learned_columns__zero_before)
{
    static const uint64_t rows[] = {0, 1, 127, 128, 129, 256, WIDE_ROWS};

    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        AUTO_BUILT struct built built;
        struct index index;

        build_wide(rows[i / 2], i % 2, &built);
        check_wide(&built.index, rows[i / 2]);
        assert_int_equal(index_open(built.bytes, built.size, &index), 0);
        check_wide(&index, rows[i / 2]);
    }
}

/* A column that is the same in all rows takes 10 bytes, however many rows there are. */
UNIT_TEST(test_index__constant_columns__ten_bytes)
{
    uint64_t number[INDEX_LEARNED] = {0};
    size_t size[2] = {0};

    for (unsigned wide = 0; wide < 2; wide++) {
        AUTO_INDEX_BUILDER struct index_builder *b = NULL;
        struct iovec pieces[INDEX_PIECES];
        struct index index;

        assert_int_equal(index_builder_new(&(struct index_shape){.columns = 1, .learns = true}, &b),
                         0);
        for (unsigned i = 1; i < INDEX_LEARNED; i++)
            number[i] = i;
        if (wide)
            assert_int_equal(index_builder_columns(b, INDEX_LEARNED), 0);
        for (uint64_t row = 0; row < 20000; row++) {
            number[0] = row * row;
            assert_int_equal(index_add(b, NULL, 0, number), 0);
        }
        assert_int_equal(index_finish(b, NULL, NULL, NULL, &index), 0);
        assert_int_equal(index_number(&index, 19999, 0), UINT64_C(19999) * 19999);
        assert_int_equal(wide ? index_number(&index, 19999, 1023) : 1023, 1023);
        assert_int_equal(index_bytes(b, "", 0, &index, pieces), 0);
        for (unsigned i = 0; i < INDEX_PIECES; i++)
            size[wide] += pieces[i].iov_len;
    }
    assert_int_equal(size[1], size[0] + 10 * (INDEX_LEARNED - 1));
}

/* Bytes that claim other columns than there are, or slots out of sequence. */
UNIT_TEST(test_index__damaged_learned__ebadmsg)
{
    enum { LEARNED = HEADER + sizeof(about), AT_FIXED = 76, AT_RISING = 20 };
    static const struct {
        size_t at;
        uint16_t value;
    } cases[] = {
        {AT_COLUMNS, WIDE - 1}, {AT_COLUMNS, WIDE + 1}, {AT_COLUMNS, 1025}, {AT_FIXED, 1},
        {AT_FIXED, 25},         {AT_RISING, 8},         {LEARNED, 1},       {LEARNED, 3},
        {LEARNED + 10, 2},      {LEARNED, 0xffff},      {LEARNED + 10, 0},
    };
    AUTO_BUILT struct built built;
    struct index index;

    build_wide(WIDE_ROWS, true, &built);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint16_t was = load_le16(built.bytes + cases[i].at);

        if (was == cases[i].value)
            fail_msg("case %zu changes nothing", i);
        store_le16(built.bytes + cases[i].at, cases[i].value);
        mend(built.bytes, built.size);
        if (index_open(built.bytes, built.size, &index) != -EBADMSG)
            fail_msg("case %zu", i);
        store_le16(built.bytes + cases[i].at, was);
    }
    mend(built.bytes, built.size);
    assert_int_equal(index_open(built.bytes, built.size, &index), 0);
}
