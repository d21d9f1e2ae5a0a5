/* Files that files of SOURCE name: which file a path means, that it may be outside SOURCE only if
 * allowed, that few descriptors suffice for many files; and commands.
 *
 * A FIFO shows a test what a command does: it has written a byte to it, has begun to read it, or
 * none of its processes is left that could write to it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache/disk/quota.h"
#include "cache/named/opener.h"
#include "cache/source/source.h"
#include "support/random.h"
#include "support/temp_folder.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define FOR_EVER_MS INT_MAX /* ctest ends a test that hangs */

/* A kernel without pidfd_open(). */
static bool no_pidfd;

long __wrap_syscall(long number, long a, long b);
long __real_syscall(long number, ...);

long __wrap_syscall(long number, long a, long b)
{
    if (number == SYS_pidfd_open && no_pidfd) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, a, b);
}

/* An opener of files in a temporary folder. */
struct fixture {
    char cwd[PATH_MAX], cache_path[PATH_MAX];
    struct cache_folder cache;
    struct source *source;
    struct cache_opener opener;
    struct test_clock clock;
};

/* spec and cwd: relative to folder; of a list, its first element. */
static struct fixture *fixture_new(const char *folder, const char *spec, const char *cwd,
                                   struct cache_opener_options options)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct source_options how;
    char path[PATH_MAX];

    assert_non_null(f);
    temp_path(folder, spec, path);
    temp_path(folder, "cache", f->cache_path);
    f->cache.path = f->cache_path;
    source_options_init(&how, &f->cache);
    assert_int_equal(source_open(path, &how, &f->source, NULL), 0);
    if (cwd)
        snprintf(f->cwd, sizeof(f->cwd), "%s%s%s", folder, *cwd ? "/" : "", cwd);
    options.cwd = cwd ? f->cwd : NULL;
    test_clock_init(&f->clock);
    options.clock = options.clock ? options.clock : &f->clock.clock;
    options.command_timeout = options.command_timeout ? options.command_timeout : 1000;
    assert_int_equal(cache_opener_init(&f->opener, f->source, &f->cache, &options), 0);
    return f;
}

static void fixture_free(struct fixture **f)
{
    if (*f) {
        cache_opener_release(&(*f)->opener);
        source_free((*f)->source);
        test_clock_release(&(*f)->clock);
    }
    free(*f);
}
#define AUTO_FIXTURE AUTO(fixture_free)

/* The whole content as text; the caller frees it. */
static char *content_of(const struct blob *blob)
{
    char *text = malloc(blob->size + 1);

    assert_non_null(text);
    assert_int_equal(blob_pread(READ_WAITS, blob, text, blob->size, 0), 0);
    assert_int_equal(blob_check(blob), 0);
    text[blob->size] = '\0';
    return text;
}

static void check_content(const struct blob *blob, const char *want)
{
    AUTO_FREE char *text = content_of(blob);

    assert_string_equal(text, want);
}

/* ---- which file ---- */

static void make_link(const char *folder, const char *target, const char *name)
{
    char path[PATH_MAX];

    temp_path(folder, name, path);
    assert_int_equal(symlink(target, path), 0);
}

