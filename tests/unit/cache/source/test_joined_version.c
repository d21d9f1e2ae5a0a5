/* Versions of remotes in a table of members: the same again, few bytes for those of common servers,
 * and nothing made of bytes that are no version. */
#include <stdio.h>
#include <string.h>

#include "cache/source/joined.h"
#include "cache/stage/transport.h"
#include "support/unit.h"

static void make(struct members *ret, uint64_t size)
{
    uint32_t folder;

    assert_int_equal(members_add_folder(ret, "", &folder), 0);
    assert_int_equal(members_add(ret, folder, "x", size, (const uint64_t[2]){0, 0}), 0);
}

/* Pack a version and get it again. Returns the bytes of text that it takes; version: a copy of
 * member.version, may be NULL. */
static size_t check(const struct remote_version *version, uint64_t *ret)
{
    AUTO_MEMBERS struct members m = {0};
    struct remote_version again;
    size_t before;

    make(&m, version->size);
    assert_false(joined_version_get(&m, 0, &again));
    before = m.names_len;
    assert_int_equal(joined_version_set(&m, 0, version), 0);
    assert_true(joined_version_get(&m, 0, &again));
    assert_int_equal(again.size, version->size);
    assert_int_equal(again.mtime.tv_sec, version->mtime.tv_sec);
    assert_int_equal(again.mtime.tv_nsec, version->mtime.tv_nsec);
    assert_string_equal(again.etag, version->etag);
    assert_int_equal(again.whole_only, version->whole_only);
    if (ret)
        memcpy(ret, m.member[0].version, 2 * sizeof(*ret));
    return m.names_len - before;
}

#define MD5 "0123456789abcdef0123456789abcdef"

UNIT_TEST(test_version__common_servers__no_text)
{
    static const struct remote_version all[] = {
        {.size = 7, .mtime = {.tv_sec = 1700000000}, .etag = "\"" MD5 "\""},
        {.size = 7, .mtime = {.tv_sec = 1700000000}, .etag = "\"" MD5 "-1\""},
        {.size = 7, .mtime = {.tv_sec = 0}, .etag = "\"" MD5 "-131071\"", .whole_only = true},
        {.size = 0x1f40, .mtime = {.tv_sec = 0x65a1b2c3}, .etag = "\"65a1b2c3-1f40\""},
        {.size = 7, .mtime = {.tv_sec = 1700000000}},
        {.size = 0, .mtime = {.tv_sec = (INT64_C(1) << 40) - 1}, .whole_only = true},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_int_equal(check(&all[i], NULL), 0);
}

UNIT_TEST(test_version__others__as_text)
{
    static const struct remote_version all[] = {
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "W/\"" MD5 "\""},
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "\"0123456789ABCDEF0123456789abcdef\""},
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "\"" MD5 "-131072\""},
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "\"" MD5 "-01\""},
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "\"" MD5 "-0\""},
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "\"" MD5 "-\""},
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "\"" MD5 "-1x\""},
        {.size = 7, .mtime = {.tv_sec = 1}, .etag = "\"" MD5 "0\""},
        {.size = 8, .mtime = {.tv_sec = 0x65a1b2c3}, .etag = "\"65a1b2c3-1f40\""},
        {.size = 7, .mtime = {.tv_sec = 1, .tv_nsec = 999999999}, .whole_only = true},
        {.size = 7, .mtime = {.tv_sec = -1}, .etag = "\"a b c\""},
        {.size = 7, .mtime = {.tv_sec = INT64_C(1) << 40}},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_true(check(&all[i], NULL) > 0);
}

UNIT_TEST(test_version__two_versions__two_hashes)
{
    static const struct remote_version all[] = {
        {.size = 7, .mtime = {.tv_sec = 5}, .etag = "\"" MD5 "\""},
        {.size = 7, .mtime = {.tv_sec = 5}, .etag = "\"" MD5 "-1\""},
        {.size = 7, .mtime = {.tv_sec = 5}, .etag = "\"" MD5 "-2\""},
        {.size = 7, .mtime = {.tv_sec = 5}, .etag = "\"x\""},
        {.size = 7, .mtime = {.tv_sec = 5}, .etag = "\"5-7\""},
        {.size = 7, .mtime = {.tv_sec = 5}},
        {.size = 7, .mtime = {.tv_sec = 6}},
    };
    uint64_t hash[7][2], later[2];
    struct remote_version moved = all[0];

    for (size_t i = 0; i < 7; i++) {
        check(&all[i], hash[i]);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(hash[i], hash[k], sizeof(hash[i]));
    }
    moved.mtime.tv_sec = 99; /* a copy of the same bytes */
    check(&moved, later);
    assert_memory_equal(later, hash[0], sizeof(later));
}

/* An ETag that may be made of less than the bytes and the time needs the time with it. */
UNIT_TEST(test_version__needs_time)
{
    static const struct {
        const char *etag;
        time_t seconds;
        bool needs;
    } cases[] = {
        {"\"1800080\"", 1700000000, true},
        {"W/\"x\"", 1700000000, true},
        {"\"1800080\"", 0, false},
        {"", 1700000000, false},
        {"\"0123456789abcdef0123456789abcdef\"", 1700000000, false},
        {"\"0123456789abcdef0123456789abcdef-7\"", 1700000000, false},
        {"\"6553f100-64\"", 1700000000, false}, /* nginx: the time and the size */
        {"\"6553f101-64\"", 1700000000, true},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct remote_version version = {.size = 100, .mtime.tv_sec = cases[i].seconds};

        snprintf(version.etag, sizeof(version.etag), "%s", cases[i].etag);
        if (joined_version_needs_time(&version) != cases[i].needs)
            fail_msg("%s at %lld", cases[i].etag, (long long)cases[i].seconds);
    }
}

UNIT_TEST(test_version__text_is_anything__unknown)
{
    static const char *const texts[] = {"",
                                        "1",
                                        "1.",
                                        "x.1 \"e\"",
                                        "1.1000000000 \"e\"",
                                        "1.-1 \"e\"",
                                        "1.1 \"\x7f\"",
                                        "1.1 \"a\nb\""};
    AUTO_MEMBERS struct members m = {0};
    struct remote_version version;
    char text[400];

    make(&m, 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(members_set_more(&m, 0, 0, texts[i]), 0);
        assert_false(joined_version_get(&m, 0, &version));
    }
    for (size_t n = 150; n < sizeof(text) - 1; n++) {
        memset(text, 'e', n);
        text[n] = '\0';
        memcpy(text, "1.1 ", 4);
        assert_int_equal(members_set_more(&m, 0, 0, text), 0);
        assert_int_equal(joined_version_get(&m, 0, &version), n - 4 < sizeof(version.etag));
    }
    assert_int_equal(members_set_more(&m, 0, UINT64_C(1) << 60, NULL), 0);
    assert_false(joined_version_get(&m, 0, &version));
}
