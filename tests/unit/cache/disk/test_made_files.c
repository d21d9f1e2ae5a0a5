/* Arrays that are kept: each at its place, none that is damaged or another's, and files whose
 * numbers lie are no files. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "cache/disk/inventory.h"
#include "cache/disk/made_files.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define BYTES 24
#define HEAD  2048

struct kept {
    struct cache_folder cache;
    struct made_files made;
    struct made_file *file;
    char path[PATH_MAX]; /* of the one file */
    unsigned said;
};

static void say(void *ctx, const char *text)
{
    (void)text;
    ++*(unsigned *)ctx;
}

static int open_rows(struct kept *k, uint64_t rows, uint64_t row_bytes)
{
    glob_t found;
    char pattern[PATH_MAX];
    int r;

    made_close(k->file);
    k->file = NULL;
    r = made_open(&k->made.store, "identity", "source", rows, row_bytes, &k->file, NULL);
    snprintf(pattern, sizeof(pattern), "%s/made/*", k->cache.path);
    if (r == 0 && glob(pattern, 0, NULL, &found) == 0) {
        assert_int_equal(found.gl_pathc, 1);
        snprintf(k->path, sizeof(k->path), "%s", found.gl_pathv[0]);
        globfree(&found);
    }
    return r;
}

static void kept_init(struct kept *k, const char *folder, uint64_t limit)
{
    *k = (struct kept){.cache = {.path = (char *)folder}};
    made_files_init(&k->made, &k->cache, limit, &(struct notices){say, &k->said});
}

static void kept_release(struct kept *k)
{
    made_close(k->file);
    made_files_release(&k->made);
}
#define AUTO_KEPT AUTO(kept_release)

static void change(const char *path, uint64_t at, const void *bytes, size_t len)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
}

static void write_row(struct kept *k, uint64_t row)
{
    uint8_t bytes[BYTES];

    memset(bytes, (int)row + 1, BYTES);
    made_write(k->file, row, bytes);
}

static bool has_row(struct kept *k, uint64_t row)
{
    uint8_t bytes[BYTES], want[BYTES];

    memset(want, (int)row + 1, BYTES);
    return made_read(k->file, row, bytes) && !memcmp(bytes, want, BYTES);
}

static void check_tools(const struct kept *k, int r, uint64_t good, uint64_t bad)
{
    struct inventory_file info = {0};
    uint64_t found_good, found_bad;

    assert_int_equal(made_inspect(NULL, k->path, &info), r);
    if (r == 0) {
        assert_string_equal(info.source, "source");
        assert_int_equal(info.present, (good + bad) * BYTES);
    }
    free(info.source);
    assert_int_equal(made_verify(NULL, k->path, &found_good, &found_bad), r);
    assert_int_equal(found_good, good);
    assert_int_equal(found_bad, bad);
}

/* Content begins at the next multiple of 4096 after 2048 bytes and 8 for each array. */
UNIT_TEST_WITH(test_made__rows__where_the_specification_says, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t rows, content;
    } cases[] = {{1, 4096},   {255, 4096},  {256, 4096},  {257, 8192},
                 {768, 8192}, {769, 12288}, {9000, 77824}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t rows = cases[i].rows, last = cases[i].content + (rows - 1) * BYTES;
        AUTO_KEPT struct kept k;
        AUTO_CLOSE int fd = -1;
        uint8_t bytes[BYTES], want[BYTES];
        struct stat st;

        kept_init(&k, *state, 1 << 30);
        assert_int_equal(open_rows(&k, rows, BYTES), 0);
        assert_false(made_has(k.file, 0) || made_has(k.file, rows - 1));
        write_row(&k, rows - 1);
        write_row(&k, 0);
        write_row(&k, rows); /* there is none */
        assert_true(has_row(&k, 0) && has_row(&k, rows - 1));
        assert_true(made_has(k.file, 0) && !made_has(k.file, rows) && !has_row(&k, rows));
        assert_true(rows < 3 || (!made_has(k.file, 1) && !made_read(k.file, 1, bytes)));
        fd = open(k.path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, last + BYTES);
        assert_int_equal(pread(fd, bytes, BYTES, (off_t)last), BYTES);
        memset(want, (int)rows, BYTES);
        assert_memory_equal(bytes, want, BYTES);
        check_tools(&k, 0, rows > 1 ? 2 : 1, 0);
        assert_int_equal(open_rows(&k, rows, BYTES), 0); /* again */
        assert_true(has_row(&k, 0) && has_row(&k, rows - 1));
        assert_int_equal(k.said, 0);
    }
}

