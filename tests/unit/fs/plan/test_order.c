/* The order against tests/order_vectors.txt. */
#include "support/order_each.h"
#include "support/unit.h"

#include <stdio.h>

#include "base/scope.h"

static void scope_fclose(FILE **f)
{
    if (*f)
        fclose(*f);
}

UNIT_TEST(test_order__vectors__both_ways)
{
    AUTO(scope_fclose) FILE *f = fopen(VECTORS, "r");
    unsigned long long n, seed, epoch, window, position, sample;
    size_t lines = 0;
    char line[256];

    assert_non_null(f);
    while (fgets(line, sizeof(line), f) && strncmp(line, "plan ", 5) != 0) {
        uint64_t got[11];
        struct order o;

        assert_int_equal(sscanf(line, "%llu %llu %llu %llu %llu %llu", &n, &seed, &epoch, &window,
                                &position, &sample),
                         6);
        order_init(&o, seed, epoch, n, window);
        assert_int_equal(order_sample(&o, position), sample);
        assert_int_equal(order_position(&o, sample), position);
        for (size_t count = 1; count <= ARRAY_LEN(got); count += 5) {
            order_samples(&o, position, count, 0, got);
            assert_int_equal(got[count - 1], sample);
        }
        lines++;
    }
    assert_true(lines > 1800);
}

UNIT_TEST(test_order__small__permutations)
{
    for (uint64_t n = 1; n < 130; n++) {
        for (uint64_t window = 0; window < n + 3; window += 1 + window / 5) {
            bool seen[130] = {false};
            struct order o;

            order_init(&o, n * 31, window, n, window);
            for (uint64_t i = 0; i < n; i++) {
                uint64_t sample = order_sample(&o, i);

                assert_true(sample < n);
                assert_false(seen[sample]);
                seen[sample] = true;
                assert_int_equal(order_position(&o, sample), i);
            }
        }
    }
}

UNIT_TEST(test_order_map__strides__as_one_by_one)
{
    static const uint64_t strides[] = {0, 1, 2, 7, 1000, UINT64_MAX, UINT64_C(1) << 48};
    static const uint64_t sizes[] = {1, 2, 9, 1000, 60000, UINT64_C(1) << 48};
    uint64_t got[50];

    for (size_t i = 0; i < ARRAY_LEN(strides) * ARRAY_LEN(sizes) * 2; i++) {
        uint64_t n = sizes[i % ARRAY_LEN(sizes)];
        uint64_t stride = strides[i / ARRAY_LEN(sizes) % ARRAY_LEN(strides)];
        uint64_t window = i % 2 ? 5 : 0;
        struct order o;

        order_init(&o, 3, 4, n, window);
        order_samples(&o, n - 1, ARRAY_LEN(got), stride, got);
        for (uint64_t k = 0; k < ARRAY_LEN(got); k++) {
            __extension__ unsigned __int128 place = (unsigned __int128)k * stride + n - 1;

            assert_int_equal(got[k], order_sample(&o, (uint64_t)(place % n)));
        }
    }
}

UNIT_TEST(test_order_unmap__neighbours__as_one_by_one)
{
    static const uint64_t sizes[] = {1, 2, 9, 63, 1000, 60000, UINT64_C(1) << 48};
    static const uint64_t windows[] = {0, 1, 5, 8, 64, 700, UINT64_C(1) << 30};
    uint64_t got[150];

    for (size_t i = 0; i < ARRAY_LEN(sizes) * ARRAY_LEN(windows) * 3; i++) {
        uint64_t n = sizes[i % ARRAY_LEN(sizes)];
        uint64_t window = windows[i / ARRAY_LEN(sizes) % ARRAY_LEN(windows)];
        uint64_t count = n < ARRAY_LEN(got) ? n : ARRAY_LEN(got) - i % 9;
        uint64_t first = (n - count) / 2 * (i / (ARRAY_LEN(sizes) * ARRAY_LEN(windows)));
        struct order o;

        order_init(&o, 3, i, n, window);
        for (uint64_t k = 0; k < count; k++)
            got[k] = first + k;
        order_unmap(&o, (size_t)count, got);
        for (uint64_t k = 0; k < count; k++)
            assert_int_equal(got[k], order_position(&o, first + k));
    }
}

UNIT_TEST(test_order__no_samples__no_division_by_zero)
{
    struct order o;

    order_init(&o, 1, 2, 0, 0);
    order_init(&o, 1, 2, 0, 5);
}
