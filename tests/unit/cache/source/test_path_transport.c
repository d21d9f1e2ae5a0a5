/* The transport of paths: bytes, versions, errors, stopping, threads. */
#include "cache/disk/local_file.h"
#include "cache/source/path_transport.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/lock.h"
#include "support/random.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define PIECE (256u << 10)
#define SIZE  (5 * PIECE + 1234)

static uint8_t content[SIZE];
static struct lock lock;
static pthread_cond_t ended;
static unsigned at_once, most_at_once; /* transfers in data(); guarded by lock */

/* A transfer and its result. */
struct job {
    struct transfer transfer; /* first */
    char path[PATH_MAX];
    struct remote_version version;
    uint8_t *bytes;
    size_t got;
    bool (*data)(struct job *job);   /* after each piece; NULL: go on */
    void (*at_end)(struct job *job); /* NULL: nothing */
    struct job *other;
    struct transport *transport;
    pid_t thread; /* that ran data() */
    /* Guarded by lock: */
    unsigned ends;
    unsigned turn; /* the number that had ended before */
    enum transfer_end how;
    struct diag d;
};

static unsigned turns; /* guarded by lock */

static bool take_data(struct transfer *transfer, const void *bytes, size_t n)
{
    struct job *job = (struct job *)transfer;
    sigset_t blocked;
    bool on;

    job->thread = gettid();
    lock_take(&lock);
    at_once++;
    most_at_once = at_once > most_at_once ? at_once : most_at_once;
    lock_drop(&lock);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_true(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGUSR1));
    assert_true(job->got + n <= transfer->len);
    memcpy(job->bytes + job->got, bytes, n);
    job->got += n;
    on = !job->data || job->data(job);
    lock_take(&lock);
    at_once--;
    lock_drop(&lock);
    return on;
}

static void take_end(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                     const struct diag *d)
{
    struct job *job = (struct job *)transfer;

    assert_int_equal(retry_ms, 0);
    if (job->at_end)
        job->at_end(job);
    lock_take(&lock);
    job->how = how;
    job->d = *d;
    job->turn = turns++;
    job->ends++;
    pthread_cond_broadcast(&ended);
    lock_drop(&lock);
}

/* The version of the file as it is now. */
static void set_version(struct job *job, const struct stat *st)
{
    struct file_version version = file_version_of(st);

    job->version = (struct remote_version){.size = version.size, .mtime = version.mtime};
    file_version_print(&version, job->version.etag);
}

static void job_init(struct job *job, const char *path, uint64_t off, uint64_t len)
{
    struct stat st = {0};

    *job = (struct job){.transfer = {.url = job->path,
                                     .version = &job->version,
                                     .off = off,
                                     .len = len,
                                     .data = take_data,
                                     .end = take_end},
                        .bytes = malloc(len + 1)};
    memcpy(job->path, path, strlen(path) + 1);
    if (stat(path, &st) == 0)
        set_version(job, &st);
}

static void job_wait(struct job *job)
{
    lock_take(&lock);
    while (!job->ends)
        lock_wait(&lock, &ended);
    lock_drop(&lock);
}

static void job_start(struct job *job, struct transport *transport)
{
    job->transport = transport;
    assert_int_equal(transport_start(transport, &job->transfer), 0);
}

static void check_end(struct job *job, enum transfer_end how)
{
    job_wait(job);
    if (job->how != how)
        fail_msg("ends with %d, expected %d: %s", job->how, how, job->d.text);
    assert_int_equal(job->ends, 1);
    assert_memory_equal(job->bytes, content + job->transfer.off, job->got);
    if (how == TRANSFER_DONE)
        assert_int_equal(job->got, job->transfer.len);
    if (how != TRANSFER_DONE && how != TRANSFER_STOPPED)
        assert_diag_has(&job->d, job->path);
}

static void job_release(struct job *job)
{
    free(job->bytes);
}
#define AUTO_JOB AUTO(job_release)

static void transport_scope_end(struct transport **transport)
{
    transport_free(*transport);
}
#define AUTO_TRANSPORT AUTO(transport_scope_end)

static struct transport *transport_of(unsigned jobs)
{
    struct transport *transport = NULL;

    assert_int_equal(path_transport_new(jobs, &transport), 0);
    return transport;
}

