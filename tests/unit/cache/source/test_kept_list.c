/* Kept lists of remotes: the same again; anything else is refused, because it comes from a file. */
#include "cache/source/kept_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cache/source/joined.h"
#include "cache/source/source.h"
#include "cache/stage/transport.h"
#include "support/temp_folder.h"
#include "support/unit.h"

struct world {
    char cache[PATH_MAX];
    struct source source;
};

static void world_init(struct world *w, const char *folder)
{
    temp_path(folder, "cache", w->cache);
    temp_folder(folder, "cache");
    static const struct remote far = {.far = true};

    w->source = (struct source){.remote = &far,
                                .cache = {.path = w->cache},
                                .root = (char *)"s3://b/",
                                .base = (char *)"http://s3/b/"};
}

static void make_files(struct members *ret, const char *const *folders, const char *const *names)
{
    static const struct remote_version version = {.etag = "\"e\""};
    uint32_t folder;

    for (; *folders; folders++)
        assert_int_equal(members_add_folder(ret, *folders, &folder), 0);
    for (size_t i = 0; names[i]; i++) {
        assert_int_equal(members_add(ret, i ? folder : 0, names[i], 5, (const uint64_t[2]){1, 2}),
                         0);
        assert_int_equal(joined_version_set(ret, i, &version), 0);
    }
}

static const char *const good_folders[] = {"", "a", "a/b", "a-b", NULL};
static const char *const good_names[] = {"top", "x", "y", NULL};

static void save(const struct world *w, const char *const *folders, const char *const *names)
{
    AUTO_KNOWN struct known pages = {0};

    make_files(&pages.files, folders, names);
    assert_int_equal(known_add_page(&pages, "m", 2), 0);
    assert_int_equal(known_add_page(&pages, "", 1), 0);
    assert_int_equal(known_add_page(&pages, "zz", 3), 0);
    kept_list_save(&w->source, &pages);
}

UNIT_TEST_WITH(test_kept_list__saved__the_same_again_until_forgotten, temp_setup, temp_teardown)
{
    AUTO_KNOWN struct known pages = {0};
    struct remote_version version;
    struct world w;

    world_init(&w, *state);
    assert_int_equal(kept_list_load(&w.source, NULL, &pages), -ENOENT);
    save(&w, good_folders, good_names);
    assert_int_equal(kept_list_load(&w.source, NULL, &pages), 0);
    assert_int_equal(pages.n_pages, 3);
    assert_string_equal(known_page_text(&pages, 0), "");
    assert_int_equal(pages.page[0].hash, 1);
    assert_int_equal(known_find_page(&pages, "m"), 1);
    assert_int_equal(known_find_page(&pages, "zz"), 2);
    assert_int_equal(known_find_page(&pages, "z"), 3);
    assert_int_equal(pages.files.n, 3);
    known_release(&pages);
    save(&w, good_folders, (const char *const[]){"other", NULL});
    assert_int_equal(kept_list_load(&w.source, NULL, &pages), 0);
    assert_int_equal(pages.files.n, 1);
    known_release(&pages);
    save(&w, good_folders, good_names);
    assert_int_equal(kept_list_load(&w.source, NULL, &pages), 0);
    assert_true(joined_version_get(&pages.files, 2, &version));
    assert_string_equal(version.etag, "\"e\"");
    assert_int_equal(version.size, 5);
    known_release(&pages);
    w.source.base = (char *)"http://other/b/";
    assert_int_equal(kept_list_load(&w.source, NULL, &pages), -ENOENT);
    w.source.base = (char *)"http://s3/b/";
    kept_list_forget(&w.source);
    assert_int_equal(kept_list_load(&w.source, NULL, &pages), -ENOENT);
}

/* Names that lead out of SOURCE, folders without the one above, an order in which nothing is found.
 */
UNIT_TEST_WITH(test_kept_list__wrong_tables__refused, temp_setup, temp_teardown)
{
    static const struct {
        const char *folders[5], *names[4];
    } wrong[] = {
        {{"", "a"}, {"../x"}},
        {{"", "a"}, {"x/y"}},
        {{"", "a"}, {".hidden"}},
        {{"", "a"}, {""}},
        {{"", "a"}, {"a\x01"}},
        {{"", "../a"}, {"x"}},
        {{"", "a/../b"}, {"x"}},
        {{"", "a/b"}, {"x"}},
        {{"a"}, {"x"}},
        {{"", "b", "a"}, {"x"}},
        {{"", "a", "a"}, {"x"}},
        {{"", "a-b", "a"}, {"x"}},
        {{"", "a"}, {"x", "z", "y"}},
        {{"", "a"}, {"x", "y", "y"}},
        {{"", ".a"}, {"x"}},
        {{"", "a", "b/c"}, {"x"}},
        {{"", ""}, {"x"}},
        {{"", "/a"}, {"x"}},
    };
    AUTO_KNOWN struct known pages = {0};
    struct world w;

    world_init(&w, *state);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        save(&w, wrong[i].folders, wrong[i].names);
        assert_int_equal(kept_list_load(&w.source, NULL, &pages), -ENOENT);
    }
    save(&w, good_folders, good_names);
    assert_int_equal(kept_list_load(&w.source, NULL, &pages), 0);
}

/* Any 8 bytes changed, with a right checksum or without, and any end: no harm; without one nothing
 * is taken. */
UNIT_TEST_WITH(test_kept_list__damaged__no_harm, temp_setup, temp_teardown)
{
    AUTO_KNOWN struct known good = {0};
    struct world w;

    world_init(&w, *state);
    save(&w, good_folders, good_names);
    assert_int_equal(kept_list_load(&w.source, NULL, &good), 0);
    for (size_t at = 0; at < 4 * good.bytes.size; at++) {
        AUTO_KNOWN struct known pages = {.bytes = {malloc(good.bytes.size), good.bytes.size}};
        uint8_t *bytes = pages.bytes.bytes;
        static const uint64_t values[] = {0, 1, UINT64_MAX, UINT64_C(1) << 61};
        size_t place = at / 4 & ~(size_t)7;
        uint64_t hash;
        int r;

        assert_non_null(bytes);
        memcpy(bytes, good.bytes.bytes, good.bytes.size);
        if (at % 8 < 4)
            memcpy(bytes + place, &values[at % 4],
                   good.bytes.size - place < 8 ? good.bytes.size - place : 8);
        else
            pages.bytes.size = at / 4;
        r = kept_list_parse(&pages, true);
        if (r == 0)
            assert_memory_equal(bytes, good.bytes.bytes, good.bytes.size);
        else
            assert_int_equal(r, -EBADMSG);
        if (r == 0 || pages.bytes.size < 32)
            continue;
        hash = XXH3_64bits(bytes + 16, pages.bytes.size - 16);
        memcpy(bytes + 8, &hash, 8);
        r = kept_list_parse(&pages, true);
        assert_true(r == 0 || r == -EBADMSG);
        for (size_t i = 0; r == 0 && i < pages.files.n; i++) {
            struct remote_version version;

            joined_version_get(&pages.files, i, &version);
        }
    }
}
