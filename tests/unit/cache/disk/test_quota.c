/* The quota: the files of a cache folder never take more than the limit, whichever process is
 * killed, and space taken in vain is returned. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"
#include "cache/disk/staged_file.h"
#include "support/random.h"
#include "support/temp_folder.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define MIB (UINT64_C(1) << 20)
#define KIB (UINT64_C(1) << 10)

/* Where things are in the file, by docs/spec/cache-format.md. */
#define AT_VERSION 8
#define AT_TOTAL   16
#define AT_CRC     60
#define AT_SLOTS   64

static struct quota *open_quota_by(const char *folder, uint64_t limit, const struct clock *clock)
{
    const struct cache_folder cache = {.path = (char *)folder};
    struct quota *quota = NULL;
    struct diag d = DIAG_INIT;

    if (quota_open(&cache, limit, 0, clock, &quota, &d) < 0)
        fail_msg("%s", d.text);
    return quota;
}

static struct quota *open_quota(const char *folder, uint64_t limit)
{
    return open_quota_by(folder, limit, NULL);
}

static void close_quota(struct quota **quota)
{
    quota_close(*quota);
}
#define AUTO_SIZE AUTO(close_quota)

/* The space that the files of the folder take, according to du. */
static uint64_t truth(const char *folder)
{
    char command[PATH_MAX + 100];
    unsigned long long sum = 0;
    FILE *f;

    snprintf(command, sizeof(command),
             "find %s ! -type d -printf '%%b\\n' | awk '{ s += $1 } END { print s * 512 }'",
             folder);
    f = popen(command, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu", &sum), 1);
    pclose(f);
    return sum;
}

static void add_file(const char *folder, const char *name, size_t len)
{
    AUTO_FREE uint8_t *bytes = malloc(len);

    memset(bytes, 1, len);
    temp_write(folder, name, bytes, len);
}

static void write_file(const char *folder, uint64_t at, const void *bytes, size_t len)
{
    char path[PATH_MAX];
    AUTO_CLOSE int fd = -1;

    temp_path(folder, "room", path);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
}

/* ---- one process ---- */

UNIT_TEST_WITH(test_room__take_and_give__counted, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    uint64_t start = quota_used(quota), mark;

    assert_int_equal(quota_limit(quota), MIB);
    assert_int_equal(start, truth(*state));
    assert_int_equal(quota_take(quota, 100 * KIB), 0);
    assert_int_equal(quota_used(quota), start + 100 * KIB);
    quota_give_back(quota, 60 * KIB);
    assert_int_equal(quota_used(quota), start + 40 * KIB);
    add_file(*state, "f", 40 * KIB);
    quota_settle(quota, 40 * KIB);
    assert_int_equal(quota_used(quota), start + 40 * KIB);
    assert_int_equal(quota_take(quota, MIB), -ENOSPC);
    assert_int_equal(quota_take(quota, MIB - 40 * KIB - start), 0);
    assert_int_equal(quota_take(quota, 1), -ENOSPC);
    mark = quota_mark(quota);
    quota_freed(quota, 8 * KIB, mark);
    assert_int_equal(quota_take(quota, 8 * KIB), 0);
    assert_int_equal(quota_take(quota, 1), -ENOSPC);
    assert_int_equal(quota_take(quota, UINT64_MAX), -ENOSPC);
}

/* Files that others wrote without the quota, or removed, are counted when the quota is used up. */
UNIT_TEST_WITH(test_room__refusal__counts_first, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);

    temp_folder(*state, "rows");
    temp_folder(*state, "rows/deep");
    add_file(*state, "rows/deep/big", 900 * KIB);
    assert_true(quota_used(quota) < 100 * KIB);
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_used(quota), truth(*state));
    assert_true(quota_used(quota) >= 900 * KIB);
    assert_int_equal(quota_take(quota, 200 * KIB), -ENOSPC);
    assert_true(quota_used(quota) <= MIB);
}

