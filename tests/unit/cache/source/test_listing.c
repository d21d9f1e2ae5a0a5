/* Listings of local folders: complete, sorted, kept as long as no folder has changed. */
#include "cache/source/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/source/kept_list.h"
#include "cache/source/source.h"
#include "support/temp_folder.h"
#include "support/unit.h"

/* A time at which all folders of a test are old. */
#define LATER INT64_MAX

struct world {
    char data[PATH_MAX], cache[PATH_MAX];
    struct source *source;
};

static void open_world(struct world *w, const char *folder)
{
    struct cache_folder cache = {.path = w->cache};
    struct source_options options;

    temp_path(folder, "data", w->data);
    temp_path(folder, "cache", w->cache);
    if (access(w->data, F_OK) < 0) {
        temp_folder(folder, "data");
        temp_folder(folder, "cache");
        temp_folder(w->data, "sub");
    }
    source_options_init(&options, &cache);
    assert_int_equal(source_open(w->data, &options, &w->source, NULL), 0);
}

static void close_world(struct world *w)
{
    source_free(w->source);
}
#define AUTO_WORLD AUTO(close_world)

/* n files "sub/00000", ... of one byte. */
static void make_files(const struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[32];

        snprintf(name, sizeof(name), "sub/%05u", i);
        temp_write(w->data, name, "x", 1);
    }
}

static void list(const struct world *w, int64_t now, struct known *ret)
{
    struct known *found;

    assert_int_equal(source_listing(w->source, now, ret, &found, NULL), 0);
    assert_ptr_equal(found, ret);
}

/* The path of the one kept listing; false: there is none. */
static bool find_kept(const struct world *w, char ret[static PATH_MAX])
{
    char folder[PATH_MAX];
    const struct dirent *entry;
    bool found = false;
    DIR *dir;

    temp_path(w->cache, "listing", folder);
    dir = opendir(folder);
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            found = true;
            temp_path(folder, entry->d_name, ret);
        }
    if (dir)
        closedir(dir);
    return found;
}

UNIT_TEST_WITH(test_listing__folders_and_files__sorted_with_versions, temp_setup, temp_teardown)
{
    AUTO_KNOWN struct known listing = {0};
    AUTO_WORLD struct world w = {0};
    struct member version;
    char path[PATH_MAX];
    struct stat st;

    open_world(&w, *state);
    temp_folder(w.data, "a");
    temp_folder(w.data, "a/b");
    temp_folder(w.data, "a-b");
    temp_write(w.data, "a/b/two", "22", 2);
    temp_write(w.data, "a-b/three", "333", 3);
    temp_write(w.data, "a/one", "1", 1);
    temp_write(w.data, ".hidden", "x", 1);
    list(&w, 0, &listing);
    assert_int_equal(listing.files.n, 3);
    assert_int_equal(listing.files.n_folders, 5); /* "", a, a/b, a-b, sub */
    assert_string_equal(members_name(&listing.files, 0), "one");
    assert_string_equal(members_name(&listing.files, 1), "two");
    assert_string_equal(members_name(&listing.files, 2), "three");
    assert_int_equal(members_end(&listing.files), 6);
    temp_path(w.data, "a/b/two", path);
    assert_int_equal(stat(path, &st), 0);
    joined_version_of_stat(&st, &version);
    assert_memory_equal(listing.files.member[1].version, version.version, sizeof(version.version));
    assert_true(listing.files.member[1].more == version.more && version.more);
}

/* What shows that a listing was kept: a file that was changed in place since has its old size. */
UNIT_TEST_WITH(test_listing__nothing_changed__kept, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};

    open_world(&w, *state);
    make_files(&w, LISTING_KEPT);
    for (unsigned turn = 0; turn < 2; turn++) {
        AUTO_KNOWN struct known listing = {0};

        list(&w, LATER, &listing);
        assert_int_equal(listing.files.n, LISTING_KEPT);
        assert_int_equal(listing.files.n_folders, 2);
        assert_int_equal(members_size(&listing.files, 0), 1);
        assert_string_equal(members_folder(&listing.files, 1), "sub");
        temp_write(w.data, "sub/00000", "longer", 6);
    }
    kept_list_forget(w.source);
    for (unsigned turn = 0; turn < 2; turn++) {
        AUTO_KNOWN struct known listing = {0};

        list(&w, LATER, &listing);
        assert_int_equal(members_size(&listing.files, 0), 6);
    }
}

UNIT_TEST_WITH(test_listing__file_added_or_removed__made_anew, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};
    char path[PATH_MAX];

    open_world(&w, *state);
    make_files(&w, LISTING_KEPT);
    for (unsigned turn = 0; turn < 3; turn++) {
        AUTO_KNOWN struct known listing = {0};

        list(&w, LATER, &listing);
        assert_int_equal(listing.files.n, LISTING_KEPT + (turn == 1));
        temp_path(w.data, "sub/new", path);
        if (turn == 0)
            temp_write(w.data, "sub/new", "x", 1);
        else
            unlink(path);
    }
}

UNIT_TEST_WITH(test_listing__just_changed_few_or_unreadable__not_kept, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};
    char path[PATH_MAX];
    struct stat st;

    open_world(&w, *state);
    make_files(&w, LISTING_KEPT - 1);
    for (unsigned turn = 0; turn < 3; turn++) {
        AUTO_KNOWN struct known listing = {0};

        if (turn == 1)
            make_files(&w, LISTING_KEPT);
        temp_path(w.data, "sub", path);
        assert_int_equal(stat(path, &st), 0);
        temp_path(w.data, "dangling", path);
        if (turn == 2)
            assert_int_equal(symlink("nowhere", path), 0);
        list(&w, turn == 1 ? (int64_t)st.st_ctim.tv_sec * 1000000000 + 1999999999 : LATER,
             &listing);
        assert_int_equal(listing.failed.n, turn == 2);
        assert_false(find_kept(&w, path));
        temp_path(w.cache, "EPOCHFS", path); /* nothing is made there */
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* Any byte of a kept listing changed, or the end cut off: it is made again. */
UNIT_TEST_WITH(test_listing__damaged__made_anew, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};
    AUTO_FREE char *first = NULL;
    char path[PATH_MAX];
    struct stat st;

    open_world(&w, *state);
    make_files(&w, LISTING_KEPT);
    for (unsigned turn = 0; turn < 40; turn++) {
        AUTO_KNOWN struct known listing = {0};
        AUTO_FREE char *identity = NULL;
        uint8_t byte;
        off_t at;
        int fd;

        list(&w, LATER, &listing);
        assert_int_equal(listing.files.n, LISTING_KEPT);
        assert_int_equal(joined_identity(&listing.files, "", &identity), 0);
        if (!first)
            first = strdup(identity);
        assert_string_equal(identity, first);
        assert_true(find_kept(&w, path));
        assert_int_equal(stat(path, &st), 0);
        fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        at = turn < 30 ? turn * 3 : st.st_size / 40 * turn;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        if (turn == 39)
            assert_int_equal(ftruncate(fd, 100), 0);
        close(fd);
    }
}
