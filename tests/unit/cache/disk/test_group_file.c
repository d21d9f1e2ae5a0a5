/* Files of a cache folder that a group shares, as two members and a stranger meet them. Each part
 * of a test runs in a child process that has become that user; only root can do that. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/entry.h"
#include "cache/disk/folder.h"
#include "cache/disk/inventory.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"
#include "cache/disk/staged_file.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define GROUP    61100
#define ANN      61001 /* a member; umask 077 */
#define BOB      61002 /* a member; umask 022 */
#define EVE      61003 /* a stranger */
#define ALL_BITS 07777

static const struct cache_group shared = {.is_shared = true, .gid = GROUP};

/* The test's folders: shared is the cache folder, own one that ANN keeps to herself. */
struct world {
    char shared[PATH_MAX], sub[PATH_MAX], own[PATH_MAX];
};

static void world_init(struct world *ret, const char *folder)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(folder, 0755), 0);
    temp_folder(folder, "shared");
    temp_folder(folder, "own");
    temp_path(folder, "shared", ret->shared);
    temp_path(folder, "shared/staged", ret->sub);
    temp_path(folder, "own", ret->own);
    assert_int_equal(chown(ret->shared, 0, GROUP), 0);
    assert_int_equal(chmod(ret->shared, 02770), 0);
    assert_int_equal(chown(ret->own, ANN, ANN), 0);
    assert_int_equal(chmod(ret->own, 0700), 0);
}

/* Run a step as a user; what it returns is the result. */
typedef int step_fn(const struct world *w);

static int as_user(uid_t uid, step_fn *step, const struct world *w)
{
    const gid_t group = GROUP;
    int state;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        umask(uid == ANN ? 0077 : 0022);
        if (setgroups(uid != EVE, &group) < 0 || setresgid(uid, uid, uid) < 0 ||
            setresuid(uid, uid, uid) < 0)
            _exit(255);
        _exit(-step(w) & 255);
    }
    assert_int_equal(waitpid(pid, &state, 0), pid);
    assert_true(WIFEXITED(state));
    assert_int_not_equal(WEXITSTATUS(state), 255);
    return -WEXITSTATUS(state);
}

static struct stat look(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st;
}

