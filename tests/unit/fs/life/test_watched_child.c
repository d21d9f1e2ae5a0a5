#include "fs/life/watched_child.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/unit.h"

static int answer(const void *ctx, int out)
{
    return write(out, ctx, 5) == 5 ? 0 : EIO;
}

static int refuse(const void *ctx, int out)
{
    (void)ctx;
    (void)out;
    return EXDEV;
}

/* In memory that the child shares. */
struct hanging {
    pid_t pid;
    sem_t begun;
};

/* Survives being killed, like a child that hangs in the kernel. */
static int hang(const void *ctx, int out)
{
    struct hanging *hanging = *(struct hanging *const *)ctx;

    (void)out;
    if (fork() == 0) {
        hanging->pid = getpid();
        sem_post(&hanging->begun);
        alarm(60);
        pause();
        _exit(0);
    }
    pause();
    return 0;
}

UNIT_TEST(test_do__answers__given)
{
    const struct watched_child_work work = {.work = answer, .ctx = "hello", .ms = 20000};
    AUTO_TEXT struct text said = {0};

    assert_int_equal(watched_child_do(&work, &said), 0);
    assert_string_equal(said.data, "hello");
}

UNIT_TEST(test_do__fails__its_error)
{
    const struct watched_child_work work = {.work = refuse, .ms = 20000};
    AUTO_TEXT struct text said = {0};

    assert_int_equal(watched_child_do(&work, &said), -EXDEV);
    assert_int_equal(said.len, 0);
}

UNIT_TEST(test_do__cancelled__ends)
{
    static const volatile sig_atomic_t cancelled = 1;
    const struct watched_child_work work = {
        .work = answer, .ctx = "hello", .ms = 20000, .cancelled = &cancelled};
    AUTO_TEXT struct text said = {0};

    assert_int_equal(watched_child_do(&work, &said), -EINTR);
}

/* A clock on which time passes once the child hangs. */
struct hang_clock {
    struct clock clock; /* first */
    struct hanging *hanging;
    int64_t now;
};

static int64_t hang_monotonic(const struct clock *clock)
{
    return ((const struct hang_clock *)clock)->now;
}

static int hang_poll_ms(const struct clock *clock, int64_t until)
{
    struct hang_clock *c = (struct hang_clock *)clock;

    assert_int_equal(until, 50000000);
    while (sem_wait(&c->hanging->begun) < 0)
        assert_int_equal(errno, EINTR);
    c->now = until;
    return 0;
}

/* A descriptor that the child holds would block readers that wait for the end of our output. */
UNIT_TEST(test_do__hangs__holds_nothing)
{
    struct hanging *hanging =
        mmap(NULL, sizeof(*hanging), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct hang_clock clock = {{.monotonic = hang_monotonic, .poll_ms = hang_poll_ms}, hanging, 0};
    const struct watched_child_work work = {
        .work = hang, .ctx = &hanging, .ms = 50, .clock = &clock.clock};
    AUTO_TEXT struct text said = {0};
    struct pollfd end = {.events = POLLIN};
    int output[2];

    assert_ptr_not_equal(hanging, MAP_FAILED);
    assert_int_equal(sem_init(&hanging->begun, 1, 0), 0);
    assert_int_equal(pipe(output), 0);
    end.fd = output[0];
    assert_int_equal(watched_child_do(&work, &said), -ETIMEDOUT);
    close(output[1]);
    assert_int_equal(poll(&end, 1, 0), 1); /* no process can write to it any more */
    close(output[0]);
    assert_int_equal(kill(hanging->pid, SIGKILL), 0);
    munmap(hanging, sizeof(*hanging));
}
