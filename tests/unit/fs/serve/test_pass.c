/* Which files have a backing file, with a kernel that does as it is told: one number for all who
 * have a file open, closed with the last; refusals; files that have changed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "cache/disk/local_blob.h"
#include "fs/serve/pass.h"
#include "fs/tree/tree.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define THREADS 8
#define ROUNDS  2000

struct fake {
    struct pass pass;
    struct open_state state;
    int refuse;               /* -errno that the kernel answers with; 0: it opens */
    _Atomic int opened, kept; /* numbers given, and not closed */
    struct dataset ds;
    struct blob *blob;
    struct catalog_item item;
    struct node node;
};

static int fake_open(void *ctx, int fd)
{
    struct fake *f = ctx;

    assert_true(fcntl(fd, F_GETFD) >= 0);
    if (f->refuse)
        return f->refuse;
    atomic_fetch_add(&f->kept, 1);
    return atomic_fetch_add(&f->opened, 1) + 1;
}

static void fake_close(void *ctx, int backing)
{
    struct fake *f = ctx;

    assert_in_range(backing, 1, atomic_load(&f->opened));
    atomic_fetch_sub(&f->kept, 1);
}

static void make(struct fake *ret, const char *folder)
{
    const struct catalog none = {0};
    char path[PATH_MAX];

    *ret = (struct fake){.item = {.name = (char *)"f"}};
    temp_write(folder, "f", "hello", 5);
    temp_path(folder, "f", path);
    assert_int_equal(
        local_blob_new(open(path, O_RDONLY | O_CLOEXEC), "f", UINT64_MAX, false, &ret->blob), 0);
    ret->ds.blob = &ret->blob;
    ret->ds.n_blobs = 1;
    ret->item.ds = &ret->ds;
    ret->node = (struct node){.type = NODE_SOURCE, .ino = 77, .item = &ret->item};
    ret->pass.kernel = (struct pass_kernel){fake_open, fake_close, ret};
    pass_init(&ret->pass, OPEN_CACHED, &none, &ret->state);
    assert_false(ret->pass.wanted);
    ret->pass.wanted = true;
    pass_offered(&ret->pass, true);
    assert_true(pass_is_on(&ret->pass));
}

static void release(struct fake *f)
{
    pass_release(&f->pass);
    blob_free(f->blob);
}

static int open_one(struct fake *f, int *ret_backing)
{
    struct diag d = DIAG_INIT;
    bool counts;
    int r = pass_opened(&f->pass, &f->node, ret_backing, &counts, &d);

    assert_int_equal(counts, r == 0);
    return r;
}

UNIT_TEST_WITH(test_two_opens__one_number__closed_with_the_last, temp_setup, temp_teardown)
{
    struct fake f;
    int a, b;

    make(&f, *state);
    assert_int_equal(open_one(&f, &a), 0);
    assert_int_equal(open_one(&f, &b), 0);
    assert_true(a > 0 && a == b);
    assert_int_equal(f.opened, 1);
    pass_closed(&f.pass, 77);
    assert_int_equal(f.kept, 1);
    pass_closed(&f.pass, 77);
    assert_int_equal(f.kept, 0);
    assert_int_equal(open_one(&f, &a), 0);
    assert_int_equal(a, 2);
    pass_closed(&f.pass, 77);
    assert_int_equal(f.state.opens, 3);
    pass_closed(&f.pass, 77); /* of nothing */
    release(&f);
}

UNIT_TEST_WITH(test_first_refusal_of_all__off, temp_setup, temp_teardown)
{
    static const int all[] = {-EPERM, -EOPNOTSUPP, -ENOTTY, -ENOSYS};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct fake f;
        int backing;

        make(&f, *state);
        f.refuse = all[i];
        assert_int_equal(open_one(&f, &backing), -ENOSYS);
        assert_false(pass_is_on(&f.pass));
        assert_non_null(strstr(atomic_load(&f.state.reason), "refuses"));
        release(&f);
    }
}

/* While it is open without a backing file, no reader gets one; afterwards the kernel is asked
 * again.
 */
