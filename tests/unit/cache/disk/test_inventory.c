/* The inventory of a cache folder sees the files of epochfs and no others, and removes those not in
 * use. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "cache/disk/inventory.h"
#include "cache/disk/local_file.h"
#include "cache/disk/made_files.h"
#include "cache/disk/staged_file.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define BLOCK STAGED_BLOCK_LEAST
#define OLD   "0123456789abcdef0123456789abcdef" /* as versions before 4 named files */
#define ID    OLD OLD

static struct cache_folder cache_of(void *const *state)
{
    const struct cache_folder cache = {.path = *state};
    char path[PATH_MAX];
    struct diag d = DIAG_INIT;

    if (cache_folder_sub(&cache, "unpacked", path, sizeof(path), &d) < 0)
        fail_msg("%s", d.text);
    return cache;
}

static int make_hello(void *ctx, struct entry_sink *sink, struct diag *d)
{
    (void)ctx;
    (void)d;
    return entry_write(sink, "hello", 5);
}

/* Makes an entry, and its path; returns a descriptor of it, which counts as a use. */
static int make_entry(const struct cache_folder *cache, const char *kind, const char *identity,
                      char ret_path[static PATH_MAX])
{
    struct entry entry;
    uint64_t size;
    int fd = -1;

    assert_int_equal(entry_init(&entry, cache, kind, identity, identity, NULL), 0);
    assert_int_equal(entry_make(&entry, false, make_hello, NULL, &fd, &size, NULL), 0);
    entry_path(&entry, "", ret_path);
    close(fd);
    fd = -1;
    assert_int_equal(entry_open(&entry, &fd, &size), 0);
    return fd;
}

/* Give the lease up when another process opens the file. */
static void *give_up_lease(void *fd)
{
    sigset_t io;
    int number;

    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    if (sigwait(&io, &number) == 0)
        fcntl(*(int *)fd, F_SETLEASE, F_UNLCK);
    return NULL;
}

/* A file server gives its leases up when it is asked, which takes a moment: it is waited for. */
UNIT_TEST_WITH(test_open__lease_of_another_program__waits, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    char path[PATH_MAX];
    sigset_t io;

    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    pthread_sigmask(SIG_BLOCK, &io, NULL);
    close(make_entry(&cache, "unpacked", "a", path));
    for (unsigned i = 0; i < 2; i++) {
        int fd, server = open(path, O_RDWR | O_CLOEXEC);
        pthread_t thread;
        struct stat st;

        assert_int_equal(fcntl(server, F_SETLEASE, F_WRLCK), 0);
        assert_int_equal(pthread_create(&thread, NULL, give_up_lease, &server), 0);
        fd = -1;
        if (i)
            fd = group_open(NULL, path, O_RDONLY, NULL);
        else
            assert_int_equal(file_open(path, &fd, &st), 0);
        assert_true(fd >= 0);
        pthread_join(thread, NULL);
        close(fd);
        close(server);
    }
}

/* Take the inventory until the other end of the pipe is closed. Returns an exit code. */
static int list_again_and_again(const struct cache_folder *cache, int until)
{
    struct pollfd over = {.fd = until, .events = POLLIN};

    while (poll(&over, 1, 0) == 0) {
        AUTO_INVENTORY struct inventory inventory = {0};

        if (inventory_take(cache, &inventory, NULL) < 0 || inventory.n != 2)
            return 1;
    }
    return 0;
}

