/* Places of rows against arrays of the input, and indexes that describe no rows. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/libsvm/places.h"
#include "support/random.h"
#include "support/unit.h"

static const struct index_shape places_shape = PLACES_SHAPE;

/* The input. */
struct rows {
    uint64_t n;
    struct row_place *place;
    uint64_t *lines;
    int64_t *qid;
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
    ret->qid = calloc(n + 1, sizeof(*ret->qid));
    for (uint64_t i = 0; i < n; i++) {
        bool large = recipe->large && random_below(rng, 50) == 0;

        line += random_below(rng, 3);
        ret->lines[i] = line++;
        /* Those of small rows have none; the first of the others may be bad. */
        ret->qid[i] = recipe->len == 1 || random_below(rng, 9) == 0
                          ? PLACES_NO_QID
                          : (int64_t)random_below(rng, 3) - 1;
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
    free(rows->qid);
}

static void build(const struct rows *rows, struct index_builder **ret_builder, struct index *ret)
{
    struct places places = {0};
    uint64_t end[INDEX_COLUMNS];

    assert_int_equal(index_builder_new(&places_shape, ret_builder), 0);
    for (uint64_t i = 0; i < rows->n; i++)
        assert_int_equal(
            places_add(&places, *ret_builder, &rows->place[i], rows->lines[i], rows->qid[i]), 0);
    places_end(&places, end);
    assert_int_equal(index_finish(*ret_builder, end, NULL, NULL, ret), 0);
}

/* The number of rows that start before an offset, by counting. */
static uint64_t before(const struct rows *rows, uint64_t offset)
{
    uint64_t n = 0;

    while (n < rows->n && rows->place[n].start < offset)
        n++;
    return n;
}

static void check_offsets(const struct rows *rows, const struct index *index, uint64_t i)
{
    uint64_t start = rows->place[i].start, end = start + rows->place[i].len;

    assert_int_equal(places_before(index, start), i);
    assert_int_equal(places_before(index, start + 1), i + 1);
    assert_int_equal(places_before(index, end + 1), i + 1);
    assert_int_equal(places_before(index, end + 2), before(rows, end + 2));
    if (start)
        assert_int_equal(places_before(index, start - 1), before(rows, start - 1));
}

static void check_index(const struct rows *rows, const struct index *index)
{
    struct row_sums sums = {0};
    uint64_t end = 0, runs = 0;
    int64_t qid = PLACES_NO_QID;

    assert_int_equal(index->rows, rows->n);
    assert_int_equal(places_before(index, 0), 0);
    assert_int_equal(places_before(index, UINT64_MAX), rows->n);
    for (uint64_t i = 0; i < rows->n; i++) {
        const struct row_place *want = &rows->place[i];
        struct row_place found = places_row(index, i);
        struct row_sums before_row = places_sums(index, i);

        assert_int_equal(found.start, want->start);
        assert_int_equal(found.len, want->len);
        assert_int_equal(found.features, want->features);
        assert_int_equal(before_row.text, sums.text);
        assert_int_equal(before_row.features, sums.features);
        assert_int_equal(places_lines(index, i), rows->lines[i]);
        if (rows->qid[i] != PLACES_NO_QID) { /* a row without one belongs to the run before it */
            runs += rows->qid[i] != qid;
            qid = rows->qid[i];
        }
        assert_int_equal(places_run(index, i), runs ? runs - 1 : 0);
        if (rows->n <= 257 || i % 16 == 0)
            check_offsets(rows, index, i);
        sums.text += want->len + 1;
        sums.features += want->features;
        end = want->start + want->len;
    }
    assert_int_equal(places_run(index, rows->n), runs);
    assert_int_equal(places_sums(index, rows->n).text, sums.text);
    assert_int_equal(places_sums(index, rows->n).features, sums.features);
    assert_int_equal(places_fit(index, end), sums.features <= sums.text);
    if (rows->n)
        assert_false(places_fit(index, end - 1));
}

UNIT_TEST(test_places__random_rows__what_went_in)
{
    uint64_t rng = RANDOM_SEED;

    for (size_t r = 0; r < ARRAY_LEN(recipes); r++) {
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
            struct index index;
            AUTO(rows_release) struct rows rows;
            struct iovec pieces[INDEX_PIECES];
            size_t size = 0;

            rows_make(&rows, &recipes[r], numbers[i], &rng);
            build(&rows, &builder, &index);
            check_index(&rows, &index);
            assert_int_equal(index_bytes(builder, NULL, 0, &index, pieces), 0);
            for (unsigned p = 0; p < INDEX_PIECES; p++)
                size += pieces[p].iov_len;
            if (r < 3 && rows.n >= 1000 && size > 8 * rows.n)
                fail_msg("%llu rows take %zu bytes", (unsigned long long)rows.n, size);
        }
    }
}

/* Two rows: their numbers, and those after them. */
static void build_numbers(const uint64_t forged[3][5], const struct index_shape *shape,
                          struct index_builder **ret_builder, struct index *ret)
{
    assert_int_equal(index_builder_new(shape, ret_builder), 0);
    for (unsigned row = 0; row < 2; row++)
        assert_int_equal(index_add(*ret_builder, NULL, 0, forged[row]), 0);
    assert_int_equal(index_finish(*ret_builder, forged[2], NULL, NULL, ret), 0);
}

/* Numbers that rise, as index_open() checks, but are no places of rows. */
UNIT_TEST(test_places__forged__no_fit)
{
    static const uint64_t cases[][3][5] = {
        {{3, 3, 0, 1, 0}, {9, 4, 2, 1, 0}, {20, 4, 5, 1, 0}},    /* a good one */
        {{3, 2, 0, 0, 0}, {9, 4, 2, 0, 0}, {20, 4, 5, 0, 0}},    /* text before the first row */
        {{3, 3, 1, 0, 0}, {9, 4, 2, 0, 0}, {20, 4, 5, 0, 0}},    /* features before it */
        {{3, 3, 0, 0, 0}, {4, 4, 2, 0, 0}, {20, 4, 5, 0, 0}},    /* a row without any text */
        {{3, 3, 0, 0, 0}, {9, 4, 2, 0, 0}, {20, 16, 5, 0, 0}},   /* of negative length */
        {{3, 4, 0, 0, 0}, {9, 4, 2, 0, 0}, {20, 4, 5, 0, 0}},    /* more gaps than bytes */
        {{3, 3, 0, 0, 0}, {9, 4, 2, 0, 0}, {20, 21, 5, 0, 0}},   /* the same after the last row */
        {{3, 3, 0, 0, 0}, {9, 4, 2, 0, 0}, {102, 4, 5, 0, 0}},   /* behind the file */
        {{3, 3, 0, 0, 0}, {9, 4, 2, 0, 0}, {20, 4, 50, 0, 0}},   /* more features than bytes */
        {{3, 3, 0, 1, 0}, {9, 4, 2, 1, 0}, {101, 4, 5, 100, 0}}, /* a good one, up to the end */
    };
    static const struct index_shape shapes[] = {{.columns = 3, .rising = 7},
                                                {.columns = 4, .rising = 7}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
        struct index index;

        build_numbers(cases[i], &places_shape, &builder, &index);
        if (places_fit(&index, 100) != (i == 0 || i + 1 == ARRAY_LEN(cases)))
            fail_msg("case %zu", i);
    }
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
        struct index index;

        build_numbers(cases[0], &shapes[i], &builder, &index);
        assert_false(places_fit(&index, 100));
    }
}