UNIT_TEST_WITH(test_refusal_of_a_file__it_is_served_as_long_as_it_is_open, temp_setup,
               temp_teardown)
{
    struct fake f;
    int backing;

    make(&f, *state);
    f.refuse = -ELOOP;
    assert_int_equal(open_one(&f, &backing), 0);
    assert_int_equal(backing, 0);
    f.refuse = 0;
    assert_int_equal(open_one(&f, &backing), 0);
    assert_int_equal(backing, 0);
    assert_int_equal(f.state.opens, 0);
    pass_closed(&f.pass, 77);
    pass_closed(&f.pass, 77);
    assert_int_equal(open_one(&f, &backing), 0);
    assert_int_equal(backing, 1);
    f.node.ino = 78;
    f.refuse = -EPERM; /* too late to refuse all: a file is open */
    assert_int_equal(open_one(&f, &backing), 0);
    assert_int_equal(backing, 0);
    assert_true(pass_is_on(&f.pass));
    pass_closed(&f.pass, 77);
    assert_int_equal(f.kept, 0);
    release(&f);
}

static bool is_whole;

static int open_when_whole(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                           struct diag *d)
{
    (void)blob;
    (void)off;
    (void)len;
    (void)d;
    if (!is_whole)
        return -EAGAIN;
    *ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return 0;
}

/* A file that is not whole when it is opened has no backing file as long as anybody has it open,
 * and then it may have one. That is no refusal. */
UNIT_TEST_WITH(test_not_whole_yet__later, temp_setup, temp_teardown)
{
    struct blob_ops ops;
    struct fake f;
    int a, b;

    make(&f, *state);
    ops = *f.blob->ops;
    ops.open_file = open_when_whole;
    f.blob->ops = &ops;
    is_whole = false;
    assert_int_equal(open_one(&f, &a), 0);
    assert_int_equal(a, 0);
    is_whole = true;
    assert_int_equal(open_one(&f, &b), 0);
    assert_int_equal(b, 0);
    pass_closed(&f.pass, 77);
    assert_int_equal(open_one(&f, &b), 0);
    assert_int_equal(b, 0);
    pass_closed(&f.pass, 77);
    pass_closed(&f.pass, 77);
    assert_int_equal(f.state.opens, 0);
    assert_int_equal(open_one(&f, &a), 0);
    assert_true(a > 0);
    assert_int_equal(f.pass.refusals, 0);
    pass_closed(&f.pass, 77);
    assert_int_equal(f.kept, 0);
    release(&f);
}

UNIT_TEST_WITH(test_changed__stale, temp_setup, temp_teardown)
{
    struct diag d = DIAG_INIT;
    struct fake f;
    bool counts;
    int backing;

    make(&f, *state);
    assert_int_equal(open_one(&f, &backing), 0);
    temp_write(*state, "f", "longer", 6);
    assert_int_equal(pass_opened(&f.pass, &f.node, &backing, &counts, &d), -ESTALE);
    assert_false(counts);
    assert_diag_has(&d, "f: the file was changed");
    assert_int_equal(f.kept, 1); /* the old file stays open for its reader */
    pass_closed(&f.pass, 77);
    assert_int_equal(f.kept, 0);
    release(&f);
}

static void *open_and_close(void *arg)
{
    struct fake *f = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        int a, b;

        assert_int_equal(open_one(f, &a), 0);
        assert_int_equal(open_one(f, &b), 0);
        assert_int_equal(a, b);
        pass_closed(&f->pass, 77);
        pass_closed(&f->pass, 77);
    }
    return NULL;
}

UNIT_TEST_WITH(test_many_threads__one_number_at_a_time, temp_setup, temp_teardown)
{
    pthread_t id[THREADS];
    struct fake f;

    make(&f, *state);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(thread_start(&id[i], open_and_close, &f), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
    assert_int_equal(f.kept, 0);
    assert_null(f.pass.file);
    assert_int_equal(f.state.opens, 2 * THREADS * ROUNDS);
    release(&f);
}
