/* Pieces of a local file: from its mapping or by reads, the same bytes; never zeros that are not in
 * the file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/local_blob.h"
#include "cache/disk/local_file.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define SIZE   300000
#define PIECES 100

static uint8_t byte_at(uint64_t off)
{
    return (uint8_t)(off * 2654435761u >> 13) | 1; /* none is zero */
}

struct file {
    char path[4096];
    struct blob *blob;
    uint8_t bytes[PIECES][600];
    struct blob_piece piece[PIECES];
};

static void file_release(struct file *f)
{
    blob_free(f->blob);
    unlink(f->path);
}
#define AUTO_FILE AUTO(file_release)

/* A file in the folder, its blob, and pieces all over it. */
static void file_make(struct file *f, const char *folder)
{
    FILE *out;
    int fd;

    snprintf(f->path, sizeof(f->path), "%s/data", folder);
    out = fopen(f->path, "w");
    assert_non_null(out);
    for (uint64_t i = 0; i < SIZE; i++)
        putc(byte_at(i), out);
    assert_int_equal(fclose(out), 0);
    fd = open(f->path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(local_blob_new(fd, "data", SIZE, false, &f->blob), 0);
    for (uint64_t i = 0; i < PIECES; i++)
        f->piece[i] = (struct blob_piece){f->bytes[i], 1 + i * 5 % 600, (i * 48271 + 3) % 299000};
}

static int read_all(struct file *f)
{
    memset(f->bytes, 0, sizeof(f->bytes));
    return blob_read_many(READ_WAITS, f->blob, f->piece, PIECES, NULL);
}

static void check_bytes(const struct file *f)
{
    for (unsigned i = 0; i < PIECES; i++)
        for (size_t k = 0; k < f->piece[i].len; k++)
            assert_int_equal(f->bytes[i][k], byte_at(f->piece[i].off + k));
}

UNIT_TEST_WITH(test_local_blob__many_pieces__the_bytes_of_the_file, temp_setup, temp_teardown)
{
    AUTO_FILE struct file f = {0};

    file_make(&f, *state);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(read_all(&f), 0);
        check_bytes(&f);
    }
    assert_int_equal(blob_check(f.blob), 0);
}

