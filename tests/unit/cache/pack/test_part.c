/* Packed parts of files: their content, that each is unpacked once, and the treatment of damage. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/checked.h"
#include "cache/disk/local_blob.h"
#include "cache/disk/quota.h"
#include "cache/pack/unpack.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define CONTENT 300000
#define OFF     100
static uint8_t content[CONTENT], packed[2 * CONTENT];
static struct packed_part part;
static struct quota *limit;
static struct unpack_watch *watch;

/* A file with the part at OFF, and bytes after it. */
static void make(const char *folder)
{
    z_stream z = {
        .next_in = content, .avail_in = CONTENT, .next_out = packed + OFF, .avail_out = CONTENT};

    for (size_t i = 0; i < CONTENT; i++)
        content[i] = (uint8_t)(i * i >> 7);
    memset(packed, 0xee, sizeof(packed));
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    part = (struct packed_part){"x", OFF, z.total_out, CONTENT,
                                (uint32_t)crc32_z(0, content, CONTENT)};
    deflateEnd(&z);
    temp_write(folder, "f", packed, OFF + part.len + 50);
}

static int unpack(const char *folder, struct blob **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX], cache_path[PATH_MAX];
    const struct cache_folder cache = {.path = cache_path, .quota = limit};

    temp_path(folder, "f", path);
    temp_path(folder, "cache", cache_path);
    assert_int_equal(
        local_blob_new(open(path, O_RDONLY | O_CLOEXEC), "sub/f.npz", UINT64_MAX, false, &blob), 0);
    return unpack_part(blob, &part, &cache, watch, ret, d);
}

