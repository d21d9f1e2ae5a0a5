/* The index of rows against arrays of its input, and damaged bytes of it. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/core/row_index.h"
#include "support/random.h"
#include "support/unit.h"

static const uint64_t about[ROW_INDEX_ABOUT] = {1, UINT64_MAX, 0, 42, UINT64_C(1) << 40};

/* The input. */
struct rows {
    uint64_t n;
    struct row_place *place;
    uint64_t *lines;
};

/* A recipe for rows: the maxima of their numbers; rarely a large row. */
struct recipe {
    uint64_t len, gap, features, large;
};

static const struct recipe recipes[] = {
    {1, 1, 1, 0},                                                 /* as small as rows are */
    {300, 3, 40, 0},                                              /* typical */
    {300, 2, 1, 0},                                               /* no features */
    {1000, 100000, 200, UINT64_C(1) << 30},                       /* comments between, large rows */
    {UINT64_C(1) << 48, 1, UINT64_C(1) << 48, UINT64_C(1) << 49}, /* as wide as it goes */
    {UINT64_C(1) << 28, UINT64_C(1) << 48, 1000, 0},              /* gaps as wide as it goes */
};

static const uint64_t numbers[] = {0, 1, 2, 127, 128, 129, 255, 256, 257, 1000, 5000};

static void rows_make(struct rows *ret, const struct recipe *recipe, uint64_t n, uint64_t *rng)
{
    uint64_t at = random_below(rng, recipe->gap), line = 0;

    ret->n = n;
    ret->place = calloc(n + 1, sizeof(*ret->place));
    ret->lines = calloc(n + 1, sizeof(*ret->lines));
    for (uint64_t i = 0; i < n; i++) {
        bool large = recipe->large && random_below(rng, 50) == 0;

        line += random_below(rng, 3);
        ret->lines[i] = line++;
        ret->place[i] = (struct row_place){
            .start = at,
            .len = 1 + (large ? recipe->large : random_below(rng, recipe->len)),
            .features = large ? recipe->large : random_below(rng, recipe->features),
        };
        at += ret->place[i].len + 1 + random_below(rng, recipe->gap);
    }
}

static void rows_release(struct rows *rows)
{
    free(rows->place);
    free(rows->lines);
}

/* The bytes of the index as they would be stored; the caller frees them. */
static uint8_t *build(const struct rows *rows, struct row_index_builder **ret_builder,
                      struct row_index *ret, size_t *ret_size)
{
    struct row_index_builder *b = NULL;
    struct iovec pieces[ROW_INDEX_PIECES];
    uint8_t *bytes;

    assert_int_equal(row_index_builder_new(&b), 0);
    for (uint64_t i = 0; i < rows->n; i++)
        assert_int_equal(row_index_add(b, &rows->place[i], rows->lines[i]), 0);
    assert_int_equal(row_index_finish(b, about, ret, pieces), 0);
    *ret_size = 0;
    for (unsigned i = 0; i < ROW_INDEX_PIECES; i++)
        *ret_size += pieces[i].iov_len;
    bytes = malloc(*ret_size); /* of that size for ASan */
    assert_non_null(bytes);
    *ret_size = 0;
    for (unsigned i = 0; i < ROW_INDEX_PIECES; i++) {
        memcpy(bytes + *ret_size, pieces[i].iov_base, pieces[i].iov_len);
        *ret_size += pieces[i].iov_len;
    }
    *ret_builder = b;
    return bytes;
}

/* The number of rows that start before an offset, by counting. */
static uint64_t before(const struct rows *rows, uint64_t offset)
{
    uint64_t n = 0;

    while (n < rows->n && rows->place[n].start < offset)
        n++;
    return n;
}

static void check_offsets(const struct rows *rows, const struct row_index *index, uint64_t i)
{
    uint64_t start = rows->place[i].start, end = start + rows->place[i].len;

    assert_int_equal(row_index_before(index, start), i);
    assert_int_equal(row_index_before(index, start + 1), i + 1);
    assert_int_equal(row_index_before(index, end + 1), i + 1);
    assert_int_equal(row_index_before(index, end + 2), before(rows, end + 2));
    if (start)
        assert_int_equal(row_index_before(index, start - 1), before(rows, start - 1));
}

