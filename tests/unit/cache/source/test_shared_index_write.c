/* The indexes of `.epochfs/`: one file for all of them, or a file each if they are too large. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/folder.h"
#include "cache/source/shared_index.h"
#include "cache/source/source.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define MOST SHARED_JOINED_MOST
#define USES 4

/* The indexes of a store have their numbers as identities, and begin and end with their number plus
 * 1. 0: the index is gone. */
static uint64_t sizes[USES];

static int sized_load(const struct index_store *keep, const char *type, const char *identity,
                      struct kept_index *ret)
{
    unsigned long i = strtoul(identity, NULL, 10);

    (void)keep;
    assert_string_equal(type, "rows");
    if (!sizes[i])
        return -ENOENT;
    *ret = (struct kept_index){.bytes = calloc(1, sizes[i]), .size = sizes[i]};
    assert_non_null(ret->bytes);
    ret->bytes[0] = ret->bytes[sizes[i] - 1] = (uint8_t)(i + 1);
    return 0;
}

static const struct index_store_ops sized_ops = {.load = sized_load};
static const struct index_store sized_store = {.ops = &sized_ops};

/* Write indexes of these sizes. Returns what shared_index_write() does. */
static int write_sizes(const char *dir, const uint64_t *size, unsigned n)
{
    const struct remote remote = {0};
    const struct source source = {.only_file = (char *)"file", .remote = &remote};
    struct shared_index shared;
    struct diag d = DIAG_INIT;
    size_t written = 0;
    bool has_list = true;
    int r;

    shared_index_init(&shared, &sized_store, &source);
    shared.notes = true;
    shared.use = calloc(n, sizeof(*shared.use));
    assert_non_null(shared.use);
    for (; shared.n_uses < n; shared.n_uses++) {
        struct shared_use *use = &shared.use[shared.n_uses];

        sizes[shared.n_uses] = size[shared.n_uses];
        use->type = strdup("rows");
        assert_true(asprintf(&use->identity, "%zu", shared.n_uses) > 0);
        snprintf(use->name, sizeof(use->name), "%064zx", n - shared.n_uses); /* not in that order */
    }
    r = shared_index_write(&shared, dir, &written, &has_list, &d);
    if (r == 0) {
        assert_int_equal(written, n);
        assert_false(has_list);
    } else {
        assert_true(d.set);
    }
    shared_index_release(&shared);
    return r;
}

/* A file as a text; the caller frees it. size: it must have that many bytes; 0: any. */
static char *read_named(const char *dir, const char *name, uint64_t size)
{
    char path[PATH_MAX];
    struct stat st;
    char *bytes;
    int fd;

    temp_path(dir, name, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    if (size)
        assert_int_equal(st.st_size, size);
    bytes = malloc((size_t)st.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    bytes[st.st_size] = '\0';
    close(fd);
    return bytes;
}

static unsigned count_files(const char *dir)
{
    AUTO_DIR DIR *d = opendir(dir);
    unsigned n = 0;

    assert_non_null(d);
    while (folder_next(d))
        n++;
    return n;
}

static void expect_index(const char *bytes, const struct shared_line *line, unsigned n)
{
    unsigned use = n - (unsigned)strtoul(line->name, NULL, 16);
    char sum[DIGEST_TEXT_SIZE];

    assert_int_equal(line->size, sizes[use]);
    assert_int_equal(bytes[0], use + 1);
    assert_int_equal(bytes[line->size - 1], use + 1);
    assert_int_equal(digest_text_of(bytes, line->size, sum), 0);
    assert_string_equal(sum, line->sum);
}

static void expect_written(const char *dir, unsigned n, bool is_joined)
{
    char *text = read_named(dir, SHARED_INDEX_TABLE, 0), *joined = NULL;
    struct shared_table table;
    struct diag d = DIAG_INIT;

    assert_int_equal(strncmp(text, is_joined ? SHARED_INDEX_HEAD : SHARED_INDEX_HEAD_2,
                             strlen(SHARED_INDEX_HEAD)),
                     0);
    assert_int_equal(shared_table_read(text, strlen(text), &table, &d), 0);
    assert_int_equal(table.n_indexes, n);
    assert_int_equal(!!table.joined.name, is_joined);
    assert_int_equal(count_files(dir), 1 + (is_joined ? 1 : n));
    if (is_joined)
        joined = read_named(dir, table.joined.name, table.joined.size);
    for (unsigned i = 0; i < n; i++) {
        const struct shared_line *line = &table.index[i];
        char *alone = is_joined ? NULL : read_named(dir, line->name, line->size);

        expect_index(is_joined ? joined + line->at : alone, line, n);
        free(alone);
    }
    free(joined);
    shared_table_release(&table);
}

UNIT_TEST_WITH(test_indexes__of_at_most_8_mib__one_file, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t size[USES];
        unsigned n;
        bool is_joined;
    } cases[] = {
        {{1}, 1, true},         {{MOST}, 1, true},
        {{MOST + 1}, 1, false}, {{MOST - 5, 2, 3}, 3, true},
        {{MOST, 1}, 2, false},  {{7, MOST - 7, 1, 9}, 4, false},
        {{3, MOST}, 2, false},  {{9, 8, 2 * MOST, 1}, 4, false},
    };
    char dir[PATH_MAX];

    temp_path(*state, "made", dir);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) { /* each in the place of the one before */
        assert_int_equal(write_sizes(dir, cases[i].size, cases[i].n), 0);
        expect_written(dir, cases[i].n, cases[i].is_joined);
    }
    assert_int_equal(count_files(*state), 1);
}

/* One is gone from the cache folder: what was there is as it was, and nothing else is left. */
UNIT_TEST_WITH(test_indexes__one_is_gone__folder_as_before, temp_setup, temp_teardown)
{
    char dir[PATH_MAX];

    temp_path(*state, "made", dir);
    assert_int_equal(write_sizes(dir, (uint64_t[]){5, 6}, 2), 0);
    assert_int_equal(write_sizes(dir, (uint64_t[]){1, MOST, 1, 0}, 4), -EIO);
    sizes[0] = 5, sizes[1] = 6;
    expect_written(dir, 2, true);
    assert_int_equal(count_files(*state), 1);
}
