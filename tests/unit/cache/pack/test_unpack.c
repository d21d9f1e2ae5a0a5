/* Packed files: their content, that each is unpacked once, and the treatment of damage. */
#include <bzlib.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

#include "cache/disk/local_blob.h"
#include "cache/disk/quota.h"
#include "cache/pack/unpack.h"
#include "cache/source/source.h"
#include "support/random.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define PACKED_SIZE (1 << 20)

struct packed {
    uint8_t bytes[PACKED_SIZE];
    size_t len;
};

/* Add one gzip member. */
static void add_member(struct packed *p, const void *content, size_t len)
{
    z_stream z = {.next_in = (Bytef *)content,
                  .avail_in = (uInt)len,
                  .next_out = p->bytes + p->len,
                  .avail_out = (uInt)(PACKED_SIZE - p->len)};
    gz_header header = {.name = (Bytef *)"stored-name", .comment = (Bytef *)"a comment", .hcrc = 1};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflateSetHeader(&z, &header), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    p->len = PACKED_SIZE - z.avail_out;
    deflateEnd(&z);
}

static void add_bytes(struct packed *p, const void *bytes, size_t len)
{
    memcpy(p->bytes + p->len, bytes, len);
    p->len += len;
}

static void add_zeros(struct packed *p, size_t len)
{
    memset(p->bytes + p->len, 0, len);
    p->len += len;
}

static struct packed *packed_new(void)
{
    struct packed *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    return p;
}

static struct quota *limit; /* of the cache folder; NULL: none */
static struct unpack_watch *watch;

/* Unpack folder/f into folder/cache. */
static int unpack_file(const char *folder, struct blob **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX], cache_path[PATH_MAX];
    struct cache_folder cache = {.path = cache_path, .quota = limit};
    int r;

    temp_path(folder, "f", path);
    temp_path(folder, "cache", cache_path);
    r = local_blob_new(open(path, O_RDONLY | O_CLOEXEC), "sub/f.gz", UINT64_MAX, false, &blob);
    if (r < 0)
        return r;
    r = unpack_blob(&blob, &cache, watch, d);
    if (r == 0)
        *ret = TAKE_PTR(blob);
    return r;
}

static int unpack_bytes(const char *folder, const struct packed *p, struct blob **ret,
                        struct diag *d)
{
    temp_write(folder, "f", p->bytes, p->len);
    return unpack_file(folder, ret, d);
}

static void check_content(struct blob *blob, const void *want, size_t len)
{
    AUTO_FREE uint8_t *got = malloc(len ? len : 1);

    assert_int_equal(blob->size, len);
    assert_int_equal(blob_pread(READ_WAITS, blob, got, len, 0), 0);
    assert_memory_equal(got, want, len);
    assert_int_equal(blob_check(blob), 0);
    assert_int_equal(blob_pread(READ_WAITS, blob, got, 1, len),
                     -EINVAL); /* the trailer is not shown */
}

/* The path of the one file in folder/cache/unpacked whose name has that many letters. */
static bool find_unpacked(const char *folder, size_t name_len, char ret[static PATH_MAX])
{
    char path[PATH_MAX];
    const struct dirent *entry;
    bool found = false;
    DIR *dir;

    temp_path(folder, "cache/unpacked", path);
    dir = opendir(path);
    assert_non_null(dir);
    while (!found && (entry = readdir(dir))) {
        found = strlen(entry->d_name) == name_len;
        if (found)
            temp_path(path, entry->d_name, ret);
    }
    closedir(dir);
    return found;
}

#define DONE_LEN 64
#define PART_LEN 69

static void check_good(const char *folder, const struct packed *p, const void *want, size_t len)
{
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    char path[PATH_MAX];

    if (unpack_bytes(folder, p, &blob, &d) < 0)
        fail_msg("%s", d.text);
    check_content(blob, want, len);
    assert_string_equal(blob_name(blob), "sub/f.gz");
    assert_false(find_unpacked(folder, PART_LEN, path));
}

static void check_bad(const char *folder, const struct packed *p, const char *message)
{
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    char path[PATH_MAX];

    assert_int_equal(unpack_bytes(folder, p, &blob, &d), -EBADMSG);
    assert_diag_has(&d, "sub/f.gz");
    assert_diag_has(&d, message);
    assert_false(find_unpacked(folder, PART_LEN, path)); /* no half file is left */
    assert_false(find_unpacked(folder, DONE_LEN, path));
}

static struct quota *open_limit(const char *folder, uint64_t bytes)
{
    char path[PATH_MAX];
    const struct cache_folder cache = {.path = path};
    struct diag d = DIAG_INIT;
    struct quota *quota;