/* Those who list the folder, and those who open its files, do not notice each other. */
UNIT_TEST_WITH(test_inventory__many_list_and_open__undisturbed, temp_setup, temp_teardown)
{
    enum { LISTERS = 4, OPENS = 1000 };
    const struct cache_folder cache = cache_of(state);
    struct made_files made;
    struct made_file *file = NULL;
    struct entry entry;
    char path[PATH_MAX];
    pid_t lister[LISTERS];
    int ends[2], failed = 0;

    close(make_entry(&cache, "unpacked", "a", path));
    assert_int_equal(entry_init(&entry, &cache, "unpacked", "a", "", NULL), 0);
    made_files_init(&made, &cache, 1 << 20, &(struct notices){0});
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(made_open(&made.store, "m", "m", 1, 16, &file, NULL), 0);
    made_close(file);
    for (unsigned i = 0; i < LISTERS; i++) {
        lister[i] = fork();
        if (lister[i] == 0) {
            close(ends[1]);
            _exit(list_again_and_again(&cache, ends[0]));
        }
    }
    for (unsigned i = 0; i < OPENS; i++) {
        uint64_t size;
        int fd = -1, r = entry_open(&entry, &fd, &size);

        failed += r < 0;
        if (r == 0)
            close(fd);
        r = made_open(&made.store, "m", "m", 1, 16, &file, NULL);
        failed += r < 0;
        if (r == 0)
            made_close(file);
    }
    close(ends[1]);
    close(ends[0]);
    for (unsigned i = 0; i < LISTERS; i++) {
        int status = -1;

        assert_int_equal(waitpid(lister[i], &status, 0), lister[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(failed, 0);
    made_files_release(&made);
}

/* Opens a staged file and puts its first block into it. */
static struct staged make_staged(const struct cache_folder *cache, const char *url,
                                 const char *version)
{
    const struct staged_key key = {
        .url = url, .version = version, .size = 3 * BLOCK, .block = BLOCK};
    struct staged staged;
    struct diag d = DIAG_INIT;
    char bytes[BLOCK];
    uint64_t record;

    memset(bytes, 'x', sizeof(bytes));
    if (staged_open(&staged, cache, &key, &d) < 0)
        fail_msg("%s", d.text);
    assert_int_equal(staged_claim(&staged, 0, 1), 1);
    assert_int_equal(staged_write(&staged, bytes, sizeof(bytes), 0), 0);
    record = staged_checksum(&staged, 0, bytes);
    assert_int_equal(staged_publish(&staged, 0, 1, &record), 0);
    staged_unclaim(&staged, 0, 1);
    return staged;
}

static void take(const struct cache_folder *cache, size_t want, struct inventory *ret)
{
    struct diag d = DIAG_INIT;

    if (inventory_take(cache, ret, &d) < 0)
        fail_msg("%s", d.text);
    assert_int_equal(ret->n, want);
}

UNIT_TEST_WITH(test_inventory__other_folders__refused_and_not_changed, temp_setup, temp_teardown)
{
    struct cache_folder cache = {.path = *state};
    struct inventory inventory = {0};
    struct diag missing = DIAG_INIT, empty = DIAG_INIT, no_folder = DIAG_INIT;
    char path[PATH_MAX];

    assert_int_equal(inventory_take(&cache, &inventory, &empty), -EPROTO);
    assert_diag_has(&empty, "expected a cache folder of epochfs");
    temp_path(*state, "EPOCHFS", path);
    assert_int_equal(access(path, F_OK), -1);
    temp_path(*state, "missing", path);
    cache.path = path;
    assert_int_equal(inventory_take(&cache, &inventory, &missing), -ENOENT);
    temp_write(*state, "file", "x", 1);
    temp_path(*state, "file", path);
    assert_int_equal(inventory_take(&cache, &inventory, &no_folder), -EPROTO);
    assert_diag_has(&no_folder, "expected a folder");
}

UNIT_TEST_WITH(test_inventory__only_what_is_named_as_ours__seen, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    AUTO_INVENTORY struct inventory inventory = {0};
    char path[PATH_MAX], to[PATH_MAX];

    temp_folder(*state, "mine");
    temp_write(*state, "mine/" ID, "x", 1);
    temp_write(*state, "unpacked/notes.txt", "x", 1);
    temp_write(*state, "unpacked/" ID "0", "x", 1);
    temp_write(*state, "unpacked/" ID ".bak", "x", 1);
    temp_write(*state, "unpacked/0123456789ABCDEF0123456789abcdef" OLD, "x", 1);
    temp_folder(*state, "unpacked/1123456789abcdef0123456789abcdef" OLD);
    temp_path(*state, "unpacked/2123456789abcdef0123456789abcdef", path);
    temp_path(*state, "mine/" ID, to);
    assert_int_equal(symlink(to, path), 0);
    temp_path(*state, "rows", path);
    temp_path(*state, "mine", to);
    assert_int_equal(symlink(to, path), 0);
    take(&cache, 2,
         &inventory); /* a folder and a link in the place of an entry, under their names */
    for (size_t i = 0; i < 2; i++) {
        uint64_t good, bad;

        assert_true(inventory.file[i].is_no_file && inventory.file[i].is_damaged);
        assert_int_equal(inventory_verify(&inventory, &inventory.file[i], &good, &bad), 0);
        assert_int_equal(good, 0);
        assert_int_equal(bad, 1);
    }
    assert_int_equal(access(to, F_OK), 0);
    inventory_release(&inventory);
    take(&cache, 0, &inventory);
    assert_true(inventory.disk == 0);
}

UNIT_TEST_WITH(test_inventory__entries__whole_damaged_in_use, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    char whole[PATH_MAX], damaged[PATH_MAX];
    int used = make_entry(&cache, "unpacked", "a", whole);
    int broken = make_entry(&cache, "tables", "b", damaged);
    uint64_t good, bad;

    close(broken);
    assert_int_equal(truncate(damaged, 60), 0);
    {
        AUTO_INVENTORY struct inventory inventory = {0};

        take(&cache, 2, &inventory);
        for (size_t i = 0; i < 2; i++) {
            const struct inventory_file *f = &inventory.file[i];
            bool is_whole = !strcmp(f->folder, "unpacked");

            assert_int_equal(f->is_damaged, !is_whole);
            assert_int_equal(f->in_use, is_whole);
            assert_int_equal(f->size, is_whole ? 5 : 60);
            assert_int_equal(inventory_remove(&inventory, f), is_whole ? -EBUSY : 0);
        }
    }
    close(used);
    {
        AUTO_INVENTORY struct inventory inventory = {0};

        take(&cache, 1, &inventory);
        assert_false(inventory.file[0].in_use);
        assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
        assert_int_equal(good, 1);
        assert_int_equal(bad, 0);
        assert_int_equal(truncate(whole, 60), 0);
        assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
        assert_int_equal(bad, 1);
        assert_int_equal(access(whole, F_OK), -1);
    }
}

/* The folders of docs/spec/cache-format.md, and what their entries were made from: at most 1,024
 * bytes, never cut within a character. */
UNIT_TEST_WITH(test_inventory__entries_of_all_kinds__listed_with_their_source, temp_setup,
               temp_teardown)
{
    static const struct {
        const char *kind;
        size_t len, at; /* bytes; where the text is among them */
        const char *text;
        size_t cut; /* what is left of more than 1,024 */
    } cases[] = {
        {"unpacked", 7, 0, "/a", 0},
        {"commands", 1024, 0, "x", 0},
        {"rows", 1025, 0, "x", 1021},
        {"tables", 1025, 1018, "\u20ac", 1021},
        {"labels", 1030, 1019, "\u20ac", 1019},
        {"batches", 1030, 1020, "\u20ac", 1020},
        {"listing", 1030, 1018, "\U0001F600", 1018},
    };
    const struct cache_folder cache = cache_of(state);
    char source[1100], want[1100], path[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_INVENTORY struct inventory inventory = {0};
        size_t cut = cases[i].cut;
        uint64_t good, bad;

        memset(source, 's', cases[i].len);
        memcpy(source + cases[i].at, cases[i].text, strlen(cases[i].text));
        source[cases[i].len] = '\0';
        snprintf(want, sizeof(want), "%.*s%s", (int)(cut ? cut : cases[i].len), source,
                 cut ? "..." : "");
        close(make_entry(&cache, cases[i].kind, source, path));
        take(&cache, 1, &inventory);
        assert_string_equal(inventory.file[0].folder, cases[i].kind);
        assert_string_equal(inventory.file[0].source, want);
        assert_int_equal(inventory.file[0].size, 5);
        assert_false(inventory.file[0].is_sparse || inventory.file[0].is_staged);
        assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
        assert_int_equal(good, 1);
        assert_int_equal(inventory_remove(&inventory, &inventory.file[0]), 0);
        assert_int_equal(access(path, F_OK), -1);
    }
}

UNIT_TEST_WITH(test_inventory__parts__removed_when_their_maker_is_dead, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    char path[PATH_MAX];
    int fd;

    temp_write(*state, "unpacked/" ID ".part", "half", 4);
    temp_path(*state, "unpacked/" ID ".part", path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    {
        AUTO_INVENTORY struct inventory inventory = {0};

        take(&cache, 1, &inventory);
        assert_true(inventory.file[0].is_part);
        assert_true(inventory.file[0].in_use);
        assert_int_equal(inventory_remove(&inventory, &inventory.file[0]), -EBUSY);
    }
    close(fd);
    {
        AUTO_INVENTORY struct inventory inventory = {0};

        take(&cache, 1, &inventory);
        assert_false(inventory.file[0].in_use);
        assert_int_equal(inventory_remove(&inventory, &inventory.file[0]), 0);
        assert_int_equal(access(path, F_OK), -1);
    }
}

UNIT_TEST_WITH(test_inventory__staged__what_is_known_of_it, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    struct staged staged = make_staged(&cache, "https://example.org/a", "1");

    {
        AUTO_INVENTORY struct inventory inventory = {0};
        const struct inventory_file *f;

        take(&cache, 1, &inventory);
        f = &inventory.file[0];
        assert_string_equal(f->folder, "staged");
        assert_string_equal(f->id, staged.id);
        assert_string_equal(f->source, "https://example.org/a");
        assert_int_equal(f->size, 3 * BLOCK);
        assert_int_equal(f->present, BLOCK);
        assert_true(f->disk >= BLOCK);
        assert_true(f->in_use);
        assert_false(f->is_damaged);
        assert_int_equal(inventory_remove(&inventory, f), -EBUSY);
    }
    staged_close(&staged);
    {
        AUTO_INVENTORY struct inventory inventory = {0};

        take(&cache, 1, &inventory);
        assert_false(inventory.file[0].in_use);
        assert_int_equal(inventory_remove(&inventory, &inventory.file[0]), 0);
        assert_int_equal(inventory_remove(&inventory, &inventory.file[0]), -ENOENT);
    }
}

UNIT_TEST_WITH(test_inventory_verify__staged_bit_flipped__block_dropped, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    struct staged staged = make_staged(&cache, "https://example.org/a", "1");
    AUTO_INVENTORY struct inventory inventory = {0};
    uint64_t good, bad, record;

    take(&cache, 1, &inventory);
    assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
    assert_int_equal(good, 1);
    assert_int_equal(bad, 0);
    assert_int_equal(pwrite(staged.fd, "y", 1, 7), 1);
    assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
    assert_int_equal(good, 0);
    assert_int_equal(bad, 1);
    staged_records(&staged, 0, 1, &record);
    assert_true(record == 0);
    assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
    assert_int_equal(bad, 0);
    staged_close(&staged);
}

/* One of the two files of a staged file is gone: the other one is damaged, and goes. */
UNIT_TEST_WITH(test_inventory__staged_file_alone__damaged_and_removed, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);

    for (unsigned i = 0; i < 4; i++) {
        struct staged staged = make_staged(&cache, "https://example.org/a", "1");
        AUTO_INVENTORY struct inventory inventory = {0};
        char name[96], path[PATH_MAX];
        uint64_t good, bad;

        staged_close(&staged);
        snprintf(name, sizeof(name), "staged/%s%s", staged.id, i % 2 ? ".content" : "");
        temp_path(*state, name, path);
        assert_int_equal(unlink(path), 0);
        take(&cache, 1, &inventory);
        assert_true(inventory.file[0].is_damaged && !inventory.file[0].in_use);
        assert_string_equal(inventory.file[0].id, staged.id);
        if (i < 2) {
            assert_int_equal(inventory_remove(&inventory, &inventory.file[0]), 0);
        } else {
            assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
            assert_int_equal(bad, 1);
        }
        inventory_release(&inventory);
        take(&cache, 0, &inventory);
    }
}

/* A look at a sealed content is no change of it: the mounts that have compared it need not do so
 * again. */
UNIT_TEST_WITH(test_inventory__sealed__looks_change_nothing, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    struct staged staged = make_staged(&cache, "https://example.org/a", "1");
    const uint64_t some[2] = {1, 1};
    AUTO_INVENTORY struct inventory inventory = {0};
    uint64_t good, bad, drops;

    assert_int_equal(staged_publish(&staged, 1, 2, some), 0);
    assert_int_equal(staged_seal(&staged, NULL), 0);
    drops = staged_drops(&staged);
    take(&cache, 1, &inventory);
    assert_true(staged_drops(&staged) == drops);
    assert_int_equal(inventory.file[0].present, 3 * BLOCK);
    assert_int_equal(inventory_verify(&inventory, &inventory.file[0], &good, &bad), 0);
    assert_int_equal(good, 1);
    assert_int_equal(bad, 2);
    assert_true(staged_drops(&staged) != drops);
    staged_close(&staged);
}

/* A staged file of an earlier version is not damaged, and not used: prune removes it. */
UNIT_TEST_WITH(test_inventory__staged_by_earlier_version__superseded, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    struct staged staged = make_staged(&cache, "https://example.org/a", "1");
    AUTO_INVENTORY struct inventory inventory = {0};
    uint8_t header[1536];

    assert_int_equal(pread(staged.records, header, sizeof(header), 0), sizeof(header));
    store_le32(header + 8, 2); /* docs/spec/cache-format.md */
    store_le32(header + 1520, (uint32_t)crc32_z(0, header, 1520));
    assert_int_equal(pwrite(staged.records, header, sizeof(header), 0), sizeof(header));
    staged_close(&staged);
    take(&cache, 1, &inventory);
    assert_true(inventory.file[0].is_foreign && !inventory.file[0].is_damaged);
    assert_true(inventory.file[0].is_superseded);
    assert_string_equal(inventory.file[0].source, "https://example.org/a");
    assert_int_equal(inventory_remove(&inventory, &inventory.file[0]), 0);
}

/* Files with the shorter names of earlier versions: listed, never used, and removed by the next
 * mount unless an old process has them open. */
UNIT_TEST_WITH(test_inventory_older__names_of_half_the_digits__removed, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    struct staged staged = make_staged(&cache, "https://example.org/a", "1");
    AUTO_INVENTORY struct inventory inventory = {0};
    char path[PATH_MAX], new_path[PATH_MAX];
    uint64_t bytes;
    int fd;

    close(make_entry(&cache, "unpacked", "new", new_path));
    assert_int_equal(inventory_remove_older(&cache, &bytes), 0);
    for (unsigned i = 0; i < 4; i++) {
        static const char *const names[] = {"unpacked/" OLD, "rows/" OLD ".part", "made/" OLD,
                                            "staged/" OLD};

        if (i == 1 || i == 2)
            temp_folder(*state, i == 1 ? "rows" : "made");
        temp_write(*state, names[i], "x", 1);
    }
    temp_write(*state, "staged/" OLD ".content", "x", 1);
    temp_folder(*state, "commands"); /* whose removal an old mount would notice */
    temp_write(*state, "commands/" OLD, "x", 1);
    temp_path(*state, "unpacked/" OLD, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_lock(fd, F_RDLCK, FILE_LOCK_USE, 1, 0), 0);
    take(&cache, 7, &inventory);
    for (size_t i = 0; i < inventory.n; i++)
        assert_int_equal(inventory.file[i].is_foreign, strlen(inventory.file[i].id) == 32);
    assert_int_equal(inventory_remove_older(&cache, &bytes), 3);
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    assert_int_equal(inventory_remove_older(&cache, &bytes), 1);
    assert_int_equal(bytes, 4096);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(new_path, F_OK), 0);
    staged_close(&staged);
}

/* Tools read all of a file, and that is no use of it. */
UNIT_TEST_WITH(test_inventory__looked_at__times_of_use_stay, temp_setup, temp_teardown)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
    const struct cache_folder cache = cache_of(state);
    struct staged staged = make_staged(&cache, "https://example.org/a", "1");
    char path[PATH_MAX];
    uint64_t good, bad;
    int fd = make_entry(&cache, "rows", "a", path);

    assert_int_equal(futimens(fd, times), 0);
    assert_int_equal(futimens(staged.fd, times), 0);
    assert_int_equal(futimens(staged.records, times), 0);
    for (unsigned turn = 0; turn < 3; turn++) {
        AUTO_INVENTORY struct inventory inventory = {0};
        struct stat st;

        take(&cache, 2, &inventory);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(inventory_verify(&inventory, &inventory.file[i], &good, &bad), 0);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(fstat(i == 0 ? fd : i == 1 ? staged.fd : staged.records, &st), 0);
            assert_int_equal(st.st_atim.tv_sec, 1000);
        }
    }
    close(fd);
    staged_close(&staged);
}