/* A count takes a while: the next refusals do not count. */
UNIT_TEST_WITH(test_room__refused_again__counts_after_3_s, temp_setup, temp_teardown)
{
    struct test_clock clock;
    struct quota *quota;
    char path[PATH_MAX];

    test_clock_init(&clock);
    quota = open_quota_by(*state, MIB, &clock.clock);
    add_file(*state, "f", 900 * KIB);
    assert_int_equal(quota_take(quota, MIB), -ENOSPC);
    assert_true(quota_used(quota) >= 900 * KIB);
    temp_path(*state, "f", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(quota_take(quota, 500 * KIB), -ENOSPC);
    test_clock_turn(&clock, 3 * TEST_S - 1);
    assert_int_equal(quota_take(quota, 500 * KIB), -ENOSPC);
    test_clock_turn(&clock, 1);
    assert_int_equal(quota_take(quota, 500 * KIB), 0);
    quota_close(quota);
    test_clock_release(&clock);
}

/* A link out of the folder counts as a link. */
UNIT_TEST_WITH(test_room__links__not_followed, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    char path[PATH_MAX];

    temp_path(*state, "link", path);
    assert_int_equal(symlink("/usr", path), 0);
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_used(quota), truth(*state));
}

/* Space freed before or while the files are counted is not subtracted twice. */
UNIT_TEST_WITH(test_room__freed_across_count__left_out, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    char path[PATH_MAX];
    uint64_t mark;

    add_file(*state, "f", 100 * KIB);
    assert_int_equal(quota_recount(quota), 0);
    mark = quota_mark(quota);
    temp_path(*state, "f", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(quota_recount(quota), 0);
    quota_freed(quota, 100 * KIB, mark);
    assert_int_equal(quota_used(quota), truth(*state));
}

UNIT_TEST_WITH(test_room__percent__of_file_system, temp_setup, temp_teardown)
{
    const struct cache_folder cache = {.path = *state};
    AUTO_SIZE struct quota *quota = NULL;
    struct statvfs fs;

    assert_int_equal(quota_open(&cache, 5, 50, NULL, &quota, NULL), 0);
    assert_int_equal(statvfs(*state, &fs), 0);
    assert_true(quota_limit(quota) / MIB == (uint64_t)fs.f_blocks * fs.f_frsize / 2 / MIB);
}

/* ---- damage ---- */

/* Damage to each byte of the head and of our slot, and each length: files are counted again, and
 * the limit holds. */
UNIT_TEST_WITH(test_room__damaged__counted_anew, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB), *other = NULL;
    char path[PATH_MAX];
    uint64_t used;

    add_file(*state, "f", 300 * KIB);
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_take(quota, 400 * KIB), 0);
    used = quota_used(quota);
    temp_path(*state, "room", path);
    for (int i = 0; i < AT_SLOTS + 16 + AT_SLOTS; i++) {
        AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
        uint8_t byte;

        if (i < AT_SLOTS + 16) {
            assert_int_equal(pread(fd, &byte, 1, i), 1);
            byte ^= 0x10;
            assert_int_equal(pwrite(fd, &byte, 1, i), 1);
        } else {
            assert_int_equal(ftruncate(fd, i - AT_SLOTS - 16), 0);
        }
        /* Another process takes unknown space for used until this one has counted. */
        other = open_quota(*state, MIB);
        assert_int_equal(quota_take(other, 400 * KIB), -ENOSPC);
        assert_int_equal(quota_recount(quota), 0);
        assert_int_equal(quota_recount(other), 0); /* our slot is whole again */
        assert_int_equal(quota_take(other, 400 * KIB), -ENOSPC);
        assert_int_equal(quota_take(other, 200 * KIB), 0);
        quota_close(other);
        other = NULL;
        assert_int_equal(quota_recount(quota), 0);
        assert_true(quota_used(quota) >= used && quota_used(quota) < used + 100 * KIB);
    }
}

