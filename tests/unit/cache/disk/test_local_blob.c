/* Pieces of a local file: from its mapping or by reads, the same bytes; never zeros that are not in
 * the file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/disk/local_blob.h"
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

static void test_local_blob__many_pieces__the_bytes_of_the_file(void **state)
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
static void test_local_blob__cut_short__an_error_and_no_zeros(void **state)
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
static void test_local_blob__mapping_lost__reads_go_on(void **state)
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

static void test_local_blob__shorter_than_it_was__is_not_mapped(void **state)
{
    AUTO_FILE struct file f = {0};

    file_make(&f, *state);
    f.piece[7].off = SIZE;
    assert_int_equal(read_all(&f), -EINVAL);
    f.piece[7].off = 0;
    assert_int_equal(truncate(f.path, 100), 0);
    assert_int_equal(read_all(&f), -ESTALE);
}

/* What is unpacked has the ETag of the packed file, which a server may have made of time and size.
 */
static void test_local_blob__ours_of_one_etag__two_identities(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_local_blob__many_pieces__the_bytes_of_the_file,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_local_blob__cut_short__an_error_and_no_zeros,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_local_blob__ours_of_one_etag__two_identities,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_local_blob__mapping_lost__reads_go_on, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_local_blob__shorter_than_it_was__is_not_mapped,
                                        temp_setup, temp_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
