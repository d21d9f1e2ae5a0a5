/* Mapped files that are cut short while they are mapped. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "base/scope.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define SIZE 10000

/* What another thread does just after a range was unmapped. */
static void (*after_munmap)(void);

int __wrap_munmap(void *bytes, size_t size);
int __real_munmap(void *bytes, size_t size);

int __wrap_munmap(void *bytes, size_t size)
{
    int r = __real_munmap(bytes, size);

    if (after_munmap)
        after_munmap();
    return r;
}

static int make_file(const char *folder, char path[static PATH_MAX])
{
    uint8_t bytes[SIZE];
    int fd;

    memset(bytes, 7, sizeof(bytes));
    temp_write(folder, "a", bytes, sizeof(bytes));
    temp_path(folder, "a", path);
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

UNIT_TEST_WITH(test_open__whole_file__its_bytes, temp_setup, temp_teardown)
{
    struct mapped_file file = {0};
    char path[PATH_MAX];
    int fd = make_file(*state, path);

    assert_int_equal(mapped_file_open(fd, SIZE, &file), 0);
    close(fd);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(file.bytes[i], 7);
    assert_false(mapped_file_is_lost(&file));
    mapped_file_close(&file);
    assert_null(file.bytes);
    mapped_file_close(&file);
}

static void on_bus(int number)
{
    (void)number;
}

/* The handler of the program is set again after the last file; a later one is kept. */
UNIT_TEST_WITH(test_close__last_file__handler_as_before, temp_setup, temp_teardown)
{
    struct sigaction mine = {.sa_handler = on_bus}, now, original;
    struct mapped_file file = {0}, other = {0};
    char path[PATH_MAX];
    int fd = make_file(*state, path);

    sigaction(SIGBUS, &mine, &original);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(mapped_file_open(fd, SIZE, &file), 0);
        assert_int_equal(mapped_file_open(fd, SIZE, &other), 0);
        assert_true(mapped_file_open(-1, SIZE, &(struct mapped_file){0}) < 0);
        mapped_file_close(&file);
        sigaction(SIGBUS, NULL, &now);
        assert_true(now.sa_handler != on_bus);
        mapped_file_close(&other);
        sigaction(SIGBUS, NULL, &now);
        assert_true(now.sa_handler == on_bus);
    }
    assert_int_equal(mapped_file_open(fd, SIZE, &file), 0);
    sigaction(SIGBUS, &original, NULL);
    mapped_file_close(&file);
    sigaction(SIGBUS, NULL, &now);
    assert_true(now.sa_handler == original.sa_handler);
    close(fd);
}

/* Other mappings are kept. */
UNIT_TEST_WITH(test_open__cut_short__zeros_and_lost, temp_setup, temp_teardown)
{
    AUTO(mapped_file_close) struct mapped_file file = {0}, other = {0};
    unsigned sum = 0;
    char path[PATH_MAX];
    AUTO_CLOSE int fd = make_file(*state, path);

    assert_int_equal(mapped_file_open(fd, SIZE, &file), 0);
    assert_int_equal(mapped_file_open(fd, 4096, &other), 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_false(mapped_file_is_lost(&file));
    for (size_t i = 0; i < SIZE; i++)
        sum += ((const volatile uint8_t *)file.bytes)[i];
    assert_true(sum <= 7 * 4096); /* what was read before the fault has come */
    assert_int_equal(file.bytes[0], 0);
    assert_true(mapped_file_is_lost(&file));
    assert_false(mapped_file_is_lost(&other));
    assert_int_equal(other.bytes[4095], 7);
}

/* Another file that gets the range of one that is being closed has a slot of its own: if it is cut
 * short, it is the one that is lost. */
static struct mapped_file next;
static int next_fd;

static void map_next_and_cut(void)
{
    after_munmap = NULL;
    assert_int_equal(mapped_file_open(next_fd, SIZE, &next), 0);
    assert_int_equal(ftruncate(next_fd, 0), 0);
    assert_int_equal(((const volatile uint8_t *)next.bytes)[0], 0);
    assert_true(mapped_file_is_lost(&next));
}

UNIT_TEST_WITH(test_close__range_given_to_another__that_one_is_lost, temp_setup, temp_teardown)
{
    struct mapped_file file = {0};
    char path[PATH_MAX];
    AUTO_CLOSE int fd = make_file(*state, path);
    const uint8_t *range;

    next_fd = fd;
    assert_int_equal(mapped_file_open(fd, SIZE, &file), 0);
    range = file.bytes;
    after_munmap = map_next_and_cut;
    mapped_file_close(&file);
    assert_ptr_equal(next.bytes, range); /* else nothing was tested */
    mapped_file_close(&next);
}

UNIT_TEST_WITH(test_open__many__no_more_than_the_most, temp_setup, temp_teardown)
{
    static struct mapped_file file[MAPPED_FILES_MAX + 1];
    char path[PATH_MAX];
    AUTO_CLOSE int fd = make_file(*state, path);

    for (unsigned i = 0; i < MAPPED_FILES_MAX; i++)
        assert_int_equal(mapped_file_open(fd, SIZE, &file[i]), 0);
    assert_int_equal(mapped_file_open(fd, SIZE, &file[MAPPED_FILES_MAX]), -EMFILE);
    mapped_file_close(&file[17]);
    assert_int_equal(mapped_file_open(fd, SIZE, &file[MAPPED_FILES_MAX]), 0);
    for (unsigned i = 0; i <= MAPPED_FILES_MAX; i++)
        mapped_file_close(&file[i]);
}

UNIT_TEST_WITH(test_open__no_file__error, temp_setup, temp_teardown)
{
    struct mapped_file file = {0};

    assert_int_equal(mapped_file_open(-1, SIZE, &file), -EBADF);
    assert_null(file.bytes);
}