static void check_index(const struct rows *rows, const struct row_index *index)
{
    struct row_sums sums = {0};

    assert_int_equal(index->rows, rows->n);
    assert_memory_equal(index->about, about, sizeof(about));
    assert_int_equal(row_index_before(index, 0), 0);
    assert_int_equal(row_index_before(index, UINT64_MAX), rows->n);
    for (uint64_t i = 0; i < rows->n; i++) {
        const struct row_place *want = &rows->place[i];
        struct row_place found = row_index_place(index, i);
        struct row_sums before_row = row_index_sums(index, i);
        uint64_t lines, known = row_index_known_line(index, i, &lines);

        assert_int_equal(found.start, want->start);
        assert_int_equal(found.len, want->len);
        assert_int_equal(found.features, want->features);
        assert_int_equal(before_row.text, sums.text);
        assert_int_equal(before_row.features, sums.features);
        assert_true(known <= i && i - known < 1000);
        assert_int_equal(lines, rows->lines[known]);
        assert_int_equal(row_index_of_text(index, sums.text), i);
        assert_int_equal(row_index_of_text(index, sums.text + want->len), i);
        if (want->features) {
            assert_int_equal(row_index_of_feature(index, sums.features), i);
            assert_int_equal(row_index_of_feature(index, sums.features + want->features - 1), i);
        }
        if (rows->n <= 257 || i % 16 == 0)
            check_offsets(rows, index, i);
        sums.text += want->len + 1;
        sums.features += want->features;
    }
    assert_int_equal(row_index_sums(index, rows->n).text, sums.text);
    assert_int_equal(row_index_sums(index, rows->n).features, sums.features);
    if (rows->n) {
        assert_int_equal(row_index_of_text(index, UINT64_MAX), rows->n - 1);
        assert_int_equal(row_index_of_feature(index, UINT64_MAX), rows->n - 1);
    }
}

static void test_row_index__random_rows__what_went_in(void **state)
{
    uint64_t rng = RANDOM_SEED;

    (void)state;
    for (size_t r = 0; r < ARRAY_LEN(recipes); r++) {
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            struct row_index_builder *builder;
            struct row_index made, opened;
            struct rows rows;
            size_t size;
            uint8_t *bytes;

            rows_make(&rows, &recipes[r], numbers[i], &rng);
            bytes = build(&rows, &builder, &made, &size);
            check_index(&rows, &made);
            row_index_builder_free(builder);
            assert_int_equal(row_index_open(bytes, size, &opened), 0);
            check_index(&rows, &opened);
            if (r < 3 && rows.n >= 1000 && size > 8 * rows.n)
                fail_msg("%llu rows take %zu bytes", (unsigned long long)rows.n, size);
            free(bytes);
            rows_release(&rows);
        }
    }
    row_index_builder_free(NULL);
}

/* Every truncation, every byte changed, and bytes appended. */
static void test_row_index__damaged__ebadmsg(void **state)
{
    static const uint64_t few[] = {0, 1, 129, 300};
    uint64_t rng = RANDOM_SEED;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(few); i++) {
        struct row_index_builder *builder;
        struct row_index index;
        struct rows rows;
        size_t size;
        uint8_t *bytes, *longer;

        rows_make(&rows, &recipes[1], few[i], &rng);
        bytes = build(&rows, &builder, &index, &size);
        row_index_builder_free(builder);
        for (size_t len = 0; len < size; len++) {
            AUTO_FREE uint8_t *cut = malloc(len ? len : 1);

            memcpy(cut, bytes, len);
            assert_int_equal(row_index_open(cut, len, &index), -EBADMSG);
        }
        for (size_t at = 0; at < size; at++) {
            uint8_t flip = (uint8_t)(1u << random_below(&rng, 8));

            bytes[at] ^= flip;
            assert_int_equal(row_index_open(bytes, size, &index), -EBADMSG);
            bytes[at] ^= flip;
            bytes[at] = (uint8_t)~bytes[at];
            assert_int_equal(row_index_open(bytes, size, &index), -EBADMSG);
            bytes[at] = (uint8_t)~bytes[at];
        }
        longer = calloc(1, size + 48);
        memcpy(longer, bytes, size);
        for (size_t more = 1; more <= 48; more++)
            assert_int_equal(row_index_open(longer, size + more, &index), -EBADMSG);
        assert_int_equal(row_index_open(bytes, size, &index), 0);
        free(longer);
        free(bytes);
        rows_release(&rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_index__random_rows__what_went_in),
        cmocka_unit_test(test_row_index__damaged__ebadmsg),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