UNIT_TEST_WITH(test_inventory_superseded__versions_of_one_url__the_older, temp_setup, temp_teardown)
{
    const struct cache_folder cache = cache_of(state);
    struct staged staged[] = {make_staged(&cache, "https://example.org/a", "1"),
                              make_staged(&cache, "https://example.org/a", "2"),
                              make_staged(&cache, "https://example.org/b", "1")};
    AUTO_INVENTORY struct inventory inventory = {0};

    for (size_t i = 0; i < ARRAY_LEN(staged); i++) {
        struct timespec times[2] = {{.tv_sec = 1000 + (time_t)i}, {.tv_sec = 1000 + (time_t)i}};

        assert_int_equal(futimens(staged[i].fd, times), 0);
        assert_int_equal(futimens(staged[i].records, times), 0);
    }
    take(&cache, 3, &inventory);
    for (size_t i = 0; i < 3; i++) { /* entries are sorted by that time */
        assert_string_equal(inventory.file[i].id, staged[i].id);
        assert_int_equal(inventory.file[i].used, 1000 + (time_t)i);
        assert_int_equal(inventory.file[i].is_superseded, i == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(staged); i++)
        staged_close(&staged[i]);
}

/* Marking the files of many sources compares no pairs: that would take an hour. */
UNIT_TEST(test_inventory_superseded__of_a_million_urls__marked)
{
    enum { FILES = 1 << 20 };
    struct inventory inventory = {.n = FILES, .file = calloc(FILES, sizeof(*inventory.file))};
    AUTO_FREE char *sources = calloc(FILES, 8);

    assert_true(inventory.file && sources);
    for (unsigned i = 0; i < FILES; i++) { /* three versions of each; the latest is damaged */
        struct inventory_file *file = &inventory.file[(i * 7919) % FILES];

        file->folder = "staged";
        file->is_staged = true;
        file->is_damaged = i % 3 == 2;
        file->changed.tv_sec = i % 3;
        snprintf(file->id, sizeof(file->id), "%016x", i);
        file->source = i % 3 == 2 ? NULL : sources + 8 * i;
        snprintf(sources + 8 * i, 8, "%x", i / 3);
    }
    assert_int_equal(inventory_mark_superseded(&inventory), 0);
    for (unsigned i = 0; i + 1 < FILES; i++)
        assert_int_equal(inventory.file[(i * 7919) % FILES].is_superseded, i % 3 == 0);
    free(inventory.file);
}
