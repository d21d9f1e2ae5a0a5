/* Joined blobs of local files: their bytes, and what happens when one of them changes. */
#include "cache/source/joined.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/source/source.h"
#include "support/temp_folder.h"
#include "support/unit.h"

static const char *const names[] = {"a", "b", "empty", "link", "z"};
static const char *const texts[] = {"first", "second", "", "linked", "last"};
#define N     (sizeof(names) / sizeof(names[0]))
#define WHOLE "firstsecondlinkedlast"

/* A source and a joined blob of the five files in its folder "s". */
struct world {
    struct source *source;
    struct blob *blob;
};

static void open_world(struct world *w, const char *folder)
{
    struct cache_folder cache = {.path = (char *)"/nowhere"};
    struct source_options options;
    struct members members = {0};
    char path[PATH_MAX];
    uint32_t sub;

    source_options_init(&options, &cache);
    assert_int_equal(source_open(folder, &options, &w->source, NULL), 0);
    assert_int_equal(members_add_folder(&members, "s", &sub), 0);
    for (size_t i = 0; i < N; i++) {
        struct member version;
        struct stat st;

        snprintf(path, sizeof(path), "%s/s/%s", folder, names[i]);
        assert_int_equal(stat(path, &st), 0);
        joined_version_of_stat(&st, &version);
        assert_int_equal(
            members_add(&members, sub, names[i], (uint64_t)st.st_size, version.version), 0);
        assert_int_equal(members_set_more(&members, i, version.more, NULL), 0);
    }
    assert_int_equal(source_join(w->source, &(struct joined_head){.name = "s", .mode = 0444},
                                 &members, &w->blob, NULL),
                     0);
    assert_null(members.member);
}

static void close_world(struct world *w)
{
    blob_free(w->blob);
    source_free(w->source);
}
#define AUTO_WORLD AUTO(close_world)

static void make_files(const char *folder)
{
    char path[PATH_MAX];

    temp_path(folder, "s", path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "s/%s", names[i]);
        if (strcmp(names[i], "link") != 0)
            temp_write(folder, path, texts[i], strlen(texts[i]));
    }
    temp_write(folder, "elsewhere", "linked", 6);
    snprintf(path, sizeof(path), "%s/s/link", folder);
    assert_int_equal(symlink("../elsewhere", path), 0);
}

/* Each range of the blob: its bytes, or -ESTALE if it touches the bad member. */
static void check_ranges(const struct blob *blob, size_t bad)
{
    const struct members *m = joined_members(blob);
    char buf[sizeof(WHOLE)];

    for (uint64_t off = 0; off < blob->size; off++)
        for (size_t len = 1; len <= blob->size - off; len++) {
            uint64_t start = bad < N ? m->member[bad].place : UINT64_MAX;
            uint64_t end = bad < N ? m->member[bad + 1].place : UINT64_MAX;
            int r = blob_pread(READ_WAITS, blob, buf, len, off);

            assert_int_equal(r, off < end && off + len > start ? -ESTALE : 0);
            if (r == 0)
                assert_memory_equal(buf, WHOLE + off, len);
        }
    assert_int_equal(blob_check(blob), 0);
}

UNIT_TEST_WITH(test_joined__all_ranges__bytes_in_order, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};

    make_files(*state);
    open_world(&w, *state);
    assert_int_equal(w.blob->size, strlen(WHOLE));
    assert_string_equal(blob_name(w.blob), "s");
    check_ranges(w.blob, N);
}

static void change(const char *folder, unsigned how)
{
    char path[PATH_MAX], other[PATH_MAX];

    snprintf(path, sizeof(path), "%s/s/b", folder);
    snprintf(other, sizeof(other), "%s/s/new", folder);
    if (how == 0)
        assert_int_equal(unlink(path), 0);
    if (how == 1)
        assert_int_equal(truncate(path, 3), 0);
    if (how == 2) {
        temp_write(folder, "s/new", "SECOND", 6);
        assert_int_equal(rename(other, path), 0);
    }
    if (how == 3)
        temp_write(folder, "s/b", "second and more", 15);
    if (how == 4) {
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    if (how == 5) {
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("b", path), 0);
    }
    if (how == 6) { /* as many bytes, and the old time; the kernel counts ctime in ticks */
        struct stat before, now;

        assert_int_equal(stat(path, &before), 0);
        do {
            const struct timespec times[] = {before.st_atim, before.st_mtim};

            temp_write(folder, "s/b", "SECOND", 6);
            assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
            assert_int_equal(stat(path, &now), 0);
        } while (!memcmp(&now.st_ctim, &before.st_ctim, sizeof(now.st_ctim)));
        assert_int_equal(now.st_size, before.st_size);
    }
}

