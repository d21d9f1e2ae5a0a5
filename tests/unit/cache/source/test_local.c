/* Local files as blobs: a file that has changed since it was opened gives -ESTALE. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/disk/folder.h"
#include "cache/disk/local_blob.h"
#include "cache/source/source.h"
#include "support/temp_folder.h"
#include "support/unit.h"

/* Read in place; nothing is kept. */
static int open_source(const char *spec, struct source **ret, struct diag *d)
{
    struct cache_folder cache = {.path = (char *)"/nowhere"};
    struct source_options options;

    source_options_init(&options, &cache);
    return source_open(spec, &options, ret, d);
}

static struct blob *open_blob(const char *folder, const char *name)
{
    AUTO_SOURCE struct source *source = NULL;
    struct cache_folder cache = {.path = (char *)folder};
    struct source_entry entry = {.folder = (char *)"", .name = (char *)name};
    struct blob *blob = NULL;

    assert_int_equal(open_source(folder, &source, NULL), 0);
    assert_int_equal(source_blob(source, &entry, &cache, &blob, NULL), 0);
    return blob;
}

static void check_read(const struct blob *blob, const char *want)
{
    char buf[64];

    assert_int_equal(blob->size, strlen(want));
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, strlen(want), 0), 0);
    assert_memory_equal(buf, want, strlen(want));
}

UNIT_TEST_WITH(test_local__untouched__bytes, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_BLOB struct blob *blob = NULL;
    char buf[4];

    temp_write(folder, "f", "hello", 5);
    blob = open_blob(folder, "f");
    assert_string_equal(blob_name(blob), "f");
    check_read(blob, "hello");
    assert_int_equal(blob_check(blob), 0);
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 1, 5), -EINVAL);
}

/* A file that differs now is not read. The clock of file times is coarse: a later time is set. */
UNIT_TEST_WITH(test_local__changed__estale, temp_setup, temp_teardown)
{
    enum { TRUNCATED, GROWN, REWRITTEN, UNLINKED, N_CHANGES };

    for (int change = 0; change < N_CHANGES; change++) {
        AUTO_BLOB struct blob *blob = NULL;
        char path[PATH_MAX], buf[5];

        temp_write(*state, "f", "hello", 5);
        blob = open_blob(*state, "f");
        temp_path(*state, "f", path);
        if (change == REWRITTEN)
            temp_write(*state, "f", "HELLO", 5);
        assert_int_equal(change == UNLINKED ? unlink(path)
                         : change == REWRITTEN
                             ? utimensat(AT_FDCWD, path, (struct timespec[]){{5, 0}, {5, 1}}, 0)
                             : truncate(path, change == GROWN ? 6 : 3),
                         0);
        if (change == TRUNCATED)
            assert_int_equal(blob_pread(READ_WAITS, blob, buf, 5, 0), -ESTALE);
        assert_int_equal(blob_check(blob), -ESTALE);
    }
}

UNIT_TEST_WITH(test_local__rewritten_in_the_same_second__estale, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX];

    temp_write(folder, "f", "hello", 5);
    temp_path(folder, "f", path);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){{5, 0}, {5, 1}}, 0), 0);
    blob = open_blob(folder, "f");
    assert_int_equal(blob_check(blob), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){{5, 0}, {5, 2}}, 0), 0);
    assert_int_equal(blob_check(blob), -ESTALE);
}