/* Make files that contain their own path, and links. */
static void make_tree(const char *folder)
{
    static const char *const folders[] = {"src", "src/a", "src/a/b", "src2",
                                          "cwd", "out",   "out/deep"};
    static const char *const files[] = {"src/x",      "src/z",          "src/a/x", "src/a/y",
                                        "src2/x",     "src/a/b/x",      "cwd/x",   "top",
                                        "out/secret", "out/deep/secret"};
    char path[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        temp_folder(folder, folders[i]);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        temp_write(folder, files[i], files[i], strlen(files[i]));
    make_link(folder, "../../out/deep", "src/a/link");
    make_link(folder, "../src", "out/in");
    make_link(folder, "src", "spelled");
    temp_path(folder, "src/pipe", path);
    assert_int_equal(mkfifo(path, 0600), 0);
}

struct lookup {
    const char *source, *cwd;  /* relative to the temporary folder, T */
    const char *folder, *path; /* "T/" means that folder */
    bool allow_outside;
    const char *content; /* NULL: an error */
    const char *name;    /* NULL: the absolute path */
    int error;
    const char *message;
};

/* Replace "T/" at the start. */
static void expand(const char *folder, const char *text, char ret[static PATH_MAX])
{
    if (strncmp(text, "T/", 2) != 0)
        snprintf(ret, PATH_MAX, "%s", text);
    else
        temp_path(folder, text + 2, ret);
}

static void check_lookup(const char *folder, const struct lookup *c)
{
    AUTO_FIXTURE struct fixture *f =
        fixture_new(folder, c->source, c->cwd,
                    (struct cache_opener_options){.allow_outside = c->allow_outside});
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    char path[PATH_MAX], absolute[PATH_MAX];
    int r;

    expand(folder, c->path, path);
    r = opener_file(&f->opener.opener, c->folder, path, &blob, &d);
    if (r != c->error)
        fail_msg("%s, %s, %s: %d, expected %d: %s", c->source, c->folder, c->path, r, c->error,
                 d.text);
    if (r < 0) {
        assert_diag_has(&d, c->message);
        return;
    }
    check_content(blob, c->content);
    temp_path(folder, c->content, absolute);
    assert_string_equal(blob_name(blob), c->name ? c->name : absolute);
}

static void check_lookups(const char *folder, const struct lookup *cases, size_t n)
{
    make_tree(folder);
    for (size_t i = 0; i < n; i++)
        check_lookup(folder, &cases[i]);
}

#define OUTSIDE "mount with -o allow_outside to read files outside of SOURCE"

UNIT_TEST_WITH(test_file__relative__cwd_then_nearest_folder, temp_setup, temp_teardown)
{
    static const struct lookup cases[] = {
        {"src", "src/a", "", "x", false, "src/a/x", "a/x", 0, NULL},
        {"src", "src/a", "a/b", "x", false, "src/a/x", "a/x", 0, NULL},
        {"src", "cwd", "a/b", "x", false, "src/a/b/x", "a/b/x", 0, NULL}, /* cwd is outside */
        {"src", "cwd", "a/b", "x", true, "cwd/x", NULL, 0, NULL},
        {"src", NULL, "a/b", "x", true, "src/a/b/x", "a/b/x", 0, NULL},
        {"src", NULL, "a/b", "y", false, "src/a/y", "a/y", 0, NULL},
        {"src", NULL, "a/b", "z", false, "src/z", "z", 0, NULL},
        {"src", NULL, "", "x", false, "src/x", "x", 0, NULL},
        {"src", NULL, "a/b", "src/z", false, "src/z", "z", 0, NULL}, /* from above SOURCE */
        {"src/a", NULL, "b", "src/a/y", false, "src/a/y", "y", 0, NULL},
        {"src", NULL, "a/b", "b/../../z", false, "src/z", "z", 0, NULL},
        {"src", NULL, "a/b", "./y", false, "src/a/y", "a/y", 0, NULL},
        {"src", NULL, "a/b", "top", false, NULL, NULL, -EACCES, OUTSIDE},
        {"src", NULL, "a/b", "top", true, "top", NULL, 0, NULL},
        {"src", "cwd", "", "nothing/here", false, NULL, NULL, -ENOENT,
         "nothing/here: expected a file"},
    };

    check_lookups(*state, cases, ARRAY_LEN(cases));
}

UNIT_TEST_WITH(test_file__outside__only_if_allowed, temp_setup, temp_teardown)
{
    static const struct lookup cases[] = {
        {"src", NULL, "", "T/src/a/y", false, "src/a/y", "a/y", 0, NULL},
        {"src", NULL, "", "T/top", false, NULL, NULL, -EACCES, OUTSIDE},
        {"src", NULL, "", "T/top", false, NULL, NULL, -EACCES, "/top: lies outside of SOURCE"},
        {"src", NULL, "", "T/top", true, "top", NULL, 0, NULL},
        {"src", NULL, "", "T/src2/x", false, NULL, NULL, -EACCES, OUTSIDE}, /* begins with src */
        {"src", NULL, "", "T/src/../top", false, NULL, NULL, -EACCES, OUTSIDE},
        {"src", NULL, "", "../top", false, NULL, NULL, -EACCES, OUTSIDE},
        {"src", NULL, "", "T/none", false, NULL, NULL, -ENOENT, "/none"},
        {"src", NULL, "", "T/none", true, NULL, NULL, -ENOENT, "/none"},
        {"src", NULL, "", "T/top/none", false, NULL, NULL, -ENOENT, "/none"},
    };

    check_lookups(*state, cases, ARRAY_LEN(cases));
}

UNIT_TEST_WITH(test_file__absolute__not_looked_for_in_folders, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(*state, "", "", (struct cache_opener_options){0});
    AUTO_BLOB struct blob *blob = NULL;
    const char *folder = *state; /* /tmp/name or /dev/shm/name */
    char path[PATH_MAX];

    for (const char *end = folder; (end = strchr(end + 1, '/'));) {
        snprintf(path, sizeof(path), "%.*s", (int)(end - folder - 1), folder + 1);
        temp_folder(folder, path);
    }
    temp_folder(folder, folder + 1);
    temp_write(folder, "x", "x", 1);
    temp_path(folder, "x", path);
    temp_write(folder, path + 1, "decoy", 5);
    assert_int_equal(opener_file(&f->opener.opener, "", path, &blob, NULL), 0);
    check_content(blob, "x");
}

UNIT_TEST_WITH(test_file__links__stay_in_source, temp_setup, temp_teardown)
{
    static const struct lookup cases[] = {
        {"src", NULL, "", "a/link/secret", false, NULL, NULL, -EACCES, OUTSIDE},
        {"src", NULL, "", "a/link/secret", true, "out/deep/secret", "a/link/secret", 0, NULL},
        {"src", NULL, "", "T/src/a/link/secret", false, NULL, NULL, -EACCES, OUTSIDE},
        {"src", NULL, "", "T/out/deep/secret", false, NULL, NULL, -EACCES, OUTSIDE},
        /* The kernel would resolve this to out/secret. */
        {"src", NULL, "", "T/src/a/link/../secret", false, NULL, NULL, -ENOENT, "secret"},
        {"src", NULL, "", "T/src/a/link/../y", false, "src/a/y", "a/y", 0, NULL},
        {"src", NULL, "", "T/out/in/x", false, "src/x", "x", 0, NULL},
        {"spelled", NULL, "", "T/spelled/a/y", false, "src/a/y", "a/y", 0, NULL},
        {"spelled", NULL, "", "T/src/a/y", false, "src/a/y", "a/y", 0, NULL},
        {"spelled", NULL, "", "T/spelled/a/link/secret", false, NULL, NULL, -EACCES, OUTSIDE},
        /* The kernel would resolve SOURCE to out. */
        {"src/a/link/..", NULL, "", "T/out/secret", false, "out/secret", "secret", 0, NULL},
        {"src/a/link/..", NULL, "", "T/src/a/link/secret", false, "out/deep/secret", "deep/secret",
         0, NULL},
        {"src/a/link/..", NULL, "", "T/src/a/y", false, NULL, NULL, -EACCES, OUTSIDE},
    };

    check_lookups(*state, cases, ARRAY_LEN(cases));
}

UNIT_TEST_WITH(test_file__source_of_files__their_folders, temp_setup, temp_teardown)
{
    static const struct lookup cases[] = {
        {"src/a/x", NULL, "", "T/src/a/b/x", false, "src/a/b/x", "b/x", 0, NULL},
        {"src/a/x", NULL, "", "y", false, "src/a/y", "y", 0, NULL},
        {"src/a/x", NULL, "", "T/src/z", false, NULL, NULL, -EACCES, OUTSIDE},
        {"spelled/a/x", NULL, "", "T/spelled/a/y", false, "src/a/y", "y", 0, NULL},
    };
    static const char *const inside[] = {"src/a/y", "src2/x"};
    AUTO_FIXTURE struct fixture *f = NULL;
    struct diag d = DIAG_INIT;
    char list[PATH_MAX], path[PATH_MAX];
    struct blob *blob = NULL;

    check_lookups(*state, cases, ARRAY_LEN(cases));
    snprintf(list, sizeof(list), "src/a;%s/src2/x", (const char *)*state);
    f = fixture_new(*state, list, NULL, (struct cache_opener_options){0});
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        temp_path(*state, inside[i], path);
        assert_int_equal(opener_file(&f->opener.opener, "", path, &blob, NULL), 0);
        check_content(blob, inside[i]);
        blob_free(blob);
    }
    assert_int_equal(opener_file(&f->opener.opener, "", "y", &blob, NULL), 0);
    check_content(blob, "src/a/y");
    blob_free(blob);
    temp_path(*state, "src/z", path);
    assert_int_equal(opener_file(&f->opener.opener, "", path, &blob, &d), -EACCES);
    assert_diag_has(&d, OUTSIDE);
}