/* The process that counts begins a damaged head again. */
UNIT_TEST_WITH(test_room__head_damaged__count_mends_it, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);

    assert_int_equal(quota_take(quota, 100 * KIB), 0);
    write_file(*state, AT_TOTAL, "x", 1);
    assert_int_equal(quota_used(quota), 0); /* not known */
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_used(quota), 100 * KIB + truth(*state));
    write_file(*state, AT_TOTAL, "x", 1);
    assert_int_equal(quota_take(quota, 100 * KIB), 0);
    assert_int_equal(quota_used(quota), 200 * KIB + truth(*state));
}

UNIT_TEST_WITH(test_room__other_version__refused_untouched, temp_setup, temp_teardown)
{
    const struct cache_folder cache = {.path = *state};
    uint8_t head[64] = "epochrom", after[64];
    struct diag d = DIAG_INIT;
    struct quota *quota = NULL;
    char path[PATH_MAX];
    AUTO_CLOSE int fd = -1;

    quota_close(open_quota(*state, MIB));
    store_le32(head + AT_VERSION, 2);
    store_le32(head + AT_CRC, (uint32_t)crc32_z(0, head, AT_CRC));
    write_file(*state, 0, head, sizeof(head));
    assert_int_equal(quota_open(&cache, MIB, 0, NULL, &quota, &d), -EPROTO);
    assert_diag_has(&d, "/room: expected version 1");
    temp_path(*state, "room", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, after, sizeof(after), 0), sizeof(after));
    assert_memory_equal(after, head, sizeof(head));
}

UNIT_TEST_WITH(test_room__not_a_file__not_touched, temp_setup, temp_teardown)
{
    const struct cache_folder cache = {.path = *state};
    struct diag d = DIAG_INIT;
    struct quota *quota = NULL;
    char path[PATH_MAX];

    quota_close(open_quota(*state, MIB));
    temp_path(*state, "room", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("EPOCHFS", path), 0);
    assert_true(quota_open(&cache, MIB, 0, NULL, &quota, &d) < 0);
    assert_diag_has(&d, *state);
}

/* The total from before a power cut may be too low: a process that is alone counts. */
UNIT_TEST_WITH(test_room__alone__counts_at_open, temp_setup, temp_teardown)
{
    struct quota *quota = open_quota(*state, MIB);

    quota_close(quota);
    add_file(*state, "f", 500 * KIB);
    quota = open_quota(*state, MIB);
    assert_int_equal(quota_used(quota), truth(*state));
    quota_close(quota);
}

/* ---- what no process uses makes place ---- */

#define ID_END "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID     "0" ID_END

/* A file of so many bytes and their end, that was last used at that time; 0: now. Its descriptor.
 */