    temp_path(folder, "cache", path);
    if (quota_open(&cache, bytes, 0, NULL, &quota, &d) < 0)
        fail_msg("%s", d.text);
    return quota;
}

static void check_no_room(const char *folder, size_t len, uint64_t most, const char *words)
{
    AUTO_FREE struct packed *p = packed_new();
    AUTO_FREE char *zeros = calloc(1, len);
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    char path[PATH_MAX], piece[PATH_MAX + 64];
    uint64_t used;

    add_member(p, zeros, len);
    limit = open_limit(folder, most);
    used = quota_used(limit);
    assert_int_equal(unpack_bytes(folder, p, &blob, &d), -ENOSPC);
    assert_diag_has(&d, "sub/f.gz: unpacking gzip");
    assert_diag_has(&d, "bytes in the cache folder");
    assert_diag_has(&d, words);
    temp_path(folder, "cache", path);
    snprintf(piece, sizeof(piece), "cache folder %s,", path);
    assert_diag_has(&d, piece);
    assert_false(find_unpacked(folder, PART_LEN, path));
    assert_false(find_unpacked(folder, DONE_LEN, path));
    assert_int_equal(quota_used(limit), used);
    assert_int_equal(quota_recount(limit), 0);
    assert_int_equal(quota_used(limit), used);
    quota_close(limit);
    limit = NULL;
}

/* The maker of the content meets the limit, or the thread that writes it. */
UNIT_TEST_WITH(test_unpack__no_room__reported_and_nothing_stays, temp_setup, temp_teardown)
{
    check_no_room(*state, 900000, 800000, "of its limit of 800000 in use");
    check_no_room(*state, 9000000, 2800000, "of its limit of 2800000 in use");
}

struct counting {
    struct unpack_watch watch;
    uint64_t last;
    unsigned calls;
};

static void count_progress(struct unpack_watch *of, const struct blob *packed, uint64_t bytes)
{
    struct counting *c = (struct counting *)of;

    assert_true(c->calls ? bytes > c->last && bytes <= packed->size : bytes == 0);
    c->last = bytes;
    c->calls++;
}

UNIT_TEST_WITH(test_unpack__watched__reported_of_all, temp_setup, temp_teardown)
{
    struct counting counting = {.watch = {count_progress}};
    AUTO_FREE struct packed *p = packed_new();

    add_member(p, "hello", 5);
    add_zeros(p, 300000);
    watch = &counting.watch;
    check_good(*state, p, "hello", 5);
    assert_int_equal(counting.last, p->len);
    assert_true(counting.calls > 2);
    counting.calls = 0;
    check_good(*state, p, "hello", 5); /* was unpacked before */
    watch = NULL;
    assert_true(counting.calls == 0 || counting.last == p->len);
}

/* Packed as one zlib stream. */
static void add_zlib(struct packed *p, const void *content, size_t len)
{
    uLongf n = PACKED_SIZE - p->len;

    assert_int_equal(compress2(p->bytes + p->len, &n, content, len, 6), Z_OK);
    p->len += n;
}

/* The head does not pack, so the stream is longer than what tells that it is one. */
UNIT_TEST_WITH(test_zlib__stream_and_zeros__content, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    uint8_t content[100000];
    uint64_t random = 1;

    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)(i < 2000 ? random_next(&random) : i >> 8);
    add_zlib(p, content, sizeof(content));
    assert_int_equal(p->bytes[0], 0x78);
    check_good(*state, p, content, sizeof(content));
    add_zeros(p, 300000);
    check_good(*state, p, content, sizeof(content));
    p->len = 0;
    add_zlib(p, "short", 5);
    check_good(*state, p, "short", 5);
    p->len = 0;
    add_zlib(p, "", 0);
    check_good(*state, p, "", 0);
}

UNIT_TEST_WITH(test_zlib__damage__ebadmsg, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    uint8_t content[4000];
    uint64_t random = 1;
    size_t whole;

    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)random_next(&random);
    add_zlib(p, content, sizeof(content));
    whole = p->len;
    add_bytes(p, "x", 1);
    check_bad(*state, p, "after the zlib data: expected zeros, got 78");
    p->len = whole - 1;
    check_bad(*state, p, "zlib data: expected its end, got the end of the file");
    p->len = whole;
    p->bytes[whole - 1] ^= 1;
    check_bad(*state, p, "zlib data near byte");
}