static void write_content(const char *folder, char ret_path[static PATH_MAX])
{
    uint64_t rng = RANDOM_SEED;

    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)random_next(&rng);
    temp_write(folder, "file", content, SIZE);
    temp_path(folder, "file", ret_path);
}

/* ---- bytes ---- */

UNIT_TEST_WITH(test_path__ranges__bytes_of_the_file, temp_setup, temp_teardown)
{
    static const uint64_t ranges[][2] = {{0, SIZE},          {0, 1},         {SIZE - 1, 1},
                                         {0, PIECE},         {PIECE, PIECE}, {PIECE - 1, PIECE + 2},
                                         {12345, 3 * PIECE}, {77, 0}};
    AUTO_TRANSPORT struct transport *transport = transport_of(2);
    char path[PATH_MAX];

    write_content(*state, path);
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        AUTO_JOB struct job job;

        job_init(&job, path, ranges[i][0], ranges[i][1]);
        job_start(&job, transport);
        check_end(&job, TRANSFER_DONE);
    }
}

UNIT_TEST_WITH(test_path__many_at_once__all_done_few_threads, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(3);
    struct job *job = calloc(200, sizeof(*job));
    uint64_t rng = RANDOM_SEED;
    char path[PATH_MAX];

    write_content(*state, path);
    most_at_once = 0;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t off = random_below(&rng, SIZE);

        job_init(&job[i], path, off, random_below(&rng, SIZE - off + 1));
        job_start(&job[i], transport);
    }
    for (unsigned i = 0; i < 200; i++) {
        check_end(&job[i], TRANSFER_DONE);
        job_release(&job[i]);
    }
    assert_true(most_at_once >= 1 && most_at_once <= 3);
    free(job);
}

/* ---- versions and errors ---- */

static void check_changed(struct job *job, struct transport *transport, size_t most)
{
    job_start(job, transport);
    check_end(job, TRANSFER_CHANGED);
    assert_true(job->got <= most);
}

UNIT_TEST_WITH(test_path__another_version__changed, temp_setup, temp_teardown)
{
    struct stat st;
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    char path[PATH_MAX], gone[PATH_MAX];

    write_content(*state, path);
    temp_path(*state, "gone", gone);
    for (unsigned i = 0; i < 6; i++) {
        AUTO_JOB struct job job;

        job_init(&job, i == 3 ? gone : i == 4 ? (const char *)*state : path, 0, 1000);
        if (i == 5) /* a component of the path is no folder */
            memcpy(job.path + strlen(path), "/x", 3);
        if (stat(path, &st) == 0 && i < 3) {
            st.st_size += i == 0;
            st.st_mtim.tv_nsec ^= i == 1;
            st.st_ctim.tv_sec -= i == 2;
            set_version(&job, &st);
        }
        check_changed(&job, transport, 0);
    }
}

static bool touch_file(struct job *job)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    assert_int_equal(utimensat(AT_FDCWD, job->path, times, 0), 0);
    return true;
}

static bool cut_file(struct job *job)
{
    assert_int_equal(truncate(job->path, PIECE + 10), 0);
    return true;
}

UNIT_TEST_WITH(test_path__changes_meanwhile__changed, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    char path[PATH_MAX];

    for (unsigned i = 0; i < 2; i++) {
        AUTO_JOB struct job job;

        write_content(*state, path);
        job_init(&job, path, 0, SIZE);
        job.data = i ? cut_file : touch_file;
        check_changed(&job, transport, PIECE);
    }
}

/* Reading byte 0 of that file fails. */
UNIT_TEST_WITH(test_path__read_error__again, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    AUTO_JOB struct job job;

    char path[40];

    snprintf(path, sizeof(path), "/proc/%ld/mem", (long)getpid());
    job_init(&job, path, 0, 100);
    job_start(&job, transport);
    check_end(&job, TRANSFER_AGAIN);
    assert_int_equal(job.got, 0);
}

/* The path was free of links when it was resolved; a link has been put on it since. */
UNIT_TEST_WITH(test_path__link__changed, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    char path[PATH_MAX], link[PATH_MAX];
    AUTO_JOB struct job job;

    write_content(*state, path);
    temp_path(*state, "link", link);
    assert_int_equal(symlink(path, link), 0);
    job_init(&job, path, 0, 1000);
    memcpy(job.path, link, strlen(link) + 1);
    check_changed(&job, transport, 0);
}