static unsigned count_entries(const char *folder)
{
    char path[PATH_MAX];
    unsigned n = 0;
    DIR *dir;

    temp_path(folder, "cache/unpacked", path);
    dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

UNIT_TEST_WITH(test_part__content_name_and_once, temp_setup, temp_teardown)
{
    AUTO_FREE uint8_t *got = malloc(CONTENT);

    make(*state);
    for (int i = 0; i < 2; i++) {
        AUTO_BLOB struct blob *blob = NULL;

        assert_int_equal(unpack(*state, &blob, NULL), 0);
        assert_string_equal(blob_name(blob), "sub/f.npz/x");
        assert_int_equal(blob->size, CONTENT);
        assert_int_equal(blob_pread(READ_WAITS, blob, got, CONTENT, 0), 0);
        assert_memory_equal(got, content, CONTENT);
        assert_int_equal(blob_check(blob), 0);
        assert_int_equal(count_entries(*state), 1);
    }
}

/* nothing of such a member is kept. */
static void check_bad(const char *folder, const char *want)
{
    struct diag d = DIAG_INIT;
    struct blob *blob = NULL;

    assert_int_equal(unpack(folder, &blob, &d), -EBADMSG);
    assert_int_equal(strncmp(d.text, "sub/f.npz: member x: ", 21), 0);
    assert_diag_has(&d, want);
    assert_int_equal(count_entries(folder), 0);
}

UNIT_TEST_WITH(test_part__wrong__ebadmsg, temp_setup, temp_teardown)
{
    struct packed_part good;

    make(*state);
    good = part;
    part.crc ^= 1;
    check_bad(*state, "CRC-32 of its 300000 bytes: expected ");
    part = good;
    part.size--;
    check_bad(*state, "expected 299999 bytes unpacked, got more");
    part = good;
    part.size++;
    check_bad(*state, ", got 300000 from ");
    part = good;
    part.len--;
    check_bad(*state, "and no end");
    part = good;
    part.len++;
    check_bad(*state, "expected 300000 bytes unpacked from ");
    part = good;
    part.len = 0;
    check_bad(*state, "and no end");
    part = good;
    part.off--;
    check_bad(*state, "deflated data: invalid ");
}

UNIT_TEST_WITH(test_part__bit_flips__never_wrong_content, temp_setup, temp_teardown)
{
    AUTO_FREE uint8_t *got = malloc(CONTENT);

    make(*state);
    for (size_t at = 0; at < part.len; at += part.len / 40) {
        AUTO_BLOB struct blob *blob = NULL;

        packed[OFF + at] ^= 16;
        temp_write(*state, "f", packed, OFF + part.len + 50);
        if (unpack(*state, &blob, NULL) == 0) {
            assert_int_equal(blob_pread(READ_WAITS, blob, got, CONTENT, 0), 0);
            assert_memory_equal(got, content, CONTENT);
        }
        packed[OFF + at] ^= 16;
    }
}

struct watching {
    struct unpack_watch watch;
    uint64_t last;
    unsigned calls;
};

static void note_progress(struct unpack_watch *of, const struct blob *blob, uint64_t bytes)
{
    struct watching *w = (struct watching *)of;

    assert_true(bytes > w->last && bytes < blob->size);
    w->last = bytes;
    w->calls++;
}

/* How far it is in the file; never to its end, which is that of the whole file. */
UNIT_TEST_WITH(test_part__watched__its_place_in_the_file, temp_setup, temp_teardown)
{
    for (unsigned i = 0; i < 2; i++) { /* bytes follow the part, or none do */
        struct watching w = {.watch = {note_progress}};
        AUTO_BLOB struct blob *blob = NULL;

        make(*state);
        assert_true(part.len < 256 * 1024);
        if (i) {
            char path[PATH_MAX];

            temp_path(*state, "f", path);
            assert_int_equal(truncate(path, (off_t)(OFF + part.len)), 0);
        }
        watch = &w.watch;
        assert_int_equal(unpack(*state, &blob, NULL), 0);
        watch = NULL;
        assert_int_equal(w.calls, 1);
        assert_int_equal(w.last, OFF + part.len - i);
    }
}

static int make_three(void *ctx, struct entry_sink *sink, struct diag *d)
{
    (void)ctx;
    (void)d;
    return entry_write(sink, "abc", 3);
}

/* Members of a group can put anything into its cache folder. */
UNIT_TEST_WITH(test_part__entry_of_another_size__refused, temp_setup, temp_teardown)
{
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX], cache_path[PATH_MAX], place[100];
    const struct cache_folder cache = {.path = cache_path};
    struct diag d = DIAG_INIT;
    struct blob *content_blob = NULL;
    struct entry entry;
    uint64_t size;
    int fd = -1;

    make(*state);
    temp_path(*state, "f", path);
    temp_path(*state, "cache", cache_path);
    assert_int_equal(
        local_blob_new(open(path, O_RDONLY | O_CLOEXEC), "sub/f.npz", UINT64_MAX, false, &blob), 0);
    snprintf(place, sizeof(place), " part %llu+%llu=%llu %08x", (unsigned long long)part.off,
             (unsigned long long)part.len, (unsigned long long)part.size, part.crc);
    assert_int_equal(unpack_entry(blob, place, "", &cache, &entry, NULL), 0);
    assert_int_equal(entry_make(&entry, false, make_three, NULL, &fd, &size, NULL), 0);
    close(fd);
    assert_int_equal(unpack(*state, &content_blob, &d), -EBADMSG);
    assert_diag_has(&d, "member x: the cache holds 3 bytes of it, expected 300000");
}

UNIT_TEST_WITH(test_part__no_room__reported_and_nothing_stays, temp_setup, temp_teardown)
{
    char path[PATH_MAX];
    const struct cache_folder cache = {.path = path};
    struct diag d = DIAG_INIT;
    struct blob *blob = NULL;

    make(*state);
    temp_path(*state, "cache", path);
    assert_int_equal(quota_open(&cache, CONTENT / 2, 0, NULL, &limit, NULL), 0);
    assert_int_equal(unpack(*state, &blob, &d), -ENOSPC);
    assert_diag_has(&d, "sub/f.npz: unpacking member x");
    assert_int_equal(count_entries(*state), 0);
    quota_close(limit);
    limit = NULL;
}