/* The quota is enough to the block. */
UNIT_TEST_WITH(test_unpack__just_enough_room__unpacked, temp_setup, temp_teardown)
{
    const uint64_t on_disk = 221 * 4096; /* 900000 bytes and the trailer, in disk blocks: 220 */
    AUTO_FREE struct packed *p = packed_new();
    AUTO_FREE char *zeros = calloc(1, 900000);
    uint64_t used;

    add_member(p, zeros, 900000);
    limit = open_limit(*state, 4 << 20);
    used = quota_used(limit);
    quota_close(limit);
    limit = open_limit(*state, used + on_disk - 4096);
    check_good(*state, p, zeros, 900000);
    assert_int_equal(quota_used(limit), used + on_disk - 4096);
    assert_int_equal(quota_recount(limit), 0);
    assert_int_equal(quota_used(limit), used + on_disk - 4096);
    quota_close(limit);
    limit = NULL;
}

#define HELLO "hello, hello, hello"

/* Flip each bit of packed HELLO from byte `from` on: its content, or an error; mostly an error. */
static void check_flips(const char *folder, struct packed *p, size_t from)
{
    size_t refused = 0;

    for (size_t bit = from * 8; bit < p->len * 8; bit++) {
        struct blob *blob = NULL;
        struct diag d = DIAG_INIT;

        p->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (unpack_bytes(folder, p, &blob, &d) == 0)
            check_content(blob, HELLO, strlen(HELLO)); /* time or name of the header, padding */
        else
            refused++;
        blob_free(blob);
        p->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(refused > p->len * 4);
}

/* ---- what all packings of several streams have ---- */

static void add_bzip2(struct packed *p, const void *content, size_t len)
{
    unsigned n = (unsigned)(PACKED_SIZE - p->len);

    assert_int_equal(BZ2_bzBuffToBuffCompress((char *)p->bytes + p->len, &n,
                                              (char *)(uintptr_t)content, (unsigned)len,
                                              len < 4 ? 9 : 1, 0, 0),
                     BZ_OK);
    p->len += n;
}

/* A frame with its size and checksum. */
static void add_zstd(struct packed *p, const void *content, size_t len)
{
    ZSTD_CCtx *z = ZSTD_createCCtx();

    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    p->len += ZSTD_compress2(z, p->bytes + p->len, PACKED_SIZE - p->len, content, len);
    assert_true(p->len <= PACKED_SIZE);
    ZSTD_freeCCtx(z);
}

#ifdef HAVE_LZMA
static void add_xz(struct packed *p, const void *content, size_t len)
{
    assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, content, len, p->bytes,
                                             &p->len, PACKED_SIZE),
                     LZMA_OK);
}
#endif

static const struct packing {
    const char *name, *another;
    size_t magic; /* bytes: shorter files are not packed */
    void (*add)(struct packed *p, const void *content, size_t len);
} packings[] = {
    {"gzip", "another member (1f 8b) or zeros", 2, add_member},
    {"bzip2", "another stream (42 5a 68) or zeros", 10, add_bzip2},
    {"zstd", "another frame (28 b5 2f fd) or zeros", 4, add_zstd},
#ifdef HAVE_LZMA
    {"xz", "another stream (fd 37 7a 58 5a) or zeros", 6, add_xz},
#endif
};

/* Content and input of more than a chunk, with streams that end anywhere in it. */
UNIT_TEST_WITH(test_packings__large__content, temp_setup, temp_teardown)
{
    const size_t len = 3000000;
    AUTO_FREE struct packed *p = packed_new();
    AUTO_FREE uint8_t *content = malloc(len);
    uint64_t random = 1;

    for (size_t i = 0; i < len; i++) /* the end is not packable */
        content[i] = (uint8_t)(i < 2500000 ? i >> 12 : random_next(&random));
    for (size_t i = 0; i < ARRAY_LEN(packings); i++) {
        p->len = 0;
        packings[i].add(p, content, 2600000);
        packings[i].add(p, content + 2600000, 300000);
        packings[i].add(p, content + 2900000, 100000);
        check_good(*state, p, content, len);
    }
}

/* It gives nothing until all of it was read. */
UNIT_TEST_WITH(test_bzip2__block_larger_than_a_read__content, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    AUTO_FREE uint8_t *content = malloc(700000);
    unsigned n = PACKED_SIZE;
    uint64_t random = 1;

    for (size_t i = 0; i < 700000; i++)
        content[i] = (uint8_t)(random_next(&random) >> 20);
    assert_int_equal(
        BZ2_bzBuffToBuffCompress((char *)p->bytes, &n, (char *)content, 700000, 9, 0, 0), BZ_OK);
    p->len = n;
    check_good(*state, p, content, 700000);
}

