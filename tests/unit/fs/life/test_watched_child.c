#include "fs/life/watched_child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/number.h"
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

/* Survives being killed, like a child that hangs in the kernel. Writes its process id. */
static int hang(const void *ctx, int out)
{
    (void)ctx;
    if (fork() == 0) {
        dprintf(out, "%ld", (long)getpid());
        alarm(60);
        pause();
        _exit(0);
    }
    pause();
    return 0;
}

static void test_do__answers__given(void **state)
{
    const struct watched_child_work work = {answer, "hello", 20000, NULL};
    AUTO_TEXT struct text said = {0};

    (void)state;
    assert_int_equal(watched_child_do(&work, &said), 0);
    assert_string_equal(said.data, "hello");
}

static void test_do__fails__its_error(void **state)
{
    const struct watched_child_work work = {refuse, NULL, 20000, NULL};
    AUTO_TEXT struct text said = {0};

    (void)state;
    assert_int_equal(watched_child_do(&work, &said), -EXDEV);
    assert_int_equal(said.len, 0);
}

static void test_do__cancelled__ends(void **state)
{
    static const volatile sig_atomic_t cancelled = 1;
    const struct watched_child_work work = {answer, "hello", 20000, &cancelled};
    AUTO_TEXT struct text said = {0};

    (void)state;
    assert_int_equal(watched_child_do(&work, &said), -EINTR);
}

/* Let the child hang; find out its id, and whether no process can write to our output any more. */
static bool hangs_free(int ms, struct text *said)
{
    const struct watched_child_work work = {hang, NULL, ms, NULL};
    struct pollfd end = {.events = POLLIN};
    int output[2], ready;

    assert_int_equal(pipe(output), 0);
    end.fd = output[0];
    assert_int_equal(watched_child_do(&work, said), -ETIMEDOUT);
    close(output[1]);
    ready = poll(&end, 1, 0);
    close(output[0]);
    return ready == 1;
}

/* A descriptor that the child holds would block readers that wait for the end of our output. Allow
 * more time on a machine where the child could not write its id. */
static void test_do__hangs__holds_nothing(void **state)
{
    AUTO_TEXT struct text said = {0};
    bool is_free = false;
    uint64_t pid = 0;

    (void)state;
    for (int ms = 50; ms <= 16000 && said.len == 0; ms *= 4)
        is_free = hangs_free(ms, &said);
    assert_int_not_equal(said.len, 0);
    assert_int_not_equal(number_parse(said.data, said.len, INT32_MAX, &pid), 0);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    assert_true(is_free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_do__answers__given),
        cmocka_unit_test(test_do__fails__its_error),
        cmocka_unit_test(test_do__cancelled__ends),
        cmocka_unit_test(test_do__hangs__holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