static int add_used(const char *folder, const char *name, size_t len, time_t used)
{
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    char path[PATH_MAX];
    int fd;

    add_file(folder, name, len);
    temp_path(folder, name, path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    if (used)
        assert_int_equal(futimens(fd, times), 0);
    return fd;
}

static bool is_kept(void *ctx, const char *url)
{
    return !strcmp(ctx, url);
}

static void add_staged(const char *folder, const char *url)
{
    const struct cache_folder cache = {.path = (char *)folder};
    const struct staged_key key = {.url = url, .version = "1", .size = MIB, .block = 4096};
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    AUTO_FREE uint8_t *bytes = malloc(600 * KIB);
    struct staged staged;

    memset(bytes, 1, 600 * KIB);
    assert_int_equal(staged_open(&staged, &cache, &key, NULL), 0);
    assert_int_equal(staged_write(&staged, bytes, 600 * KIB, 0), 0);
    assert_int_equal(futimens(staged.fd, times), 0);
    assert_int_equal(futimens(staged.records, times), 0);
    staged_close(&staged);
}

UNIT_TEST_WITH(test_room__full_of_unused_files__some_go, temp_setup, temp_teardown)
{
    static const struct {
        const char *name; /* NULL: a staged file of url */
        const char *url;
        time_t used;
        short lock; /* that its user has */
        bool goes;
    } cases[] = {
        {"unpacked/" ID, NULL, 1000, F_UNLCK, true},
        {"unpacked/" ID, NULL, 4000000000, F_UNLCK, false}, /* after this process began */
        {"unpacked/" ID, NULL, 1000, F_RDLCK, false},
        {"rows/" ID, NULL, 1000, F_UNLCK, false},
        {"commands/" ID, NULL, 1000, F_UNLCK, false},
        {"listing/" ID, NULL, 1000, F_UNLCK, false},
        {"made/" ID, NULL, 1000, F_UNLCK, false},
        {"commands/" ID ".part", NULL, 1000, F_UNLCK, true},
        {NULL, "https://example.org/other", 1000, F_UNLCK, true},
        {NULL, "https://example.org/kept", 1000, F_UNLCK, false},
    };
    static const char *const kinds[] = {"unpacked", "rows", "commands", "listing", "made"};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct quota *quota;
        char folder[PATH_MAX];
        int fd = -1;

        temp_folder(*state, "cache");
        temp_path(*state, "cache", folder);
        quota_close(open_quota(folder, MIB));
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            temp_folder(folder, kinds[k]);
        if (cases[i].name)
            fd = add_used(folder, cases[i].name, 600 * KIB, cases[i].used);
        else
            add_staged(folder, cases[i].url);
        if (cases[i].lock != F_UNLCK)
            assert_int_equal(file_lock(fd, cases[i].lock, FILE_LOCK_USE, 1, 0), 0);
        quota = open_quota(folder, MIB);
        quota_set_keeps(quota, is_kept, (void *)(uintptr_t) "https://example.org/kept");
        if ((quota_could_free(quota) >= 600 * KIB) != cases[i].goes ||
            (quota_take(quota, 700 * KIB) == 0) != cases[i].goes)
            fail_msg("case %zu", i);
        assert_int_equal(truth(folder) < 100 * KIB, cases[i].goes);
        assert_true(quota_used(quota) >= truth(folder));
        quota_close(quota);
        if (fd >= 0)
            close(fd);
        temp_remove(folder);
    }
}

static bool exists(const char *folder, const char *name)
{
    char path[PATH_MAX];

    temp_path(folder, name, path);
    return access(path, F_OK) == 0;
}

/* Those that were not used for longest go first, no more than are needed and a 64th; after all have
 * gone, none is looked for for 30 s. */
UNIT_TEST_WITH(test_room__unused_files__oldest_first, temp_setup, temp_teardown)
{
    static const char *const names[] = {"unpacked/1" ID_END, "unpacked/2" ID_END,
                                        "unpacked/3" ID_END};
    static const time_t used[] = {2000, 1000, 3000};
    struct test_clock clock;
    struct quota *quota;

    test_clock_init(&clock);
    quota_close(open_quota(*state, MIB));
    temp_folder(*state, "unpacked");
    for (unsigned i = 0; i < 3; i++)
        close(add_used(*state, names[i], 280 * KIB, used[i]));
    quota = open_quota_by(*state, MIB, &clock.clock);
    assert_int_equal(quota_take(quota, 240 * KIB), 0);
    assert_true(exists(*state, names[0]) && !exists(*state, names[1]));
    assert_int_equal(quota_take(quota, 264 * KIB), 0); /* with a 64th of the limit: 280 */
    assert_true(!exists(*state, names[0]) && exists(*state, names[2]));
    assert_int_equal(quota_take(quota, 600 * KIB), -ENOSPC);
    assert_false(exists(*state, names[2]));
    quota_give_back(quota, 504 * KIB);
    close(add_used(*state, names[0], 700 * KIB, 1000));
    assert_int_equal(quota_recount(quota), 0);
    test_clock_turn(&clock, 30 * TEST_S - 1);
    assert_int_equal(quota_take(quota, 500 * KIB), -ENOSPC);
    assert_true(exists(*state, names[0]));
    test_clock_turn(&clock, 1);
    assert_int_equal(quota_take(quota, 500 * KIB), 0);
    assert_false(exists(*state, names[0]));
    quota_close(quota);
    test_clock_release(&clock);
}