UNIT_TEST_WITH(test_packings__streams_and_zeros__all_content, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();

    for (size_t i = 0; i < ARRAY_LEN(packings); i++) {
        p->len = 0;
        packings[i].add(p, "", 0);
        check_good(*state, p, "", 0);
        packings[i].add(p, "hel", 3);
        packings[i].add(p, "", 0);
        packings[i].add(p, "lo", 2);
        check_good(*state, p, "hello", 5);
        add_zeros(p, 1000);
        check_good(*state, p, "hello", 5);
        add_zeros(p, 300000); /* beyond one read */
        check_good(*state, p, "hello", 5);
        packings[i].add(p, "!", 1);
        check_good(*state, p, "hello!", 6);
    }
}

UNIT_TEST_WITH(test_packings__damage__ebadmsg, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    char message[200];

    for (size_t i = 0; i < ARRAY_LEN(packings); i++) {
        size_t whole;

        p->len = 0;
        packings[i].add(p, HELLO, strlen(HELLO));
        whole = p->len;
        snprintf(message, sizeof(message),
                 "%s data: expected its end, got the end of the file at byte", packings[i].name);
        for (p->len = packings[i].magic; p->len < whole; p->len++)
            check_bad(*state, p, message);
        p->len = whole;
        p->bytes[whole - 3] ^= 0xff; /* of a checksum, or of what ends the stream */
        snprintf(message, sizeof(message), "sub/f.gz: %s data near byte", packings[i].name);
        check_bad(*state, p, message);
        p->bytes[whole - 3] ^= 0xff;
        snprintf(message, sizeof(message), "after the %s data: expected %s, got 78",
                 packings[i].name, packings[i].another);
        add_bytes(p, "x", 1);
        check_bad(*state, p, message);
        p->len = whole;
        add_zeros(p, 5);
        add_bytes(p, "x", 1);
        check_bad(*state, p, message);
    }
}

UNIT_TEST_WITH(test_packings__bit_flips__never_wrong_content, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();

    for (size_t i = 0; i < ARRAY_LEN(packings); i++) {
        p->len = 0;
        packings[i].add(p, HELLO, strlen(HELLO));
        check_flips(*state, p, packings[i].magic);
    }
}

UNIT_TEST_WITH(test_unpack__not_packed__as_it_is, temp_setup, temp_teardown)
{
    static const char *const contents[] = {
        "",           "\x1f",       "hello",      "PK\3\4",           "\xfd",
        "x",          "x^",         "x^2",        "x\x9c and text",   "x\x9c\1\2\3\4",
        "BZh01AY&SY", "BZh:1AY&SY", "BZh91AY&SZ", "\x1f\xb5\x2f\xfd", "\x21\xb5\x2f\xfd"};
    static const uint8_t length[] = {0x78, 0x9c, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4}; /* of a record */
    char path[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        AUTO_BLOB struct blob *blob = NULL;

        temp_write(*state, "f", contents[i], strlen(contents[i]));
        assert_int_equal(unpack_file(*state, &blob, NULL), 0);
        check_content(blob, contents[i], strlen(contents[i]));
    }
    for (uint8_t high = 0; high < 255; high++) { /* any length of a record, and any bytes of it */
        AUTO_BLOB struct blob *blob = NULL;
        uint8_t record[3000] = {0};

        memcpy(record, length, sizeof(length));
        record[2] = high;
        temp_write(*state, "f", record, sizeof(record));
        assert_int_equal(unpack_file(*state, &blob, NULL), 0);
        check_content(blob, record, sizeof(record));
    }
    temp_path(*state, "cache", path);
    assert_int_not_equal(access(path, F_OK), 0); /* no file was made */
}

UNIT_TEST_WITH(test_unpack__meta__of_the_packed_file, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX];

    add_member(p, "hello", 5);
    temp_write(*state, "f", p->bytes, p->len);
    temp_path(*state, "f", path);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){{1, 2}, {3, 4}}, 0), 0);
    assert_int_equal(unpack_file(*state, &blob, NULL), 0);
    assert_int_equal(blob->mtime.tv_sec, 3);
    assert_int_equal(blob->mtime.tv_nsec, 4);
    assert_int_equal(blob->mode, 0640);
    assert_int_equal(blob->uid, geteuid());
}