UNIT_TEST_WITH(test_file__no_file__says_so, temp_setup, temp_teardown)
{
    static const struct lookup cases[] = {
        {"src", NULL, "", "a", false, NULL, NULL, -EINVAL, "/src/a: expected a regular file"},
        {"src", NULL, "", "pipe", false, NULL, NULL, -EINVAL, "/src/pipe: expected a regular file"},
        {"src", NULL, "", "T/src", false, NULL, NULL, -EINVAL, "expected a regular file"},
        {"src", NULL, "", "", false, NULL, NULL, -EINVAL, "got nothing"},
        {"src", NULL, "", "x\ny", false, NULL, NULL, -EINVAL, "line end"},
    };

    check_lookups(*state, cases, ARRAY_LEN(cases));
}

/* ---- lazy files ---- */

static struct blob *open_lazy(struct fixture *f, const char *path)
{
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    if (opener_file(&f->opener.opener, "", path, &blob, &d) < 0)
        fail_msg("%s", d.text);
    return blob;
}

/* The number of open files of this process. */
static unsigned count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

#define LAZY_BLOBS 1000
#define LAZY_LIMIT 3

struct lazy_readers {
    struct blob *blob[LAZY_BLOBS];
    _Atomic unsigned next, bad;
};

static void *read_many(void *arg)
{
    struct lazy_readers *readers = arg;
    uint64_t random = RANDOM_SEED + atomic_fetch_add(&readers->next, 1);

    for (unsigned i = 0; i < 3000; i++) {
        /* Some blobs are read by all threads at once, others by one. */
        size_t k = (size_t)random_below(&random, i % 2 ? 4 : LAZY_BLOBS);
        char want[16], got[16];
        size_t len = (size_t)snprintf(want, sizeof(want), "file %zu", k);

        if (blob_pread(READ_WAITS, readers->blob[k], got, len, 0) != 0 ||
            memcmp(got, want, len) != 0 || blob_check(readers->blob[k]) != 0)
            atomic_fetch_add(&readers->bad, 1);
    }
    return NULL;
}

UNIT_TEST_WITH(test_lazy__many_blobs_and_threads__few_descriptors, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f =
        fixture_new(*state, "", NULL, (struct cache_opener_options){0});
    struct lazy_readers *readers = calloc(1, sizeof(*readers));
    unsigned before = count_open();
    pthread_t thread[4];

    assert_non_null(readers);
    f->opener.pool.limit = LAZY_LIMIT;
    for (size_t i = 0; i < LAZY_BLOBS; i++) {
        char name[16], text[16];

        snprintf(name, sizeof(name), "f%zu", i);
        temp_write(*state, name, text, (size_t)snprintf(text, sizeof(text), "file %zu", i));
        readers->blob[i] = open_lazy(f, name);
    }
    assert_int_equal(count_open(), before + LAZY_LIMIT);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_many, readers), 0);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(readers->bad, 0);
    assert_int_equal(count_open(), before + LAZY_LIMIT);
    for (size_t i = 0; i < LAZY_BLOBS; i++)
        blob_free(readers->blob[i]);
    assert_int_equal(count_open(), before);
    free(readers);
}

UNIT_TEST_WITH(test_lazy__least_recently_used__closed_first, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f =
        fixture_new(*state, "", NULL, (struct cache_opener_options){0});
    struct blob *blob[3];
    char byte, path[PATH_MAX];

    f->opener.pool.limit = 2;
    for (size_t i = 0; i < ARRAY_LEN(blob); i++) {
        char name[] = {(char)('a' + i), '\0'};

        temp_write(*state, name, name, 1);
        blob[i] = open_lazy(f, name);
        if (i == 1) /* a is newer than b now, so c takes b's place */
            assert_int_equal(blob_pread(READ_WAITS, blob[0], &byte, 1, 0), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(blob); i++) {
        char name[] = {(char)('a' + i), '\0'};

        temp_path(*state, name, path);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(blob_pread(READ_WAITS, blob[0], &byte, 1, 0), 0);
    assert_int_equal(blob_pread(READ_WAITS, blob[2], &byte, 1, 0), 0);
    assert_int_equal(blob_pread(READ_WAITS, blob[1], &byte, 1, 0), -ESTALE);
    for (size_t i = 0; i < ARRAY_LEN(blob); i++)
        blob_free(blob[i]);
}

UNIT_TEST(test_lazy__pool__bounded_by_the_process)
{
    struct rlimit before, little;
    struct lazy_pool pool;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    little = before;
    for (rlim_t limit = 0; limit < 100; limit += 33) {
        little.rlim_cur = limit;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &little), 0);
        lazy_pool_init(&pool);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(pool.limit, limit ? limit / 2 : 1);
        lazy_pool_release(&pool);
    }
    lazy_pool_init(&pool);
    assert_int_equal(pool.limit, before.rlim_cur / 2 < 256 ? before.rlim_cur / 2 : 256);
    lazy_pool_release(&pool);
}

static void alter_truncate(const char *folder, const char *path)
{
    (void)folder;
    assert_int_equal(truncate(path, 3), 0);
}

static void alter_grow(const char *folder, const char *path)
{
    (void)folder;
    assert_int_equal(truncate(path, 6), 0);
}

static void alter_rewrite(const char *folder, const char *path)
{
    temp_write(folder, "f", "HELLO", 5);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){{5, 0}, {5, 1}}, 0), 0);
}

static void alter_remove(const char *folder, const char *path)
{
    (void)folder;
    assert_int_equal(unlink(path), 0);
}