UNIT_TEST_WITH(test_joined__one_member_changed__estale_for_its_bytes_only, temp_setup,
               temp_teardown)
{
    for (unsigned how = 0; how < 7; how++) {
        AUTO_WORLD struct world w = {0};
        char folder[PATH_MAX], name[16];

        snprintf(name, sizeof(name), "w%u", how);
        temp_path(*state, name, folder);
        assert_int_equal(mkdir(folder, 0700), 0);
        make_files(folder);
        open_world(&w, folder);
        check_ranges(w.blob, N);
        change(folder, how);
        check_ranges(w.blob, 1);
    }
}

UNIT_TEST_WITH(test_joined__changed__the_reason_names_the_member, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};
    struct diag d = DIAG_INIT;
    char buf[8];

    make_files(*state);
    open_world(&w, *state);
    change(*state, 0);
    assert_int_equal(blob_read(READ_WAITS, w.blob, buf, 8, 0, &d), -ESTALE);
    assert_non_null(strstr(d.text, "s/b: "));
}

/* A link that leaves SOURCE after the listing leads nowhere, even with the right version. */
UNIT_TEST_WITH(test_joined__link_out_of_source__estale, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};
    char folder[PATH_MAX], path[PATH_MAX], out[PATH_MAX];

    temp_path(*state, "src", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    make_files(folder);
    open_world(&w, folder);
    temp_path(*state, "out", out);
    snprintf(path, sizeof(path), "%s/s/b", folder);
    assert_int_equal(rename(path, out), 0);
    assert_int_equal(symlink(out, path), 0);
    check_ranges(w.blob, 1);
}

/* A link with an absolute path that stays in SOURCE is followed. */
UNIT_TEST_WITH(test_joined__absolute_link_inside__bytes, temp_setup, temp_teardown)
{
    AUTO_WORLD struct world w = {0};
    char link[PATH_MAX], to[PATH_MAX];

    make_files(*state);
    temp_path(*state, "s/link", link);
    temp_path(*state, "elsewhere", to);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(to, link), 0);
    open_world(&w, *state);
    check_ranges(w.blob, N);
}

UNIT_TEST_WITH(test_joined__identity__follows_the_table, temp_setup, temp_teardown)
{
    AUTO_FREE char *before = NULL, *same = NULL, *after = NULL;

    make_files(*state);
    for (unsigned i = 0; i < 3; i++) {
        AUTO_WORLD struct world w = {0};

        if (i == 2)
            change(*state, 6);
        open_world(&w, *state);
        assert_int_equal(blob_identity(w.blob, i == 0 ? &before : i == 1 ? &same : &after), 0);
    }
    assert_string_equal(before, same);
    assert_string_not_equal(before, after);
}

/* Each range: a file only where it is a whole member, as it was listed. */
static void check_files(const struct blob *blob, size_t bad)
{
    const struct members *m = joined_members(blob);

    for (uint64_t off = 0; off < blob->size; off++)
        for (size_t len = 1; len <= blob->size - off; len++) {
            size_t i = members_find(m, off);
            bool whole = m->member[i].place == off && members_size(m, i) == len;
            int fd = -1, r = blob_open_file(blob, off, len, &fd, NULL);
            char buf[sizeof(WHOLE)];

            assert_int_equal(r, !whole ? -EOPNOTSUPP : i == bad ? -ESTALE : 0);
            assert_int_equal(fd >= 0, r == 0);
            if (r < 0)
                continue;
            assert_int_equal(read(fd, buf, sizeof(buf)), len);
            assert_memory_equal(buf, WHOLE + off, len);
            close(fd);
        }
}

UNIT_TEST_WITH(test_joined__open_file__whole_members, temp_setup, temp_teardown)
{
    const uint64_t all = strlen(WHOLE);

    for (unsigned how = 0; how < 6; how++) {
        AUTO_WORLD struct world w = {0};
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%u", (const char *)*state, how);
        assert_int_equal(mkdir(path, 0700), 0);
        make_files(path);
        open_world(&w, path);
        check_files(w.blob, N);
        assert_int_equal(blob_in_files(w.blob, 1), all);
        assert_int_equal(blob_in_files(w.blob, 6), 12); /* "second", "linked" */
        assert_int_equal(blob_in_files(w.blob, 7), 0);
        change(path, how);
        check_files(w.blob, 1);
    }
}