/* ---- one growing file, and all files of a folder ---- */

UNIT_TEST_WITH(test_allowance__grows_in_disk_blocks__rest_comes_back, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    struct allowance a = {.quota = quota}, none = {.quota = NULL};
    uint64_t start = quota_used(quota), left = MIB - start;
    struct diag d = DIAG_INIT;
    char text[100];

    assert_int_equal(allowance_raise(&none, INT64_MAX, 5), 0);
    allowance_written(&none, 5);
    allowance_end(&none, 5);
    assert_true(!none.taken && !none.settled);
    assert_int_equal(allowance_raise(&a, 5000, 0), 0);
    assert_int_equal(quota_used(quota) - start, 8192);
    assert_int_equal(allowance_raise(&a, 8192, 100), 0); /* it has that */
    assert_int_equal(quota_used(quota) - start, 8192);
    assert_int_equal(allowance_raise(&a, 8193, 4097), 0);
    assert_int_equal(quota_used(quota) - start, 5 * 4096);
    assert_int_equal(a.taken, 5 * 4096);
    add_file(*state, "f", 8192);
    allowance_written(&a, 4097);
    assert_int_equal(a.settled, 8192);
    allowance_written(&a, 1);
    assert_int_equal(a.settled, 8192);
    assert_int_equal(quota_used(quota) - start, 5 * 4096);
    assert_int_equal(allowance_raise(&a, UINT64_MAX, 0), -EFBIG);
    assert_int_equal(allowance_raise(&a, MIB, UINT64_MAX), -EFBIG);
    assert_int_equal(a.wanted, 0);
    assert_int_equal(allowance_raise(&a, 6 * 4096, MIB), 0); /* as much ahead as there is */
    assert_int_equal(a.taken, left / 4096 * 4096);
    assert_int_equal(allowance_raise(&a, MIB, 0), -ENOSPC);
    assert_int_equal(a.wanted, MIB);
    assert_int_equal(allowance_refused(&a, "/a/cache/rows", &d), -ENOSPC);
    snprintf(text, sizeof(text), "at least 1048576 bytes in the cache folder /a/cache, got %llu of",
             (unsigned long long)quota_used(quota));
    assert_diag_has(&d, text);
    assert_diag_has(&d, "of its limit of 1048576 in use");
    allowance_written(&a, UINT64_MAX / 2);
    assert_int_equal(a.settled, a.taken);
    allowance_end(&a, 0);
    assert_int_equal(quota_used(quota) - start, left / 4096 * 4096);
}

UNIT_TEST_WITH(test_allowance__dropped__all_comes_back, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    uint64_t start = quota_used(quota);

    for (unsigned i = 0; i < 4; i++) {
        struct allowance a = {.quota = i < 3 ? quota : NULL};
        AUTO_CLOSE int fd = add_used(*state, "f", 8192, 0);

        assert_int_equal(allowance_raise(&a, 8192, i == 1 ? 100 * KIB : 0), 0);
        allowance_written(&a, i == 2 ? 0 : 8192);
        allowance_drop(&a, fd);
        assert_int_equal(lseek(fd, 0, SEEK_END), 0);
        assert_int_equal(quota_used(quota), start);
        assert_true(!a.taken && !a.settled);
    }
    quota_give_back(quota, 5); /* nothing is in flight */
    assert_int_equal(quota_used(quota), start);
}

