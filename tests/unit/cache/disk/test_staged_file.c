/* Staged files: a reader that keeps to the protocol of cache/disk/staged_file.c never takes a wrong
 * byte, whatever happens to the file; claims, drops and removal by several processes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/inventory.h"
#include "cache/disk/staged_file.h"
#include "support/random.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define BLOCK STAGED_BLOCK_LEAST

/* Where things are in the file, by docs/spec/cache-format.md. */
#define AT_VERSION 8
#define AT_CRC     1520
#define AT_RECORDS 1536

/* A file system without holes. */
static bool no_punch;

/* Two keys have one id, as if SHA-256 were broken. */
static bool same_ids;

int __wrap_staged_make_digest(const struct staged_key *key, uint8_t *ret);
int __real_staged_make_digest(const struct staged_key *key, uint8_t *ret);

int __wrap_staged_make_digest(const struct staged_key *key, uint8_t *ret)
{
    int r = __real_staged_make_digest(key, ret);

    if (same_ids)
        memset(ret, 0x5a, 32);
    return r;
}

int __wrap_fallocate64(int fd, int mode, off_t off, off_t len);
int __real_fallocate64(int fd, int mode, off_t off, off_t len);

int __wrap_fallocate64(int fd, int mode, off_t off, off_t len)
{
    if (no_punch) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_fallocate64(fd, mode, off, len);
}

/* ---- a model of its users ---- */

/* The byte of the remote's file at i; never 0, so holes differ. */
static uint8_t content_byte(uint64_t i)
{
    return (uint8_t)(1 + (i * 167 + (i >> 8) * 31 + (i >> 12) * 7) % 255);
}

static void content(uint64_t off, size_t len, uint8_t *ret)
{
    for (size_t i = 0; i < len; i++)
        ret[i] = content_byte(off + i);
}

static const struct staged_key usual = {
    .url = "https://example.org/train.bin", .version = "etag \"1\"", .size = 10000, .block = BLOCK};
#define ID_OF_USUAL                                                                                \
    "b5c439f9bf820e9e96df80558ed1d9e9"                                                             \
    "91ee40f574bcffde39d9b97aeaec4aa6" /* docs/spec/cache-format.md */

static struct cache_folder folder_of(const char *path)
{
    return (struct cache_folder){.path = (char *)path};
}

static struct staged open_key(const char *folder, const struct staged_key *key)
{
    const struct cache_folder cache = folder_of(folder);
    struct staged staged;
    struct diag d = DIAG_INIT;

    if (staged_open(&staged, &cache, key, &d) < 0)
        fail_msg("%s", d.text);
    return staged;
}

static void inspected_release(struct inventory_file *info)
{
    free(info->source);
}

static int inspect_file(const char *path, struct inventory_file *ret)
{
    free(ret->source);
    *ret = (struct inventory_file){0};
    return staged_inspect(NULL, path, ret);
}

static void path_of(const char *folder, const struct staged *staged, char ret[static PATH_MAX])
{
    char name[96];

    snprintf(name, sizeof(name), "staged/%s", staged->id);
    temp_path(folder, name, ret);
}

static void path_of_content(const char *folder, const struct staged *staged,
                            char ret[static PATH_MAX])
{
    char name[96];

    snprintf(name, sizeof(name), "staged/%s.content", staged->id);
    temp_path(folder, name, ret);
}

/* Fetch a block: 0, or -EBUSY: another one does. */
static int fetch(const struct staged *staged, uint64_t block)
{
    uint8_t buf[BLOCK];
    uint32_t len = staged_block_len(staged, block);
    uint64_t record;
    int r;

    if (staged_claim(staged, block, 1) != 1)
        return -EBUSY;
    content(block * BLOCK, len, buf);
    r = staged_write(staged, buf, len, block * BLOCK);
    record = staged_checksum(staged, block, buf);
    if (r == 0)
        r = staged_publish(staged, block, 1, &record);
    staged_unclaim(staged, block, 1);
    return r;
}

static void fetch_all(const struct staged *staged)
{
    for (uint64_t i = 0; i < staged->blocks; i++)
        assert_int_equal(fetch(staged, i), 0);
}

/* A reader that keeps to the protocol, with what it knows of each block. */
#define KNOWN_MOST 3000
struct reader {
    struct staged staged;
    uint64_t drops;
    bool good[KNOWN_MOST];
};

/* 1: the block's bytes; 0: it is absent, or wrong, or dropped meanwhile. */
static int reader_read(struct reader *reader, uint64_t block, uint8_t *buf)
{
    uint32_t len = staged_block_len(&reader->staged, block);
    uint64_t drops = staged_drops(&reader->staged), record;

    if (drops != reader->drops || drops == UINT64_MAX)
        memset(reader->good, 0, sizeof(reader->good));
    reader->drops = drops;
    if (!reader->good[block]) {
        staged_records(&reader->staged, block, 1, &record);
        if (!record || staged_read(&reader->staged, buf, len, block * BLOCK) < 0 ||
            staged_checksum(&reader->staged, block, buf) != record)
            return 0;
        reader->good[block] = true;
    }
    if (staged_read(&reader->staged, buf, len, block * BLOCK) < 0)
        return 0;
    drops = staged_drops(&reader->staged);
    return drops == reader->drops && drops != UINT64_MAX;
}

static bool is_right(const struct staged *staged, uint64_t block, const uint8_t *buf)
{
    static uint8_t want[KNOWN_MOST * BLOCK];
    static bool made;

    if (!made)
        content(0, sizeof(want), want);
    made = true;
    return memcmp(buf, want + block * BLOCK, staged_block_len(staged, block)) == 0;
}

/* The number of blocks that a reader can read; all must be right. */
static unsigned read_all(struct reader *reader)
{
    uint8_t buf[BLOCK];
    unsigned n = 0;

    for (uint64_t i = 0; i < reader->staged.blocks; i++)
        if (reader_read(reader, i, buf)) {
            assert_true(is_right(&reader->staged, i, buf));
            n++;
        }
    return n;
}

/* The same for a reader that opens the file now. */
static unsigned read_anew(const char *folder)
{
    struct reader reader = {.staged = open_key(folder, &usual)};
    unsigned n = read_all(&reader);

    staged_close(&reader.staged);
    return n;
}

/* ---- one process ---- */

static void check_round_trip(const char *folder, uint64_t size)
{
    struct staged_key key = usual;
    struct reader reader = {0}, other = {0};
    uint64_t blocks = (size + BLOCK - 1) / BLOCK;
    uint8_t byte = 0;

    key.size = size;
    reader.staged = open_key(folder, &key);
    other.staged = open_key(folder, &key);
    assert_int_equal(reader.staged.blocks, blocks);
    assert_int_equal(read_all(&other), 0);
    for (uint64_t i = 0; i < blocks; i += 2)
        assert_int_equal(fetch(&reader.staged, i), 0);
    assert_int_equal(read_all(&other), (blocks + 1) / 2);
    fetch_all(&reader.staged);
    assert_int_equal(read_all(&other), blocks);
    staged_close(&reader.staged);
    reader.staged = open_key(folder, &key);
    assert_int_equal(read_all(&reader), blocks);
    assert_int_equal(staged_read(&reader.staged, &byte, 1, size), -EINVAL);
    assert_int_equal(staged_write(&reader.staged, &byte, 1, size), -EINVAL);
    staged_close(&reader.staged);
    staged_close(&other.staged);
}

