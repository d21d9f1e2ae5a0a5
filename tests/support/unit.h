/* What every unit test includes: cmocka, and the headers that cmocka.h needs but does not
 * include. */
#ifndef EPOCHFS_TESTS_SUPPORT_UNIT_H
#define EPOCHFS_TESTS_SUPPORT_UNIT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/diag.h"

/* A test: its body follows. It registers itself, and main() in unit_main.c runs those of a file in
 * the order of their lines. */
#define UNIT_TEST(name) UNIT_TEST_WITH(name, NULL, NULL)
#define UNIT_TEST_WITH(name, setup, teardown)                                                      \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        static struct unit_test test = {{#name, name, setup, teardown, NULL}, __LINE__, NULL};     \
                                                                                                   \
        unit_add(&test);                                                                           \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

struct unit_test {
    struct CMUnitTest test;
    unsigned line;
    struct unit_test *next;
};

void unit_add(struct unit_test *test);

/* Called before the first test and after the last one of a program that defines them. */
int unit_setup(void **state) __attribute__((weak));
int unit_teardown(void **state) __attribute__((weak));

/* A main() runs its tests by this. ThreadSanitizer has nothing to say about what one thread does:
 * in its build only those of tests/unit/threads.txt run, and a program without one is skipped. In
 * each build a test that starts a thread and has no line there fails. setup, teardown: of the
 * group; NULL: none. */
int unit_run(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
             CMFixtureFunction teardown);
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    unit_run(#tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

/* The message contains that piece. */
#define assert_diag_has(d, piece)                                                                  \
    do {                                                                                           \
        if (!(d)->set || !strstr((d)->text, (piece)))                                              \
            fail_msg("message \"%s\": expected \"%s\" in it", (d)->text, (piece));                 \
    } while (0)

/* A double is another one, except for that share of it; needs math.h. */
#define assert_near(found, want, share)                                                            \
    do {                                                                                           \
        double found_ = (found), want_ = (want);                                                   \
                                                                                                   \
        if (!(fabs(found_ - want_) <= (share)*fabs(want_) + 1e-9))                                 \
            fail_msg("expected %g, got %g", want_, found_);                                        \
    } while (0)

/* Notes of a dataset, or texts like them, contain that piece. */
#define assert_notes_have(notes, piece)                                                            \
    do {                                                                                           \
        const char *lines_ = (notes)->text.data ? (notes)->text.data : "";                         \
                                                                                                   \
        if (!strstr(lines_, (piece)))                                                              \
            fail_msg("notes \"%s\": expected \"%s\" in them", lines_, (piece));                    \
    } while (0)

#endif