UNIT_TEST_WITH(test_local__replaced__estale, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX], other[PATH_MAX];
    struct stat st;

    temp_write(folder, "f", "hello", 5);
    blob = open_blob(folder, "f");
    temp_write(folder, "g", "HELLO", 5); /* of the same size and time */
    temp_path(folder, "f", path);
    temp_path(folder, "g", other);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(utimensat(AT_FDCWD, other, (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(blob_check(blob), -ESTALE);
    check_read(blob, "hello"); /* never the other's bytes */
}

UNIT_TEST_WITH(test_local__two_versions__two_identities, temp_setup, temp_teardown)
{
    const char *folder = *state;
    struct blob *blob;
    AUTO_FREE char *a = NULL, *b = NULL, *c = NULL;

    temp_write(folder, "f", "hello", 5);
    blob = open_blob(folder, "f");
    assert_int_equal(blob_identity(blob, &a), 0);
    blob_free(blob);
    blob = open_blob(folder, "f");
    assert_int_equal(blob_identity(blob, &b), 0);
    blob_free(blob);
    assert_string_equal(a, b);
    temp_write(folder, "f", "hello!", 6);
    blob = open_blob(folder, "f");
    assert_int_equal(blob_identity(blob, &c), 0);
    blob_free(blob);
    assert_string_not_equal(a, c);
    free(TAKE_PTR(b));
}

/* Write other bytes of the same number into the file, and set its time back, as `cp -p` may: until
 * the time of the last change of the inode is another, which the kernel counts in ticks. */
static void replace_unseen(const char *path, const char *bytes)
{
    struct stat before, after;

    assert_int_equal(stat(path, &before), 0);
    do {
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        assert_int_equal(pwrite(fd, bytes, strlen(bytes), 0), strlen(bytes));
        close(fd);
        assert_int_equal(
            utimensat(AT_FDCWD, path, (struct timespec[]){before.st_atim, before.st_mtim}, 0), 0);
        assert_int_equal(stat(path, &after), 0);
    } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    assert_int_equal(after.st_ino, before.st_ino);
}

UNIT_TEST_WITH(test_local__replaced_with_its_old_time__changed, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_FREE char *before = NULL, *after = NULL;
    AUTO_BLOB struct blob *blob = NULL, *anew = NULL;
    char path[PATH_MAX];

    temp_write(folder, "f", "hello", 5);
    temp_path(folder, "f", path);
    blob = open_blob(folder, "f");
    assert_int_equal(blob_check(blob), 0);
    assert_int_equal(blob_identity(blob, &before), 0);
    replace_unseen(path, "HELLO");
    assert_int_equal(blob_check(blob), -ESTALE);
    anew = open_blob(folder, "f");
    assert_int_equal(blob_check(anew), 0);
    assert_int_equal(blob_identity(anew, &after), 0);
    assert_string_not_equal(before, after);
}

UNIT_TEST_WITH(test_local_blob_new__shorter__the_rest_is_hidden, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX], buf[5];

    temp_write(folder, "f", "hello", 5);
    temp_path(folder, "f", path);
    assert_int_equal(local_blob_new(open(path, O_RDONLY), "f", 3, false, &blob), 0);
    check_read(blob, "hel");
    assert_int_equal(blob_pread(READ_WAITS, blob, buf, 4, 0), -EINVAL);
    assert_int_equal(blob_check(blob), 0);
}

/* On a disk: a file system in memory cannot say. */
UNIT_TEST_WITH(test_memory__a_file__says_what_is_in_it, temp_setup, temp_teardown)
{
    char folder[] = "/tmp/epochfs-test-XXXXXX";
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX];
    int r;

    assert_non_null(mkdtemp(folder));
    temp_write(folder, "f", "hello", 5);
    temp_path(folder, "f", path);
    blob = open_blob(folder, "f");
    check_read(blob, "hello");
    r = blob_memory(blob, BLOB_PEEK, 0, 1);
    if (r == -EOPNOTSUPP) {
        blob_scope_end(&blob);
        temp_remove(folder);
        skip();
    }
    assert_int_equal(r, 1);
    assert_int_equal(blob_memory(blob, BLOB_BRING, 0, 5), 0);
    assert_int_equal(blob_memory(blob, BLOB_LEAVE, 0, 5), 0);
    assert_in_range(blob_memory(blob, BLOB_PEEK, 0, 1), 0, 1);
    check_read(blob, "hello");
    assert_int_equal(truncate(path, 0), 0); /* hints about what is gone do no harm */
    assert_int_equal(blob_memory(blob, BLOB_BRING, 0, 5), 0);
    assert_int_equal(blob_memory(blob, BLOB_LEAVE, 0, 5), 0);
    assert_int_equal(blob_memory(blob, BLOB_PEEK, 0, 1), 0);
    assert_int_equal(blob_check(blob), -ESTALE);
    temp_remove(folder);
}

