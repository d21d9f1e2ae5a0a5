/* The directory of an archive in memory: numbers of 64 bits, and that no damage gives members
 * outside of it. */
#include "format/zip/archive/zip.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/scope.h"

#define NAME "x.npy"

/* Two stored members of 3 and 4 bytes. */
static size_t make(uint8_t bytes[static 512])
{
    static const char *const contents[] = {"abc", "defg"};
    size_t at = 0, offset[2], directory;

    memset(bytes, 0, 512);
    for (int i = 0; i < 2; i++) {
        offset[i] = at;
        store_le32(bytes + at, UINT32_C(0x04034b50));
        store_le16(bytes + at + 26, 5);
        store_le16(bytes + at + 28, 7); /* an extra field, which says nothing */
        memcpy(bytes + at + 30, NAME, 5);
        bytes[at + 30] = (uint8_t)('x' + i);
        memcpy(bytes + at + 42, contents[i], strlen(contents[i]));
        at += 42 + strlen(contents[i]);
    }
    directory = at;
    for (int i = 0; i < 2; i++, at += 51) {
        store_le32(bytes + at, UINT32_C(0x02014b50));
        store_le32(bytes + at + 20, (uint32_t)strlen(contents[i]));
        store_le32(bytes + at + 24, (uint32_t)strlen(contents[i]));
        store_le16(bytes + at + 28, 5);
        store_le32(bytes + at + 42, (uint32_t)offset[i]);
        memcpy(bytes + at + 46, NAME, 5);
        bytes[at + 46] = (uint8_t)('x' + i);
    }
    store_le32(bytes + at, UINT32_C(0x06054b50));
    store_le16(bytes + at + 8, 2);
    store_le16(bytes + at + 10, 2);
    store_le32(bytes + at + 12, 102);
    store_le32(bytes + at + 16, (uint32_t)directory);
    return at + 22;
}

/* Read the directory, and find all members: to member[2]. */
static int open_zip(const uint8_t *bytes, size_t len, uint64_t fail_read, struct zip *ret,
                    struct zip_member *member, struct diag *d)
{
    struct blob_faults faults = {.fail_read = fail_read};
    AUTO_BLOB struct blob *blob = memory_blob_new("a.npz", bytes, len, len, &faults);
    int r = zip_read(blob, false, ret, d);

    for (size_t i = 0; r == 0 && i < ret->n; i++) {
        member[i] = zip_member(ret, i);
        r = zip_locate(READ_WAITS, blob, &member[i], d);
    }
    return r;
}

static void test_zip__members(void **state)
{
    AUTO_ZIP struct zip zip = {0};
    struct zip_member member[2];
    uint8_t bytes[512];
    size_t len = make(bytes);

    (void)state;
    assert_int_equal(open_zip(bytes, len, 0, &zip, member, NULL), 0);
    assert_int_equal(zip.n, 2);
    assert_int_equal(member[1].at, 45 + 42);
    assert_int_equal(member[1].size, 4);
    assert_memory_equal(member[1].name, "y.npy", 5);
}

static void test_zip__a_byte_differs__members_inside(void **state)
{
    uint8_t bytes[512];
    size_t len = make(bytes);

    (void)state;
    for (size_t i = 0; i < len; i++) {
        for (unsigned flip = 1; flip < 256; flip <<= 1) {
            AUTO_ZIP struct zip zip = {0};
            struct zip_member member[2];
            struct diag d = DIAG_INIT;

            bytes[i] ^= (uint8_t)flip;
            if (open_zip(bytes, len, 0, &zip, member, &d) < 0)
                assert_diag_has(&d, "a.npz: ");
            else
                for (size_t k = 0; k < zip.n; k++)
                    assert_true(member[k].at + member[k].packed_size <= zip.directory);
            bytes[i] ^= (uint8_t)flip;
        }
    }
}

static void test_zip__cut_short__ebadmsg(void **state)
{
    uint8_t bytes[512];
    size_t len = make(bytes);

    (void)state;
    for (size_t n = 0; n < len; n++) {
        AUTO_ZIP struct zip zip = {0};
        struct zip_member member[2];

        assert_int_equal(open_zip(bytes, n, 0, &zip, member, NULL), -EBADMSG);
    }
}

static void test_zip__each_read_fails__reported(void **state)
{
    uint8_t bytes[512];
    size_t len = make(bytes);
    uint64_t n = 1;

    (void)state;
    for (int r = -EIO; r < 0; n++) {
        AUTO_ZIP struct zip zip = {0};
        struct zip_member member[2];

        r = open_zip(bytes, len, n, &zip, member, NULL);
        assert_true(r == 0 || r == -EIO);
        assert_true(n < 100);
    }
    assert_int_equal(n, 7); /* the end, a locator, the directory, two headers */
}

static void test_zip_content__first_bytes(void **state)
{
    uint8_t bytes[512], head[8] = {0};
    size_t len = make(bytes);
    AUTO_BLOB struct blob *blob = memory_blob_new("a.npz", bytes, len, len, NULL);
    AUTO_ZIP struct zip zip = {0};
    struct zip_member member;

    (void)state;
    assert_int_equal(zip_read(blob, false, &zip, NULL), 0);
    member = zip_member(&zip, 1);
    assert_int_equal(zip_content(READ_WAITS, blob, &member, head, 4, NULL), 0);
    assert_memory_equal(head, "defg", 4);
    memset(head, 0, sizeof(head));
    assert_int_equal(zip_content(READ_WAITS, blob, &member, head, 2, NULL), 0);
    assert_memory_equal(head, "de\0\0", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zip__members),
        cmocka_unit_test(test_zip__a_byte_differs__members_inside),
        cmocka_unit_test(test_zip__cut_short__ebadmsg),
        cmocka_unit_test(test_zip__each_read_fails__reported),
        cmocka_unit_test(test_zip_content__first_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