static void path_in(const char *folder, const char *name, char ret[static PATH_MAX])
{
    assert_true(snprintf(ret, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
}

/* ---- steps ---- */

static int make_sub(const struct world *w)
{
    return group_make_folder(&shared, w->sub, NULL);
}

static int open_file(const struct world *w)
{
    char path[PATH_MAX];
    int fd = -1, r;

    path_in(w->sub, "file", path);
    r = file_open_own(&shared, path, &fd, NULL);
    return r < 0 ? r : ftruncate(fd, 3) < 0 ? -errno : 0; /* what users of a file may do to it */
}

static int open_file_in_shared(const struct world *w)
{
    char path[PATH_MAX];
    int fd;

    path_in(w->shared, "file", path);
    return file_open_own(&shared, path, &fd, NULL);
}

/* ---- what is a folder of a group ---- */

UNIT_TEST(test_group_shares__modes__only_2770)
{
    static const mode_t others[] = {0700,  0770,  0775,  0777,  02700,
                                    02750, 02771, 02775, 03770, 01777};
    struct stat st = {.st_mode = S_IFDIR | 02770, .st_gid = GROUP};
    struct cache_group found;

    assert_true(group_shares(&st, &found));
    assert_true(found.is_shared);
    assert_int_equal(found.gid, GROUP);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        st.st_mode = S_IFDIR | others[i];
        assert_false(group_shares(&st, &found));
        assert_false(found.is_shared);
    }
    st.st_mode = S_IFREG | 02770;
    assert_false(group_shares(&st, &found));
}

/* ---- rights ---- */

UNIT_TEST_WITH(test_group_file__any_umask__rights_of_the_group, temp_setup, temp_teardown)
{
    struct world w;
    char path[PATH_MAX];
    struct stat st;

    world_init(&w, *state);
    for (unsigned i = 0; i < 2; i++) {
        uid_t first = i ? BOB : ANN, second = i ? ANN : BOB;

        assert_int_equal(as_user(first, make_sub, &w), 0);
        assert_int_equal(as_user(second, make_sub, &w), 0);
        st = look(w.sub);
        assert_int_equal(st.st_uid, first);
        assert_int_equal(st.st_gid, GROUP);
        assert_int_equal(st.st_mode & ALL_BITS, 02770);
        assert_int_equal(as_user(first, open_file, &w), 0);
        assert_int_equal(as_user(second, open_file, &w), 0);
        path_in(w.sub, "file", path);
        st = look(path);
        assert_int_equal(st.st_uid, first);
        assert_int_equal(st.st_gid, GROUP);
        assert_int_equal(st.st_mode & ALL_BITS, 0660);
        assert_int_equal(as_user(EVE, open_file, &w), -EACCES);
        temp_remove(w.sub);
    }
    st = look(w.shared); /* nothing is left of what was made there */
    assert_int_equal(st.st_nlink, 2);
}

static int say_file(const struct world *w)
{
    struct diag d = DIAG_INIT;
    char path[PATH_MAX], want[PATH_MAX + 200];
    int r;

    path_in(w->sub, "file", path);
    r = group_open(&shared, path, O_RDONLY, &d);
    snprintf(
        want, sizeof(want),
        "%s: expected a file that group %u may read and write, got one of user %u and group %u "
        "with mode 0600",
        path, GROUP, ANN, GROUP);
    return r != -EPERM ? -ENOTRECOVERABLE : strstr(d.text, want) ? 0 : -ENOMSG;
}

static int say_folder(const struct world *w)
{
    struct diag d = DIAG_INIT;
    int r = group_make_folder(&shared, w->sub, &d);

    return r != -EPERM && r != -EACCES ? -ENOTRECOVERABLE
           : strstr(d.text, "got one of user 61001 and group 61100 with mode 0700") &&
                   strstr(d.text, w->sub)
               ? 0
               : -ENOMSG;
}

UNIT_TEST_WITH(test_group_file__kept_by_its_user__named, temp_setup, temp_teardown)
{
    struct world w;
    char path[PATH_MAX];

    world_init(&w, *state);
    assert_int_equal(as_user(ANN, make_sub, &w), 0);
    assert_int_equal(as_user(ANN, open_file, &w), 0);
    path_in(w.sub, "file", path);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(as_user(BOB, say_file, &w), 0);
    assert_int_equal(as_user(ANN, say_file, &w), 0); /* hers, but not the group's */
    assert_int_equal(chmod(w.sub, 0700), 0);
    assert_int_equal(as_user(BOB, say_folder, &w), 0);
    assert_int_equal(as_user(ANN, say_folder, &w), 0);
}

/* ---- a hostile member ---- */

static void fill(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, "precious", 8), 8);
    assert_int_equal(fchown(fd, uid, gid), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void check_precious(const char *path, mode_t mode)
{
    struct stat st = look(path);

    assert_int_equal(st.st_size, 8);
    assert_int_equal(st.st_mode & ALL_BITS, mode);
}

/* A hard link to a file of ANN in the place of a file of the folder: she does not use it. */
UNIT_TEST_WITH(test_group_file__hard_link_to_a_private_file__refused, temp_setup, temp_teardown)
{
    struct world w;
    char victim[PATH_MAX], path[PATH_MAX];

    world_init(&w, *state);
    assert_int_equal(as_user(BOB, make_sub, &w), 0);
    path_in(w.own, "victim", victim);
    path_in(w.sub, "file", path);
    fill(victim, ANN, ANN, 0600);
    for (unsigned i = 0; i < 3; i++) {
        static const gid_t gid[] = {ANN, GROUP, ANN};
        static const mode_t mode[] = {0600, 0640, 0666};

        assert_int_equal(chown(victim, ANN, gid[i]), 0);
        assert_int_equal(chmod(victim, mode[i]), 0);
        assert_int_equal(link(victim, path), 0);
        assert_int_equal(as_user(ANN, open_file, &w), -EPERM);
        check_precious(victim, mode[i]);
        assert_int_equal(unlink(path), 0);
    }
}

static int open_all(const struct world *w)
{
    static const char *const names[] = {"link", "dangling", "pipe", "empty"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[PATH_MAX];
        int fd, r;

        path_in(w->sub, names[i], path);
        r = file_open_own(&shared, path, &fd, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Links, pipes and folders in the place of files are removed, and nothing is followed. */
UNIT_TEST_WITH(test_group_file__no_files__replaced, temp_setup, temp_teardown)
{
    static const char *const names[] = {"link", "dangling", "pipe", "empty"};
    struct world w;
    char victim[PATH_MAX], none[PATH_MAX], path[PATH_MAX];

    world_init(&w, *state);
    assert_int_equal(as_user(BOB, make_sub, &w), 0);
    path_in(w.own, "victim", victim);
    path_in(w.own, "none", none);
    fill(victim, ANN, ANN, 0600);
    path_in(w.sub, "link", path);
    assert_int_equal(symlink(victim, path), 0);
    path_in(w.sub, "dangling", path);
    assert_int_equal(symlink(none, path), 0);
    path_in(w.sub, "pipe", path);
    assert_int_equal(mkfifo(path, 0600), 0); /* that she cannot even open */
    path_in(w.sub, "empty", path);
    assert_int_equal(mkdir(path, 0770), 0);
    assert_int_equal(as_user(ANN, open_all, &w), 0);
    check_precious(victim, 0600);
    assert_int_equal(access(none, F_OK), -1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        path_in(w.sub, names[i], path);
        assert_int_equal(look(path).st_mode, S_IFREG | 0660);
    }
}

/* Every call, with a path through a folder that has been swapped, must fail. */
static int use_swapped(const struct world *w)
{
    char path[PATH_MAX], other[PATH_MAX];
    struct stat st;
    int fd;

    path_in(w->sub, "victim", path);
    path_in(w->sub, "other", other);
    if (group_open(&shared, path, O_RDWR, NULL) >= 0 ||
        group_open_or_make(&shared, other, NULL) >= 0)
        return -ENOTRECOVERABLE;
    if (file_open_own(&shared, path, &fd, NULL) == 0 ||
        file_open_own(&shared, other, &fd, NULL) == 0)
        return -ENOANO;
    if (group_stat(&shared, path, &st) == 0 || group_rename(&shared, path, other) == 0)
        return -ENOCSI;
    if (group_unlink(&shared, path) == 0 || file_clear_place(&shared, path, NULL) == 0)
        return -EL2HLT;
    return group_make_folder(&shared, w->sub, NULL) == 0 ? -EBADE : 0;
}

UNIT_TEST_WITH(test_group_file__swapped_folder__nothing_reached, temp_setup, temp_teardown)
{
    struct world w;
    char victim[PATH_MAX], other[PATH_MAX], beside[PATH_MAX];

    world_init(&w, *state);
    path_in(w.own, "victim", victim);
    path_in(w.own, "other", other);
    path_in(w.shared, "beside", beside);
    fill(victim, ANN, ANN, 0600);
    assert_int_equal(symlink(w.own, w.sub), 0); /* a link to her own folder */
    assert_int_equal(as_user(ANN, use_swapped, &w), 0);
    check_precious(victim, 0600);
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(look(w.own).st_mode & ALL_BITS, 0700);
    assert_int_equal(chown(w.own, ANN, GROUP), 0); /* to another folder of the group */
    assert_int_equal(chmod(w.own, 02770), 0);
    assert_int_equal(as_user(ANN, use_swapped, &w), 0);
    check_precious(victim, 0600);
    assert_int_equal(access(other, F_OK), -1);
    /* Folders of other rights or another group, where private rules would hold. */
    for (unsigned i = 0; i < 3; i++) {
        static const mode_t mode[] = {0777, 02770, 03770};
        static const gid_t gid[] = {GROUP, BOB, GROUP};

        unlink(w.sub);
        rmdir(w.sub);
        assert_int_equal(mkdir(w.sub, 0770), 0);
        assert_int_equal(chown(w.sub, ANN, gid[i]), 0);
        assert_int_equal(chmod(w.sub, mode[i]), 0);
        path_in(w.sub, "victim", beside);
        assert_int_equal(link(victim, beside), 0);
        assert_int_equal(as_user(ANN, use_swapped, &w), 0);
        check_precious(victim, 0600);
        assert_int_equal(unlink(beside), 0);
    }
}

/* ---- the parts of the cache folder ---- */

static int use_folder(const struct world *w)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    struct diag d = DIAG_INIT;
    char path[PATH_MAX];
    int r = cache_folder_init(&cache, w->shared);

    if (r == 0)
        r = cache_folder_sub(&cache, "staged", path, sizeof(path), &d);
    if (r == -EPERM && !strstr(d.text, "expected a user in group 61100") &&
        !strstr(d.text, "that is root's alone"))
        return -ENOMSG;
    return r;
}

UNIT_TEST_WITH(test_folder__of_a_group__its_members, temp_setup, temp_teardown)
{
    struct world w;
    char path[PATH_MAX];

    world_init(&w, *state);
    assert_int_equal(as_user(EVE, use_folder, &w), -EPERM);
    assert_int_equal(use_folder(&w), -EPERM); /* root */
    assert_int_equal(look(w.shared).st_nlink, 2);
    assert_int_equal(as_user(ANN, use_folder, &w), 0);
    assert_int_equal(as_user(BOB, use_folder, &w), 0);
    assert_int_equal(look(w.shared).st_mode & ALL_BITS, 02770);
    path_in(w.shared, "EPOCHFS", path);
    assert_int_equal(look(path).st_mode & ALL_BITS, 0660);
    assert_int_equal(chown(w.shared, EVE, GROUP), 0); /* its owner is no member */
    assert_int_equal(as_user(EVE, use_folder, &w), -EPERM);
}

static int change_mode(const struct world *w)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    struct diag d = DIAG_INIT;
    char path[PATH_MAX];
    int r = cache_folder_init(&cache, w->shared);

    if (r == 0)
        r = cache_folder_sub(&cache, "staged", path, sizeof(path), &d);
    if (r < 0 || chmod(w->shared, 0777) < 0)
        return -ENOTRECOVERABLE;
    r = cache_folder_sub(&cache, "staged", path, sizeof(path), &d);
    return r == -EPERM && strstr(d.text, "got mode 0777") ? 0 : -ENOMSG;
}

UNIT_TEST_WITH(test_folder__loses_its_mode__refused, temp_setup, temp_teardown)
{
    struct world w;

    world_init(&w, *state);
    assert_int_equal(chown(w.shared, ANN, GROUP), 0);
    assert_int_equal(as_user(ANN, change_mode, &w), 0);
}

/* Stage a block, keep an index, take quota; what another user has made is found. */
static int use_all(const struct world *w)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    static const uint8_t bytes[STAGED_BLOCK_LEAST] = {1, 2, 3};
    const struct staged_key key = {"http://host/file", "v1", sizeof(bytes), STAGED_BLOCK_LEAST};
    struct staged staged;
    struct quota *quota;
    uint64_t record;
    int r = cache_folder_init(&cache, w->shared);

    if (r == 0)
        r = quota_open(&cache, 1 << 20, 0, NULL, &quota, NULL);
    if (r < 0)
        return r;
    cache.quota = quota;
    r = staged_open(&staged, &cache, &key, NULL);
    if (r < 0)
        return r;
    staged_records(&staged, 0, 1, &record);
    if (record) {
        struct staged_dropped dropped;

        r = record == staged_checksum(&staged, 0, bytes) ? 1 : -EBADMSG;
        if (r == 1 && staged_seal(&staged, NULL) < 0) /* and all that changes a file */
            r = -ENOTRECOVERABLE;
        if (r == 1 && staged_drop_ranges(&staged, &(struct staged_range){0, 1}, 1, &dropped) < 0)
            r = -ENOANO;
        r = r == 1 ? -EALREADY : r;
    } else if (staged_claim(&staged, 0, 1) != 1) {
        r = -EBUSY;
    } else {
        r = quota_take(quota, sizeof(bytes));
        if (r == 0)
            r = staged_write(&staged, bytes, sizeof(bytes), 0);
        record = staged_checksum(&staged, 0, bytes);
        if (r == 0)
            r = staged_publish(&staged, 0, 1, &record);
        quota_settle(quota, sizeof(bytes));
    }
    staged_close(&staged);
    quota_close(quota);
    return r;
}

static int make_content(void *ctx, struct entry_sink *sink, struct diag *d)
{
    (void)d;
    return entry_write(sink, ctx, 7);
}

static int use_entry(const struct world *w)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    static char text[] = "content";
    struct entry entry;
    uint64_t size = 0;
    int fd, r = cache_folder_init(&cache, w->shared);

    if (r == 0)
        r = entry_init(&entry, &cache, "rows", "identity", "source", NULL);
    if (r == 0)
        r = entry_open_checked(&entry, &fd, &size);
    if (r == 0)
        return size == 7 ? -EALREADY : -EBADMSG;
    return r == -ENOENT ? entry_make(&entry, false, make_content, text, &fd, &size, NULL) : r;
}