UNIT_TEST_WITH(test_path__not_allowed__refused, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    AUTO_JOB struct job job;
    char path[PATH_MAX];
    bool root = geteuid() == 0;

    write_content(*state, path);
    job_init(&job, path, 0, 100);
    assert_int_equal(chmod(path, 0), 0);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    job_start(&job, transport);
    job_wait(&job);
    if (root)
        assert_int_equal(seteuid(0), 0);
    check_end(&job, TRANSFER_REFUSED);
}

/* ---- stopping ---- */

static bool say_stop(struct job *job)
{
    return job->got < 2 * PIECE;
}

static bool stop_itself(struct job *job)
{
    transport_stop(job->transport, &job->transfer);
    return true;
}

static bool stop_other(struct job *job)
{
    if (job->got == PIECE)
        transport_stop(job->transport, &job->other->transfer);
    return true;
}

UNIT_TEST_WITH(test_path__stopped__stopped, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    AUTO_JOB struct job by_data, by_call, first, second, third;
    char path[PATH_MAX];

    write_content(*state, path);
    job_init(&by_data, path, 0, SIZE);
    by_data.data = say_stop;
    job_start(&by_data, transport);
    check_end(&by_data, TRANSFER_STOPPED);
    assert_int_equal(by_data.got, 2 * PIECE);
    job_init(&by_call, path, 0, SIZE);
    by_call.data = stop_itself;
    job_start(&by_call, transport);
    check_end(&by_call, TRANSFER_STOPPED);
    assert_int_equal(by_call.got, PIECE);
    /* One transfer that waits for the only thread. */
    job_init(&first, path, 0, SIZE);
    job_init(&second, path, 0, SIZE);
    job_init(&third, path, 0, SIZE);
    first.data = stop_other;
    first.other = &third;
    lock_take(&lock); /* no transfer continues before all wait */
    job_start(&first, transport);
    job_start(&second, transport);
    job_start(&third, transport);
    lock_drop(&lock);
    check_end(&first, TRANSFER_DONE);
    check_end(&second, TRANSFER_DONE);
    check_end(&third, TRANSFER_STOPPED);
    assert_int_equal(third.got, 0);
    assert_true(third.turn < first.turn && first.turn < second.turn);
}

/* ---- threads ---- */

static void start_other(struct job *job)
{
    job_start(job->other, job->transport);
}

UNIT_TEST_WITH(test_path__started_at_an_end__done, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    AUTO_JOB struct job first, second;
    char path[PATH_MAX];

    write_content(*state, path);
    job_init(&first, path, 0, SIZE);
    job_init(&second, path, 5, 100);
    first.at_end = start_other;
    first.other = &second;
    job_start(&first, transport);
    check_end(&first, TRANSFER_DONE);
    check_end(&second, TRANSFER_DONE);
}

/* Wait until a thread is gone. A joined one may stay in the kernel's table a little longer, and
 * nothing reports when it leaves. */
static void wait_gone(pid_t thread)
{
    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0)
        sched_yield();
    assert_int_equal(errno, ESRCH);
}

UNIT_TEST_WITH(test_path__rest__no_threads_and_again, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(1);
    char path[PATH_MAX];

    write_content(*state, path);
    transport_rest(transport); /* none were started */
    for (unsigned i = 0; i < 3; i++) {
        AUTO_JOB struct job job;

        job_init(&job, path, 0, SIZE);
        job_start(&job, transport);
        check_end(&job, TRANSFER_DONE);
        transport_rest(transport);
        wait_gone(job.thread);
    }
}

UNIT_TEST_WITH(test_path__fork_at_rest__child_goes_on, temp_setup, temp_teardown)
{
    AUTO_TRANSPORT struct transport *transport = transport_of(2);
    AUTO_JOB struct job job, in_child;
    char path[PATH_MAX];
    int status;
    pid_t child;

    write_content(*state, path);
    job_init(&job, path, 0, SIZE);
    job_init(&in_child, path, 0, SIZE);
    job_start(&job, transport);
    check_end(&job, TRANSFER_DONE);
    transport_rest(transport);
    child = fork();
    if (!child) {
        job_start(&in_child, transport);
        job_wait(&in_child);
        _exit(in_child.how == TRANSFER_DONE && in_child.got == SIZE ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int unit_setup(void **state)
{
    (void)state;
    lock_init(&lock);
    pthread_cond_init(&ended, NULL);
    return 0;
}
