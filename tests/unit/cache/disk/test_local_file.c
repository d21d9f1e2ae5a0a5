/* Files of this machine: what is opened, which version of a file it is, its bytes, locks between
 * open descriptions; and digests as text. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/sha256.h"
#include "support/temp_folder.h"
#include "support/unit.h"

UNIT_TEST_WITH(test_file_open__regular_files_only, temp_setup, temp_teardown)
{
    char path[PATH_MAX], link[PATH_MAX];
    struct stat st;
    int fd = -1;

    temp_path(*state, "f", path);
    assert_int_equal(file_open(path, &fd, &st), -ENOENT);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(file_open(path, &fd, &st), -EINVAL);
    assert_int_equal(file_open(*state, &fd, &st), -EINVAL);
    assert_int_equal(unlink(path), 0);
    temp_write(*state, "f", "hello", 5);
    temp_path(*state, "link", link);
    assert_int_equal(symlink("f", link), 0);
    assert_int_equal(file_open(link, &fd, &st), 0);
    assert_int_equal(st.st_size, 5);
    close(fd);
}

UNIT_TEST_WITH(test_file_read_whole__up_to_a_size, temp_setup, temp_teardown)
{
    static const struct {
        size_t len, most;
        int want;
    } cases[] = {{5, 5, 0}, {5, 4, -EFBIG}, {5, 6, 0}, {0, 0, 0}, {1, 0, -EFBIG}};
    char path[PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(text_release) struct text text = {0};

        temp_write(*state, "f", "hello", cases[i].len);
        temp_path(*state, "f", path);
        assert_int_equal(truncate(path, (off_t)cases[i].len), 0);
        assert_int_equal(file_read_whole(path, cases[i].most, &text, &st), cases[i].want);
        if (cases[i].want == 0) {
            assert_int_equal(text.len, cases[i].len);
            assert_memory_equal(text.data, "hello", cases[i].len);
            assert_int_equal(text.data[text.len], 0);
        }
    }
}

UNIT_TEST_WITH(test_file_bytes__read_and_written, temp_setup, temp_teardown)
{
    char path[PATH_MAX], buf[8] = "";
    AUTO_CLOSE int fd = -1;
    int in_memory;

    temp_write(*state, "f", "hello", 5);
    temp_path(*state, "f", path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(file_read_some(fd, buf, 8, 1), 4);
    assert_memory_equal(buf, "ello", 4);
    assert_int_equal(file_read_some(fd, buf, 8, 5), 0);
    assert_int_equal(file_read_some(-1, buf, 8, 5), -EBADF);
    assert_int_equal(file_pread(fd, buf, 5, 0), 0);
    assert_int_equal(file_pread(fd, buf, 5, 1), -ESTALE);
    assert_int_equal(file_pread(-1, buf, 5, 1), -EBADF);
    assert_int_equal(file_pwrite(fd, "HELLO", 5, 3), 0);
    assert_int_equal(file_pread(fd, buf, 8, 0), 0);
    assert_memory_equal(buf, "helHELLO", 8);
    assert_int_equal(file_pwrite(-1, "x", 1, 0), -EBADF);
    in_memory = file_memory(fd, BLOB_PEEK, 0, 1); /* not all file systems say */
    assert_true(in_memory == 1 || in_memory == -EOPNOTSUPP);
    assert_int_equal(file_memory(fd, BLOB_PEEK, 8, 1), in_memory == 1 ? 0 : in_memory);
    assert_int_equal(file_memory(fd, BLOB_LEAVE, 0, 8), 0);
    assert_true(file_memory(-1, BLOB_PEEK, 0, 1) < 0 && file_memory(-1, BLOB_LEAVE, 0, 1) < 0);
}

