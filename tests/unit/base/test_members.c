/* The packed table of files. */
#include "base/members.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "support/unit.h"

static const uint64_t no_version[2] = {7, 8};

/* sub/b (3 bytes), sub/a (0), z (4), a-b/c (5), a/d (1): out of order. */
static void make(struct members *ret)
{
    uint32_t sub, top, ab, a;

    assert_int_equal(members_add_folder(ret, "sub", &sub), 0);
    assert_int_equal(members_add_folder(ret, "", &top), 0);
    assert_int_equal(members_add_folder(ret, "a/x", &a), 0);
    assert_int_equal(members_add_folder(ret, "a-b", &ab), 0);
    assert_int_equal(members_add(ret, sub, "b", 3, no_version), 0);
    assert_int_equal(members_add(ret, sub, "a", 0, no_version), 0);
    assert_int_equal(members_add(ret, top, "z", 4, no_version), 0);
    assert_int_equal(members_add(ret, ab, "c", 5, no_version), 0);
    assert_int_equal(members_add(ret, a, "d", 1, no_version), 0);
}

static void check(const struct members *m, size_t i, const char *path, uint64_t place,
                  uint64_t size)
{
    char found[PATH_MAX];

    assert_int_equal(members_path(m, i, found, sizeof(found)), 0);
    assert_string_equal(found, path);
    assert_int_equal(m->member[i].place, place);
    assert_int_equal(members_size(m, i), size);
    assert_int_equal(m->member[i].version[1], 8);
}

UNIT_TEST(test_members__unsorted__sorted_by_folder_then_name)
{
    AUTO_MEMBERS struct members m = {0};

    make(&m);
    assert_int_equal(members_sort(&m), 0);
    assert_int_equal(m.n, 5);
    check(&m, 0, "z", 0, 4);
    check(&m, 1, "a/x/d", 4, 1);
    check(&m, 2, "a-b/c", 5, 5);
    check(&m, 3, "sub/a", 10, 0);
    check(&m, 4, "sub/b", 10, 3);
    assert_int_equal(members_end(&m), 13);
}

/* Whatever the order, a folder is added once, with those on the way to it. */
UNIT_TEST(test_members__ways__each_once)
{
    static const char *const paths[] = {"b/c", "a", "b/d/e", "a", "", "b/c", "b", "b/d/e"};
    AUTO_MEMBERS struct members m = {0};
    uint32_t found;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_int_equal(members_add_way(&m, paths[i], strlen(paths[i]), &found), 0);
        assert_string_equal(members_folder(&m, found), paths[i]);
    }
    assert_int_equal(m.n_folders, 6); /* "", b, b/c, a, b/d, b/d/e */
    assert_int_equal(members_sort(&m), 0);
    assert_int_equal(members_add_way(&m, "b/c", 3, &found), 0);
    assert_string_equal(members_folder(&m, found), "b/c");
}

UNIT_TEST(test_members__find__never_an_empty_one)
{
    AUTO_MEMBERS struct members m = {0};

    make(&m);
    assert_int_equal(members_sort(&m), 0);
    assert_int_equal(members_find(&m, 0), 0);
    assert_int_equal(members_find(&m, 3), 0);
    assert_int_equal(members_find(&m, 4), 1);
    assert_int_equal(members_find(&m, 5), 2);
    assert_int_equal(members_find(&m, 10), 4);
    assert_int_equal(members_find(&m, 12), 4);
}

UNIT_TEST(test_members__pick__those_in_that_order_and_the_folders_below)
{
    AUTO_MEMBERS struct members m = {0}, picked = {0};
    const uint32_t file[] = {2, 4};

    make(&m);
    assert_int_equal(members_sort(&m), 0);
    assert_int_equal(members_pick(&m, "", file, 2, &picked), 0);
    assert_int_equal(picked.n, 2);
    assert_int_equal(picked.n_folders, 4);
    check(&picked, 0, "a-b/c", 0, 5);
    check(&picked, 1, "sub/b", 5, 3);
    members_release(&picked);
    assert_int_equal(members_pick(&m, "a", &(uint32_t){1}, 1, &picked), 0);
    assert_int_equal(picked.n_folders, 1); /* "a/x", and not "a-b" */
    check(&picked, 0, "a/x/d", 0, 1);
    members_release(&picked);
    assert_int_equal(members_pick(&m, "sub", &(uint32_t){1}, 1, &picked), -EINVAL);
    assert_int_equal(members_pick(&m, "a-b", &(uint32_t){3}, 1, &picked), -EINVAL);
}

static size_t flatten(const struct members *m, uint8_t *ret)
{
    struct iovec piece[MEMBERS_PIECES];
    struct members_head head;
    size_t n = 0;

    members_bytes(m, &head, piece);
    for (unsigned i = 0; i < MEMBERS_PIECES; i++) {
        memcpy(ret + n, piece[i].iov_base, piece[i].iov_len);
        n += piece[i].iov_len;
    }
    return n;
}

UNIT_TEST(test_members__stored__the_same_again)
{
    AUTO_MEMBERS struct members m = {0}, again = {0};
    _Alignas(8) uint8_t bytes[1024];
    size_t n;

    make(&m);
    assert_int_equal(members_sort(&m), 0);
    n = flatten(&m, bytes);
    assert_int_equal(members_from_bytes(bytes, n, &again), 0);
    assert_int_equal(again.n, 5);
    assert_int_equal(again.n_folders, 4);
    check(&again, 2, "a-b/c", 5, 5);
}

/* Whatever one byte is changed to: an error, or a table whose names and sizes can be read. */
UNIT_TEST(test_members__forged__nothing_leaves_the_bytes)
{
    AUTO_MEMBERS struct members m = {0};
    _Alignas(8) uint8_t bytes[1024];
    size_t n;

    make(&m);
    n = flatten(&m, bytes);
    for (size_t i = 0; i < n; i++) {
        for (unsigned change = 1; change < 256; change += 127) {
            AUTO_MEMBERS struct members forged = {0};
            char path[PATH_MAX];

            bytes[i] = (uint8_t)(bytes[i] ^ change);
            if (members_from_bytes(bytes, n, &forged) == 0)
                for (size_t k = 0; k < forged.n; k++) {
                    assert_int_equal(members_path(&forged, k, path, sizeof(path)), 0);
                    assert_true(members_size(&forged, k) <= members_end(&forged));
                }
            bytes[i] = (uint8_t)(bytes[i] ^ change);
        }
    }
    for (size_t cut = 0; cut < n; cut++) {
        AUTO_MEMBERS struct members forged = {0};

        assert_int_equal(members_from_bytes(bytes, cut, &forged), -EBADMSG);
    }
}

UNIT_TEST(test_members__too_many_bytes__e2big)
{
    AUTO_MEMBERS struct members m = {0};
    uint32_t top;

    assert_int_equal(members_add_folder(&m, "", &top), 0);
    assert_int_equal(members_add(&m, top, "a", UINT64_MAX >> 1, no_version), 0);
    assert_int_equal(members_add(&m, top, "b", 1, no_version), -E2BIG);
    assert_int_equal(m.n, 1);
    assert_int_equal(members_end(&m), UINT64_MAX >> 1);
}
