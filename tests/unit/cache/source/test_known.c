/* The packed list of a remote's files: sorted, each once, found wherever they are, and few bytes
 * for each. */
#include "cache/source/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/source/source.h"
#include "cache/stage/transport.h"
#include "support/unit.h"

static const struct remote_version one = {.size = 1, .etag = "\"one\""};

struct world {
    struct source source;
};

static void world_init(struct world *w, const char *const *paths)
{
    *w = (struct world){.source = {.base = (char *)"http://h/d/"}};
    for (; *paths; paths++)
        assert_int_equal(known_add(&w->source.known, *paths, &one), 0);
    assert_int_equal(known_sort(&w->source.known), 0);
}

static void world_release(struct world *w)
{
    known_release(&w->source.known);
}

/* Is a file found, with its URL? */
static bool has(const struct world *w, const char *path)
{
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};
    char found[512], url[512];
    int r = known_find(&w->source, path, &entry);

    if (r == -ENOENT)
        return false;
    assert_int_equal(r, 0);
    snprintf(found, sizeof(found), "%s%s%s", entry.folder, *entry.folder ? "/" : "", entry.name);
    assert_string_equal(found, path);
    if (!entry.error) {
        snprintf(url, sizeof(url), "http://h/d/%s", path);
        assert_string_equal(entry.url, url);
        assert_string_equal(entry.version->etag, "\"one\"");
    }
    return true;
}

static const char *const some[] = {"b/x", "a",       "b/a/x", "b-a/x", "a",
                                   "b/a", "z/y/x/w", "b/x",   NULL};
static const char *const none[] = {"",      "b",     "b/",    "x",    "a/a", "b/a/",
                                   "b/a/y", "z/y/x", "z/y/w", "b/xx", "b/"};

UNIT_TEST(test_known__twice_and_unsorted__each_found)
{
    AUTO(world_release) struct world w;
    AUTO_SOURCE_LIST struct source_list list = {0};

    world_init(&w, some);
    assert_int_equal(w.source.known.files.n, 6);
    for (const char *const *path = some; *path; path++)
        assert_true(has(&w, *path));
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_false(has(&w, none[i]));
    assert_int_equal(known_list(&w.source, &w.source.known, NULL, &list), 0);
    assert_int_equal(list.n, 6);
}

UNIT_TEST(test_known__failed__found_with_the_error)
{
    AUTO(world_release) struct world w;
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};

    world_init(&w, (const char *const[]){NULL});
    assert_int_equal(known_add_failed(&w.source.known, "a/b", "gone", -ENOENT), 0);
    assert_int_equal(known_add_failed(&w.source.known, "a/b", "gone", -ENOENT), 0);
    assert_int_equal(known_sort(&w.source.known), 0);
    assert_int_equal(w.source.known.failed.n, 1);
    assert_int_equal(known_find(&w.source, "a/b", &entry), 0);
    assert_string_equal(entry.error, "gone");
    assert_int_equal(entry.failure, -ENOENT);
}

UNIT_TEST(test_known__taken_by_a_collection__found_there)
{
    AUTO(world_release) struct world w;
    AUTO_MEMBERS struct members part = {0};
    uint8_t taken[6] = {0}, sums[6 * 32], want[32];
    const uint32_t picked[] = {4, 1, 2}; /* in an order of its own */
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};

    world_init(&w, some);
    memset(want, 7, sizeof(want));
    assert_int_equal(known_set_sha256(&w.source.known, 5, want), 0);
    memset(sums, 0, sizeof(sums));
    memset(sums + 32, 9, 32);
    for (size_t i = 0; i < ARRAY_LEN(picked); i++)
        taken[picked[i]] = 1;
    assert_int_equal(members_pick(&w.source.known.files, "", picked, 3, &part), 0);
    assert_int_equal(known_taken(&w.source.known, &part, sums), 0);
    assert_int_equal(known_drop(&w.source.known, taken), 0);
    assert_int_equal(w.source.known.files.n, 3);
    for (const char *const *path = some; *path; path++)
        assert_true(has(&w, *path));
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_false(has(&w, none[i]));
    assert_int_equal(known_entry(&w.source, &w.source.known, 2, &entry), 0);
    assert_string_equal(entry.name, "w");
    assert_memory_equal(entry.sha256, want, 32);
    source_entry_release(&entry);
    assert_int_equal(known_entry(&w.source, &w.source.known, 1, &entry), 0);
    assert_null(entry.sha256);
    source_entry_release(&entry);
    assert_int_equal(known_find(&w.source, "b/a", &entry), 0);
    assert_int_equal(entry.sha256[0], 9);
}

UNIT_TEST(test_known__files_of_s3__40_bytes_and_the_name)
{
    struct remote_version version = {.size = 100, .mtime = {.tv_sec = 1700000000}};
    AUTO(world_release) struct world w;
    struct known *known = &w.source.known;
    size_t names = 0;
    char path[64];

    world_init(&w, (const char *const[]){NULL});
    for (unsigned i = 0; i < 10000; i++) {
        names += (size_t)snprintf(path, sizeof(path), "%05u.jpg", i) + 1;
        snprintf(version.etag, sizeof(version.etag), "\"%032x\"", i);
        assert_int_equal(known_add(known, path, &version), 0);
    }
    assert_int_equal(sizeof(*known->files.member), 40);
    assert_int_equal(known->files.names_len, names + 1); /* and the folder's */
}

UNIT_TEST(test_known__folders_in_any_order__each_once_with_those_on_the_way)
{
    const char *const paths[] = {"a/b/c/1", "x/1", "a/b/2", "a/bb/1", "a/b/c/0", NULL};
    const char *const folders[] = {"", "a", "a/b", "a/b/c", "a/bb", "empty", "empty/below", "x"};
    AUTO_KNOWN struct known known = {0};

    for (size_t i = 0; paths[i]; i++)
        assert_int_equal(known_add(&known, paths[i], &one), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(known_add_folder(&known, "empty/below/", 11), 0);
    assert_int_equal(known_sort(&known), 0);
    assert_int_equal(known.files.n, 5);
    assert_int_equal(known.files.n_folders, ARRAY_LEN(folders));
    for (uint32_t i = 0; i < ARRAY_LEN(folders); i++)
        assert_string_equal(members_folder(&known.files, i), folders[i]);
    assert_string_equal(members_name(&known.files, 1), "0");
    assert_string_equal(members_folder_of(&known.files, 1), "a/b/c");
}
