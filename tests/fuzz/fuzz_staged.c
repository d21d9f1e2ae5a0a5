/* Bytes as the two files of a staged file, header and three records, then the content; the checksum
 * of the header is made right: what looks after the folder, and a mount that opens them. Nothing is
 * believed but what the name says. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/inventory.h"
#include "cache/disk/staged_file_parts.h"
#include "fuzz.h"
#include "support/temp_folder.h"

#define FILE_MAX 65536
#define RECORDS  (HEADER_BYTES + 3 * RECORD) /* bytes */

static const struct staged_key key = {"http://host/file", "\"1\"", 3 * 4096 - 100, 4096};
static char path[PATH_MAX + 80];
static uint8_t digest[DIGEST_BYTES];
static char in_memory[] = "/dev/shm/fuzz_staged.XXXXXX", on_disk[] = "/tmp/fuzz_staged.XXXXXX";
static struct cache_folder cache;

/* As root it has a file system of its own, which goes with it however it ends. */
static void stay_inside(void)
{
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        (void)mount("fuzz", "/dev/shm", "tmpfs", 0, NULL);
}

static void clean_up(void)
{
    temp_remove(cache.path);
}

static void prepare(void)
{
    struct staged staged;

    stay_inside();
    cache.path = mkdtemp(in_memory); /* 20 times as fast */
    if (!cache.path)
        cache.path = mkdtemp(on_disk);
    FUZZ_CHECK(cache.path && staged_open(&staged, &cache, &key, NULL) == 0);
    memcpy(digest, staged.digest, sizeof(digest));
    snprintf(path, sizeof(path), "%s/staged/%s", cache.path, staged.id);
    staged_close(&staged);
    atexit(clean_up);
}

static void write_content(const uint8_t *data, size_t len)
{
    char content[PATH_MAX];
    AUTO_CLOSE int fd = -1;

    staged_content_path(path, content);
    fd = open(content, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && pwrite(fd, data, len, 0) == (ssize_t)len);
}

static void write_records(const uint8_t *data, size_t len)
{
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    AUTO_FREE uint8_t *bytes = malloc(len ? len : 1);

    if (len)
        memcpy(bytes, data, len);
    if (len >= HEADER_BYTES) {
        memcpy(bytes, HEADER_MAGIC, 8);
        memcpy(bytes + HEADER_AT_ID, digest, sizeof(digest));
        store_le32(bytes + HEADER_AT_CRC, (uint32_t)crc32_z(0, bytes, HEADER_AT_CRC));
    }
    FUZZ_CHECK(fd >= 0 && pwrite(fd, bytes, len, 0) == (ssize_t)len);
}

/* 0, or -errno: it is of another version. */
static int use_opened(void)
{
    struct staged staged;
    uint64_t record[3] = {0};
    uint8_t buf[4096];
    int r = staged_open(&staged, &cache, &key, NULL);

    FUZZ_CHECK(r == 0 || r == -EPROTO);
    if (r < 0)
        return r;
    FUZZ_CHECK(staged.size == key.size && staged.block == key.block && staged.blocks == 3);
    FUZZ_CHECK(staged_drops(&staged) != UINT64_MAX);
    staged_records(&staged, 0, 3, record);
    for (uint64_t block = 0; block < 3; block++)
        if (record[block]) {
            FUZZ_CHECK(staged_read(&staged, buf, staged_block_len(&staged, block),
                                   block * key.block) == 0);
            staged_checksum(&staged, block, buf);
        }
    staged_close(&staged);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct inventory_file info = {0};
    uint64_t good = 0, bad = 0;
    int r, seen;

    if (!cache.path)
        prepare();
    if (len > FILE_MAX)
        return 0;
    write_records(data, min_u64(len, RECORDS));
    if (len > RECORDS)
        write_content(data + RECORDS, len - RECORDS);
    seen = staged_inspect(NULL, path, &info);
    free(info.source);
    FUZZ_CHECK(seen == 0 || seen == -EPROTO);
    FUZZ_CHECK(seen < 0 || info.is_damaged || info.present <= info.size);
    r = staged_verify(NULL, path, &good, &bad);
    FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -EPROTO);
    fuzz_saw(&r, sizeof(r));
    if (seen == 0)
        fuzz_saw(&info.present, sizeof(info.present));
    fuzz_saw(&good, sizeof(good));
    fuzz_saw(&bad, sizeof(bad));
    FUZZ_CHECK(seen < 0 || (r == -EBADMSG) == (info.is_damaged || info.is_foreign));
    r = use_opened();
    FUZZ_CHECK((r == -EPROTO) == (seen == -EPROTO));
    FUZZ_CHECK(staged_remove(NULL, path) == r);
    return 0;
}