static int list_all(const struct world *w)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    AUTO_INVENTORY struct inventory inventory = {0};
    int r = cache_folder_init(&cache, w->shared);

    if (r == 0)
        r = inventory_take(&cache, &inventory, NULL);
    for (size_t i = 0; i < inventory.n && r == 0; i++) {
        uint64_t good, bad;

        if (inventory.file[i].is_damaged || inventory.file[i].uid != ANN)
            return -EBADMSG;
        r = inventory_verify(&inventory, &inventory.file[i], &good, &bad);
        if (r == 0 && (bad || inventory_remove(&inventory, &inventory.file[i]) < 0))
            r = -EBADE;
    }
    return r < 0 ? r : inventory.n == 2 ? 0 : -ENOMSG;
}

UNIT_TEST_WITH(test_group_file__all_kinds__from_user_to_user, temp_setup, temp_teardown)
{
    struct world w;
    char path[PATH_MAX];

    world_init(&w, *state);
    assert_int_equal(as_user(ANN, use_entry, &w), 0);
    assert_int_equal(as_user(BOB, use_entry, &w), -EALREADY);
    assert_int_equal(as_user(ANN, use_all, &w), 0);
    assert_int_equal(as_user(BOB, use_all, &w), -EALREADY); /* and drops it */
    assert_int_equal(as_user(BOB, use_all, &w), 0);
    path_in(w.shared, "room", path);
    assert_int_equal(look(path).st_mode & ALL_BITS, 0660);
    assert_int_equal(as_user(BOB, list_all, &w), 0);
    assert_int_equal(as_user(EVE, use_all, &w), -EPROTO); /* quota_open() */
    assert_int_equal(as_user(EVE, list_all, &w), -EACCES);
    assert_int_equal(as_user(ANN, open_file_in_shared, &w), 0);
}