/* The mapping ends with a fault. The read says so, and later ones do. */
UNIT_TEST_WITH(test_local_blob__cut_short__an_error_and_no_zeros, temp_setup, temp_teardown)
{
    AUTO_FILE struct file f = {0};

    file_make(&f, *state);
    assert_int_equal(read_all(&f), 0);
    assert_int_equal(truncate(f.path, 5000), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(read_all(&f), -ESTALE);
    assert_int_equal(blob_check(f.blob), -ESTALE);
}

/* What can still be read after that is read without the mapping. */
UNIT_TEST_WITH(test_local_blob__mapping_lost__reads_go_on, temp_setup, temp_teardown)
{
    AUTO_FILE struct file f = {0};
    FILE *out;

    file_make(&f, *state);
    assert_int_equal(truncate(f.path, 5000), 0);
    assert_int_equal(read_all(&f), -ESTALE);
    out = fopen(f.path, "r+");
    assert_non_null(out);
    for (uint64_t i = 0; i < SIZE; i++)
        putc(byte_at(i), out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(read_all(&f), 0);
    check_bytes(&f);
    assert_int_equal(blob_check(f.blob), -ESTALE); /* but it is another version */
}

UNIT_TEST_WITH(test_local_blob__shorter_than_it_was__is_not_mapped, temp_setup, temp_teardown)
{
    AUTO_FILE struct file f = {0};

    file_make(&f, *state);
    f.piece[7].off = SIZE;
    assert_int_equal(read_all(&f), -EINVAL);
    f.piece[7].off = 0;
    assert_int_equal(truncate(f.path, 100), 0);
    assert_int_equal(read_all(&f), -ESTALE);
}

/* ---- blobs that are open only while they are read ---- */

#define LAZY 5

struct lazy {
    struct lazy_pool pool;
    struct blob *blob[LAZY];
    char path[LAZY][PATH_MAX];
};

static void lazy_make(struct lazy *l, const char *folder)
{
    lazy_pool_init(&l->pool);
    assert_in_range(l->pool.limit, 1, 256);
    l->pool.limit = 2;
    for (unsigned i = 0; i < LAZY; i++) {
        char name[8];
        int fd;

        snprintf(name, sizeof(name), "f%u", i);
        temp_write(folder, name, name, 2);
        temp_path(folder, name, l->path[i]);
        fd = open(l->path[i], O_RDONLY | O_CLOEXEC);
        assert_int_equal(lazy_blob_new(&l->pool, fd, l->path[i], i ? name : "another name", 2,
                                       i == 4, &l->blob[i]),
                         0);
        assert_string_equal(blob_name(l->blob[i]), i ? name : "another name");
        assert_int_equal(l->pool.n_open, i ? 2 : 1);
    }
}

static void lazy_release(struct lazy *l)
{
    for (unsigned i = 0; i < LAZY; i++)
        blob_free(l->blob[i]);
    lazy_pool_release(&l->pool);
}

static int next_fd(void)
{
    AUTO_CLOSE int fd = dup(0);

    return fd;
}

static int lazy_read(const struct lazy *l, unsigned i)
{
    char byte = 0;
    int r = blob_read(READ_WAITS, l->blob[i], &byte, 1, 1, NULL);

    assert_true(r < 0 || byte == '0' + (char)i);
    return r;
}

/* The latest two are open. The others are opened again if they still are of the same version. */
UNIT_TEST_WITH(test_lazy_blob__few_open__the_latest, temp_setup, temp_teardown)
{
    int before = next_fd(), none = -1;
    struct lazy l;

    lazy_make(&l, *state);
    for (unsigned i = 0; i < 3 * LAZY; i++) {
        assert_int_equal(lazy_read(&l, i % LAZY), 0);
        assert_int_equal(blob_check(l.blob[i % LAZY]), 0);
        assert_int_equal(l.pool.n_open, 2);
    }
    for (unsigned i = 0; i < LAZY; i++) /* 3 and 4 are open */
        assert_int_equal(unlink(l.path[i]), 0);
    assert_int_equal(lazy_read(&l, 3), 0);
    assert_int_equal(blob_check(l.blob[3]), -ESTALE); /* it has no name */
    assert_int_equal(blob_check(l.blob[4]), 0);       /* one of ours need not */
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(lazy_read(&l, i), -ESTALE);
    assert_int_equal(lazy_read(&l, 4), 0);
    assert_int_equal(blob_open_file(l.blob[4], 0, 2, &none, NULL), -EOPNOTSUPP);
    temp_write(*state, "f0", "f0", 2); /* another file with the same bytes */
    assert_int_equal(lazy_read(&l, 0), -ESTALE);
    assert_int_equal(l.pool.n_open, 2);
    blob_free(l.blob[4]); /* open */
    l.blob[4] = NULL;
    assert_int_equal(l.pool.n_open, 1);
    blob_free(l.blob[0]); /* closed */
    l.blob[0] = NULL;
    assert_int_equal(l.pool.n_open, 1);
    lazy_release(&l);
    assert_int_equal(next_fd(), before); /* none is left open */
}

/* A mount of ours that has a file of the cache folder open keeps it from being removed. */
UNIT_TEST_WITH(test_lazy_blob__ours__in_use_while_open, temp_setup, temp_teardown)
{
    int other, fd;
    struct lazy l;

    lazy_make(&l, *state); /* 4 is ours, and was not marked by its opener */
    other = open(l.path[4], O_RDWR | O_CLOEXEC);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(lazy_read(&l, i), 0);
    assert_false(file_has_lock(other, FILE_LOCK_USE, 1));
    assert_int_equal(lazy_read(&l, 4), 0);
    assert_true(file_has_lock(other, FILE_LOCK_USE, 1));
    fd = open(l.path[1], O_RDWR | O_CLOEXEC);
    assert_int_equal(lazy_read(&l, 1), 0);
    assert_false(file_has_lock(fd, FILE_LOCK_USE, 1));
    close(fd);
    close(other);
    lazy_release(&l);
}

/* The whole file, as long as it is of that version. */
UNIT_TEST_WITH(test_local_blob__opened_again__if_whole, temp_setup, temp_teardown)
{
    AUTO_BLOB struct blob *blob = NULL, *part = NULL;
    char path[PATH_MAX];
    int fd = -1;

    temp_write(*state, "f", "hello", 5);
    temp_path(*state, "f", path);
    assert_int_equal(
        local_blob_new(open(path, O_RDONLY | O_CLOEXEC), "f", UINT64_MAX, false, &blob), 0);
    assert_int_equal(local_blob_new(open(path, O_RDONLY | O_CLOEXEC), "f", 4, false, &part), 0);
    assert_int_equal(blob->size, 5);
    assert_int_equal(blob_open_file(blob, 0, 5, &fd, NULL), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 5);
    close(fd);
    assert_int_equal(blob_open_file(blob, 1, 4, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(blob_open_file(blob, 0, 4, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(blob_open_file(part, 0, 4, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(truncate(path, 6), 0);
    assert_int_equal(blob_open_file(blob, 0, 5, &fd, NULL), -ESTALE);
    assert_true(local_blob_new(-1, "f", 4, false, &part) < 0);
}

/* What is unpacked has the ETag of the packed file, which a server may have made of time and size.
 */
UNIT_TEST_WITH(test_local_blob__ours_of_one_etag__two_identities, temp_setup, temp_teardown)
{
    char *identity[2] = {NULL}, path[PATH_MAX];

    for (unsigned i = 0; i < 2; i++) {
        AUTO_BLOB struct blob *blob = NULL;
        char name[2] = {(char)('a' + i)};

        temp_write(*state, name, "hello", 5);
        temp_path(*state, name, path);
        assert_int_equal(
            local_blob_new(open(path, O_RDONLY | O_CLOEXEC), name, UINT64_MAX, true, &blob), 0);
        blob->etag = strdup("\"63-5\"");
        assert_int_equal(blob_identity(blob, &identity[i]), 0);
    }
    assert_string_not_equal(identity[0], identity[1]);
    free(identity[0]);
    free(identity[1]);
}