UNIT_TEST_WITH(test_made__damaged_or_of_another_place__not_read, temp_setup, temp_teardown)
{
    AUTO_KEPT struct kept k;
    uint8_t record[8], bytes[BYTES];
    AUTO_CLOSE int fd = -1;

    kept_init(&k, *state, 1 << 20);
    assert_int_equal(open_rows(&k, 4, BYTES), 0);
    for (uint64_t row = 0; row < 3; row++)
        write_row(&k, row);
    change(k.path, 4096 + BYTES + 5, "x", 1); /* row 1 */
    fd = open(k.path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, record, 8, HEAD), 8);
    assert_int_equal(pread(fd, bytes, BYTES, 4096), BYTES);
    change(k.path, HEAD + 8 * 2, record, 8); /* row 2 is row 0 */
    change(k.path, 4096 + 2 * BYTES, bytes, BYTES);
    assert_true(has_row(&k, 0));
    assert_true(made_has(k.file, 1) && !made_read(k.file, 1, bytes));
    assert_true(made_has(k.file, 2) && !made_read(k.file, 2, bytes));
    check_tools(&k, 0, 1, 2);
    check_tools(&k, 0, 1, 0); /* they are removed */
    assert_true(has_row(&k, 0) && !made_has(k.file, 1) && !made_has(k.file, 2));
    write_row(&k, 1);
    assert_true(has_row(&k, 1));
    assert_int_equal(open_rows(&k, 3, BYTES), 0); /* of another shape */
    assert_false(made_has(k.file, 0) || made_has(k.file, 1));
}

/* A header whose checksum is right, and which lies all the same. */
UNIT_TEST_WITH(test_made__header_lies__no_such_file, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t at;
        uint8_t bytes[8];
        size_t len;
    } cases[] = {
        {0, "E", 1},     /* the magic */
        {8, {1}, 1},     /* the version */
        {12, {1, 4}, 2}, /* a source of 1025 bytes */
        {16, {5}, 1},    /* arrays */
        {16, {0}, 8},
        {16, {0, 0, 0, 0, 0, 0, 0, 0x20}, 8}, /* 2^61 of them */
        {24, {BYTES + 1}, 1},                 /* their bytes */
        {24, {0}, 8},
        {24, {0, 0, 0, 0, 0, 0, 0, 0x40}, 8},
        {32, {0xff, 0xfe, 0xfd, 0xfc, 1, 2, 3, 4}, 8}, /* the id */
        {63, "x", 1},
    };

    for (size_t i = 0; i <= ARRAY_LEN(cases); i++) {
        AUTO_KEPT struct kept k;
        uint8_t head[HEAD];
        AUTO_CLOSE int fd = -1;

        kept_init(&k, *state, 1 << 20);
        assert_int_equal(open_rows(&k, 4, BYTES), 0);
        write_row(&k, 2);
        check_tools(&k, 0, 1, 0);
        fd = open(k.path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(pread(fd, head, HEAD, 0), HEAD);
        if (i < ARRAY_LEN(cases)) {
            memcpy(head + cases[i].at, cases[i].bytes, cases[i].len);
            store_le32(head + 2044, (uint32_t)crc32(0, head, 2044));
        } else {
            head[1500] = 1;
        }
        change(k.path, 0, head, HEAD);
        check_tools(&k, -EBADMSG, 0, 0);
        assert_int_equal(open_rows(&k, 4, BYTES), 0); /* is begun again */
        assert_false(made_has(k.file, 2));
        check_tools(&k, 0, 0, 0);
    }
}

