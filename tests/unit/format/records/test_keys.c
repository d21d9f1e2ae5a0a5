/* The keys of several files as one index, and the samples of their names. */
#include "format/records/keys.h"

#include <errno.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/core/dataset.h"
#include "support/unit.h"

static const struct index *index_at(void *ctx, unsigned i)
{
    return &((const struct index *)ctx)[i];
}

static struct index_builder *keys_of_file(const char *const *key, struct index *ret)
{
    struct index_builder *b = NULL;

    assert_int_equal(index_builder_new(&(struct index_shape){.has_keys = true}, &b), 0);
    for (unsigned i = 0; key[i]; i++)
        assert_int_equal(index_add(b, key[i], strlen(key[i]), NULL), 0);
    assert_int_equal(index_finish(b, NULL, NULL, NULL, ret), 0);
    return b;
}

/* Each name leads to its record; a key that an earlier file has gets a number. */
UNIT_TEST(test_keys__files_with_common_keys__found)
{
    static const char *const keys[3][4] = {{"a", "b", "c/d", NULL}, {NULL}, {"b", "a", "z", NULL}};
    static const char *const want[] = {"a", "b", "c%2Fd", "b~2", "a~2", "z"};
    struct dataset ds = {0};
    struct index_builder *builder[3];
    struct index index[3];
    struct keys k = {0};
    char name[KEY_NAME_SIZE];
    uint64_t sample;
    int r;

    ds.keys = &k.index;
    for (unsigned i = 0; i < 3; i++)
        builder[i] = keys_of_file(keys[i], &index[i]);
    do
        r = keys_step(&k, 3, index_at, index);
    while (r == 0);
    assert_int_equal(r, 1);
    assert_int_equal(k.index.rows, ARRAY_LEN(want));
    for (uint64_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(dataset_name(&ds, i, false, name), strlen(want[i]));
        assert_string_equal(name, want[i]);
        assert_true(dataset_find(&ds, name, strlen(name), &sample));
        assert_int_equal(sample, i);
    }
    assert_false(dataset_find(&ds, "c", 1, &sample));
    assert_false(dataset_find(&ds, "c/d", 3, &sample));
    keys_release(&k);
    for (unsigned i = 0; i < 3; i++)
        index_builder_free(builder[i]);
}

/* Very many keys take several steps, and files without rows, also the last ones, none of their
 * own. */
UNIT_TEST(test_keys__many_files__in_steps)
{
    static const uint64_t rows[] = {0, 9999, 0, 1, 15000, 1, 0, 0};
    struct index index[ARRAY_LEN(rows)];
    struct index_builder *builder[ARRAY_LEN(rows)];
    struct keys k = {0};
    uint64_t record = 0, found;
    unsigned steps = 0;
    char key[16];
    int r;

    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(index_builder_new(&(struct index_shape){.has_keys = true}, &builder[i]),
                         0);
        for (uint64_t row = 0; row < rows[i]; row++, record++) {
            int len = snprintf(key, sizeof(key), "k%llu", (unsigned long long)record);

            assert_int_equal(index_add(builder[i], key, (size_t)len, NULL), 0);
        }
        assert_int_equal(index_finish(builder[i], NULL, NULL, NULL, &index[i]), 0);
    }
    for (; (r = keys_step(&k, ARRAY_LEN(rows), index_at, index)) == 0; steps++)
        assert_true(steps < 10);
    assert_int_equal(r, 1);
    assert_int_equal(steps, 2); /* of 10,000 rows or files */
    assert_int_equal(k.index.rows, record);
    for (uint64_t i = 0; i < record; i++) {
        int len = snprintf(key, sizeof(key), "k%llu", (unsigned long long)i);

        assert_true(index_find(&k.index, key, (size_t)len, &found));
        assert_int_equal(found, i);
    }
    keys_release(&k);
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
        index_builder_free(builder[i]);
}

/* A name that is cut carries the hash of its key; two files have keys that begin alike. */
UNIT_TEST(test_keys__long_keys__found_by_cut_names)
{
    struct dataset ds = {0};
    char long_key[2][600], name[KEY_NAME_SIZE];
    struct index_builder *builder[2];
    struct index index[2];
    struct keys k = {0};
    uint64_t sample;

    ds.keys = &k.index;
    for (unsigned i = 0; i < 2; i++) {
        memset(long_key[i], 'x', sizeof(long_key[i]));
        snprintf(long_key[i] + 590, 10, "%u", i);
        builder[i] = keys_of_file((const char *const[]){long_key[i], "short", NULL}, &index[i]);
    }
    assert_int_equal(keys_step(&k, 2, index_at, index), 1);
    for (uint64_t i = 0; i < 4; i++) {
        size_t len = dataset_name(&ds, i, false, name);

        assert_true(dataset_find(&ds, name, len, &sample));
        assert_int_equal(sample, i);
    }
    name[0] = 'y';
    assert_false(dataset_find(&ds, name, strlen(name), &sample));
    keys_release(&k);
    for (unsigned i = 0; i < 2; i++)
        index_builder_free(builder[i]);
}

/* The index of a file with the key Q, changed so that the key has no bytes. */
UNIT_TEST(test_keys__forged_empty_key__refused)
{
    struct iovec piece[INDEX_PIECES];
    struct index_builder *builder;
    AUTO_TEXT struct text bytes = {0};
    struct index index[2];
    struct keys k = {0};

    builder = keys_of_file((const char *const[]){"Q", NULL}, &index[0]);
    assert_int_equal(index_bytes(builder, NULL, 0, &index[0], piece), 0);
    for (unsigned i = 0; i < INDEX_PIECES; i++)
        text_add_bytes(&bytes, piece[i].iov_base, piece[i].iov_len);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(index_open((const uint8_t *)bytes.data, bytes.len, &index[i]), 0);
    for (size_t i = 0; i + 2 < bytes.len; i++)
        if (!memcmp(bytes.data + i, "\0\1Q", 3))
            bytes.data[i + 1] = 0;
    assert_int_equal(keys_step(&k, 2, index_at, index), -EBADMSG);
    keys_release(&k);
    index_builder_free(builder);
}