static void alter_folder(const char *folder, const char *path)
{
    alter_remove(folder, path);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* Another file, of the same size and time. */
static void alter_replace(const char *folder, const char *path)
{
    char other[PATH_MAX];
    struct stat st;

    temp_write(folder, "new", "HELLO", 5);
    temp_path(folder, "new", other);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(utimensat(AT_FDCWD, other, (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
    assert_int_equal(rename(other, path), 0);
}

static void (*const alterations[])(const char *, const char *) = {
    alter_truncate, alter_grow, alter_rewrite, alter_remove, alter_folder, alter_replace};

/* closed: the blob has no descriptor when the file is altered. */
static void check_altered(const char *folder, void (*alter)(const char *, const char *),
                          bool closed)
{
    AUTO_FIXTURE struct fixture *f =
        fixture_new(folder, "", NULL, (struct cache_opener_options){0});
    AUTO_BLOB struct blob *blob = NULL, *other = NULL;
    char path[PATH_MAX], buf[5];

    temp_path(folder, "f", path);
    remove(path);
    f->opener.pool.limit = 1;
    temp_write(folder, "f", "hello", 5);
    temp_write(folder, "g", "other", 5);
    blob = open_lazy(f, "f");
    check_content(blob, "hello");
    if (closed)
        other = open_lazy(f, "g");
    alter(folder, path);
    if (closed || alter == alter_truncate)
        assert_int_equal(blob_pread(READ_WAITS, blob, buf, 5, 0), -ESTALE);
    else
        assert_int_equal(blob_pread(READ_WAITS, blob, buf, 5, 0), 0);
    assert_int_equal(blob_check(blob), -ESTALE);
    if (alter == alter_replace && !closed)
        assert_memory_equal(buf, "hello", 5); /* never the other's bytes */
}

UNIT_TEST_WITH(test_lazy__altered__estale, temp_setup, temp_teardown)
{
    for (size_t i = 0; i < ARRAY_LEN(alterations); i++) {
        check_altered(*state, alterations[i], false);
        check_altered(*state, alterations[i], true);
    }
}

UNIT_TEST_WITH(test_lazy__head_and_identity__as_of_a_local_blob, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f =
        fixture_new(*state, "", NULL, (struct cache_opener_options){0});
    AUTO_BLOB struct blob *lazy = NULL, *local = NULL;
    AUTO_FREE char *a = NULL, *b = NULL;
    char path[PATH_MAX], byte;

    temp_write(*state, "f", "\x1f\x8bhello", 7); /* is not unpacked */
    temp_path(*state, "f", path);
    assert_int_equal(chmod(path, 0640), 0);
    lazy = open_lazy(f, "f");
    assert_int_equal(local_blob_open(NULL, NULL, &(struct within){.allow_outside = true}, path, "f",
                                     &local, NULL),
                     0);
    assert_int_equal(blob_identity(lazy, &a), 0);
    assert_int_equal(blob_identity(local, &b), 0);
    assert_string_equal(a, b);
    assert_string_equal(blob_name(lazy), blob_name(local));
    assert_int_equal(lazy->size, local->size);
    assert_int_equal(lazy->mode, local->mode);
    assert_int_equal(lazy->uid, local->uid);
    assert_memory_equal(&lazy->mtime, &local->mtime, sizeof(lazy->mtime));
    check_content(lazy, "\x1f\x8bhello");
    assert_int_equal(blob_pread(READ_WAITS, lazy, &byte, 1, 7), -EINVAL);
}

/* ---- commands ---- */

static struct fixture *commands_new(const char *folder)
{
    return fixture_new(folder, "", "", (struct cache_opener_options){.allow_commands = true});
}

static struct fixture *commands_new_limited(const char *folder, unsigned seconds)
{
    return fixture_new(
        folder, "", "",
        (struct cache_opener_options){.allow_commands = true, .command_timeout = seconds});
}

static struct opener_run *start(struct fixture *f, const char *command)
{
    struct opener_run *run = NULL;
    struct diag d = DIAG_INIT;

    if (opener_start(&f->opener.opener, command, &run, &d) < 0)
        fail_msg("%s", d.text);
    return run;
}

/* Wait for the output and stop the run. 0 or the error. */
static int finish(struct fixture *f, struct opener_run *run, struct blob **ret, struct diag *d)
{
    int r = opener_poll(&f->opener.opener, run, FOR_EVER_MS, ret, d);

    opener_stop(&f->opener.opener, run);
    assert_int_not_equal(r, 0);
    return r < 0 ? r : 0;
}

static void check_output(struct fixture *f, const char *command, const char *want)
{
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    if (finish(f, start(f, command), &blob, &d) < 0)
        fail_msg("%s", d.text);
    check_content(blob, want);
}

static void check_failure(struct fixture *f, const char *command, int error, const char *message)
{
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    assert_int_equal(finish(f, start(f, command), &blob, &d), error);
    assert_diag_has(&d, message);
}

/* It runs until its time limit of that many seconds is over. */
static void check_too_long(struct fixture *f, struct opener_run *run, unsigned seconds,
                           const char *message)
{
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    test_clock_turn(&f->clock, seconds * TEST_S - 1);
    assert_int_equal(opener_poll(&f->opener.opener, run, 0, &blob, &d), 0);
    test_clock_turn(&f->clock, 1);
    assert_int_equal(finish(f, run, &blob, &d), -ETIMEDOUT);
    assert_diag_has(&d, message);
}

/* The number of files in cache/commands. */
static unsigned count_entries(const char *folder)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    unsigned n = 0;
    DIR *dir;

    temp_path(folder, "cache/commands", path);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* The number of executions: each adds a byte to the file "count". */
static unsigned count_runs(const char *folder)
{
    char path[PATH_MAX];
    struct stat st;

    temp_path(folder, "count", path);
    return stat(path, &st) == 0 ? (unsigned)st.st_size : 0;
}

/* Make folder/name and open it. Nothing waits for its other end. */
static int make_fifo_named(const char *folder, const char *name, int mode)
{
    char path[PATH_MAX];
    int fd;

    temp_path(folder, name, path);
    assert_int_equal(mkfifo(path, 0600), 0);
    fd = open(path, mode | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* Make folder/fifo and open it for reading. */
static int make_fifo(const char *folder)
{
    return make_fifo_named(folder, "fifo", O_RDONLY | O_NONBLOCK);
}

static void remove_fifo(const char *folder)
{
    char path[PATH_MAX];

    temp_path(folder, "fifo", path);
    assert_int_equal(unlink(path), 0);
}

/* Wait until a process writes to the FIFO. */
static void wait_for_byte(int fifo)
{
    struct pollfd p = {.fd = fifo, .events = POLLIN};
    char byte;

    assert_int_equal(poll(&p, 1, -1), 1);
    assert_int_equal(read(fifo, &byte, 1), 1);
}

/* Wait until all writers of the FIFO have died. */
static void wait_for_death(int fifo)
{
    struct pollfd p = {.fd = fifo};

    assert_int_equal(poll(&p, 1, -1), 1);
    assert_true(p.revents & POLLHUP);
}

/* Write text to folder/fifo, after waiting for a reader. */
static void feed_fifo(const char *folder, const char *text)
{
    char path[PATH_MAX];
    int fd;

    temp_path(folder, "fifo", path);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

UNIT_TEST_WITH(test_command__output__a_blob, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    AUTO_BLOB struct blob *blob = NULL;
    uint8_t byte;

    assert_int_equal(finish(f, start(f, "printf hello"), &blob, NULL), 0);
    assert_string_equal(blob_name(blob), "printf hello |");
    assert_int_equal(blob->size, 5);
    check_content(blob, "hello");
    assert_int_equal(blob_pread(READ_WAITS, blob, &byte, 1, 5),
                     -EINVAL); /* the trailer is not shown */
    check_output(f, "true", "");
    check_output(f, "cat; printf done", "done"); /* stdin is empty */
    assert_int_equal(count_entries(*state), 3);
}

UNIT_TEST_WITH(test_command__outputs__few_descriptors, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    struct blob *blob[3] = {NULL};
    unsigned before = count_open();

    f->opener.pool.limit = 1;
    for (size_t i = 0; i < ARRAY_LEN(blob); i++) {
        char command[32];

        snprintf(command, sizeof(command), "printf %zu", i);
        assert_int_equal(finish(f, start(f, command), &blob[i], NULL), 0);
    }
    assert_int_equal(count_open(), before + 1);
    for (size_t i = 0; i < ARRAY_LEN(blob); i++) {
        char want[] = {(char)('0' + i), '\0'};

        check_content(blob[i], want);
        blob_free(blob[i]);
    }
}

UNIT_TEST_WITH(test_command__surroundings__as_in_a_shell, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    AUTO_FIXTURE struct fixture *nowhere =
        fixture_new(*state, "", NULL, (struct cache_opener_options){.allow_commands = true});
    char want[PATH_MAX + 2];
    int inherited = open("/dev/null", O_RDONLY); /* not O_CLOEXEC */

    assert_true(inherited >= 0);
    snprintf(want, sizeof(want), "%s\n", f->cwd);
    setenv("PWD", "/usr", 1);
    check_output(f, "/bin/pwd -P", want);
    check_output(nowhere, "/bin/pwd -P", "/\n");
    check_output(f, "ls /proc/self/fd", "0\n1\n2\n3\n"); /* 3: the folder that ls reads */
    check_output(f, "test -t 0 || cut -d' ' -f5 /proc/$$/stat | grep -qx $$ && echo leader",
                 "leader\n");
    setenv("LC_ALL", "xx_YY", 1);
    check_output(f, "echo $LC_ALL", "xx_YY\n");
    unsetenv("LC_ALL");
    close(inherited);
}

UNIT_TEST_WITH(test_command__signals__neither_blocked_nor_ignored, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    sigset_t all, mask;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    check_failure(f, "kill -TERM $$; echo alive", -EIO, "killed by signal 15");
    check_failure(f, "kill -PIPE $$; echo alive", -EIO, "killed by signal 13");
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    signal(SIGPIPE, before);
}

UNIT_TEST_WITH(test_command__failure__status_and_messages, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    check_failure(f, "echo half; echo 'no such thing' >&2; exit 3", -EIO,
                  "command 'echo half; echo 'no such thing' >&2; exit 3': exit status 3: no such "
                  "thing");
    check_failure(f, "exit 4", -EIO, "exit status 4");
    check_failure(f, "kill -KILL $$", -EIO, "killed by signal 9");
    /* More than a pipe holds; the message shows its end. */
    assert_int_equal(finish(f,
                            start(f, "head -c 200000 /dev/zero | tr '\\0' x >&2; echo first >&2; "
                                     "echo last >&2; exit 5"),
                            &blob, &d),
                     -EIO);
    assert_diag_has(&d, "exit status 5: xxx");
    assert_diag_has(&d, "xxfirst last");
    assert_true(strlen(d.text) < 500);
    check_failure(f, "printf '%0400dend' 7 >&2; exit 6", -EIO, "0007end");
    assert_int_equal(count_entries(*state), 0);
}

/* Like a full disk: a failed write of the output fails the command, even if it exits with 0. */
static struct quota *give_quota(struct fixture *f, uint64_t bytes)
{
    struct diag d = DIAG_INIT;

    if (quota_open(&f->cache, bytes, 0, &f->clock.clock, &f->cache.quota, &d) < 0)
        fail_msg("%s", d.text);
    return f->cache.quota;
}

/* The limit of the folder holds. An output that is not kept takes no space, a kept one takes its
 * size. */
UNIT_TEST_WITH(test_command__limit_of_the_folder__reported_with_numbers, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    struct quota *quota = give_quota(f, 1 << 20);
    uint64_t used = quota_used(quota);
    struct opener_run *run = NULL;
    struct diag d = DIAG_INIT;

    check_failure(f, "head -c 2000000 /dev/zero; true", -ENOSPC, "bytes in the cache folder");
    check_failure(f, "head -c 2000000 /dev/zero; true", -ENOSPC, "of its limit of 1048576 in use");
    assert_int_equal(count_entries(*state), 0);
    assert_int_equal(quota_used(quota), used);
    check_output(f, "printf hello", "hello");
    assert_int_equal(quota_used(quota), used + 4096);
    check_output(f, "printf hello", "hello"); /* was kept */
    assert_int_equal(quota_used(quota), used + 4096);
    /* The output gets nearly all free space, step by step. */
    check_output(f, "head -c 600000 /dev/zero | tr '\\0' '\\n' | sed -e '$!d' -e 's/$/x/'", "x\n");
    assert_int_equal(quota_used(quota), used + 8192);
    assert_int_equal(quota_recount(quota), 0);
    assert_int_equal(quota_used(quota), used + 8192);
    assert_int_equal(quota_take(quota, (1 << 20) - used - 8192), 0);
    assert_int_equal(opener_start(&f->opener.opener, "printf other", &run, &d), -ENOSPC);
    assert_diag_has(&d, "command 'printf other'");
    assert_diag_has(&d, "bytes in the cache folder");
    quota_close(quota);
}

/* An output larger than one step of taking space. After each part the command waits until the test
 * has polled, which takes more. */
UNIT_TEST_WITH(test_command__large_output__room_in_steps, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    AUTO_CLOSE int here = make_fifo(*state), go = make_fifo_named(*state, "go", O_RDWR);
    struct quota *quota = give_quota(f, 40 << 20);
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    struct opener_run *run =
        start(f, "exec 3>fifo 4<go; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "
                 "head -c 2500000 /dev/zero; printf x >&3; head -c 1 <&4 >/dev/null; done");

    assert_true(quota_used(quota) < (12 << 20));
    for (unsigned i = 0; i < 12; i++) {
        wait_for_byte(here);
        assert_int_equal(opener_poll(&f->opener.opener, run, 0, &blob, &d), 0);
        assert_int_equal(write(go, "x", 1), 1);
    }
    if (finish(f, run, &blob, &d) < 0)
        fail_msg("%s", d.text);
    assert_int_equal(blob->size, 30000000);
    assert_int_equal(quota_recount(quota), 0);
    assert_true(quota_used(quota) < (31 << 20));
    quota_close(quota);
}

UNIT_TEST_WITH(test_command__no_room_for_output__fails, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    struct rlimit before, little;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){65536, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    check_failure(f, "head -c 400000 /dev/zero; true", -EIO, "cannot be written into the cache");
    check_failure(f, "head -c 400000 /dev/zero | cat; true", -EIO, "killed by signal 25");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(count_entries(*state), 0);
    check_output(f, "head -c 3 /dev/zero | tr '\\0' x; true", "xxx");
}

UNIT_TEST_WITH(test_command__cwd_is_gone__says_where, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = NULL;
    struct opener_run *run = NULL;
    struct diag d = DIAG_INIT;

    temp_folder(*state, "gone");
    f = fixture_new(*state, "", "gone", (struct cache_opener_options){.allow_commands = true});
    assert_int_equal(rmdir(f->cwd), 0);
    assert_int_equal(opener_start(&f->opener.opener, "true", &run, &d), -ENOENT);
    assert_diag_has(&d, "cannot start in /");
    assert_diag_has(&d, "/gone");
    assert_int_equal(count_entries(*state), 0);
    assert_int_equal(f->opener.commands.n, 0);
}

UNIT_TEST_WITH(test_command__not_allowed__says_how, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f =
        fixture_new(*state, "", "", (struct cache_opener_options){.allow_outside = true});
    struct opener_run *run = NULL;
    struct diag d = DIAG_INIT;

    assert_int_equal(opener_start(&f->opener.opener, "printf x >count", &run, &d), -EACCES);
    assert_string_equal(d.text, "printf x >count |: expected a file, got a command; mount with -o "
                                "allow_commands to run it");
    assert_int_equal(count_runs(*state), 0);
}

UNIT_TEST_WITH(test_command__too_long__killed, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new_limited(*state, 2);
    AUTO_CLOSE int fifo = make_fifo(*state);
    struct opener_run *run = start(f, "exec 3>fifo; echo waiting >&2; printf x >&3; sleep 1000");

    wait_for_byte(fifo);
    check_too_long(f, run, 2,
                   "killed after 2 s; if it may take longer, mount with a larger "
                   "command_timeout=");
    wait_for_death(fifo); /* also sleep */
    assert_int_equal(count_entries(*state), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* all were reaped */
}

/* A thread that polls a run. */
struct poller {
    struct fixture *f;
    struct opener_run *run;
    int result;
    pthread_t thread;
};

static void *poll_for_50_ms(void *arg)
{
    struct poller *p = arg;
    struct blob *blob = NULL;

    p->result = opener_poll(&p->f->opener.opener, p->run, 50, &blob, NULL);
    return NULL;
}

static void poller_start(struct poller *p, struct fixture *f, struct opener_run *run)
{
    *p = (struct poller){.f = f, .run = run, .result = -1};
    assert_int_equal(pthread_create(&p->thread, NULL, poll_for_50_ms, p), 0);
}

/* The run goes on. */
static void poller_end(struct poller *p)
{
    pthread_join(p->thread, NULL);
    assert_int_equal(p->result, 0);
}

UNIT_TEST_WITH(test_command__poll__waits_no_longer, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    struct opener_run *run = start(f, "echo waiting >&2; exec sleep 1000");
    struct blob *blob = NULL;
    struct poller poller;

    assert_int_equal(opener_poll(&f->opener.opener, run, 0, &blob, NULL), 0);
    poller_start(&poller, f, run);
    test_clock_turn_polled(&f->clock, 0); /* it has begun */
    test_clock_turn_polled(&f->clock, 50 * TEST_MS - 1);
    test_clock_turn(&f->clock, 1);
    poller_end(&poller);
    opener_stop(&f->opener.opener, run);
    opener_stop(&f->opener.opener, NULL);
    assert_int_equal(count_entries(*state), 0);
}

UNIT_TEST_WITH(test_command__stopped__group_is_killed, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    AUTO_CLOSE int fifo = make_fifo(*state);
    struct opener_run *run = start(f, "exec 3>fifo; (printf x >&3; sleep 1000) & wait");

    wait_for_byte(fifo);
    assert_int_equal(count_entries(*state), 1); /* the .part */
    opener_stop(&f->opener.opener, run);
    wait_for_death(fifo);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(count_entries(*state), 0);
}

UNIT_TEST_WITH(test_command__left_in_the_background__killed, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    AUTO_CLOSE int fifo = make_fifo(*state);

    check_output(f, "exec 3>fifo; sleep 1000 & printf x", "x");
    wait_for_death(fifo);
}

UNIT_TEST_WITH(test_command__release__ends_all, temp_setup, temp_teardown)
{
    struct fixture *f = commands_new(*state);
    AUTO_CLOSE int fifo = make_fifo(*state);

    start(f, "exec 3>fifo; printf x >&3; sleep 1000");
    wait_for_byte(fifo);
    fixture_free(&f);
    wait_for_death(fifo);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(count_entries(*state), 0);
}

UNIT_TEST_WITH(test_command__again__kept_until_its_input_changes, temp_setup, temp_teardown)
{
    static const char command[] = "printf x >>count; cat in";
    struct fixture *f = commands_new(*state);
    struct opener_run *run;
    struct blob *blob = NULL;

    temp_write(*state, "in", "hello", 5);
    assert_int_equal(opener_kept(&f->opener.opener, command, &blob),
                     -ENOENT); /* it must not run for this */
    assert_int_equal(count_entries(*state), 0);
    check_output(f, command, "hello");
    check_output(f, command, "hello");
    assert_int_equal(count_runs(*state), 1);
    fixture_free(&f);
    f = commands_new(*state); /* the next mount */
    assert_int_equal(opener_kept(&f->opener.opener, command, &blob), 0);
    check_content(blob, "hello");
    blob_free(blob);
    blob = NULL;
    run = start(f, command);
    assert_int_equal(opener_poll(&f->opener.opener, run, 0, &blob, NULL), 1); /* at once */
    check_content(blob, "hello");
    assert_int_equal(opener_poll(&f->opener.opener, run, 0, &blob, NULL), -EINVAL);
    blob_free(blob);
    opener_stop(&f->opener.opener, run);
    assert_int_equal(count_runs(*state), 1);
    temp_write(*state, "in", "hello!", 6);
    check_output(f, command, "hello!");
    assert_int_equal(count_runs(*state), 2);
    check_output(f, "printf x >>count; cat  in", "hello!"); /* another text */
    assert_int_equal(count_runs(*state), 3);
    fixture_free(&f);
    temp_folder(*state, "other");
    temp_write(*state, "other/in", "other", 5);
    f = fixture_new(*state, "", "other", (struct cache_opener_options){.allow_commands = true});
    check_output(f, command, "other"); /* another folder */
    fixture_free(&f);
}

UNIT_TEST_WITH(test_command__absolute_input__watched, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    char path[PATH_MAX], command[PATH_MAX + 64];

    temp_write(*state, "in", "hello", 5);
    temp_path(*state, "in", path);
    snprintf(command, sizeof(command), "cat\t%s ", path);
    check_output(f, command, "hello");
    temp_write(*state, "in", "bye", 3);
    check_output(f, command, "bye");
}

UNIT_TEST_WITH(test_command__kept_output_removed__made_again, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    AUTO_BLOB struct blob *blob = NULL, *other = NULL;
    char path[PATH_MAX], byte;

    f->opener.pool.limit = 1;
    assert_int_equal(finish(f, start(f, "printf x >>count; printf hello"), &blob, NULL), 0);
    temp_path(*state, "cache/commands", path);
    temp_remove(path);
    check_content(blob, "hello"); /* open still */
    temp_write(*state, "other", "", 0);
    other = open_lazy(f, "other");
    assert_int_equal(blob_pread(READ_WAITS, blob, &byte, 1, 0), -ESTALE);
    check_output(f, "printf x >>count; printf hello", "hello");
    assert_int_equal(count_runs(*state), 2);
}

UNIT_TEST_WITH(test_command__places__eagain_until_one_ends, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    struct opener_run *run[256], *another = NULL;
    struct blob *blob = NULL;
    unsigned n = 0, most = f->opener.commands.most;
    char command[64];

    assert_int_equal(most, 2 * sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(most < ARRAY_LEN(run));
    check_output(f, "printf kept", "kept");
    for (n = 0; n < most; n++) {
        snprintf(command, sizeof(command), "exec sleep %u", 1000 + n);
        run[n] = start(f, command);
    }
    test_clock_run(&f->clock, 20 * TEST_MS);
    assert_int_equal(opener_start(&f->opener.opener, "printf new", &another, NULL), -EAGAIN);
    test_clock_stand(&f->clock);
    assert_int_equal(clock_monotonic(&f->clock.clock), TEST_CLOCK_START + 20 * TEST_MS);
    check_output(f, "printf kept", "kept"); /* needs no slot */
    opener_stop(&f->opener.opener, run[most - 1]);
    check_output(f, "printf new", "new");
    check_failure(f, "exit 1", -EIO, "exit status 1");
    run[most - 1] = start(f, "printf newer"); /* the slots are free again */
    assert_int_equal(opener_poll(&f->opener.opener, run[most - 1], FOR_EVER_MS, &blob, NULL), 1);
    assert_int_equal(f->opener.commands.n, most - 1); /* the slot is taken until it is stopped */
    blob_free(blob);
    for (n = 0; n < most; n++)
        opener_stop(&f->opener.opener, run[n]);
    assert_int_equal(f->opener.commands.n, 0);
}

UNIT_TEST_WITH(test_command__large_output__whole, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    AUTO_BLOB struct blob *blob = NULL;
    char end[5];

    assert_int_equal(
        finish(f, start(f, "head -c 20000000 /dev/zero; printf 'end\\n\\n'"), &blob, NULL), 0);
    assert_int_equal(blob->size, 20000005);
    assert_int_equal(blob_pread(READ_WAITS, blob, end, 5, 20000000), 0);
    assert_memory_equal(end, "end\n\n", 5);
    assert_int_equal(blob_check(blob), 0);
}

UNIT_TEST_WITH(test_command__cache_folder_not_writable__names_it, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    struct opener_run *run = NULL;
    struct diag d = DIAG_INIT;

    temp_write(*state, "cache", "a file", 6);
    assert_true(opener_start(&f->opener.opener, "true", &run, &d) < 0);
    assert_diag_has(&d, "command 'true': cache folder ");
    assert_diag_has(&d, "-o cache_dir=DIR");
}

/* It writes a byte to "begun", then its output is what it reads. */
static const char fed[] = "printf x >>count; printf x >begun; cat fifo";

/* Make the FIFOs of that command, and open "begun": for writing too, or poll() would report after
 * the first command that no writer is left. */
static int make_fed(const char *folder)
{
    close(make_fifo(folder));
    return make_fifo_named(folder, "begun", O_RDWR);
}

/* Start a command that another process runs, and check that it waits. */
static struct opener_run *start_second(struct fixture *f)
{
    struct opener_run *run = start(f, fed);
    struct blob *blob = NULL;

    assert_int_equal(opener_poll(&f->opener.opener, run, 0, &blob, NULL), 0);
    assert_true(run != NULL);
    return run;
}

/* Nothing holds up a run that waited for another process: now it starts its command. */
static void begin_second(struct fixture *f, struct opener_run *run, int begun)
{
    struct blob *blob = NULL;

    assert_int_equal(opener_poll(&f->opener.opener, run, 0, &blob, NULL), 0);
    wait_for_byte(begun);
}

UNIT_TEST_WITH(test_command__two_at_once__run_once, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *a = commands_new(*state), *b = commands_new(*state);
    AUTO_BLOB struct blob *first = NULL, *second = NULL;
    AUTO_CLOSE int begun = make_fed(*state);
    struct opener_run *run, *other;

    run = start(a, fed);
    other = start_second(b);
    feed_fifo(*state, "hello");
    assert_int_equal(finish(a, run, &first, NULL), 0);
    assert_int_equal(finish(b, other, &second, NULL), 0);
    check_content(first, "hello");
    check_content(second, "hello");
    assert_int_equal(count_runs(*state), 1);
    assert_int_equal(count_entries(*state), 1);
}

/* It looks every 20 ms whether the other process has ended. */
UNIT_TEST_WITH(test_command__other_goes_on__poll_waits_no_longer, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *a = commands_new(*state), *b = commands_new(*state);
    AUTO_CLOSE int begun = make_fed(*state);
    struct opener_run *run = start(a, fed), *other = start_second(b);
    struct poller poller;

    poller_start(&poller, b, other);
    test_clock_pass(&b->clock, 20 * TEST_MS);
    test_clock_pass(&b->clock, 20 * TEST_MS);
    test_clock_pass(&b->clock, 10 * TEST_MS);
    poller_end(&poller);
    opener_stop(&b->opener.opener, other);
    opener_stop(&a->opener.opener, run);
}

UNIT_TEST_WITH(test_command__first_is_stopped__second_runs_it, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *a = commands_new(*state), *b = commands_new(*state);
    AUTO_CLOSE int begun = make_fed(*state);
    AUTO_BLOB struct blob *blob = NULL;
    struct opener_run *run, *other;

    run = start(a, fed);
    wait_for_byte(begun);
    other = start_second(b);
    opener_stop(&a->opener.opener, run);
    remove_fifo(*state); /* the first command may not be dead yet, and would take the text */
    close(make_fifo(*state));
    begin_second(b, other, begun);
    assert_int_equal(count_runs(*state), 2);
    feed_fifo(*state, "hello");
    assert_int_equal(finish(b, other, &blob, NULL), 0);
    check_content(blob, "hello");
}

UNIT_TEST_WITH(test_command__first_takes_too_long__second_gives_up, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *a = commands_new(*state);
    AUTO_FIXTURE struct fixture *b = commands_new_limited(*state, 1);
    AUTO_CLOSE int begun = make_fed(*state);
    struct opener_run *run = start(a, fed);

    check_too_long(b, start(b, fed), 1, "another process");
    opener_stop(&a->opener.opener, run);
}

/* Wait until no process has the lock of the only output that is being made. */
static void wait_for_lock(const char *folder)
{
    char pattern[PATH_MAX];
    glob_t found;

    temp_path(folder, "cache/commands/*.part", pattern);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    {
        AUTO_CLOSE int fd = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);

        assert_int_equal(flock(fd, LOCK_EX), 0);
    }
    globfree(&found);
}

/* A killed process leaves its command running. The command still holds the lock, so no other
 * process writes the same file. */
UNIT_TEST_WITH(test_command__maker_is_killed__its_command_is_waited_for, temp_setup, temp_teardown)
{
    AUTO_CLOSE int begun = make_fed(*state);
    AUTO_FIXTURE struct fixture *f = NULL;
    AUTO_BLOB struct blob *blob = NULL;
    struct opener_run *run;
    int status = 0;
    pid_t maker = fork();

    if (maker == 0) {
        start(commands_new(*state), fed);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(maker, &status, 0), maker);
    assert_true(WIFSIGNALED(status));
    wait_for_byte(begun);
    f = commands_new(*state);
    run = start_second(f);
    feed_fifo(*state, "the first");
    wait_for_lock(*state);
    begin_second(f, run, begun);
    assert_int_equal(count_runs(*state), 2);
    feed_fifo(*state, "hello");
    assert_int_equal(finish(f, run, &blob, NULL), 0);
    check_content(blob, "hello");
}

UNIT_TEST_WITH(test_command__no_pidfd__looked_for, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new_limited(*state, 1);
    /* By the real clock, which looks again by itself. */
    AUTO_FIXTURE struct fixture *watched_child =
        fixture_new(*state, "", "",
                    (struct cache_opener_options){.allow_commands = true, .clock = &real_clock});

    no_pidfd = true;
    /* No event reports its end. */
    check_output(watched_child, "exec 2>&-; head -c 20000000 /dev/zero | tr -d '\\0'", "");
    check_output(watched_child, "printf hello", "hello");
    check_failure(watched_child, "echo why >&2; exit 3", -EIO, "exit status 3: why");
    check_too_long(f, start(f, "exec 2>&-; exec sleep 100"), 1, "killed after 1 s");
    no_pidfd = false;
}

static void *run_commands(void *arg)
{
    struct fixture *f = arg;
    intptr_t bad = 0;

    for (unsigned i = 0; i < 10; i++) {
        struct opener_run *run = NULL;
        struct blob *blob = NULL;
        char command[32], want[8], got[8];
        size_t len = (size_t)snprintf(want, sizeof(want), "%u", 100 + i);

        snprintf(command, sizeof(command), "printf %s", want);
        if (opener_start(&f->opener.opener, command, &run, NULL) != 0 ||
            opener_poll(&f->opener.opener, run, FOR_EVER_MS, &blob, NULL) != 1 ||
            blob->size != len || blob_pread(READ_WAITS, blob, got, len, 0) != 0 ||
            memcmp(got, want, len) != 0)
            bad++;
        blob_free(blob);
        opener_stop(&f->opener.opener, run);
    }
    return (void *)bad;
}

UNIT_TEST_WITH(test_command__threads__all_get_it, temp_setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture *f = commands_new(*state);
    pthread_t thread[4];

    f->opener.commands.most = 4;
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_commands, f), 0);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++) {
        void *bad = NULL;

        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(count_entries(*state), 10);
}
