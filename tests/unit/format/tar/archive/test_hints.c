/* DALI's index of a shard: which shard it is of, where it says that headers are, and what is asked
 * for ahead of a walk. */
#include "base/scope.h"
#include "format/tar/archive/walk.h"
#include "support/absent_blob.h"
#include "support/memory_blob.h"
#include "support/tar_make.h"
#include "support/unit.h"

UNIT_TEST(test_names__index_of_a_shard)
{
    static const struct {
        const char *name, *shard;
        bool is_called, is_of;
    } rows[] = {
        {"a.idx", "a.tar", true, true},    {"a.tar.idx", "a.tar", true, true},
        {"a.idx", "a", true, true},        {"a.b.idx", "a.b.tar", true, true},
        {"a.idx", "a.b.tar", true, false}, {"a.ta.idx", "a.tar", true, false},
        {"ab.idx", "a.tar", true, false},  {"b.idx", "a.tar", true, false},
        {".tar.idx", ".tar", true, true},  {".idx", ".tar", false, false},
        {"a.idxx", "a.tar", false, false}, {"a.id", "a.tar", false, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(tar_hints_are_called(rows[i].name), rows[i].is_called);
        if (rows[i].is_called && tar_hints_are_of(rows[i].name, rows[i].shard) != rows[i].is_of)
            fail_msg("'%s' of '%s'", rows[i].name, rows[i].shard);
    }
    assert_true(tar_hints_are_in("a.idx", "v1.2 3\n", 7));
    assert_true(tar_hints_are_in("a.idx", "v1.1 3", 6));
    assert_false(tar_hints_are_in("a.idx", "v1.3 3", 6));
    assert_false(tar_hints_are_in("a.idx", "v1.2 3", 5));
    assert_false(tar_hints_are_in("a.tar", "v1.2 3", 6));
}

/* Where the text says that headers of a shard of size bytes are. */
UNIT_TEST(test_read__places_of_headers)
{
    static const struct {
        const char *text;
        uint64_t size;
        const char *want;
    } rows[] = {
        {"v1.2 1\njpg 512 100 a.jpg cls 102400 1 a.cls\n", 1 << 20, "0 101888"},
        {"v1.1 2\nb 102400 5\na\t512  7\r\n", 1 << 20, "0 101888"}, /* in order */
        {"512 3", 1 << 20, "0"},
        {"512 1048064", 1 << 20, "0"},
        {"512 1048065", 1 << 20, ""}, /* a byte more than the shard has */
        {"1048064 0", 1 << 20, "1047552"},
        {"1048576 0", 1 << 20, ""},
        {"500 4", 1 << 20, ""},
        {"0 4", 1 << 20, ""},
        {"1000 4", 1 << 20, ""},
        {"1024 512 7", 1 << 20, "512"}, /* a size is no place */
        {"512 a 7", 1 << 20, ""},       /* nor is a number with a word after it */
        {"512 99999999999999999999", 1 << 20, ""},
        {"512 4 512 4", 65535, ""}, /* so near to each other that all is read */
        {"512 4 512 4", 65536, "0 0"},
        {"", 1 << 20, ""},
        {" \n", 1 << 20, ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].text);
        AUTO_BLOB struct blob *blob = memory_blob_new("a.idx", rows[i].text, len, len, NULL);
        AUTO_TEXT struct text found = {0};
        AUTO(tar_hints_release) struct tar_hints hints;

        assert_int_equal(tar_hints_read(blob, rows[i].size, &hints), 0);
        for (size_t k = 0; k < hints.n; k++)
            text_add(&found, "%s%llu", k ? " " : "", (unsigned long long)hints.at[k]);
        if (strcmp(found.len ? found.data : "", rows[i].want) != 0)
            fail_msg("'%s': '%s'", rows[i].text, found.data);
    }
}

UNIT_TEST(test_read__large_or_failed__none)
{
    static const uint64_t sizes[] = {5, (UINT64_C(256) << 20) + 1};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct blob_faults faults = {.fail_read = 1};
        AUTO_BLOB struct blob *blob = memory_blob_new("a.idx", "512 3", 5, sizes[i], &faults);
        struct tar_hints hints;

        assert_int_equal(tar_hints_read(blob, 1 << 20, &hints), 0);
        assert_int_equal(hints.n, 0);
        assert_int_equal(faults.reads, i == 0);
    }
}