UNIT_TEST_WITH(test_staged__content__round_trip, temp_setup, temp_teardown)
{
    const uint64_t sizes[] = {0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 10000, 63 * BLOCK + 5};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        check_round_trip(*state, sizes[i]);
}

/* Another key means another file, and so does the same text cut elsewhere. */
UNIT_TEST_WITH(test_staged__keys__names, temp_setup, temp_teardown)
{
    struct staged_key key[] = {usual, usual, usual, usual, usual, usual};
    struct staged staged[ARRAY_LEN(key)];

    key[1].version = "etag \"2\"";
    key[2].size++;
    key[3].block *= 2;
    key[4].url = "https://example.org/train.bim";
    key[5].url = "https://example.org/train.binetag";
    key[5].version = " \"1\"";
    for (size_t i = 0; i < ARRAY_LEN(key); i++) {
        staged[i] = open_key(*state, &key[i]);
        assert_int_equal(strlen(staged[i].id), 64);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(staged[i].id, staged[k].id);
    }
    for (size_t i = 0; i < ARRAY_LEN(key); i++)
        staged_close(&staged[i]);
}

/* A block's bytes with the record of another block, or of another file's, are wrong. */
UNIT_TEST_WITH(test_staged__block_at_wrong_place__not_taken, temp_setup, temp_teardown)
{
    struct staged_key key = usual;
    struct staged staged = open_key(*state, &usual), other;
    uint8_t same[BLOCK] = {0};

    key.version = "etag \"2\"";
    other = open_key(*state, &key);
    assert_int_not_equal(staged_checksum(&staged, 0, same), staged_checksum(&staged, 1, same));
    assert_int_not_equal(staged_checksum(&staged, 0, same), staged_checksum(&other, 0, same));
    assert_int_not_equal(staged_checksum(&staged, 0, same), 0);
    staged_close(&other);
    staged_close(&staged);
}

/* ---- damage ---- */

