#include "base/blob.h"
#include "base/read_context.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#include <errno.h>

UNIT_TEST(test_blob_pread__inside__bytes)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("m", "0123456789", 10, 12, NULL);
    char buf[8] = "";

    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 4, 3), 0);
    assert_memory_equal(buf, "3456", 4);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 4, 8), 0);
    assert_memory_equal(buf, "89\0\0", 4);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 0, 12), 0);
}

UNIT_TEST(test_blob_pread__outside__einval)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("m", "0123456789", 10, 10, NULL);
    char buf[16];

    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 1, 10), -EINVAL);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 11, 0), -EINVAL);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 2, 9), -EINVAL);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 0, 11), -EINVAL);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 2, UINT64_MAX), -EINVAL);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, SIZE_MAX, 5), -EINVAL);
}

UNIT_TEST(test_memory_blob__faults__as_asked)
{
    struct blob_faults faults = {.fail_read = 2};
    AUTO_BLOB struct blob *blob = memory_blob_new("m", "01", 2, 2, &faults);
    char c;

    assert_int_equal(blob_pread(READ_WAITS, blob, &c, 1, 0), 0);
    assert_int_equal(blob_pread(READ_WAITS, blob, &c, 1, 0), -EIO);
    assert_int_equal(blob_pread(READ_WAITS, blob, &c, 1, 1), 0);
    assert_int_equal(blob_check(blob), 0);
    faults.stale = true;
    assert_int_equal(blob_check(blob), -ESTALE);
}

UNIT_TEST(test_blob_read__faults__the_reason_names_file_and_place)
{
    struct blob_faults faults = {.fail_read = 2};
    AUTO_BLOB struct blob *blob = memory_blob_new("a file", "01", 2, 2, &faults);
    struct diag d = DIAG_INIT, changed = DIAG_INIT;
    char c;

    assert_int_equal(blob_read(READ_WAITS, blob, &c, 1, 1, &d), 0);
    assert_int_equal(blob_verify(blob, &d), 0);
    assert_false(d.set);
    assert_int_equal(blob_read(READ_WAITS, blob, &c, 1, 1, &d), -EIO);
    assert_string_equal(d.text, "a file: 1 bytes at 1: Input/output error");
    faults.stale = true;
    assert_int_equal(blob_verify(blob, &changed), -ESTALE);
    assert_string_equal(changed.text, "a file: the file was changed, replaced or removed while "
                                      "mounted; mount again to read it as it is now");
}

UNIT_TEST(test_blob_used__checked_late__once_for_all)
{
    struct blob_faults faults = {0};
    AUTO_BLOB struct blob *blob = memory_blob_new("a file", "01", 2, 2, &faults);
    AUTO_BLOB struct blob *good = memory_blob_new("another", "01", 2, 2, NULL);
    struct diag d = DIAG_INIT, late = DIAG_INIT;
    AUTO(read_context_release) struct read_context rc;

    read_context_init(&rc, false);
    faults.stale = true;
    assert_int_equal(blob_used(READ_WAITS, blob, &d), -ESTALE);
    assert_int_equal(blob_verify_used(READ_WAITS, &d), 0);
    assert_int_equal(blob_used(&rc, blob, &d), -ESTALE);
    rc.checks_late = true;
    assert_int_equal(blob_used(&rc, good, &d), 0);
    assert_int_equal(blob_verify_used(&rc, &d), 0);
    for (unsigned i = 0; i < 2 * USED_MAX; i++)
        assert_int_equal(blob_used(&rc, blob, &d), 0);
    assert_int_equal(blob_verify_used(&rc, &late), -ESTALE);
    assert_string_equal(late.text, "a file: the file was changed, replaced or removed while "
                                   "mounted; mount again to read it as it is now");
    rc.checks_late = false; /* what is noted stays so */
    assert_int_equal(blob_used(&rc, good, &d), 0);
    assert_int_equal(blob_verify_used(&rc, &d), -ESTALE);
}

UNIT_TEST(test_blob_used__too_many__checked_at_once)
{
    struct blob *good[USED_MAX];
    struct blob_faults faults = {.stale = true};
    AUTO_BLOB struct blob *blob = memory_blob_new("a file", "01", 2, 2, &faults);
    struct diag d = DIAG_INIT;
    AUTO(read_context_release) struct read_context rc;

    read_context_init(&rc, false);
    rc.checks_late = true;
    for (unsigned i = 0; i < USED_MAX; i++) {
        good[i] = memory_blob_new("one of many", "01", 2, 2, NULL);
        assert_int_equal(blob_used(&rc, good[i], &d), 0);
    }
    assert_int_equal(blob_used(&rc, blob, &d), -ESTALE);
    assert_int_equal(blob_verify_used(&rc, &d), 0);
    for (unsigned i = 0; i < USED_MAX; i++)
        blob_free(good[i]);
}

UNIT_TEST(test_blob_free__null__nothing)
{
    blob_free(NULL);
}