#define STEP (UINT64_C(100) << 10) /* bytes from one header to the next */

/* n headers, and the remote that they are asked of. */
struct followed {
    struct absent absent;
    struct blob *blob;
    struct tar_hints hints;
};

static void followed_init(struct followed *f, size_t n)
{
    AUTO_TEXT struct text t = {0};

    *f = (struct followed){0};
    f->blob = absent_blob_new(memory_blob_new("a.tar", "", 0, n * STEP, NULL), &f->absent);
    for (size_t i = 0; i < n; i++)
        text_add(&t, "%llu 1 ", (unsigned long long)(i * STEP + TAR_BLOCK));
    {
        AUTO_BLOB struct blob *index = memory_blob_new("a.idx", t.data, t.len, t.len, NULL);

        assert_int_equal(tar_hints_read(index, n * STEP, &f->hints), 0);
    }
    assert_int_equal(f->hints.n, n);
}

static void followed_release(struct followed *f)
{
    tar_hints_release(&f->hints);
    blob_free(f->blob);
}

/* Follow to that byte; returns how often bytes were asked for. */
static uint64_t asked_at(struct followed *f, uint64_t at)
{
    uint64_t before = f->absent.fetches;

    tar_hints_follow(&f->hints, f->blob, at);
    return f->absent.fetches - before;
}

UNIT_TEST(test_follow__128_headers_ahead)
{
    AUTO(followed_release) struct followed f;

    followed_init(&f, 300);
    assert_int_equal(asked_at(&f, 0), 128);
    assert_int_equal(asked_at(&f, 0), 0);
    assert_int_equal(asked_at(&f, STEP), 1);
    assert_int_equal(asked_at(&f, 4 * STEP), 3);
    assert_int_equal(asked_at(&f, 200 * STEP), 99); /* those before it are of no use */
    assert_int_equal(asked_at(&f, 299 * STEP), 0);
}

/* A header that none points to, 33 times one after another. */
UNIT_TEST(test_follow__wrong__dropped)
{
    AUTO(followed_release) struct followed f;

    followed_init(&f, 10);
    for (unsigned i = 0; i < 32; i++)
        asked_at(&f, STEP - 8193);
    assert_int_equal(f.hints.n, 10);
    asked_at(&f, STEP - 8192); /* may describe the one that follows */
    for (unsigned i = 0; i < 32; i++)
        asked_at(&f, STEP + 1);
    asked_at(&f, 2 * STEP);
    for (unsigned i = 0; i < 32; i++)
        asked_at(&f, 2 * STEP + 1);
    assert_int_equal(f.hints.n, 10);
    assert_int_equal(asked_at(&f, 2 * STEP + 1), 0);
    assert_int_equal(f.hints.n, 0);
}

/* Large members, whose headers are asked for one after another without hints. */
UNIT_TEST(test_walk__asks_for_headers_that_hints_have)
{
    static char content[2 << 20];

    for (unsigned hinted = 0; hinted < 2; hinted++) {
        struct absent absent = {0};
        AUTO(tar_hints_release) struct tar_hints hints = {0};
        AUTO_TEXT struct text tar = {0}, index = {0};
        AUTO_BLOB struct blob *blob = NULL, *index_blob = NULL;
        AUTO(tar_walk_release) struct tar_walk w = {0};
        struct tar_member m;

        for (unsigned i = 0; i < 5; i++) {
            tar_put(&tar, "a.bin", content, sizeof(content), '0');
            text_add(&index, "%zu 1 ", tar.len - sizeof(content));
        }
        index_blob = memory_blob_new("a.idx", index.data, index.len, index.len, NULL);
        assert_int_equal(tar_hints_read(index_blob, tar.len, &hints), 0);
        blob = absent_blob_new(memory_blob_new("a.tar", tar.data, tar.len, tar.len, NULL), &absent);
        assert_int_equal(tar_walk_init(&w, blob), 0);
        w.hints = hinted ? &hints : NULL;
        while (tar_walk_next(&w, &m, NULL) == 1)
            ;
        assert_int_equal(w.at, tar.len);
        assert_int_equal(absent.fetches, hinted ? 4 : 0);
    }
}