UNIT_TEST_WITH(test_unpack__folder__ours_alone, temp_setup, temp_teardown)
{
    static const char *const names[] = {"cache", "cache/unpacked"};
    AUTO_FREE struct packed *p = packed_new();
    char path[PATH_MAX];
    struct stat st;

    add_member(p, "hello", 5);
    check_good(*state, p, "hello", 5);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        temp_path(*state, names[i], path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
    }
    assert_true(find_unpacked(*state, DONE_LEN, path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

UNIT_TEST_WITH(test_unpack__twice__the_file_already_there, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    struct stat first, second;
    char path[PATH_MAX];
    AUTO_BLOB struct blob *blob = NULL;

    add_member(p, "hello", 5);
    check_good(*state, p, "hello", 5);
    assert_true(find_unpacked(*state, DONE_LEN, path));
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(unpack_file(*state, &blob, NULL), 0);
    check_content(blob, "hello", 5);
    assert_int_equal(stat(path, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_int_equal(first.st_ctim.tv_nsec, second.st_ctim.tv_nsec);
}

UNIT_TEST_WITH(test_unpack__new_version__unpacked_anew, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();

    add_member(p, "hello", 5);
    check_good(*state, p, "hello", 5);
    add_member(p, " again", 6);
    check_good(*state, p, "hello again", 11);
}

/* Spoil the unpacked file; the next open makes it again. */
static void check_spoiled(const char *folder, void (*spoil)(const char *path))
{
    AUTO_FREE struct packed *p = packed_new();
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    char path[PATH_MAX];

    add_member(p, "hello", 5);
    check_good(folder, p, "hello", 5);
    assert_true(find_unpacked(folder, DONE_LEN, path));
    spoil(path);
    if (unpack_file(folder, &blob, &d) < 0)
        fail_msg("%s", d.text);
    check_content(blob, "hello", 5);
    assert_false(find_unpacked(folder, PART_LEN, path));
}

static void write_over(const char *path, const char *bytes, size_t len, off_t off)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, off), len);
    close(fd);
}

static void spoil_truncate(const char *path)
{
    assert_int_equal(truncate(path, 68), 0);
}

static void spoil_empty(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void spoil_foreign(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
    write_over(path, "foreign", 7, 1000);
}

/* Bytes of the source's name after the content: sub/f.gz. */
#define NAMED 8

static void spoil_source(const char *path)
{
    write_over(path, "S", 1, 5 + 1);
}

static void spoil_trailer(const char *path)
{
    write_over(path, "0", 1, 5 + NAMED + 30);
}

static void spoil_content(const char *path)
{
    write_over(path, "H", 1, 2);
}

static void spoil_longer(const char *path)
{
    assert_int_equal(truncate(path, 5 + NAMED + 64 + 1), 0);
}

static void spoil_shifted(const char *path) /* a whole trailer, behind other content */
{
    uint8_t trailer[64];
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, trailer, 64, 5 + NAMED), 64);
    assert_int_equal(pwrite(fd, trailer, 64, 9 + NAMED), 64);
    close(fd);
}

UNIT_TEST_WITH(test_unpack__spoiled_file__replaced, temp_setup, temp_teardown)
{
    check_spoiled(*state, spoil_truncate);
    check_spoiled(*state, spoil_empty);
    check_spoiled(*state, spoil_foreign);
    check_spoiled(*state, spoil_source);
    check_spoiled(*state, spoil_trailer);
    check_spoiled(*state, spoil_content);
    check_spoiled(*state, spoil_longer);
    check_spoiled(*state, spoil_shifted);
}

static void spoil_link(const char *path)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
}

UNIT_TEST_WITH(test_unpack__link_in_its_place__replaced, temp_setup, temp_teardown)
{
    check_spoiled(*state, spoil_link);
}

UNIT_TEST_WITH(test_unpack__part_left_over__started_anew, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX], part[PATH_MAX + 8];

    add_member(p, "hello", 5);
    check_good(*state, p, "hello", 5);
    assert_true(find_unpacked(*state, DONE_LEN, path));
    snprintf(part, sizeof(part), "%s.part", path);
    assert_int_equal(rename(path, part), 0); /* as if the writer had died, even with a trailer */
    write_over(part, "HELLO, more than that", 21, 0);
    write_over(part, "and longer than what comes now", 30, 500);
    assert_int_equal(unpack_file(*state, &blob, NULL), 0);
    check_content(blob, "hello", 5);
    assert_int_not_equal(access(part, F_OK), 0);
}

static void *unpack_thread(void *arg)
{
    struct blob *blob = NULL;
    uint8_t byte = 0;
    intptr_t bad = unpack_file(arg, &blob, NULL) < 0 || blob->size != 2000000 ||
                   blob_pread(READ_WAITS, blob, &byte, 1, 1999999) < 0 || byte != 'x';

    blob_free(blob);
    return (void *)bad;
}

