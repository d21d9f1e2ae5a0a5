/* Folders by their paths: each once, with those above it, at a cost that is the same for each. */
#include "cache/source/folder_set.h"

#include <stdio.h>
#include <string.h>

#include "support/unit.h"

static uint32_t way(struct folder_set *set, struct members *m, const char *path)
{
    uint32_t number = UINT32_MAX;

    assert_int_equal(folder_set_way(set, m, path, strlen(path), &number), 0);
    assert_string_equal(members_folder(m, number), path);
    return number;
}

static void test_folder_set__deep_path__each_folder_once(void **state)
{
    AUTO_FOLDER_SET struct folder_set set = {0};
    AUTO_MEMBERS struct members m = {0};
    uint32_t number;

    (void)state;
    assert_int_equal(way(&set, &m, "a/b/c"), 3); /* after "", "a", "a/b" */
    assert_int_equal(way(&set, &m, "a/b"), 2);
    assert_int_equal(way(&set, &m, ""), 0);
    assert_int_equal(way(&set, &m, "a/bb"), 4);
    assert_int_equal(way(&set, &m, "a/b/c"), 3);
    assert_int_equal(m.n_folders, 5);
    assert_int_equal(folder_set_way(&set, &m, "a/b/c", 1, &number), 0);
    assert_int_equal(number, 1);
}

static void test_folder_set__only_source__one(void **state)
{
    AUTO_FOLDER_SET struct folder_set set = {0};
    AUTO_MEMBERS struct members m = {0};

    (void)state;
    assert_int_equal(way(&set, &m, ""), 0);
    assert_int_equal(way(&set, &m, ""), 0);
    assert_int_equal(m.n_folders, 1);
}

/* n folders, each with one above it that no other has, each looked up twice. Returns the slots that
 * were looked at. */
static uint64_t cost_of(unsigned n)
{
    AUTO_FOLDER_SET struct folder_set set = {0};
    AUTO_MEMBERS struct members m = {0};
    char path[64];

    for (unsigned turn = 0; turn < 2; turn++)
        for (unsigned i = 0; i < n; i++) {
            snprintf(path, sizeof(path), "n%08u/images", i);
            assert_int_equal(way(&set, &m, path), 2 + 2 * i);
        }
    assert_int_equal(m.n_folders, 1 + 2 * n);
    return set.compared;
}

static void test_folder_set__hundred_thousand_folders__each_costs_the_same(void **state)
{
    (void)state;
    for (unsigned n = 1000; n <= 100000; n *= 10)
        assert_in_range(cost_of(n), n, 20 * n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder_set__deep_path__each_folder_once),
        cmocka_unit_test(test_folder_set__only_source__one),
        cmocka_unit_test(test_folder_set__hundred_thousand_folders__each_costs_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