/* All bytes of a file, which the caller frees. */
static uint8_t *slurp(int fd, size_t *ret_len)
{
    struct stat st;
    uint8_t *bytes;

    assert_int_equal(fstat(fd, &st), 0);
    bytes = malloc((size_t)st.st_size + 1);
    assert_int_equal(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
    *ret_len = (size_t)st.st_size;
    return bytes;
}

/* The next place in a file of len bytes to change it or to cut it: any in the records and at a
 * border of blocks, and a few of those between, which are alike. */
static size_t next_place(bool is_content, size_t at, size_t len)
{
    const size_t near = 20, step = 37;
    size_t next = at + 1;

    while (is_content && next + near < len && next - at < step && (next + near) % BLOCK > 2 * near)
        next++;
    return next;
}

static void put_back(int fd, const uint8_t *bytes, size_t len)
{
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
    assert_int_equal(pwrite(fd, bytes, len, 0), len);
}

/* Change bytes of one of both files, under a reader that has them open and before one opens them.
 */
static void check_any_byte_changed(const char *folder, bool seals, bool is_content)
{
    struct staged writer = open_key(folder, &usual);
    struct reader open_one = {.staged = open_key(folder, &usual)};
    AUTO_FREE uint8_t *records = NULL, *all = NULL;
    int fd = is_content ? writer.fd : writer.records;
    size_t n_records, n_all;

    fetch_all(&writer);
    if (seals)
        assert_int_equal(staged_seal(&writer, NULL), 0);
    records = slurp(writer.records, &n_records);
    all = slurp(writer.fd, &n_all);
    for (size_t i = 0, len = is_content ? n_all : n_records; i < len;
         i = next_place(is_content, i, len)) {
        const uint8_t *bytes = is_content ? all : records;
        bool matters = is_content ? i < usual.size : i < AT_CRC + 4 || i >= AT_RECORDS;
        uint8_t changed = bytes[i] ^ (uint8_t)(1u << i % 8);
        unsigned n;

        assert_int_equal(read_all(&open_one), 3);
        assert_int_equal(pwrite(fd, &changed, 1, (off_t)i), 1);
        if (!seals) /* what is overwritten after it was compared is seen in a sealed file alone */
            memset(open_one.good, 0, sizeof(open_one.good));
        read_all(&open_one);
        n = read_anew(folder);
        assert_int_equal(n, !matters ? 3 : !is_content && i < AT_RECORDS ? 0 : 2);
        read_all(&open_one);
        put_back(writer.records, records, n_records);
        put_back(writer.fd, all, n_all);
    }
    staged_close(&open_one.staged);
    staged_close(&writer);
}

UNIT_TEST_WITH(test_staged__any_byte_changed__no_wrong_byte, temp_setup, temp_teardown)
{
    check_any_byte_changed(*state, false, false);
    check_any_byte_changed(*state, false, true);
}

UNIT_TEST_WITH(test_sealed__any_byte_changed__no_wrong_byte, temp_setup, temp_teardown)
{
    check_any_byte_changed(*state, true, false);
    check_any_byte_changed(*state, true, true);
}

/* A truncated content has no readable count of drops and no records, only the bytes that are left.
 */
static void check_short(const struct staged *staged, size_t len)
{
    uint64_t record[3] = {7, 7, 7};
    uint8_t buf[BLOCK];

    assert_true(staged_drops(staged) == UINT64_MAX);
    staged_records(staged, 0, 3, record);
    for (size_t i = 0; i < 3; i++)
        assert_true(!record[i] || len == staged->size);
    assert_int_equal(staged_read(staged, buf, 100, 0), len < 100 ? -ENODATA : 0);
}

static void check_any_length(const char *folder, bool seals)
{
    struct staged writer = open_key(folder, &usual);
    struct reader open_one = {.staged = open_key(folder, &usual)};
    AUTO_FREE uint8_t *bytes = NULL, *records = NULL;
    size_t len, n_records;

    fetch_all(&writer);
    if (seals)
        assert_int_equal(staged_seal(&writer, NULL), 0);
    records = slurp(writer.records, &n_records);
    bytes = slurp(writer.fd, &len);
    assert_int_equal(len, seals ? writer.size : writer.end + 8);
    for (size_t cut = 0; cut < len; cut = next_place(true, cut, len)) {
        put_back(writer.records, records, n_records);
        put_back(writer.fd, bytes, len);
        assert_int_equal(read_all(&open_one), 3); /* it knows them to be good */
        assert_int_equal(ftruncate(writer.fd, (off_t)cut), 0);
        assert_int_equal(read_all(&open_one), 0);
        check_short(&writer, cut);
        assert_int_equal(read_anew(folder), 0);
        /* After the truncation the file is extended: with a hole. */
        put_back(writer.records, records, n_records);
        put_back(writer.fd, bytes, len);
        assert_int_equal(read_all(&open_one), 3);
        assert_int_equal(ftruncate(writer.fd, (off_t)cut), 0);
        assert_int_equal(ftruncate(writer.fd, (off_t)len), 0);
        read_all(&open_one);
        read_anew(folder);
    }
    fetch_all(&writer);
    assert_int_equal(read_anew(folder), 3);
    staged_close(&open_one.staged);
    staged_close(&writer);
}

UNIT_TEST_WITH(test_staged__any_length__no_wrong_byte, temp_setup, temp_teardown)
{
    check_any_length(*state, false);
}

UNIT_TEST_WITH(test_sealed__any_length__no_wrong_byte, temp_setup, temp_teardown)
{
    check_any_length(*state, true);
}

/* Without records nothing is lost but records: who knows the blocks reads on. */
UNIT_TEST_WITH(test_staged__any_length_of_records__what_is_left, temp_setup, temp_teardown)
{
    struct staged writer = open_key(*state, &usual);
    struct reader open_one = {.staged = open_key(*state, &usual)};
    AUTO_FREE uint8_t *bytes = NULL, *records = NULL;
    size_t len, n_records;

    fetch_all(&writer);
    records = slurp(writer.records, &n_records);
    bytes = slurp(writer.fd, &len);
    assert_int_equal(n_records, AT_RECORDS + 3 * 8);
    for (size_t cut = 0; cut < n_records; cut++) {
        assert_int_equal(read_all(&open_one), 3);
        assert_int_equal(ftruncate(writer.records, (off_t)cut), 0);
        assert_int_equal(read_all(&open_one), 3);
        assert_int_equal(read_anew(*state), cut < AT_RECORDS ? 0 : (cut - AT_RECORDS) / 8);
        put_back(writer.records, records, n_records);
        put_back(writer.fd, bytes, len);
    }
    staged_close(&open_one.staged);
    staged_close(&writer);
}

/* A file with a damaged header is started again under a reader that has it open. That reader must
 * forget what it knows, and so must one that publishes a block at that moment. */
UNIT_TEST_WITH(test_staged__begun_anew__noticed, temp_setup, temp_teardown)
{
    struct reader reader = {.staged = open_key(*state, &usual)};
    uint64_t before = staged_drops(&reader.staged), record;
    struct staged second;
    uint8_t buf[BLOCK];

    fetch_all(&reader.staged);
    assert_int_equal(read_all(&reader), 3);
    assert_int_equal(staged_claim(&reader.staged, 0, 1), 1);
    content(0, BLOCK, buf);
    assert_int_equal(staged_write(&reader.staged, buf, BLOCK, 0), 0);
    assert_int_equal(pwrite(reader.staged.records, "x", 1, 70), 1);
    second = open_key(*state, &usual);
    record = staged_checksum(&reader.staged, 0, buf);
    assert_int_equal(staged_publish(&reader.staged, 0, 1, &record), 0);
    assert_int_not_equal(staged_drops(&reader.staged), before);
    assert_int_equal(staged_drops(&reader.staged), staged_drops(&second));
    assert_int_equal(read_all(&reader), 0);
    fetch_all(&reader.staged);
    assert_int_equal(read_all(&reader), 3);
    staged_close(&second);
    staged_close(&reader.staged);
}

UNIT_TEST_WITH(test_staged__other_version__refused_untouched, temp_setup, temp_teardown)
{
    const struct cache_folder cache = folder_of(*state);
    struct staged staged = open_key(*state, &usual), second;
    AUTO_FREE uint8_t *bytes = NULL, *after = NULL;
    AUTO(inspected_release) struct inventory_file info = {0};
    struct diag d = DIAG_INIT;
    char path[PATH_MAX];
    size_t len, len_after;
    AUTO_CLOSE int fd = -1;
    uint64_t good, bad;

    fetch_all(&staged);
    path_of(*state, &staged, path);
    bytes = slurp(staged.records, &len);
    store_le32(bytes + AT_VERSION, 7);
    store_le32(bytes + AT_CRC, (uint32_t)crc32_z(0, bytes, AT_CRC));
    put_back(staged.records, bytes, len);
    staged_close(&staged);
    assert_int_equal(staged_open(&second, &cache, &usual, &d), -EPROTO);
    assert_diag_has(&d, "expected version 4, got 7");
    assert_int_equal(inspect_file(path, &info), -EPROTO);
    assert_int_equal(staged_verify(NULL, path, &good, &bad), -EPROTO);
    assert_int_equal(staged_remove(NULL, path), -EPROTO);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    after = slurp(fd, &len_after);
    assert_int_equal(len_after, len);
    assert_memory_equal(after, bytes, len);
    path_of_content(*state, &staged, path);
    assert_int_equal(access(path, F_OK), 0);
}

/* A file that an older epochfs staged has another id, so it conflicts with nothing; it can be
 * removed. */
UNIT_TEST_WITH(test_staged__older_version__out_of_the_way, temp_setup, temp_teardown)
{
    const struct cache_folder cache = folder_of(*state);
    struct staged staged = open_key(*state, &usual), second;
    AUTO_FREE uint8_t *bytes = NULL;
    AUTO(inspected_release) struct inventory_file info = {0};
    char path[PATH_MAX];
    size_t len;

    assert_string_equal(staged.id, ID_OF_USUAL);
    fetch_all(&staged);
    path_of(*state, &staged, path);
    bytes = slurp(staged.records, &len);
    store_le32(bytes + AT_VERSION, 2);
    store_le32(bytes + AT_CRC, (uint32_t)crc32_z(0, bytes, AT_CRC));
    put_back(staged.records, bytes, len);
    staged_close(&staged);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_true(info.is_foreign && !info.is_damaged);
    assert_string_equal(info.source, usual.url);
    assert_int_equal(staged_open(&second, &cache, &usual, NULL), 0);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_false(info.is_damaged);
    assert_int_equal(info.present, 0);
    assert_false(info.is_foreign);
    put_back(second.records, bytes, len);
    staged_close(&second);
    assert_int_equal(staged_remove(NULL, path), 0);
    path_of_content(*state, &staged, path);
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- two sources with one id ---- */

static const struct staged_key hostile = {
    .url = "https://evil.org/x", .version = "etag \"1\"", .size = 10000, .block = BLOCK};

/* Blocks with other bytes than content(). */
static void fetch_hostile(const struct staged *staged)
{
    uint8_t buf[BLOCK];

    memset(buf, 0, sizeof(buf));
    for (uint64_t i = 0; i < staged->blocks; i++) {
        uint64_t record = staged_checksum(staged, i, buf);

        assert_int_equal(staged_write(staged, buf, staged_block_len(staged, i), i * BLOCK), 0);
        assert_int_equal(staged_publish(staged, i, 1, &record), 0);
    }
}

static void expect_busy(const char *folder, const struct staged_key *key)
{
    const struct cache_folder cache = folder_of(folder);
    struct diag d = DIAG_INIT;
    struct staged staged;

    assert_int_equal(staged_open(&staged, &cache, key, &d), -EBUSY);
    assert_diag_has(&d, "another process uses it for another source");
}

/* The file that one source uses is not started again for the other, and serves it no block; neither
 * while it is open nor once it has been closed, by a process that was killed or not. */
static void check_same_id(const char *folder, bool victim_first, bool seals)
{
    const struct staged_key *first = victim_first ? &usual : &hostile,
                            *second = victim_first ? &hostile : &usual;
    struct reader reader = {.staged = open_key(folder, first)};
    uint64_t drops;
    int fd = -1;

    if (victim_first)
        fetch_all(&reader.staged);
    else
        fetch_hostile(&reader.staged);
    if (seals)
        assert_int_equal(staged_seal(&reader.staged, NULL), 0);
    drops = staged_drops(&reader.staged);
    expect_busy(folder, second);
    assert_true(staged_drops(&reader.staged) == drops);
    assert_true(staged_mend(&reader.staged, first) == drops);
    if (victim_first)
        assert_int_equal(read_all(&reader), 3);
    if (seals)
        assert_int_equal(staged_open_sealed(&reader.staged, &fd), 0);
    staged_close(&reader.staged);
    if (seals) { /* the kernel reads it for a process that has died */
        expect_busy(folder, second);
        close(fd);
    }
    reader = (struct reader){.staged = open_key(folder, second)};
    assert_int_equal(read_all(&reader), 0);
    assert_true(staged_mend(&reader.staged, second) == staged_drops(&reader.staged));
    expect_busy(folder, first);
    staged_close(&reader.staged);
}

UNIT_TEST_WITH(test_same_id__second_source__no_block_of_the_first, temp_setup, temp_teardown)
{
    same_ids = true;
    for (unsigned i = 0; i < 4; i++)
        check_same_id(*state, i % 2, i / 2);
    same_ids = false;
}

/* The header of another source is put into a file that is open, as by a program that keeps to no
 * protocol: who learns the blocks again does not believe them, and does not cut the file while the
 * other source has it open. */
UNIT_TEST_WITH(test_same_id__header_planted_under_reader__not_learned, temp_setup, temp_teardown)
{
    struct staged victim, other;
    uint8_t header[AT_RECORDS];
    struct reader reader;

    same_ids = true;
    other = open_key(*state, &hostile);
    assert_int_equal(pread(other.records, header, sizeof(header), 0), sizeof(header));
    staged_close(&other);
    victim = open_key(*state, &usual);
    fetch_all(&victim);
    assert_int_equal(pwrite(victim.records, header, AT_CRC + 4, 0), AT_CRC + 4);
    other = open_key(*state, &hostile); /* it has the right header */
    reader = (struct reader){.staged = other};
    for (uint64_t i = 0; i < 3; i++) { /* but not the victim's blocks */
        uint8_t buf[BLOCK];

        assert_int_equal(reader_read(&reader, i, buf), 0);
    }
    assert_true(staged_mend(&victim, &usual) == UINT64_MAX);
    expect_busy(*state, &usual);
    fetch_hostile(&other);
    reader = (struct reader){.staged = victim};
    for (uint64_t i = 0; i < 3; i++) {
        uint8_t buf[BLOCK];

        assert_int_equal(reader_read(&reader, i, buf), 0);
    }
    staged_close(&other);
    assert_true(staged_mend(&victim, &usual) == staged_drops(&victim)); /* alone: started again */
    fetch_all(&victim);
    staged_close(&victim);
    assert_int_equal(read_anew(*state), 3);
    same_ids = false;
}

/* A link, a pipe, an empty folder, or one that is not empty, where the file should be. */
UNIT_TEST_WITH(test_staged__not_a_file__replaced_or_named, temp_setup, temp_teardown)
{
    const struct cache_folder cache = folder_of(*state);
    struct staged staged = open_key(*state, &usual), second;
    char path[PATH_MAX], target[PATH_MAX], inner[PATH_MAX];

    path_of(*state, &staged, path);
    staged_close(&staged);
    temp_write(*state, "precious", "data", 4);
    temp_path(*state, "precious", target);
    for (unsigned i = 0; i < 4; i++) {
        struct diag d = DIAG_INIT;
        AUTO(inspected_release) struct inventory_file info = {0};
        uint64_t good, bad;

        assert_int_equal(remove(path), 0);
        assert_int_equal(i == 0   ? symlink(target, path)
                         : i == 1 ? mkfifo(path, 0600)
                                  : mkdir(path, 0700),
                         0);
        if (i == 3) {
            snprintf(inner, sizeof(inner), "%.*s/precious", (int)sizeof(inner) - 10, path);
            assert_int_equal(mkdir(inner, 0700), 0);
        }
        assert_int_equal(inspect_file(path, &info), -EINVAL);
        assert_int_equal(staged_verify(NULL, path, &good, &bad), -EINVAL);
        assert_int_equal(staged_remove(NULL, path), -EINVAL);
        if (i == 3) {
            assert_int_equal(staged_open(&second, &cache, &usual, &d), -EISDIR);
            assert_diag_has(&d, path);
            assert_int_equal(rmdir(inner), 0);
        } else {
            assert_int_equal(staged_open(&second, &cache, &usual, &d), 0);
            staged_close(&second);
        }
        assert_int_equal(access(target, F_OK), 0);
    }
    assert_int_equal(staged_remove(NULL, target), -EINVAL);
    assert_int_equal(access(target, F_OK), 0);
    temp_write(*state, "staged/the-thesis-of-somebody-else.text", "data", 4); /* 32 characters */
    temp_path(*state, "staged/the-thesis-of-somebody-else.text", target);
    assert_int_equal(staged_remove(NULL, target), -EINVAL);
    assert_int_equal(access(target, F_OK), 0);
}

/* ---- claims ---- */

UNIT_TEST_WITH(test_claims__two_open__up_to_the_first, temp_setup, temp_teardown)
{
    struct staged_key key = usual;
    struct staged a, b;

    key.size = 1000 * BLOCK;
    a = open_key(*state, &key);
    b = open_key(*state, &key);
    assert_int_equal(staged_claim(&a, 0, 0), 0);
    assert_int_equal(staged_claim(&a, 700, 10), 10);
    assert_int_equal(staged_claim(&a, 500, 1), 1);
    assert_int_equal(staged_claim(&a, 502, 1), 1);
    assert_int_equal(staged_claim(&b, 100, 900), 400);
    assert_int_equal(staged_claim(&b, 500, 10), 0);
    assert_int_equal(staged_claim(&b, 501, 10), 1);
    assert_int_equal(staged_claim(&a, 0, 1000), 100);
    staged_unclaim(&a, 700, 10);
    staged_unclaim(&b, 200, 0);
    assert_int_equal(staged_claim(&b, 503, 497), 497);
    staged_close(&b);
    assert_int_equal(staged_claim(&a, 100, 900), 900);
    staged_close(&a);
}

/* For a child that runs until it is killed: it must not outlive a test that failed. */
static void end_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* A process that has claimed blocks and waits to be killed. */
static pid_t start_holder(const char *folder, uint64_t first, uint64_t n)
{
    int ready[2];
    char byte = 0;
    pid_t id;

    assert_int_equal(pipe(ready), 0);
    id = fork();
    if (id == 0) {
        struct staged staged = open_key(folder, &usual);

        end_with_parent();
        if (staged_claim(&staged, first, n) == n && write(ready[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return id;
}

static void end_holder(pid_t id)
{
    int status;

    assert_int_equal(kill(id, SIGKILL), 0);
    assert_int_equal(waitpid(id, &status, 0), id);
    assert_true(WIFSIGNALED(status));
}

UNIT_TEST_WITH(test_claims__holder_killed__free, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    pid_t id = start_holder(*state, 1, 1);

    assert_int_equal(staged_claim(&staged, 0, 3), 1);
    assert_int_equal(staged_claim(&staged, 1, 2), 0);
    end_holder(id);
    assert_int_equal(staged_claim(&staged, 1, 2), 2);
    staged_close(&staged);
}

/* Drop n blocks. */
static int drop(const struct staged *staged, uint64_t first, uint64_t n, struct staged_dropped *ret)
{
    return staged_drop_ranges(staged, &(struct staged_range){first, n}, 1, ret);
}

/* ---- drops ---- */

UNIT_TEST_WITH(test_drop__block__gone_and_freed, temp_setup, temp_teardown)
{
    struct reader reader = {.staged = open_key(*state, &usual)};
    struct staged other = open_key(*state, &usual);
    struct staged_dropped dropped = {.freed = 1};
    uint64_t drops = staged_drops(&other), record[3];
    uint8_t buf[BLOCK];

    fetch_all(&other);
    assert_int_equal(read_all(&reader), 3);
    assert_int_equal(drop(&other, 1, 2, &dropped), 0);
    assert_int_equal(dropped.freed, BLOCK); /* the last one's page also has the count */
    assert_int_equal(staged_drops(&reader.staged), drops + 1);
    staged_records(&reader.staged, 0, 3, record);
    assert_true(record[0] && !record[1] && !record[2]);
    assert_int_equal(read_all(&reader), 1);
    assert_int_equal(staged_read(&reader.staged, buf, BLOCK, BLOCK), 0);
    for (size_t i = 0; i < BLOCK; i++)
        assert_int_equal(buf[i], 0);
    fetch_all(&reader.staged);
    assert_int_equal(read_all(&reader), 3);
    assert_int_equal(drop(&other, 0, 3, &dropped), 0);
    assert_int_equal(dropped.freed, 2 * BLOCK);
    assert_int_equal(drop(&other, 0, 3, &dropped), 0);
    assert_int_equal(dropped.freed, 0);
    staged_close(&other);
    staged_close(&reader.staged);
}

UNIT_TEST_WITH(test_drop__another_drops_before__says_which, temp_setup, temp_teardown)
{
    struct staged one = open_key(*state, &usual), other = open_key(*state, &usual);
    uint64_t drops = staged_drops(&one);
    struct staged_dropped dropped;

    fetch_all(&one);
    assert_int_equal(drop(&other, 0, 1, &dropped), 0);
    assert_int_equal(dropped.before, drops);
    assert_int_equal(dropped.after, drops + 1);
    assert_int_equal(staged_claim(&one, 1, 1), 1);
    assert_int_equal(drop(&other, 1, 1, &dropped), 0); /* nothing */
    assert_int_equal(dropped.before, drops + 1);
    assert_int_equal(dropped.after, drops + 1);
    assert_int_equal(drop(&other, 0, 3, &dropped), 0); /* in two pieces */
    assert_int_equal(dropped.after, drops + 3);
    staged_close(&other);
    staged_close(&one);
}

/* The count never becomes the number that means that there is none. */
UNIT_TEST_WITH(test_drop__largest_count__begins_again, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    struct staged_dropped dropped;
    uint8_t count[8];

    fetch_all(&staged);
    store_le64(count, UINT64_MAX - 1);
    assert_int_equal(pwrite(staged.fd, count, 8, (off_t)staged.end), 8);
    assert_int_equal(drop(&staged, 0, 1, &dropped), 0);
    assert_int_equal(staged_drops(&staged), 1);
    assert_true(dropped.before == UINT64_MAX && dropped.after == UINT64_MAX); /* not known */
    staged_close(&staged);
}

UNIT_TEST_WITH(test_drop__excluded__by_one_at_a_time, temp_setup, temp_teardown)
{
    struct staged one = open_key(*state, &usual), other = open_key(*state, &usual);
    int fd = staged_exclude_drops(&one);

    assert_true(fd >= 0);
    assert_int_equal(staged_exclude_drops(&other), -EAGAIN);
    assert_int_equal(staged_exclude_drops(&one), -EAGAIN); /* each time another process holds it */
    close(fd);
    fd = staged_exclude_drops(&other);
    assert_true(fd >= 0);
    close(fd);
    staged_close(&other);
    staged_close(&one);
}

/* The file is truncated anywhere; then processes that have it open fetch, publish and drop. None of
 * that makes it as long as before, so all earlier knowledge counts as lost until the file is begun
 * again. */
UNIT_TEST_WITH(test_cut__written_to_behind__drops_are_not_reported, temp_setup, temp_teardown)
{
    struct reader reader = {.staged = open_key(*state, &usual)};
    struct staged one = open_key(*state, &usual);
    const uint64_t cuts[] = {0,           1,       5000,        4096,       9000,
                             one.end - 1, one.end, one.end + 1, one.end + 7};
    struct staged_dropped dropped;

    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        uint64_t before = staged_drops(&one);

        fetch_all(&one);
        assert_int_equal(read_all(&reader), 3);
        assert_int_equal(ftruncate(one.fd, (off_t)cuts[i]), 0);
        fetch_all(&one); /* the last block too: the file has its full length */
        assert_true(staged_drops(&one) == UINT64_MAX);
        assert_int_equal(read_all(&reader), 0);
        assert_int_equal(drop(&one, 0, 1, &dropped), 0);
        assert_true(dropped.before == UINT64_MAX && dropped.after == UINT64_MAX);
        assert_true(staged_drops(&one) == UINT64_MAX);
        if (i % 2 && cuts[i] <= one.end)
            assert_int_equal(ftruncate(one.fd, (off_t)one.end + 8), 0); /* a stranger's zeros */
        assert_true(staged_drops(&one) == UINT64_MAX);
        assert_true(staged_mend(&one, &usual) == staged_drops(&one));
        assert_true(staged_drops(&one) != UINT64_MAX && staged_drops(&one) != before);
        assert_int_equal(read_all(&reader), 0);
        before = staged_drops(&one);
        fetch_all(&one);
        assert_true(staged_mend(&one, &usual) == before); /* it is whole: nothing changes */
        assert_true(staged_drops(&one) == before);
        assert_int_equal(read_all(&reader), 3);
    }
    staged_close(&reader.staged);
    staged_close(&one);
}

/* A file that has lost its name is started again, but the file that has that name now is not. */
UNIT_TEST_WITH(test_mend__name_is_of_another__only_the_open_file, temp_setup, temp_teardown)
{
    struct reader reader = {.staged = open_key(*state, &usual)}, other;
    char path[PATH_MAX];

    fetch_all(&reader.staged);
    path_of(*state, &reader.staged, path);
    assert_int_equal(unlink(path), 0);
    path_of_content(*state, &reader.staged, path);
    assert_int_equal(unlink(path), 0);
    other = (struct reader){.staged = open_key(*state, &usual)};
    fetch_all(&other.staged);
    assert_int_equal(ftruncate(reader.staged.fd, 5000), 0);
    assert_true(staged_mend(&reader.staged, &usual) != UINT64_MAX);
    fetch_all(&reader.staged);
    assert_int_equal(read_all(&reader), 3);
    assert_int_equal(read_all(&other), 3);
    staged_close(&reader.staged);
    staged_close(&other.staged);
}

/* Claimed blocks are kept, whichever process has claimed them. */
UNIT_TEST_WITH(test_drop__claimed__stays, temp_setup, temp_teardown)
{
    struct reader reader = {.staged = open_key(*state, &usual)};
    struct staged other = open_key(*state, &usual);
    struct staged_dropped dropped;

    fetch_all(&other);
    assert_int_equal(staged_claim(&other, 1, 1), 1);
    assert_int_equal(drop(&reader.staged, 0, 3, &dropped), 0);
    assert_int_equal(dropped.freed, BLOCK);
    assert_int_equal(read_all(&reader), 1);
    assert_int_equal(drop(&other, 1, 1, &dropped), 0);
    assert_int_equal(dropped.freed, 0);
    assert_int_equal(staged_claim(&reader.staged, 0, 3), 1); /* 1 is claimed still */
    staged_close(&other);
    staged_close(&reader.staged);
}

UNIT_TEST_WITH(test_drop__no_holes_here__says_so_before, temp_setup, temp_teardown)
{
    struct reader reader = {.staged = open_key(*state, &usual)};
    struct staged_dropped dropped = {.freed = 77};

    fetch_all(&reader.staged);
    assert_int_equal(read_all(&reader), 3);
    no_punch = true;
    assert_int_equal(drop(&reader.staged, 0, 3, &dropped), -EOPNOTSUPP);
    no_punch = false;
    assert_int_equal(dropped.freed, 77);
    assert_int_equal(read_all(&reader), 3);
    staged_close(&reader.staged);
}

/* Read the whole content as the kernel does for its readers, if it can be sealed. */
static bool read_sealed(const struct staged *staged)
{
    struct reader reader = {.staged = *staged};
    uint8_t buf[BLOCK];
    uint64_t before;
    int fd = -1, r = staged_seal(staged, NULL);

    if (r == 0)
        r = staged_open_sealed(staged, &fd);
    if (r < 0) {
        if (r != -EAGAIN && r != -ENODATA)
            _exit(1);
        return false;
    }
    before = staged_drops(staged);
    for (uint64_t i = 0; i < staged->blocks; i++)
        if (!reader_read(&reader, i, buf)) {
            close(fd);
            return false;
        }
    if (reader.drops != before) {
        close(fd);
        return false;
    }
    for (uint64_t i = 0; i < staged->blocks; i++) {
        uint32_t n = staged_block_len(staged, i);

        if (pread(fd, buf, n, (off_t)(i * BLOCK)) != n || !is_right(staged, i, buf))
            _exit(1);
    }
    if (pread(fd, buf, 1, (off_t)staged->size) != 0)
        _exit(1);
    close(fd);
    return true;
}

/* Two processes fetch and drop at random, while this one reads: it never takes a wrong byte. */
static void churn(const char *folder, const struct staged_key *key, uint64_t seed, bool drops,
                  bool seals)
{
    struct staged staged = open_key(folder, key);
    struct staged_dropped dropped;

    end_with_parent();
    for (;;) {
        uint64_t block = random_below(&seed, staged.blocks);

        int dropped_or =
            drops ? drop(&staged, block, 1 + random_below(&seed, staged.blocks - block), &dropped)
                  : 0;

        if (dropped_or < 0 && dropped_or != -EBUSY)
            _exit(1);
        for (unsigned i = 0; i < 4; i++) {
            int r = fetch(&staged, random_below(&seed, staged.blocks));

            if (r < 0 && r != -EBUSY)
                _exit(1);
        }
        if (seals)
            read_sealed(&staged);
    }
}

static void check_churn(const char *folder, bool seals)
{
    struct staged_key key = usual;
    struct reader reader = {0};
    pid_t id[3];
    unsigned taken = 0, sealed = 0;

    key.size = 7 * BLOCK + 100;
    reader.staged = open_key(folder, &key);
    for (size_t i = 0; i < ARRAY_LEN(id); i++) {
        id[i] = fork();
        if (id[i] == 0)
            churn(folder, &key, RANDOM_SEED + i, i != 2, seals);
    }
    for (unsigned round = 0; round < 5000 || taken < 500 || (seals && !sealed); round++) {
        taken += read_all(&reader);
        if (seals)
            sealed += read_sealed(&reader.staged);
    }
    for (size_t i = 0; i < ARRAY_LEN(id); i++)
        end_holder(id[i]);
    fetch_all(&reader.staged);
    assert_int_equal(read_all(&reader), 8);
    staged_close(&reader.staged);
}

UNIT_TEST_WITH(test_drop__while_others_read__no_wrong_byte, temp_setup, temp_teardown)
{
    check_churn(*state, false);
}

/* The same, where all of them seal the content as soon as it is whole. */
UNIT_TEST_WITH(test_sealed__while_others_drop__no_wrong_byte, temp_setup, temp_teardown)
{
    check_churn(*state, true);
}

/* ---- the seal ---- */

/* The content is the file, byte for byte; readers that have it open keep it from being dropped. */
UNIT_TEST_WITH(test_sealed__open__is_the_file, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual), other = open_key(*state, &usual);
    struct reader reader = {.staged = staged};
    AUTO_FREE uint8_t *bytes = NULL;
    struct staged_dropped dropped;
    char path[PATH_MAX];
    uint8_t want[10000];
    size_t len;
    int fd;

    content(0, sizeof(want), want);
    assert_int_equal(fetch(&staged, 0), 0);
    assert_int_equal(fetch(&staged, 2), 0);
    assert_int_equal(staged_seal(&staged, NULL), -ENODATA);
    assert_int_equal(staged_open_sealed(&staged, &fd), -EAGAIN);
    assert_int_equal(fetch(&staged, 1), 0);
    assert_int_equal(staged_open_sealed(&staged, &fd), -EAGAIN);
    assert_int_equal(staged_seal(&staged, NULL), 0);
    assert_int_equal(staged_seal(&other, NULL), 0);
    assert_int_equal(staged_open_sealed(&staged, &fd), 0);
    bytes = slurp(fd, &len);
    assert_int_equal(len, usual.size);
    assert_memory_equal(bytes, want, len);
    assert_int_equal(read_all(&reader), 3);
    assert_int_equal(drop(&other, 0, 3, &dropped), -EBUSY);
    assert_int_equal(drop(&staged, 1, 1, &dropped), -EBUSY);
    assert_int_equal(read_all(&reader), 3);
    path_of(*state, &staged, path);
    staged_close(&other);
    staged_close(&staged);
    assert_int_equal(staged_remove(NULL, path),
                     -EBUSY); /* the process that opened it may be dead */
    close(fd);
    other = open_key(*state, &usual);
    assert_int_equal(drop(&other, 0, 3, &dropped), 0);
    assert_int_equal(dropped.freed, 2 * BLOCK); /* the count took the page of the last one */
    assert_int_equal(staged_open_sealed(&other, &fd), -EAGAIN);
    assert_int_equal(read_anew(*state), 0);
    fetch_all(&other);
    assert_int_equal(read_anew(*state), 3);
    staged_close(&other);
    assert_int_equal(staged_remove(NULL, path), 0);
}

/* A wrong block of a content that is open loses its record, and its bytes are written again in
 * place. */
UNIT_TEST_WITH(test_sealed__bad_block_while_open__mended_in_place, temp_setup, temp_teardown)
{
    struct reader reader = {.staged = open_key(*state, &usual)};
    struct staged other = open_key(*state, &usual);
    struct staged_dropped dropped;
    uint64_t record[3];
    uint8_t buf[BLOCK];
    int fd;

    fetch_all(&other);
    assert_int_equal(staged_seal(&other, NULL), 0);
    assert_int_equal(staged_open_sealed(&other, &fd), 0);
    assert_int_equal(read_all(&reader), 3);
    assert_int_equal(pwrite(other.fd, "junk", 4, BLOCK + 7), 4);
    assert_int_equal(read_all(&reader), 2);
    assert_int_equal(staged_drop_bad(&other, 1, &dropped), 0);
    staged_records(&other, 0, 3, record);
    assert_true(record[0] && !record[1] && record[2]);
    assert_int_equal(read_all(&reader), 2);
    assert_int_equal(fetch(&other, 1), 0);
    assert_int_equal(read_all(&reader), 3);
    assert_int_equal(pread(fd, buf, BLOCK, BLOCK), BLOCK);
    assert_true(is_right(&other, 1, buf));
    close(fd);
    staged_close(&other);
    staged_close(&reader.staged);
}

/* A damaged header: the file is started again, but what readers have open is kept. */
UNIT_TEST_WITH(test_sealed__begun_anew_while_open__bytes_stay, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    AUTO_FREE uint8_t *bytes = NULL;
    uint8_t want[10000];
    size_t len;
    int fd;

    content(0, sizeof(want), want);
    fetch_all(&staged);
    assert_int_equal(staged_seal(&staged, NULL), 0);
    assert_int_equal(staged_open_sealed(&staged, &fd), 0);
    assert_int_equal(pwrite(staged.records, "x", 1, 70), 1);
    assert_int_equal(read_anew(*state), 0);
    bytes = slurp(fd, &len);
    assert_int_equal(len, sizeof(want));
    assert_memory_equal(bytes, want, len);
    fetch_all(&staged);
    assert_int_equal(read_anew(*state), 3);
    close(fd);
    staged_close(&staged);
}

/* The mark of the SHA-256 survives the seal, but no drop. */
UNIT_TEST_WITH(test_sealed__mark__stays, temp_setup, temp_teardown)
{
    const uint8_t sha256[32] = {1, 2, 3}, another[32] = {4};
    struct staged staged = open_key(*state, &usual);
    struct staged_dropped dropped;

    fetch_all(&staged);
    staged_mark(&staged, sha256, staged_drops(&staged));
    assert_int_equal(staged_seal(&staged, sha256), 0);
    assert_true(staged_is_marked(&staged, sha256));
    assert_false(staged_is_marked(&staged, another));
    assert_int_equal(drop(&staged, 0, 1, &dropped), 0);
    assert_false(staged_is_marked(&staged, sha256));
    staged_close(&staged);
}

/* A process dies between the two steps of the seal, or of its end: either is whole, and no block
 * is lost. Or another process cuts the content to the size that sealed ones have. */
UNIT_TEST_WITH(test_sealed__killed_between__nothing_lost, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    uint8_t number[8];

    fetch_all(&staged);
    store_le64(number, staged_drops(&staged));
    assert_int_equal(pwrite(staged.records, number, 8, 1528), 8); /* and not cut */
    assert_int_equal(read_anew(*state), 3);
    assert_int_equal(staged_seal(&staged, NULL), 0);
    assert_int_equal(pwrite(staged.fd, number, 8, (off_t)staged.end),
                     8); /* and number still there */
    assert_int_equal(read_anew(*state), 3);
    assert_int_equal(ftruncate(staged.fd, (off_t)staged.size), 0);
    assert_int_equal(read_anew(*state), 3);
    memset(number, 0, sizeof(number));
    assert_int_equal(pwrite(staged.records, number, 8, 1528), 8);
    assert_int_equal(read_anew(*state), 0);
    staged_close(&staged);
}

/* ---- one file of both is gone ---- */

UNIT_TEST_WITH(test_files__one_is_gone__begun_anew_or_removed, temp_setup, temp_teardown)
{
    char path[PATH_MAX], content_path[PATH_MAX];
    AUTO(inspected_release) struct inventory_file info = {0};
    uint64_t good, bad;

    for (unsigned i = 0; i < 8; i++) {
        struct staged staged = open_key(*state, &usual);

        path_of(*state, &staged, path);
        path_of_content(*state, &staged, content_path);
        fetch_all(&staged);
        staged_close(&staged);
        assert_int_equal(unlink(i % 2 ? path : content_path), 0);
        if (i / 2 == 0) {
            assert_int_equal(read_anew(*state), 0);
        } else if (i / 2 == 1) {
            assert_int_equal(staged_remove(NULL, path), 0);
            assert_int_equal(access(path, F_OK), -1);
            assert_int_equal(access(content_path, F_OK), -1);
            assert_int_equal(staged_remove(NULL, path), -ENOENT);
        } else if (i % 2 == 0) {
            assert_int_equal(inspect_file(path, &info), 0);
            assert_true(info.is_damaged);
            assert_int_equal(staged_verify(NULL, path, &good, &bad), -EBADMSG);
            if (i == 6) {
                assert_int_equal(mkdir(content_path, 0700), 0);
                assert_int_equal(inspect_file(path, &info), 0);
                assert_true(info.is_damaged);
            }
            assert_int_equal(staged_remove(NULL, path), 0);
            assert_int_equal(access(content_path, F_OK), -1);
        }
    }
}

/* ---- several processes ---- */

/* The processes open the file at once and publish a block each; none starts it again after
 * another. */
UNIT_TEST_WITH(test_open__many_processes__one_file, temp_setup, temp_teardown)
{
    for (unsigned round = 0; round < 50; round++) {
        struct staged_key key = usual;
        struct staged staged;
        uint64_t record[6];
        char byte, path[PATH_MAX];
        int gate[2], status;
        pid_t id[6];

        key.size = ARRAY_LEN(id) * BLOCK;
        assert_int_equal(pipe(gate), 0);
        for (size_t i = 0; i < ARRAY_LEN(id); i++) {
            id[i] = fork();
            if (id[i] == 0) {
                close(gate[1]);
                if (read(gate[0], &byte, 1) == 0)
                    staged = open_key(*state, &key);
                _exit(fetch(&staged, i) == 0 ? 0 : 1);
            }
        }
        close(gate[0]);
        close(gate[1]); /* go */
        for (size_t i = 0; i < ARRAY_LEN(id); i++) {
            assert_int_equal(waitpid(id[i], &status, 0), id[i]);
            assert_int_equal(status, 0);
        }
        staged = open_key(*state, &key);
        staged_records(&staged, 0, 6, record);
        for (size_t i = 0; i < ARRAY_LEN(id); i++)
            assert_true(record[i] != 0);
        path_of(*state, &staged, path);
        staged_close(&staged);
        assert_int_equal(staged_remove(NULL, path), 0);
    }
}

/* How many have the file open: each holds a shared lock, before it waits for that of the header. */
static unsigned count_users(ino_t inode)
{
    AUTO_FREE char *line = NULL;
    FILE *f = fopen("/proc/locks", "re");
    unsigned found = 0;
    char part[32];
    size_t capacity = 0;

    assert_non_null(f);
    snprintf(part, sizeof(part), ":%llu ", (unsigned long long)inode);
    while (getline(&line, &capacity, f) > 0)
        found += strstr(line, " READ ") && strstr(line, part);
    fclose(f);
    return found;
}

/* A process that opens a file waits while another is about to write the header. */
UNIT_TEST_WITH(test_open__header_being_written__waits, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    struct flock header = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (INT64_C(1) << 62) + 1, .l_len = 1};
    struct stat st;
    int status;
    pid_t id;

    fetch_all(&staged);
    assert_int_equal(fstat(staged.fd, &st), 0);
    assert_int_equal(fcntl(staged.fd, F_OFD_SETLK, &header), 0);
    assert_int_equal(pwrite(staged.records, "E", 1, 0), 1); /* not written yet */
    id = fork();
    if (id == 0) {
        end_with_parent();
        staged_close(&staged);
        _exit(read_anew(*state) == 3 ? 0 : 1);
    }
    while (count_users(st.st_ino) < 2)
        assert_int_equal(waitpid(id, &status, WNOHANG), 0);
    assert_int_equal(pwrite(staged.records, "e", 1, 0), 1);
    header.l_type = F_UNLCK;
    assert_int_equal(fcntl(staged.fd, F_OFD_SETLK, &header), 0);
    assert_int_equal(waitpid(id, &status, 0), id);
    assert_int_equal(status, 0);
    staged_close(&staged);
}

UNIT_TEST_WITH(test_remove__in_use__ebusy, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    char path[PATH_MAX];
    pid_t id;

    path_of(*state, &staged, path);
    assert_int_equal(staged_remove(NULL, path), -EBUSY);
    id = start_holder(*state, 0, 1);
    staged_close(&staged);
    assert_int_equal(staged_remove(NULL, path), -EBUSY);
    end_holder(id);
    assert_int_equal(staged_remove(NULL, path), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(staged_remove(NULL, path), -ENOENT);
}

/* One process opens and closes, another removes: an opened file is always the one with that
 * name. */
UNIT_TEST_WITH(test_remove__while_others_open__never_theirs, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    char path[PATH_MAX], content[PATH_MAX];
    unsigned removed = 0;
    uint64_t before = 0;
    pid_t id;

    path_of(*state, &staged, path);
    path_of_content(*state, &staged, content);
    staged_close(&staged);
    id = fork();
    if (id == 0)
        for (end_with_parent();;)
            staged_remove(NULL, path);
    for (unsigned round = 0; round < 3000 || removed < 20; round++) {
        struct stat ours, there;
        uint64_t drops;

        staged = open_key(*state, &usual);
        assert_int_equal(fstat(staged.fd, &ours), 0);
        assert_int_equal(stat(content, &there), 0);
        assert_int_equal(ours.st_ino, there.st_ino);
        assert_int_equal(ours.st_nlink, 1);
        assert_int_equal(fstat(staged.records, &ours), 0);
        assert_int_equal(stat(path, &there), 0);
        assert_int_equal(ours.st_ino, there.st_ino);
        drops = staged_drops(&staged); /* each file begins with another */
        removed += drops != before;
        before = drops;
        staged_close(&staged);
    }
    end_holder(id);
}

/* ---- for people ---- */

UNIT_TEST_WITH(test_inspect_and_verify__what_is_there, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    AUTO(inspected_release) struct inventory_file info = {0};
    char path[PATH_MAX];
    uint64_t good = 9, bad = 9;

    path_of(*state, &staged, path);
    assert_int_equal(fetch(&staged, 0), 0);
    assert_int_equal(fetch(&staged, 2), 0);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_string_equal(info.source, usual.url);
    assert_int_equal(info.size, usual.size);
    assert_int_equal(info.present, usual.size - BLOCK);
    assert_int_equal(info.disk, 3 * BLOCK);
    assert_true(info.in_use && !info.is_damaged);
    assert_int_equal(staged_verify(NULL, path, &good, &bad), 0);
    assert_true(good == 2 && bad == 0);
    assert_int_equal(pwrite(staged.fd, "\0", 1, 5), 1);
    staged_close(&staged);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_false(info.in_use);
    assert_int_equal(staged_verify(NULL, path, &good, &bad), 0);
    assert_true(good == 1 && bad == 1);
    assert_int_equal(staged_verify(NULL, path, &good, &bad), 0);
    assert_true(good == 1 && bad == 0);
    assert_int_equal(read_anew(*state), 1);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_true(info.is_damaged && !info.size && !info.present && !info.source);
    assert_int_equal(staged_verify(NULL, path, &good, &bad), -EBADMSG);
    assert_int_equal(staged_remove(NULL, path), 0);
}

/* A truncated file is damaged and has no content, whatever its records say. */
UNIT_TEST_WITH(test_inspect__cut__damaged, temp_setup, temp_teardown)
{
    struct staged staged = open_key(*state, &usual);
    uint64_t good, bad;
    AUTO(inspected_release) struct inventory_file info = {0};
    char path[PATH_MAX];

    fetch_all(&staged);
    path_of(*state, &staged, path);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_int_equal(info.present, usual.size);
    assert_int_equal(ftruncate(staged.fd, (off_t)staged.end + 7), 0);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_true(info.is_damaged);
    assert_null(info.source);
    assert_int_equal(info.present, 0);
    assert_int_equal(staged_verify(NULL, path, &good, &bad), -EBADMSG);
    staged_close(&staged);
}

/* Long texts are cut, and still distinguish files. */
UNIT_TEST_WITH(test_inspect__long_url__cut, temp_setup, temp_teardown)
{
    char url[3000], path[PATH_MAX];
    struct staged_key key = usual;
    AUTO(inspected_release) struct inventory_file info = {0};
    struct staged staged;

    memset(url, 'u', sizeof(url) - 1);
    url[sizeof(url) - 1] = '\0';
    key.url = key.version = url;
    staged = open_key(*state, &key);
    path_of(*state, &staged, path);
    fetch_all(&staged);
    staged_close(&staged);
    staged = open_key(*state, &key);
    assert_int_equal(inspect_file(path, &info), 0);
    assert_int_equal(info.present, key.size);
    assert_int_equal(strlen(info.source), 1023);
    staged_close(&staged);
}

/* ---- a full disk ---- */

UNIT_TEST_WITH(test_full__enospc__and_drops_help, temp_setup, temp_teardown)
{
    struct staged_key key = usual;
    struct reader reader = {0};
    char path[PATH_MAX];
    struct staged_dropped dropped;
    uint64_t n = 0;
    int r = 0;

    if (!temp_mount(*state, "tiny", "64k", path))
        skip();
    key.size = 3000 * BLOCK; /* pages of records that are holes, and have to stay so */
    reader.staged = open_key(path, &key);
    while (r == 0 && n < 40)
        r = fetch(&reader.staged, n++);
    assert_int_equal(r, -ENOSPC);
    assert_int_equal(read_all(&reader), n - 1);
    assert_int_equal(drop(&reader.staged, 0, 3000, &dropped), 0);
    assert_int_equal(dropped.freed, (n - 1) * BLOCK);
    assert_int_equal(fetch(&reader.staged, n - 1), 0);
    assert_int_equal(read_all(&reader), 1);
    staged_close(&reader.staged);
    assert_int_equal(umount(path), 0);
}