UNIT_TEST_WITH(test_made__other_files__refused, temp_setup, temp_teardown)
{
    AUTO_KEPT struct kept k;
    struct inventory_file info;
    char copy[PATH_MAX];

    kept_init(&k, *state, 1 << 20);
    assert_int_equal(open_rows(&k, 1, BYTES), 0);
    for (unsigned i = 0; i < 2; i++) { /* another id; none */
        snprintf(copy, sizeof(copy), "%s", k.path);
        copy[strlen(copy) - 1] = i ? 'x' : copy[strlen(copy) - 1] == '0' ? '1' : '0';
        assert_int_equal(link(k.path, copy), 0);
        assert_int_equal(made_inspect(NULL, copy, &info), -EBADMSG);
        assert_int_equal(unlink(copy), 0);
    }
    assert_int_equal(truncate(k.path, 4096 + BYTES - 1), 0);
    assert_int_equal(made_inspect(NULL, k.path, &info), -EBADMSG);
    assert_int_equal(truncate(k.path, 100), 0);
    assert_int_equal(made_inspect(NULL, k.path, &info), -EBADMSG);
    assert_int_equal(unlink(k.path), 0);
    assert_int_equal(made_inspect(NULL, k.path, &info), -ENOENT);
}

UNIT_TEST_WITH(test_made__too_large_or_full__said_once, temp_setup, temp_teardown)
{
    static const uint64_t large[][2] = {
        {1, 0}, {UINT64_C(1) << 57 | 1, 1}, {1, UINT64_C(1) << 60 | 1}, {3, UINT64_C(1) << 59}};

    for (size_t i = 0; i <= ARRAY_LEN(large); i++) {
        AUTO_KEPT struct kept k;
        static uint8_t bytes[40000];

        kept_init(&k, *state, 100000);
        if (i < ARRAY_LEN(large)) {
            assert_int_equal(open_rows(&k, large[i][0], large[i][1]), -EFBIG);
        } else {
            assert_int_equal(open_rows(&k, 9, sizeof(bytes)), 0);
            for (uint64_t row = 0; row < 9; row++)
                made_write(k.file, row, bytes);
            assert_true(made_has(k.file, 0) && made_has(k.file, 1) && !made_has(k.file, 2));
        }
        assert_int_equal(k.said, 1);
    }
}

/* Each array takes of the quota what it takes on disk, until none is left. */
UNIT_TEST_WITH(test_made__quota__taken_until_it_is_full, temp_setup, temp_teardown)
{
    static uint8_t bytes[300000];
    AUTO_KEPT struct kept k;
    uint64_t used;

    kept_init(&k, *state, UINT64_C(1) << 30);
    assert_int_equal(quota_open(&k.cache, 1 << 20, 0, NULL, &k.cache.quota, NULL), 0);
    used = quota_used(k.cache.quota);
    assert_int_equal(open_rows(&k, 5, sizeof(bytes)), 0);
    assert_int_equal(quota_used(k.cache.quota), used + HEAD);
    for (uint64_t row = 0; row < 3; row++) {
        made_write(k.file, row, bytes);
        assert_int_equal(quota_used(k.cache.quota), used + HEAD + (row + 1) * 300008);
    }
    assert_int_equal(k.said, 0);
    made_write(k.file, 3, bytes);
    made_write(k.file, 4, bytes);
    assert_int_equal(k.said, 1);
    assert_true(made_has(k.file, 2) && !made_has(k.file, 3));
    assert_int_equal(quota_recount(k.cache.quota), 0); /* nothing is in flight */
    assert_in_range(quota_used(k.cache.quota), used + 900000, used + 940000);
    quota_close(k.cache.quota);
    k.cache.quota = NULL;
}