/* A block of a sealed file that readers have open is found wrong, by another user than its maker.
 */
static int seal_all(const struct world *w)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    const struct staged_key key = {"http://host/file", "v1", STAGED_BLOCK_LEAST,
                                   STAGED_BLOCK_LEAST};
    struct staged staged;
    int r = cache_folder_init(&cache, w->shared);

    if (r == 0)
        r = staged_open(&staged, &cache, &key, NULL);
    if (r == 0)
        r = staged_seal(&staged, NULL);
    return r;
}

static int drop_sealed(const struct world *w)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    const struct staged_key key = {"http://host/file", "v1", STAGED_BLOCK_LEAST,
                                   STAGED_BLOCK_LEAST};
    struct staged_dropped dropped;
    struct staged staged;
    uint64_t before, record;
    int fd, r = cache_folder_init(&cache, w->shared);

    if (r == 0)
        r = staged_open(&staged, &cache, &key, NULL);
    if (r == 0)
        r = staged_open_sealed(&staged, &fd);
    if (r < 0)
        return r;
    before = staged_drops(&staged);
    r = staged_drop_bad(&staged, 0, &dropped);
    staged_records(&staged, 0, 1, &record);
    return r < 0 ? r : record || staged_drops(&staged) == before ? -ENOMSG : 0;
}

UNIT_TEST_WITH(test_group_file__sealed_by_another__dropped, temp_setup, temp_teardown)
{
    struct world w;

    world_init(&w, *state);
    assert_int_equal(as_user(ANN, use_all, &w), 0);
    assert_int_equal(as_user(ANN, seal_all, &w), 0);
    assert_int_equal(as_user(BOB, drop_sealed, &w), 0);
}