/* Every number of a version tells it from another; the time of the inode not of our own files. */
UNIT_TEST(test_file_version__each_number_counts)
{
    const struct stat st = {
        .st_dev = 1, .st_ino = 2, .st_size = 3, .st_mtim = {4, 5}, .st_ctim = {6, 7}};
    const struct file_version version = file_version_of(&st), own = file_version_of_own(&st);
    char text[FILE_VERSION_SIZE];
    AUTO_FREE char *copy = NULL;

    assert_true(file_version_is(&version, &st) && file_version_is(&own, &st));
    for (unsigned i = 0; i < 7; i++) {
        struct stat other = st;

        other.st_dev += i == 0;
        other.st_ino += i == 1;
        other.st_size += i == 2;
        other.st_mtim.tv_sec += i == 3;
        other.st_mtim.tv_nsec += i == 4;
        other.st_ctim.tv_sec += i == 5;
        other.st_ctim.tv_nsec += i == 6;
        assert_false(file_version_is(&version, &other));
        assert_int_equal(file_version_is(&own, &other), i >= 5);
    }
    file_version_print(&version, text);
    assert_string_equal(text, "local 1 2 3 4.000000005 6.000000007");
    assert_int_equal(file_version_text(&version, &copy), 0);
    assert_string_equal(copy, text);
}

/* Two open descriptions exclude one another, also within a process. */
UNIT_TEST_WITH(test_file_lock__between_descriptions, temp_setup, temp_teardown)
{
    AUTO_CLOSE int a = -1, b = -1;
    char path[PATH_MAX];

    temp_write(*state, "f", "", 0);
    temp_path(*state, "f", path);
    a = open(path, O_RDWR | O_CLOEXEC);
    b = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(file_lock(a, F_WRLCK, 10, 2, 0), 0);
    assert_int_equal(file_lock(b, F_WRLCK, 11, 1, 0), -EAGAIN);
    assert_int_equal(file_lock(b, F_RDLCK, 11, 1, 1), -ETIMEDOUT);
    assert_int_equal(file_lock(b, F_WRLCK, 12, 1, 0), 0);
    assert_true(file_has_lock(b, 0, 11) && !file_has_lock(b, 0, 10) && !file_has_lock(a, 0, 12));
    assert_true(file_has_lock(a, 12, 1) && !file_has_lock(a, 13, 100));
    assert_int_equal(file_lock(a, F_UNLCK, 11, 1, 0), 0);
    assert_int_equal(file_lock(b, F_RDLCK, 11, 1, 0), 0);
    assert_int_equal(file_lock(a, F_RDLCK, 11, 1, 0), 0);
    file_mark_used(a);
    assert_true(file_has_lock(b, FILE_LOCK_USE, 1) && !file_has_lock(a, FILE_LOCK_USE, 1));
    assert_true(file_has_lock(-1, 0, 1)); /* not known */
    assert_int_equal(file_lock(-1, F_RDLCK, 0, 1, 0), -EBADF);
    assert_int_equal(file_flock(a, 0), 0);
    assert_int_equal(file_flock(b, 0), -EAGAIN);
    assert_int_equal(file_flock(b, 1), -ETIMEDOUT);
    assert_string_equal(file_error(-ETIMEDOUT),
                        "another process, perhaps a stopped one, keeps it locked");
    assert_string_equal(file_error(-EPERM), strerror(EPERM));
}

UNIT_TEST(test_digest__as_text__and_back)
{
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const struct {
        const char *text;
        bool good;
        uint8_t byte;
    } cases[] = {{"00", true, 0},  {"ff", true, 255}, {"aF", true, 0xaf}, {"9A", true, 0x9a},
                 {"g0", false, 0}, {"0g", false, 0},  {"G0", false, 0},   {"/0", false, 0},
                 {":0", false, 0}, {"@0", false, 0},  {"`0", false, 0},   {"0", false, 0}};
    char text[DIGEST_TEXT_SIZE], other[DIGEST_TEXT_SIZE + 1] = "";
    uint8_t digest[DIGEST_BYTES], byte;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(hex_parse(cases[i].text, 1, &byte), cases[i].good);
        assert_true(!cases[i].good || byte == cases[i].byte);
    }
    assert_int_equal(digest_text_of("abc", 3, text), 0);
    assert_string_equal(text, abc);
    assert_true(hex_parse(abc, DIGEST_BYTES, digest));
    digest_text(digest, other);
    assert_string_equal(other, abc);
    assert_true(digest_is_text(abc) && !digest_is_text(abc + 1));
    memcpy(other, abc, sizeof(abc));
    other[63] = 'D';
    assert_false(digest_is_text(other));
    memcpy(other + 63, "00", 3);
    assert_false(digest_is_text(other));
}
