/* The cache folder: which folders become one, and which stay untouched. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/folder.h"
#include "support/temp_folder.h"
#include "support/unit.h"

static const char marker[] = "epochfs cache folder, version 2\n";

/* A test's DIR, and its subfolder "rows". */
struct place {
    char path[PATH_MAX], sub[PATH_MAX];
    struct cache_folder cache;
    struct diag d;
};

static void place_init(struct place *ret, const char *folder)
{
    memset(ret, 0, sizeof(*ret));
    temp_path(folder, "cache", ret->path);
    ret->cache.path = ret->path;
}

static int use(struct place *p)
{
    p->d = DIAG_INIT;
    return cache_folder_sub(&p->cache, "rows", p->sub, sizeof(p->sub), &p->d);
}

static unsigned count_things(const char *path)
{
    DIR *dir = opendir(path);
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void check_marker(const char *folder)
{
    char path[PATH_MAX], found[100];
    AUTO_CLOSE int fd = -1;

    temp_path(folder, "cache/EPOCHFS", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, found, sizeof(found)), sizeof(marker) - 1);
    assert_memory_equal(found, marker, sizeof(marker) - 1);
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

UNIT_TEST_WITH(test_folder__new__marked_and_private, temp_setup, temp_teardown)
{
    struct place p;

    place_init(&p, *state);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(use(&p), 0);
        check_marker(*state);
        assert_int_equal(count_things(p.path), 2); /* the marker, and rows */
        assert_int_equal(mode_of(p.path), 0700);
        assert_int_equal(mode_of(p.sub), 0700);
    }
    assert_int_equal(cache_folder_sub(&p.cache, "", p.sub, sizeof(p.sub), NULL), 0);
    assert_string_equal(p.sub, p.path);
}

UNIT_TEST_WITH(test_folder__empty__becomes_one, temp_setup, temp_teardown)
{
    struct place p;

    place_init(&p, *state);
    temp_folder(*state, "cache");
    temp_folder(*state, "cache/lost+found");
    assert_int_equal(chmod(p.path, 0755), 0);
    assert_int_equal(use(&p), 0);
    check_marker(*state);
    assert_int_equal(mode_of(p.path), 0700);
}

/* Root uses no folder that another user can write to; other users use any folder that they name. */
UNIT_TEST_WITH(test_folder__of_another_user__root_refuses, temp_setup, temp_teardown)
{
    struct diag d = DIAG_INIT;
    struct place p;

    place_init(&p, *state);
    if (geteuid() != 0)
        skip();
    assert_int_equal(use(&p), 0);
    assert_int_equal(chown(p.path, 12345, 12345), 0);
    assert_int_equal(cache_folder_sub(&p.cache, "rows", p.sub, sizeof(p.sub), &d), -EPERM);
    assert_diag_has(&d, "expected a folder of user 0, got one of user 12345");
    assert_int_equal(chown(p.path, 0, 0), 0);
    assert_int_equal(use(&p), 0);
}

/* Each path in the folder must fit. */
UNIT_TEST_WITH(test_folder__path_of_any_length__fits_or_refused, temp_setup, temp_teardown)
{
    struct place p;
    size_t len;

    place_init(&p, *state);
    temp_folder(*state, "cache");
    for (len = strlen(p.path); len < PATH_MAX - CACHE_NAME_MAX - 1; len++)
        p.path[len] = '/';
    assert_int_equal(use(&p), 0);
    p.path[len] = '/';
    assert_int_equal(use(&p), -ENAMETOOLONG);
    assert_diag_has(&p.d, "...: expected a path of less than 4000 bytes, got 4000; choose");
}

UNIT_TEST_WITH(test_folder__sticky__mode_stays, temp_setup, temp_teardown)
{
    struct place p;

    place_init(&p, *state);
    temp_folder(*state, "cache");
    assert_int_equal(chmod(p.path, 01777), 0);
    assert_int_equal(use(&p), 0);
    assert_int_equal(mode_of(p.path), 01777);
}

/* Neither the rest of a marker that a killed process left, nor files that others add later, hinder
 * the use. */
UNIT_TEST_WITH(test_folder__half_made_or_marked__used, temp_setup, temp_teardown)
{
    struct place p;

    place_init(&p, *state);
    temp_folder(*state, "cache");
    temp_write(*state, "cache/EPOCHFS.a1B2c3", "epo", 3);
    assert_int_equal(use(&p), 0);
    check_marker(*state);
    temp_write(*state, "cache/notes", "x", 1);
    assert_int_equal(use(&p), 0);
}

static void check_refused(void *const *state, const char *name, const char *bytes,
                          const char *message)
{
    struct place p;
    char path[PATH_MAX];
    unsigned before;

    place_init(&p, *state);
    temp_folder(*state, "cache");
    assert_int_equal(chmod(p.path, 0755), 0);
    snprintf(path, sizeof(path), "cache/%s", name);
    if (bytes)
        temp_write(*state, path, bytes, strlen(bytes));
    else
        temp_folder(*state, path);
    before = count_things(p.path);
    assert_int_equal(use(&p), -EPROTO);
    assert_diag_has(&p.d, p.path);
    assert_diag_has(&p.d, message);
    assert_diag_has(&p.d, "/cache/epochfs with -o cache_dir=");
    assert_int_equal(count_things(p.path), before);
    assert_int_equal(mode_of(p.path), 0755);
    temp_remove(p.path);
}

