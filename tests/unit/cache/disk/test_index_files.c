/* The index store of a cache folder: a load returns what was saved, or nothing. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/disk/index_files.h"
#include "cache/disk/quota.h"
#include "support/temp_folder.h"
#include "support/unit.h"

static struct iovec piece_of(const char *text)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
}

static int save(const struct index_store *keep, const char *kind, const char *identity,
                const char *text)
{
    const struct iovec pieces[] = {piece_of(""), piece_of(text), piece_of("!")};
    struct kept_index kept = {0};
    struct diag d = DIAG_INIT;
    int r =
        index_store_save(keep, kind, identity, "/d/a.txt", pieces, ARRAY_LEN(pieces), &kept, &d);

    if (r == 0) {
        assert_int_equal(kept.size, strlen(text) + 1);
        assert_memory_equal(kept.bytes, text, strlen(text));
        assert_int_equal(kept.bytes[strlen(text)], '!');
    }
    assert_true(r == 0 || !kept.bytes);
    kept_index_release(&kept);
    return r;
}

/* want NULL: nothing is kept. */
static void check_load(const struct index_store *keep, const char *kind, const char *identity,
                       const char *want)
{
    struct kept_index kept = {0};
    int r = index_store_load(keep, kind, identity, &kept);

    assert_int_equal(r, want ? 0 : -ENOENT);
    if (want) {
        assert_int_equal(kept.size, strlen(want));
        assert_memory_equal(kept.bytes, want, strlen(want));
    }
    kept_index_release(&kept);
    assert_null(kept.bytes);
    kept_index_release(&kept);
}