UNIT_TEST_WITH(test_share__files_of_one_folder__within_its_limit, temp_setup, temp_teardown)
{
    const struct cache_folder cache = {.path = *state};
    struct quota_share share = {.cache = &cache, .folder = "made", .limit = 160 * KIB};
    char path[PATH_MAX];
    int fd;

    quota_close(open_quota(*state, MIB));
    lock_init(&share.lock);
    temp_folder(*state, "made");
    temp_folder(*state, "rows");
    add_file(*state, "rows/" ID, 500 * KIB); /* of another folder */
    fd = add_used(*state, "made/" ID, 40 * KIB, 0);
    assert_int_equal(quota_share_take(&share, 8 * KIB), 0);
    assert_int_equal(share.used, 48 * KIB);
    add_file(*state, "made/f" ID, 4 * KIB); /* no name of ours */
    assert_int_equal(quota_share_take(&share, 2 * KIB), 0);
    assert_int_equal(share.used, 50 * KIB); /* it was not counted */
    assert_int_equal(quota_share_take(&share, 3 * KIB), 0);
    assert_int_equal(share.used, 53 * KIB);
    assert_int_equal(quota_share_take(&share, 1), 0); /* more than a 16th is not counted yet */
    assert_int_equal(share.used, 40 * KIB + 1);
    assert_int_equal(quota_share_take(&share, 120 * KIB), 0); /* counted, because it looks full */
    assert_int_equal(share.used, 160 * KIB);
    assert_true(exists(*state, "made/" ID));
    assert_int_equal(file_lock(fd, F_RDLCK, FILE_LOCK_USE, 1, 0), 0);
    assert_int_equal(quota_share_take(&share, 120 * KIB + 1), -ENOSPC);
    assert_true(exists(*state, "made/" ID));
    close(fd);
    assert_int_equal(quota_share_take(&share, 160 * KIB), 0);
    assert_false(exists(*state, "made/" ID));
    assert_true(exists(*state, "rows/" ID));
    temp_path(*state, "EPOCHFS", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(quota_share_take(&share, 1), -EPROTO);
    lock_release(&share.lock);
}

/* ---- several processes ---- */

/* The process takes all space, writes half of it, and is killed before it settles. */
UNIT_TEST_WITH(test_room__killed__comes_back, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    int status;
    pid_t id = fork();

    if (id == 0) {
        struct quota *own = open_quota(*state, MIB);

        add_file(*state, "half", 300 * KIB);
        if (quota_take(own, 600 * KIB) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(id, &status, 0), id);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(quota_take(quota, 600 * KIB), 0); /* it counts first */
    quota_give_back(quota, 600 * KIB);
    assert_int_equal(quota_used(quota), truth(*state));
}

/* Space that a living process has in flight stays taken, even when the files are counted. */
UNIT_TEST_WITH(test_room__counted_while_in_flight__stays_taken, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *a = open_quota(*state, MIB), *b = open_quota(*state, MIB);

    assert_int_equal(quota_take(a, 600 * KIB), 0);
    assert_int_equal(quota_recount(b), 0);
    assert_int_equal(quota_used(b), 600 * KIB + truth(*state));
    assert_int_equal(quota_take(b, 600 * KIB), -ENOSPC);
    quota_close(a);
    a = NULL;
    assert_int_equal(quota_take(b, 600 * KIB), 0);
}

/* As for a daemon, the process that opened the quota ends, and its child goes on. */
UNIT_TEST_WITH(test_room__forked__child_goes_on, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    int ready[2], alive[2], status;
    pid_t id, daemon = 0;
    char byte;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(alive), 0); /* until this process ends */
    id = fork();
    if (id == 0) {
        struct quota *own = open_quota(*state, MIB);

        if (fork() == 0) {
            daemon = getpid();
            close(alive[1]);
            if (quota_take(own, 600 * KIB) == 0 &&
                write(ready[1], &daemon, sizeof(daemon)) == sizeof(daemon))
                _exit(read(alive[0], &byte, 1) == 0 ? 0 : 1);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(id, &status, 0), id);
    close(ready[1]);
    assert_int_equal(read(ready[0], &daemon, sizeof(daemon)), sizeof(daemon));
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_take(quota, 600 * KIB), -ENOSPC);
    assert_int_equal(quota_used(quota), 600 * KIB + truth(*state));
    assert_int_equal(kill(daemon, SIGKILL), 0);
    assert_int_equal(read(ready[0], &daemon, sizeof(daemon)),
                     0); /* it has ended, and its locks with it */
    close(ready[0]);
    close(alive[0]);
    close(alive[1]);
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_used(quota), truth(*state));
}