UNIT_TEST_WITH(test_unpack__threads_at_once__all_get_it, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    AUTO_FREE uint8_t *content = malloc(2000000);
    pthread_t thread[8];
    char path[PATH_MAX];

    memset(content, 'x', 2000000);
    add_member(p, content, 2000000);
    temp_write(*state, "f", p->bytes, p->len);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, unpack_thread, *state), 0);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++) {
        void *bad = NULL;

        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
    assert_false(find_unpacked(*state, PART_LEN, path));
    assert_true(find_unpacked(*state, DONE_LEN, path));
}

UNIT_TEST_WITH(test_unpack__processes_at_once__all_get_it, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    AUTO_FREE uint8_t *content = malloc(2000000);
    pid_t child[4];
    char path[PATH_MAX];

    memset(content, 'x', 2000000);
    add_member(p, content, 2000000);
    temp_write(*state, "f", p->bytes, p->len);
    for (size_t i = 0; i < ARRAY_LEN(child); i++) {
        child[i] = fork();
        if (child[i] == 0)
            _exit(unpack_thread(*state) != NULL);
        assert_true(child[i] > 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(child); i++) {
        int status = -1;

        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_false(find_unpacked(*state, PART_LEN, path));
}

UNIT_TEST_WITH(test_unpack__cache_folder_not_writable__names_it, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    add_member(p, "hello", 5);
    temp_write(*state, "cache", "a file", 6); /* in the place of a folder */
    assert_true(unpack_bytes(*state, p, &blob, &d) < 0);
    assert_diag_has(&d, "cache");
    assert_diag_has(&d, "-o cache_dir=DIR");
}

UNIT_TEST(test_unpacked_name_len__suffixes__stripped_once)
{
    static const struct {
        const char *name, *want;
    } cases[] = {{"a.gz", "a"},    {"a.xz", "a"},  {"a.gz.xz", "a.gz"},
                 {"a.GZ", "a.GZ"}, {".gz", ".gz"}, {"a", "a"},
                 {"", ""},         {"agz", "agz"}, {"a.gz.b", "a.gz.b"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(unpacked_name_len(cases[i].name), strlen(cases[i].want));
}

/* ---- files of a remote: none of their bytes is read before it is known that they need it ---- */

static unsigned done; /* how often a blob was not needed any more */

static void no_fetch(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter)
{
    (void)blob;
    (void)off;
    (void)len;
    (void)waiter;
}

static void count_done(const struct blob *blob)
{
    (void)blob;
    done++;
}

/* A blob of folder/f as if it were of a remote. */
static struct blob *open_remote(const char *folder, const char *name)
{
    static struct blob_ops ops;
    struct blob *blob = NULL;
    char path[PATH_MAX];

    temp_path(folder, "f", path);
    assert_int_equal(
        local_blob_new(open(path, O_RDONLY | O_CLOEXEC), name, UINT64_MAX, false, &blob), 0);
    ops = *blob->ops;
    ops.fetch = no_fetch;
    ops.done = count_done;
    blob->ops = &ops;
    return blob;
}

UNIT_TEST_WITH(test_unpack__remote__found_without_its_bytes, temp_setup, temp_teardown)
{
    static const char *const names[] = {"sub/f.gz", "sub/f"}; /* told by name, or by the head */
    char cache_path[PATH_MAX];
    const struct cache_folder cache = {.path = cache_path};

    temp_path(*state, "cache", cache_path);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE struct packed *p = packed_new();
        AUTO_BLOB struct blob *blob = NULL, *again = NULL;

        done = 0;
        add_member(p, names[i], strlen(names[i]));
        temp_write(*state, "f", p->bytes, p->len);
        blob = open_remote(*state, names[i]);
        blob->etag = strdup("\"e\"");
        assert_false(unpack_is_done(blob, &cache));
        assert_int_equal(unpack_find(&blob, &cache, NULL), -ENOENT);
        assert_int_equal(unpack_blob(&blob, &cache, NULL, NULL), 0);
        check_content(blob, names[i], strlen(names[i]));
        assert_string_equal(blob->etag, "\"e\"");
        assert_int_equal(done, 1);
        again = open_remote(*state, names[i]);
        again->etag = strdup("\"e\"");
        assert_int_equal(unpack_is_done(again, &cache), i == 0);
        assert_int_equal(unpack_find(&again, &cache, NULL), 0);
        check_content(again, names[i], strlen(names[i]));
        assert_int_equal(done, 2);
    }
}

/* It is called as if it were packed, and is not; and the cache may have no place for it. */
UNIT_TEST_WITH(test_unpack__remote_by_name_only__as_it_is, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    char path[PATH_MAX], part[PATH_MAX], inside[PATH_MAX];
    const struct cache_folder cache = {.path = path};
    struct entry entry;

    for (unsigned i = 0; i < 4; i++) { /* packed; no place */
        AUTO_BLOB struct blob *blob = NULL;
        struct diag d = DIAG_INIT;
        int r;

        p->len = 0;
        if (i % 2)
            add_member(p, "hello", 5);
        else
            add_bytes(p, "hello", 5);
        temp_write(*state, "f", p->bytes, p->len);
        temp_path(*state, i < 2 ? "cache" : "full", path);
        blob = open_remote(*state, "sub/f.gz");
        assert_int_equal(unpack_entry(blob, "", "", &cache, &entry, NULL), 0);
        entry_path(&entry, ".part", part);
        if (i >= 2) {
            snprintf(inside, sizeof(inside), "%.*s/x", PATH_MAX - 3, part);
            assert_int_equal(mkdir(part, 0700) + mkdir(inside, 0700), 0);
        }
        r = unpack_blob(&blob, &cache, NULL, &d);
        assert_int_equal(r, i == 3 ? -EISDIR : 0);
        if (i == 3)
            assert_diag_has(&d, "expected a file, got a folder that is not empty");
        else
            check_content(blob, "hello", 5);
        assert_int_equal(access(part, F_OK), i < 2 ? -1 : 0);
    }
}

UNIT_TEST(test_packed_suffix__every_packing__listed_once)
{
    static const char *const want[] = {"", ".gz", ".xz", ".zst", ".bz2"};

    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_string_equal(packed_suffix(i), want[i]);
    assert_null(packed_suffix(ARRAY_LEN(want)));
}

UNIT_TEST(test_cache_folder__environment__in_that_order)
{
    static const char *const names[] = {"EPOCHFS_CACHE", "SLURM_TMPDIR", "TMPDIR", "XDG_CACHE_HOME",
                                        "HOME"};
    char own[64];
    const char *const want[] = {
        "/usr", own, own, "/usr/epochfs", "/usr/.cache/epochfs", "/var/cache/epochfs"};
    AUTO_FREE char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    AUTO_FREE char *tmpdir = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    struct cache_folder cache;

    snprintf(own, sizeof(own), "/usr/epochfs-%u", (unsigned)geteuid());
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        setenv(names[i], "/usr", 1);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(cache_folder_init(&cache, NULL), 0);
        assert_string_equal(cache.path, want[i]);
        assert_int_equal(cache.is_default, i > 0);
        cache_folder_release(&cache);
        if (!strcmp(i < ARRAY_LEN(names) ? names[i] : "", "EPOCHFS_CACHE"))
            unsetenv(names[i]); /* a folder that the user names is used as it is */
        else if (i < ARRAY_LEN(names))
            setenv(names[i], i % 2 ? "" : "/no/such/folder", 1); /* counts as none */
    }
    assert_int_equal(cache_folder_init(&cache, "/named"), 0);
    assert_string_equal(cache.path, "/named");
    assert_false(cache.is_default);
    cache_folder_release(&cache);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    if (home)
        setenv("HOME", home, 1);
    if (tmpdir)
        setenv("TMPDIR", tmpdir, 1);
}

UNIT_TEST_WITH(test_cache_folder__default_of_another_user__eperm, temp_setup, temp_teardown)
{
    struct cache_folder cache = {.path = (char *)"/", .is_default = true};
    struct diag d = DIAG_INIT;
    char path[PATH_MAX], sub[PATH_MAX];

    if (geteuid() == 0) { /* a folder of another user */
        temp_folder(*state, "foreign");
        temp_path(*state, "foreign", path);
        assert_int_equal(chown(path, 1234, 1234), 0);
        cache.path = path;
        assert_int_equal(cache_folder_sub(&cache, "unpacked", sub, sizeof(sub), &d), -EPERM);
        assert_diag_has(&d, "got one of user 1234");
    }
    temp_folder(*state, "real");
    temp_path(*state, "link", path);
    assert_int_equal(symlink("real", path), 0);
    cache.path = path;
    assert_int_equal(cache_folder_sub(&cache, "unpacked", sub, sizeof(sub), NULL), -EPERM);
    cache.is_default = false; /* named by the user: then a link is fine */
    assert_int_equal(cache_folder_sub(&cache, "unpacked", sub, sizeof(sub), NULL), 0);
}

#define ADD_TEXT(p, text) add_bytes(p, text, sizeof(text) - 1)
#define MAGIC_ZSTD        "\x28\xb5\x2f\xfd"
#define SKIPPED           "\x5e\x2a\x4d\x18\3\0\0\0abc"
#define RAW_HI            "\x11\0\0hi" /* the last block, as it is */

UNIT_TEST_WITH(test_zstd__frames_of_other_kinds__content, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();

    ADD_TEXT(p, SKIPPED);
    add_zstd(p, "hel", 3);
    add_zstd(p, "", 0);
    ADD_TEXT(p, SKIPPED);
    add_zstd(p, "lo", 2);
    add_zeros(p, 300000);
    ADD_TEXT(p, MAGIC_ZSTD "\0\x58" RAW_HI); /* neither size nor checksum; a window of 2 MiB */
    ADD_TEXT(p, SKIPPED);
    check_good(*state, p, "hellohi", 7);
    p->len = 0;
    ADD_TEXT(p,
             MAGIC_ZSTD "\0\xa8" RAW_HI); /* a window of 2 GiB that so small a file cannot fill */
    check_good(*state, p, "hi", 2);
}

UNIT_TEST_WITH(test_zstd__skippable_at_the_end__watched_to_the_end, temp_setup, temp_teardown)
{
    struct counting counting = {.watch = {count_progress}};
    AUTO_FREE struct packed *p = packed_new();

    add_zstd(p, "hello", 5);
    ADD_TEXT(p, "\x50\x2a\x4d\x18\0\0\x0c\0"); /* 768 KiB, more than any buffer */
    add_zeros(p, 0xc0000);
    watch = &counting.watch;
    check_good(*state, p, "hello", 5);
    watch = NULL;
    assert_int_equal(counting.last, p->len);
}

UNIT_TEST_WITH(test_zstd__heads_that_ask_too_much__ebadmsg, temp_setup, temp_teardown)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *message;
    } cases[] = {
#define CASE(text, message) {text, sizeof(text) - 1, message}
        CASE(MAGIC_ZSTD "\1\0\x2a" RAW_HI,
             "byte 0: expected one without a dictionary, got one with "
             "dictionary 42. Unpack it with zstd -d -D"),
        CASE(MAGIC_ZSTD "\0\xa9" RAW_HI, "window of at most 256 MiB, got one of 2304 MiB"),
        CASE(MAGIC_ZSTD "\0\xff" RAW_HI, "Unpack it with zstd -d --long=31"),
        CASE("\x27\xb5\x2f\xfd\0\0", "a format of before 0.8"),
        CASE("\x22\xb5\x2f\xfd\0\0", "a format of before 0.8"),
        CASE("\x1e\xb5\x2f\xfd\0\0", "a format of before 0.8"),
        CASE(SKIPPED SKIPPED, "sub/f.gz: zstd data: expected a frame with content"),
        CASE("\x50\x2a\x4d\x18\4\0\0\0abc", "got the end of the file at byte 11"),
        CASE("\x50\x2a\x4d\x18\0\0", "got the end of the file at byte 6"),
    };
    AUTO_FREE struct packed *p = packed_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        p->len = 0;
        add_bytes(p, cases[i].bytes, cases[i].len);
        check_bad(*state, p, cases[i].message);
    }
    /* The same window of 2 GiB, in a file that could fill more than 256 MiB of it. */
    p->len = 0;
    ADD_TEXT(p, MAGIC_ZSTD "\0\xa8");
    add_zeros(p, 9000);
    check_bad(*state, p, "window of at most 256 MiB, got one of 2048 MiB");
    p->len = 8192; /* 2049 blocks could be in it */
    check_bad(*state, p, "window of at most 256 MiB, got one of 2048 MiB");
    p->len = 8191;
    check_bad(*state, p, "zstd data: expected its end, got the end of the file");
}

UNIT_TEST_WITH(test_zstd__claimed_size_beyond_the_quota__enospc_and_nothing_removed, temp_setup,
               temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    ADD_TEXT(p, MAGIC_ZSTD "\xc0\0\0\0\0\0\0\0\0\x10" RAW_HI); /* 2^60 bytes */
    limit = open_limit(*state, 800000);
    assert_int_equal(unpack_bytes(*state, p, &blob, &d), -ENOSPC);
    assert_diag_has(&d, "expected space for at least 1152921504606847");
    assert_diag_has(&d, "of its limit of 800000 in use");
    quota_close(limit);
    limit = NULL;
}

#ifndef HAVE_LZMA
UNIT_TEST_WITH(test_xz__build_without_liblzma__eopnotsupp, temp_setup, temp_teardown)
{
    AUTO_FREE struct packed *p = packed_new();
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    add_bytes(p,
              "\xfd"
              "7zXZ\0",
              6);
    assert_int_equal(unpack_bytes(*state, p, &blob, &d), -EOPNOTSUPP);
    assert_diag_has(&d, "sub/f.gz: expected a packing of this build, got xz data");
}
#endif