/* The one file of a kind. */
static void only_file(const char *folder, const char *kind, char ret[static PATH_MAX])
{
    char pattern[PATH_MAX];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/%s/*", folder, kind);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(ret, PATH_MAX, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* Whatever happens to the file, loaded bytes are kept: nothing is mapped. */
UNIT_TEST_WITH(test_keep__changed_while_loaded__stays, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    char path[PATH_MAX];
    struct index_files keep;
    struct kept_index kept;

    index_files_init(&keep, &folder);
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
    only_file(*state, "rows", path);
    for (unsigned how = 0; how < 2; how++) {
        AUTO_CLOSE int fd = -1;

        assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
        assert_int_equal(index_store_load(&keep.keep, "rows", "a", &kept), 0);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(how ? pwrite(fd, "FIRST!", 6, 0) == 6 : ftruncate(fd, 0) == 0);
        assert_int_equal(kept.size, 6);
        assert_memory_equal(kept.bytes, "first!", 6);
        kept_index_release(&kept);
        index_store_remove(&keep.keep, "rows", "a");
    }
}

/* A folder in the place of the entry, or of the entry being made. */
UNIT_TEST_WITH(test_keep__folder_in_its_place__made_again, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    const struct iovec piece = piece_of("first");
    char path[PATH_MAX], part[PATH_MAX + 5], inside[PATH_MAX + 5];
    struct diag d = DIAG_INIT;
    struct index_files keep;
    struct kept_index kept = {0};

    index_files_init(&keep, &folder);
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
    only_file(*state, "rows", path);
    snprintf(part, sizeof(part), "%s.part", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(part, 0700), 0);
    check_load(&keep.keep, "rows", "a", NULL);
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
    check_load(&keep.keep, "rows", "a", "first!");
    assert_int_equal(unlink(path), 0);
    snprintf(inside, sizeof(inside), "%s/x", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_int_equal(index_store_save(&keep.keep, "rows", "a", "", &piece, 1, &kept, &d), -EISDIR);
    assert_diag_has(&d, "expected a file, got a folder that is not empty; remove it");
    assert_int_equal(access(inside, F_OK), 0);
}

UNIT_TEST_WITH(test_keep__saved_but_not_wanted__loaded, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    const struct iovec piece = piece_of("first");
    struct index_files keep;

    index_files_init(&keep, &folder);
    assert_int_equal(index_store_save(&keep.keep, "rows", "a", "", &piece, 1, NULL, NULL), 0);
    check_load(&keep.keep, "rows", "a", "first");
}

UNIT_TEST_WITH(test_keep__saved__loaded, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    char path[PATH_MAX];
    struct index_files keep;
    struct stat st;

    index_files_init(&keep, &folder);
    check_load(&keep.keep, "rows", "a", NULL);
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
    check_load(&keep.keep, "rows", "a", "first!");
    check_load(&keep.keep, "rows", "b", NULL);
    check_load(&keep.keep, "other", "a", NULL);
    only_file(*state, "rows", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(save(&keep.keep, "rows", "b", "second"), 0);
    assert_int_equal(save(&keep.keep, "other", "a", "third"), 0);
    check_load(&keep.keep, "rows", "a", "first!");
    check_load(&keep.keep, "rows", "b", "second!");
    check_load(&keep.keep, "other", "a", "third!");
}

/* Mapped bytes stay when their entry is removed. */
UNIT_TEST_WITH(test_keep__removed__mapped_bytes_stay, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    struct index_files keep;
    struct kept_index kept;

    index_files_init(&keep, &folder);
    index_store_remove(&keep.keep, "rows", "a");
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
    assert_int_equal(index_store_load(&keep.keep, "rows", "a", &kept), 0);
    index_store_remove(&keep.keep, "rows", "a");
    check_load(&keep.keep, "rows", "a", NULL);
    assert_int_equal(save(&keep.keep, "rows", "a", "again"), 0);
    check_load(&keep.keep, "rows", "a", "again!");
    assert_memory_equal(kept.bytes, "first!", 6);
    kept_index_release(&kept);
}

/* Each truncation of the file, each of its last 64 bytes changed, a link, a folder. A change of the
 * source's 8 bytes before those does no harm: only the checksum over all bytes finds it. */
UNIT_TEST_WITH(test_keep__damaged__nothing_and_made_again, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    char path[PATH_MAX], other[PATH_MAX], bytes[128];
    struct index_files keep;
    ssize_t size;
    int fd;

    index_files_init(&keep, &folder);
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
    only_file(*state, "rows", path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    size = read(fd, bytes, sizeof(bytes));
    assert_int_equal(size, 6 + 8 + 64);
    for (ssize_t i = 6 + 8; i < size; i++) {
        bytes[i] ^= 4;
        assert_int_equal(pwrite(fd, bytes, (size_t)size, 0), size);
        check_load(&keep.keep, "rows", "a", NULL);
        bytes[i] ^= 4;
    }
    assert_int_equal(pwrite(fd, bytes, (size_t)size, 0), size);
    check_load(&keep.keep, "rows", "a", "first!");
    for (ssize_t len = size - 1; len >= 0; len--) {
        assert_int_equal(ftruncate(fd, len), 0);
        check_load(&keep.keep, "rows", "a", NULL);
    }
    close(fd);
    assert_int_equal(save(&keep.keep, "rows", "a", "second"), 0);
    check_load(&keep.keep, "rows", "a", "second!");

    temp_path(*state, "elsewhere", other);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    check_load(&keep.keep, "rows", "a", NULL);
}

UNIT_TEST_WITH(test_keep__no_folder__error_with_reason, temp_setup, temp_teardown)
{
    const struct iovec piece = piece_of("x");
    char path[PATH_MAX];
    struct cache_folder folder = {.path = path};
    struct diag d = DIAG_INIT;
    struct index_files keep;
    struct kept_index kept = {0};

    temp_write(*state, "file", "x", 1);
    temp_path(*state, "file", path);
    index_files_init(&keep, &folder);
    assert_true(index_store_load(&keep.keep, "rows", "a", &kept) < 0);
    assert_true(index_store_save(&keep.keep, "rows", "a", "", &piece, 1, &kept, &d) < 0);
    assert_diag_has(&d, path);
    index_store_remove(&keep.keep, "rows", "a");
    assert_null(kept.bytes);
}

/* On a full disk, or at a limit, nothing is left. */
UNIT_TEST_WITH(test_keep__folder_read_only__error, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    struct index_files keep;
    char path[PATH_MAX];

    if (geteuid() == 0)
        skip(); /* root may write anywhere */
    index_files_init(&keep, &folder);
    temp_folder(*state, "rows");
    temp_path(*state, "rows", path);
    assert_int_equal(chmod(path, 0500), 0);
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), -EACCES);
    check_load(&keep.keep, "rows", "a", NULL);
    assert_int_equal(chmod(path, 0700), 0);
}

/* The folder's limit: reported with the numbers, and nothing is left. */
UNIT_TEST_WITH(test_keep__no_room__error_with_numbers, temp_setup, temp_teardown)
{
    struct cache_folder folder = {.path = *state};
    const struct iovec piece = piece_of("some more");
    struct diag d = DIAG_INIT, why = DIAG_INIT;
    struct index_files keep;
    struct kept_index kept = {0};
    uint64_t used;

    if (quota_open(&folder, 1 << 20, 0, NULL, &folder.quota, &why) < 0)
        fail_msg("%s", why.text);
    index_files_init(&keep, &folder);
    assert_int_equal(save(&keep.keep, "rows", "a", "first"), 0);
    used = quota_used(folder.quota);
    assert_int_equal(quota_take(folder.quota, (1 << 20) - used - 100), 0);
    assert_int_equal(index_store_save(&keep.keep, "rows", "b", "", &piece, 1, &kept, &d), -ENOSPC);
    assert_diag_has(&d, "bytes in the cache folder");
    assert_diag_has(&d, "of its limit of 1048576 in use");
    check_load(&keep.keep, "rows", "b", NULL);
    check_load(&keep.keep, "rows", "a", "first!");
    quota_give_back(folder.quota, (1 << 20) - used - 100);
    assert_int_equal(quota_used(folder.quota), used);
    assert_int_equal(save(&keep.keep, "rows", "b", "second"), 0);
    assert_int_equal(quota_used(folder.quota), used + 4096);
    quota_close(folder.quota);
}

/* The disk is full before the limit is: said with what is free, and nothing is left. */
UNIT_TEST_WITH(test_keep__disk_full__error_with_numbers, temp_setup, temp_teardown)
{
    AUTO_FREE char *large = malloc(300000);
    struct iovec piece = {.iov_base = large, .iov_len = 300000};
    struct diag d = DIAG_INIT;
    struct index_files keep;
    struct kept_index kept = {0};
    char path[PATH_MAX];
    const struct cache_folder folder = {.path = path};

    memset(large, 'x', 300000);
    if (!temp_mount(*state, "tiny", "128k", path))
        skip();
    index_files_init(&keep, &folder);
    assert_int_equal(index_store_save(&keep.keep, "rows", "a", "", &piece, 1, &kept, &d), -ENOSPC);
    assert_diag_has(&d, "No space left on the disk of ");
    assert_diag_has(&d, "/tiny/rows: expected at least 300064 bytes, got 0 free");
    assert_int_equal(save(&keep.keep, "rows", "a", "little"), 0);
    check_load(&keep.keep, "rows", "a", "little!");
    assert_int_equal(umount(path), 0);
}

/* ---- files that are made in place ---- */

UNIT_TEST_WITH(test_kept_file__made_once__whole_or_nothing, temp_setup, temp_teardown)
{
    struct cache_folder folder = {.path = *state};
    struct kept_file file, second, third;
    struct diag d = DIAG_INIT;
    struct index_files keep;
    char bytes[8] = "";
    uint64_t used;

    assert_int_equal(quota_open(&folder, 1 << 20, 0, NULL, &folder.quota, NULL), 0);
    index_files_init(&keep, &folder);
    used = quota_used(folder.quota);
    for (unsigned commits = 0; commits < 2; commits++) {
        assert_int_equal(index_store_open(&keep.keep, "rows", "a", &file), -ENOENT);
        assert_int_equal(index_store_begin(&keep.keep, "rows", "a", "", &file, NULL), 0);
        assert_non_null(file.making);
        assert_int_equal(index_store_begin(&keep.keep, "rows", "a", "", &second, NULL), -EAGAIN);
        assert_int_equal(kept_file_raise(&file, 9000, &d), 0);
        assert_int_equal(quota_used(folder.quota), used + 3 * 4096);
        assert_int_equal(pwrite(file.fd, "hello", 5, 0), 5);
        kept_file_written(&file, 5);
        assert_int_equal(kept_file_raise(&file, 2 << 20, &d), -ENOSPC);
        assert_diag_has(&d, "expected space for at least 2097216 bytes in the cache folder");
        if (commits)
            assert_int_equal(kept_file_commit(&file, &d), 0);
        else
            kept_file_release(&file);
    }
    assert_int_equal(pread(file.fd, bytes, 8, 0), 8); /* the trailer follows */
    assert_memory_equal(bytes, "helloepo", 8);
    assert_int_equal(quota_used(folder.quota), used + 4096);
    assert_int_equal(index_store_begin(&keep.keep, "rows", "a", "", &second, NULL), 0);
    assert_true(!second.making && second.size == 5);
    assert_int_equal(index_store_open(&keep.keep, "rows", "a", &third), 0);
    assert_true(!third.making && third.size == 5);
    kept_file_release(&third);
    kept_file_release(&second);
    kept_file_release(&file);
    check_load(&keep.keep, "rows", "a", "hello");
    quota_close(folder.quota);
}

/* Processes save the same index at once, while one of them may find it damaged and remove it. Each
 * has what one of them saved, and one file is left. */
UNIT_TEST_WITH(test_keep__many_processes__one_entry, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {.path = *state};
    char path[PATH_MAX];
    struct index_files keep;
    pid_t id[8];

    index_files_init(&keep, &folder);
    for (size_t i = 0; i < ARRAY_LEN(id); i++) {
        id[i] = fork();
        assert_true(id[i] >= 0);
        if (id[i] == 0) {
            const struct iovec piece = piece_of("the same");
            bool good = true;

            for (unsigned round = 0; round < 100 && good; round++) {
                struct kept_index kept = {0};
                int r = index_store_save(&keep.keep, "rows", "a", "", &piece, 1, &kept, NULL);

                good = r == 0 ? kept.size == 8 && !memcmp(kept.bytes, "the same", 8)
                              : r == -ENOENT; /* removed before it could be opened */
                kept_index_release(&kept);
                if (i == 0 && round % 8 == 0)
                    index_store_remove(&keep.keep, "rows", "a");
            }
            _exit(good ? 0 : 1);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(id); i++) {
        int status;

        assert_int_equal(waitpid(id[i], &status, 0), id[i]);
        assert_int_equal(status, 0);
    }
    check_load(&keep.keep, "rows", "a", "the same");
    only_file(*state, "rows", path);
}