#define CHURN_LIMIT (2 * MIB)

/* Take space, then write and settle, or give it back, or remove a file again. */
static int churn(const char *folder, unsigned who, unsigned rounds)
{
    struct quota *quota = open_quota(folder, CHURN_LIMIT);
    uint64_t random = RANDOM_SEED + who;
    char name[32], path[PATH_MAX];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t bytes = (1 + random_below(&random, 64)) * 4 * KIB, mark;
        struct stat st;

        snprintf(name, sizeof(name), "%u-%u", who, (unsigned)random_below(&random, 20));
        temp_path(folder, name, path);
        if (stat(path, &st) == 0) {
            mark = quota_mark(quota);
            unlink(path);
            quota_freed(quota, (uint64_t)st.st_blocks * 512, mark);
        }
        if (random_below(&random, 50) == 0 && quota_recount(quota) < 0)
            return 1;
        if (quota_take(quota, bytes) < 0)
            continue;
        if (random_below(&random, 3) == 0) {
            quota_give_back(quota, bytes);
            continue;
        }
        add_file(folder, name, bytes);
        quota_settle(quota, bytes);
    }
    quota_close(quota);
    return 0;
}

/* Stop all running processes, so that the files' space is constant. Sets the ids of ended ones to
 * 0; returns how many still run. */
static unsigned stop_all(pid_t *id, size_t n)
{
    unsigned left = 0;
    int status;

    for (size_t i = 0; i < n; i++) {
        if (!id[i])
            continue;
        assert_int_equal(kill(id[i], SIGSTOP), 0);
        assert_int_equal(waitpid(id[i], &status, WUNTRACED), id[i]);
        if (WIFSTOPPED(status)) {
            left++;
            continue;
        }
        assert_int_equal(status, 0);
        id[i] = 0;
    }
    return left;
}

UNIT_TEST_WITH(test_room__many_processes__never_above_limit, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, CHURN_LIMIT);
    uint64_t most = 0, takes;
    unsigned left;
    int status;
    pid_t id[4];

    for (unsigned i = 0; i < ARRAY_LEN(id); i++) {
        id[i] = fork();
        if (id[i] == 0)
            _exit(churn(*state, i, i == 0 ? UINT_MAX : 3000));
    }
    do {
        for (unsigned i = 0; i < 10; i++)
            if (quota_take(quota, 4 * KIB) == 0)
                quota_give_back(quota, 4 * KIB);
        left = stop_all(id, ARRAY_LEN(id));
        takes = truth(*state);
        assert_true(takes <= CHURN_LIMIT);
        most = takes > most ? takes : most;
        for (size_t i = 0; i < ARRAY_LEN(id); i++)
            if (id[i])
                kill(id[i], SIGCONT);
    } while (left > 1);
    assert_int_equal(kill(id[0], SIGKILL), 0);
    assert_int_equal(waitpid(id[0], &status, 0), id[0]);
    assert_true(most > CHURN_LIMIT / 2); /* the test did use space */
    assert_true(quota_used(quota) >= truth(*state));
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_used(quota), truth(*state));
}

/* Threads of one process share what it has in flight. */
static void *take_and_give(void *arg)
{
    struct quota *quota = arg;

    for (unsigned i = 0; i < 2000; i++)
        if (quota_take(quota, 100 * KIB) == 0) {
            if (quota_used(quota) > MIB)
                return arg;
            quota_give_back(quota, 100 * KIB);
        }
    return NULL;
}

UNIT_TEST_WITH(test_room__threads__nothing_lost, temp_setup, temp_teardown)
{
    AUTO_SIZE struct quota *quota = open_quota(*state, MIB);
    pthread_t thread[4];
    void *bad;

    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, quota), 0);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++) {
        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(quota_used(quota), truth(*state));
}
