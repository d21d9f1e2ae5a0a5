/* One line about a default cache folder on a file system of the network, or with a quota. */
#include <errno.h>

#include "cache/disk/folder_disk.h"
#include "support/unit.h"

/* What the system says. */
static uint64_t type, quota;
static int type_error, quota_error;

static int says_type(const char *path, uint64_t *ret_type)
{
    assert_string_equal(path, "/home/ann/.cache/epochfs");
    *ret_type = type;
    return type_error;
}

static int says_quota(const char *path, uint64_t *ret_bytes)
{
    assert_string_equal(path, "/home/ann/.cache/epochfs");
    *ret_bytes = quota;
    return quota_error;
}

static const struct disk_probe probe = {says_type, says_quota};

static void check(bool is_default, const char *want)
{
    const struct cache_folder folder = {.path = (char *)"/home/ann/.cache/epochfs",
                                        .is_default = is_default};
    char found[FOLDER_DISK_SIZE] = "";

    assert_int_equal(folder_disk_warning(&folder, &probe, found, sizeof(found)), *want != '\0');
    if (!strstr(found, want) || (*want && !strstr(found, "-o cache_dir=DIR")) ||
        strchr(found, '\n'))
        fail_msg("expected \"%s\", got \"%s\"", want, found);
}

static void says(uint64_t new_type, int new_type_error, uint64_t new_quota, int new_quota_error)
{
    type = new_type;
    type_error = new_type_error;
    quota = new_quota;
    quota_error = new_quota_error;
}

UNIT_TEST(test_folder_disk__file_system__named)
{
    says(0xef53, 0, 0, 0); /* ext4 */
    check(true, "");
    says(0x6969, 0, 0, 0);
    check(true, "/home/ann/.cache/epochfs: is on NFS, not on a disk of this machine");
    says(0x0bd00bd0, 0, 0, 0);
    check(true, "is on Lustre");
    says(0xff534d42, 0, 0, 0);
    check(true, "is on SMB");
    says(0x6969, 0, 5000, 0); /* one line */
    check(true, "is on NFS");
}

UNIT_TEST(test_folder_disk__quota__with_its_size)
{
    says(0xef53, 0, UINT64_C(20) << 30, 0);
    check(true, "has a quota of 20 GiB there");
    says(0xef53, 0, UINT64_C(1500) << 20, 0);
    check(true, "has a quota of 1500 MiB there");
    says(0xef53, 0, UINT64_C(10) << 30, 0);
    check(true, "has a quota of 10 GiB there");
    says(0xef53, 0, (UINT64_C(10) << 30) - 1, 0);
    check(true, "has a quota of 10239 MiB there");
    says(0, -ENOSYS, UINT64_C(20) << 30, 0);
    check(true, "has a quota of 20 GiB there");
}

UNIT_TEST(test_folder_disk__not_known_or_named__no_warning)
{
    says(0x6969, -EACCES, 1, -ENOSYS);
    check(true, "");
    says(0x6969, 0, UINT64_C(20) << 30, 0);
    check(false, "");
}

UNIT_TEST(test_folder_disk__system__answers)
{
    uint64_t found;

    assert_int_equal(disk_probe_system.type("/proc", &found), 0);
    assert_int_equal(found, 0x9fa0);
    assert_int_equal(disk_probe_system.type("/proc/self/none", &found), -ENOENT);
    assert_int_equal(disk_probe_system.quota("/proc", &found), 0);
    assert_int_equal(found, 0);
    assert_int_equal(disk_probe_system.quota("/proc/self/none", &found), -ENOENT);
}