UNIT_TEST_WITH(test_folder__not_ours__refused_untouched, temp_setup, temp_teardown)
{
    check_refused(state, "thesis.tex", "x",
                  "expected an empty folder or a cache folder of epochfs, got thesis.tex in it");
    check_refused(state, "unpacked", NULL, "got unpacked in it"); /* version 1 */
    check_refused(state, "EPOCHFS", "epochfs cache folder, version 3\n",
                  "expected version 2, got version 3;");
    check_refused(state, "EPOCHFS", "epochfs cache folder, version 2", "got version 2;");
    check_refused(state, "EPOCHFS", "epochfs cache folder, version 2\nx",
                  "expected 32 bytes in its file EPOCHFS, got more");
    check_refused(
        state, "EPOCHFS",
        "epochfs cache folder, version 2\nand many more bytes than a marker has, of which "
        "none is read",
        "got more");
    check_refused(state, "EPOCHFS", "hello", "got another file EPOCHFS");
    check_refused(state, "EPOCHFS", "", "got another file EPOCHFS");
    check_refused(state, "EPOCHFS", NULL, "got another file EPOCHFS");
}

/* A marker that is a link is not ours, wherever it leads. */
UNIT_TEST_WITH(test_folder__marker_is_a_link__refused, temp_setup, temp_teardown)
{
    char path[PATH_MAX];
    struct place p;

    place_init(&p, *state);
    assert_int_equal(use(&p), 0);
    temp_write(*state, "marker", marker, sizeof(marker) - 1);
    temp_path(*state, "cache/EPOCHFS", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("../marker", path), 0);
    assert_int_equal(use(&p), -EPROTO);
    assert_diag_has(&p.d, "got another file EPOCHFS");
}

UNIT_TEST_WITH(test_folder__copied__the_same_folder, temp_setup, temp_teardown)
{
    const struct cache_folder folder = {
        .path = *state, .is_default = true, .group = {true, 7}, .quota = (struct quota *)state};
    struct cache_folder copy;

    assert_int_equal(cache_folder_copy(&folder, &copy), 0);
    assert_string_equal(copy.path, *state);
    assert_ptr_not_equal(copy.path, *state);
    assert_true(copy.is_default && copy.group.is_shared && copy.group.gid == 7);
    assert_ptr_equal(copy.quota, folder.quota);
    cache_folder_release(&copy);
    assert_null(copy.path);
}

/* What others could have put there, or could change. */
UNIT_TEST_WITH(test_folder__below_it_no_folder_of_ours__refused, temp_setup, temp_teardown)
{
    static const struct {
        unsigned mode;
        int want;
    } cases[] = {{0700, 0}, {0775, 0}, {0777, -EPERM}, {01777, 0}, {0702, -EPERM}};
    struct place p;

    place_init(&p, *state);
    assert_int_equal(use(&p), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(chmod(p.sub, cases[i].mode), 0);
        assert_int_equal(use(&p), cases[i].want);
        if (cases[i].want)
            assert_diag_has(&p.d,
                            "/rows: expected a folder that others cannot write to, got mode 0");
    }
    assert_int_equal(rmdir(p.sub), 0);
    assert_int_equal(symlink(*state, p.sub), 0);
    assert_int_equal(use(&p), -EPERM);
    assert_diag_has(&p.d, "/rows: expected a folder, got a link; remove it");
    assert_int_equal(unlink(p.sub), 0);
    temp_write(*state, "cache/rows", "x", 1);
    assert_int_equal(use(&p), -ENOTDIR);
    assert_diag_has(&p.d, "/rows: Not a directory; choose another with -o cache_dir=DIR");
    if (geteuid() == 0) { /* root trusts no one else */
        assert_int_equal(unlink(p.sub), 0);
        assert_int_equal(use(&p), 0);
        assert_int_equal(chown(p.sub, 12345, 12345), 0);
        assert_int_equal(use(&p), -EPERM);
        assert_diag_has(&p.d, "/rows: expected a folder of user 0, got one of user 12345");
    }
}

UNIT_TEST_WITH(test_folder__tilde__not_expanded, temp_setup, temp_teardown)
{
    static const char *const paths[] = {"~", "~/cache"};

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        const struct cache_folder cache = {.path = (char *)(uintptr_t)paths[i]};
        struct diag d = DIAG_INIT;
        char path[PATH_MAX];

        assert_int_equal(cache_folder_sub(&cache, "rows", path, sizeof(path), &d), -EINVAL);
        assert_diag_has(&d, "~ is not expanded here");
    }
}

/* Processes that start together, repeatedly: all get the folder. */
UNIT_TEST_WITH(test_folder__many_processes__one_marker, temp_setup, temp_teardown)
{
    for (unsigned round = 0; round < 50; round++) {
        struct place p;
        pid_t id[6];
        int gate[2], status;
        char byte;

        place_init(&p, *state);
        assert_int_equal(pipe(gate), 0);
        for (size_t i = 0; i < ARRAY_LEN(id); i++) {
            id[i] = fork();
            if (id[i] == 0) {
                close(gate[1]);
                _exit(read(gate[0], &byte, 1) == 0 && use(&p) == 0 ? 0 : 1);
            }
        }
        close(gate[0]);
        close(gate[1]); /* go */
        for (size_t i = 0; i < ARRAY_LEN(id); i++) {
            assert_int_equal(waitpid(id[i], &status, 0), id[i]);
            assert_int_equal(status, 0);
        }
        check_marker(*state);
        assert_int_equal(count_things(p.path), 2);
        temp_remove(p.path);
    }
}
