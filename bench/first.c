/* epochfs-bench-first: what the bars of first reads are compared with.
 *
 *   epochfs-bench-first touch MIB
 *
 * Fills so much memory and frees it. A virtual machine may hand out memory that it has not touched
 * before at 0.25 GB/s; after this, what is measured is not its host.
 *
 *   epochfs-bench-first random FILE DEPTH COUNT
 *
 * Reads COUNT pages of 4 KiB at random places of a file, past the page cache, DEPTH at a time, as
 * fio does. Prints microseconds.
 *
 *   epochfs-bench-first ranges FILE
 *
 * Reads ranges of a file, "OFFSET LENGTH" a line of stdin, in that order into one buffer. Prints
 * microseconds and bytes.
 *
 *   epochfs-bench-first frames FILE
 *
 * The same for ranges that are frames of zstd each, which it unpacks. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

enum { PAGE = 4096, DEPTH_MAX = 256, RANGE_MAX = 1 << 26 };

static void die(const char *what, int error)
{
    fprintf(stderr, "epochfs-bench-first: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint64_t microseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t v = strtoull(text, &end, 10);

    if (end == text || *end)
        die(text, EINVAL);
    return v;
}

static int open_file(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);

    if (fd < 0)
        die(path, errno);
    return fd;
}

/* ---- touch ---- */

static void touch(uint64_t mib)
{
    size_t size = (size_t)mib << 20;
    volatile char *memory = malloc(size);

    if (!memory)
        die("touch", ENOMEM);
    for (size_t at = 0; at < size; at += PAGE)
        memory[at] = 1;
    free((void *)memory);
}

/* ---- random ---- */

static struct {
    int fd;
    uint64_t pages, count;
    _Atomic uint64_t next;
} random_reads;

static void *read_pages(void *arg)
{
    uint64_t state = (uintptr_t)arg * 0x9e3779b97f4a7c15u + microseconds();
    void *page;

    if (posix_memalign(&page, PAGE, PAGE) != 0)
        die("random", ENOMEM);
    while (atomic_fetch_add(&random_reads.next, 1) < random_reads.count) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        if (pread(random_reads.fd, page, PAGE,
                  (off_t)(state * 0x2545f4914f6cdd1du % random_reads.pages * PAGE)) != PAGE)
            die("random", errno ? errno : EIO);
    }
    free(page);
    return NULL;
}

static void random_pages(const char *path, uint64_t depth, uint64_t count)
{
    pthread_t thread[DEPTH_MAX];
    struct stat st;
    uint64_t begin;

    random_reads.fd = open_file(path, O_DIRECT);
    random_reads.count = count;
    if (fstat(random_reads.fd, &st) < 0)
        die(path, errno);
    random_reads.pages = (uint64_t)st.st_size / PAGE;
    if (depth > DEPTH_MAX || !random_reads.pages)
        die("random", EINVAL);
    begin = microseconds();
    for (uint64_t i = 0; i < depth; i++)
        if (pthread_create(&thread[i], NULL, read_pages, (void *)(uintptr_t)(i + 1)) != 0)
            die("random", EAGAIN);
    for (uint64_t i = 0; i < depth; i++)
        pthread_join(thread[i], NULL);
    printf("%" PRIu64 "\n", microseconds() - begin);
}

/* ---- ranges ---- */

struct range {
    uint64_t off, len;
};

static struct range *read_list(size_t *ret_n)
{
    size_t n = 0, capacity = 1024;
    struct range *list = malloc(capacity * sizeof(*list)), *more;

    while (list && scanf("%" SCNu64 " %" SCNu64, &list[n].off, &list[n].len) == 2) {
        if (list[n].len > RANGE_MAX)
            die("a range", E2BIG);
        if (++n < capacity)
            continue;
        capacity *= 2;
        more = realloc(list, capacity * sizeof(*list));
        if (!more)
            free(list);
        list = more;
    }
    if (!list)
        die("ranges", ENOMEM);
    *ret_n = n;
    return list;
}

static void read_ranges(const char *path, bool unpacks)
{
    size_t n;
    struct range *list = read_list(&n);
    char *buffer = malloc(RANGE_MAX), *unpacked = malloc(RANGE_MAX);
    uint64_t begin, bytes = 0;
    int fd = open_file(path, 0);

    if (!buffer || !unpacked)
        die("ranges", ENOMEM);
    begin = microseconds();
    for (size_t i = 0; i < n; i++) {
        if (pread(fd, buffer, list[i].len, (off_t)list[i].off) != (ssize_t)list[i].len)
            die(path, errno ? errno : EIO);
        if (unpacks && ZSTD_isError(ZSTD_decompress(unpacked, RANGE_MAX, buffer, list[i].len)))
            die(path, EBADMSG);
        bytes += list[i].len;
    }
    printf("%" PRIu64 " %" PRIu64 "\n", microseconds() - begin, bytes);
    free(buffer);
    free(unpacked);
    free(list);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "touch"))
        touch(number(argv[2]));
    else if (argc == 5 && !strcmp(argv[1], "random"))
        random_pages(argv[2], number(argv[3]), number(argv[4]));
    else if (argc == 3 && (!strcmp(argv[1], "ranges") || !strcmp(argv[1], "frames")))
        read_ranges(argv[2], !strcmp(argv[1], "frames"));
    else
        die("usage: touch MIB | random FILE DEPTH COUNT | ranges FILE | frames FILE", EINVAL);
    return 0;
}