UNIT_TEST_WITH(test_open_file__whole_file_alone, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_BLOB struct blob *blob = NULL, *shorter = NULL;
    struct diag d = DIAG_INIT;
    char path[PATH_MAX], buf[5];
    int fd = -1;

    temp_write(folder, "f", "hello", 5);
    temp_path(folder, "f", path);
    blob = open_blob(folder, "f");
    assert_int_equal(local_blob_new(open(path, O_RDONLY), "f", 3, false, &shorter), 0);
    assert_int_equal(blob_open_file(blob, 0, 4, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(blob_open_file(blob, 1, 4, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(blob_open_file(blob, 1, UINT64_MAX, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(blob_open_file(shorter, 0, 3, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(fd, -1);
    assert_int_equal(blob_open_file(blob, 0, 5, &fd, NULL), 0);
    assert_int_equal(read(fd, buf, 5), 5);
    assert_memory_equal(buf, "hello", 5);
    close(fd);
    temp_write(folder, "f", "other", 6);
    assert_int_equal(blob_open_file(blob, 0, 5, &fd, &d), -ESTALE);
    assert_diag_has(&d, "f: the file was changed");
}

UNIT_TEST_WITH(test_source_list__tree__sorted_without_hidden, temp_setup, temp_teardown)
{
    static const struct {
        const char *folder, *name;
    } want[] = {{"", "b"}, {"", "c"}, {"a", "x"}, {"a-b", "z"}, {"a/deep", "y"}};
    const char *folder = *state;
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    char path[PATH_MAX];

    temp_folder(folder, "a");
    temp_folder(folder, "a/deep");
    temp_folder(folder, "a-b");
    temp_folder(folder, "nothing");
    temp_folder(folder, ".hidden");
    temp_write(folder, "c", "", 0);
    temp_write(folder, "b", "", 0);
    temp_write(folder, ".secret", "", 0);
    temp_write(folder, ".hidden/x", "", 0);
    temp_write(folder, "a/x", "", 0);
    temp_write(folder, "a/deep/y", "", 0);
    temp_write(folder, "a-b/z", "", 0);
    temp_path(folder, "a/deep/up", path);
    assert_int_equal(symlink("../..", path), 0); /* a cycle */
    temp_path(folder, "pipe", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_source(folder, &source, NULL), 0);
    assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
    assert_int_equal(list.n, ARRAY_LEN(want));
    for (size_t i = 0; i < list.n; i++) {
        assert_string_equal(list.entry[i].folder, want[i].folder);
        assert_string_equal(list.entry[i].name, want[i].name);
        assert_null(list.entry[i].error);
    }
}

static void add_link(const char *folder, const char *name, const char *target)
{
    char path[PATH_MAX];

    temp_path(folder, name, path);
    assert_int_equal(symlink(target, path), 0);
}

/* Check a listed name: its error, or "" if it can be read. */
static void check_listed(const struct source *source, const char *name, const char *error)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    struct source_entry *entry;

    assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
    entry = source_list_find(&list, name);
    if (!entry)
        fail_msg("%s is not listed", name);
    if (source_blob_packed(source, entry, &blob, &d) == 0)
        assert_string_equal(error, "");
    else if (!*error || !strstr(d.text, error))
        fail_msg("%s: expected '%s', got '%s'", name, error, d.text);
}

UNIT_TEST_WITH(test_source__links__stay_in_source, temp_setup, temp_teardown)
{
    static const char *const out[] = {"a/outside", "passwd", "up", "etc", "a/far"};
    const char *folder = *state;
    char inner[PATH_MAX], absolute[PATH_MAX];

    temp_folder(folder, "src");
    temp_folder(folder, "src/a");
    temp_write(folder, "src/a/x", "x", 1);
    temp_write(folder, "secret", "s", 1);
    temp_path(folder, "src", inner);
    temp_path(folder, "src/a/x", absolute);
    add_link(inner, "relative", "a/x");
    add_link(inner, "absolute", absolute);
    add_link(inner, "folder", "a");
    add_link(inner, "passwd", "/etc/passwd");
    add_link(inner, "etc", "/etc");
    add_link(inner, "up", "..");
    add_link(inner, "a/outside", "../../secret");
    add_link(inner, "a/far", "../a/../../secret");
    add_link(folder, "spelled", "src");
    for (unsigned k = 0; k < 3; k++) {
        AUTO_SOURCE struct source *source = NULL;
        AUTO_SOURCE_LIST struct source_list list = {0};
        char spelled[PATH_MAX];

        temp_path(folder, k == 1 ? "spelled" : "src", spelled);
        assert_int_equal(open_source(spelled, &source, NULL), 0);
        source->within.allow_outside = k == 2;
        for (size_t i = 0; i < ARRAY_LEN(out) && k < 2; i++)
            check_listed(source, out[i], "-o allow_outside");
        check_listed(source, "relative", "");
        check_listed(source, "absolute", "");
        check_listed(source, "folder/x", "");
        check_listed(source, "a/x", "");
        assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
        if (k < 2)
            assert_int_equal(list.n, 11); /* and folder/outside, folder/far */
        else
            check_listed(source, "passwd", "");
    }
}

/* A link replaces a file, or a folder, between the listing and the open. */
UNIT_TEST_WITH(test_source__link_after_the_look__stays_in_source, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    char path[PATH_MAX], other[PATH_MAX], inner[PATH_MAX];

    temp_folder(folder, "out");
    temp_write(folder, "out/x", "s", 1);
    temp_folder(folder, "src");
    temp_folder(folder, "src/a");
    temp_write(folder, "src/a/x", "x", 1);
    temp_write(folder, "src/y", "y", 1);
    temp_path(folder, "src", inner);
    assert_int_equal(open_source(inner, &source, NULL), 0);
    assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
    assert_int_equal(list.n, 2);
    temp_path(folder, "src/a", path);
    temp_path(folder, "src/gone", other);
    assert_int_equal(rename(path, other), 0);
    add_link(inner, "a", "../out");
    temp_path(folder, "src/y", path);
    assert_int_equal(unlink(path), 0);
    add_link(inner, "y", "../out/x");
    for (size_t i = 0; i < list.n; i++) {
        AUTO_BLOB struct blob *blob = NULL;
        struct diag d = DIAG_INIT;

        assert_int_equal(source_blob_packed(source, &list.entry[i], &blob, &d), -EXDEV);
        assert_diag_has(&d, "lies outside of SOURCE");
    }
}

UNIT_TEST_WITH(test_source_list__too_deep__named, temp_setup, temp_teardown)
{
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    char path[2 * 150 + 1] = "";

    for (unsigned i = 0; i < 150; i++) {
        memcpy(path + (i ? 2 * i - 1 : 0), "/d" + !i, 3 - !i);
        temp_folder(*state, path);
    }
    temp_write(*state, "d/x", "x", 1);
    assert_int_equal(open_source(*state, &source, NULL), 0);
    assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
    assert_int_equal(list.n, 2);
    assert_non_null(strstr(list.entry[1].error, "/d/d: expected at most 100 folders"));
}

UNIT_TEST_WITH(test_source_list__annex_link__says_what_to_do, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    char path[PATH_MAX];

    temp_path(folder, "t.gz", path);
    assert_int_equal(symlink(".git/annex/objects/Xq/SHA256E-s9.gz", path), 0);
    temp_path(folder, "u", path);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(open_source(folder, &source, NULL), 0);
    assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
    assert_int_equal(list.n, 2);
    assert_non_null(strstr(list.entry[0].error, "git annex get"));
    assert_non_null(strstr(list.entry[1].error, "nowhere"));
}

UNIT_TEST_WITH(test_source_open__one_file__its_folder_and_name, temp_setup, temp_teardown)
{
    const char *folder = *state;
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    char path[PATH_MAX], url[PATH_MAX + 8];

    temp_write(folder, "f", "x", 1);
    temp_write(folder, "g", "x", 1);
    temp_path(folder, "f", path);
    snprintf(url, sizeof(url), "file://%s", path);
    assert_int_equal(open_source(url, &source, NULL), 0);
    assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.entry[0].name, "f");
}

UNIT_TEST_WITH(test_source_open__nothing_there__message, temp_setup, temp_teardown)
{
    struct source *source = NULL;
    struct diag d = DIAG_INIT, e = DIAG_INIT;

    assert_int_equal(open_source("/no/such/path", &source, &d), -ENOENT);
    assert_diag_has(&d, "/no/such/path");
    assert_int_equal(open_source("gopher://x", &source, &e), -EPROTONOSUPPORT);
    assert_diag_has(&e, "gopher://x");
}
