#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "support/unit.h"

#define SKIP 77 /* the exit code of a skipped test */

#ifdef __SANITIZE_THREAD__
#define ONLY_THREADS_RUN true
#else
#define ONLY_THREADS_RUN false
#endif

/* The linker puts it in the place of pthread_create(): tests/unit/CMakeLists.txt. */
int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg);

static _Atomic unsigned started; /* threads, in all */

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg)
{
    started++;
    return __real_pthread_create(ret, attr, main, arg);
}

/* What THREADS_TXT says of this program, "\n" at both ends of it. */
static char *unit_run_listed(void)
{
    FILE *file = fopen(THREADS_TXT, "re");
    char *text = NULL;
    size_t size = 0;

    if (!file || getdelim(&text, &size, '\0', file) <= 0) {
        fprintf(stderr, "%s: cannot be read\n", THREADS_TXT);
        exit(1);
    }
    fclose(file);
    return text;
}

static void unit_run_line(char *line, size_t size, const char *test)
{
    snprintf(line, size, "%s %s\n", program_invocation_short_name + strlen("test_"), test);
}

/* The line of a test in THREADS_TXT; NULL: it starts no thread. */
static const char *unit_run_find(const char *test)
{
    static char *text;
    char line[512];
    const char *at;

    if (!text)
        text = unit_run_listed();
    unit_run_line(line, sizeof(line), test);
    at = strstr(text, line);
    return at && (at == text || at[-1] == '\n') ? at : NULL;
}

/* The test that runs, and the threads before it. cmocka sets up each test before it runs it. */
static const struct CMUnitTest *unit_run_next, *unit_run_now;
static unsigned unit_run_before;

static int unit_run_setup(void **state)
{
    unit_run_now = unit_run_next++;
    unit_run_before = started;
    return unit_run_now->setup_func ? unit_run_now->setup_func(state) : 0;
}

static void unit_run_one(void **state)
{
    char line[512];

    unit_run_now->test_func(state);
    if (started == unit_run_before || unit_run_find(unit_run_now->name))
        return;
    unit_run_line(line, sizeof(line), unit_run_now->name);
    fail_msg("it starts a thread; %s: expected this line in it: %s", THREADS_TXT, line);
}

int unit_run(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
             CMFixtureFunction teardown)
{
    struct CMUnitTest *run = calloc(n, sizeof(*run)), *original = calloc(n, sizeof(*original));
    size_t n_run = 0;
    int failed;

    if (!run || !original)
        return 1;
    for (size_t i = 0; i < n; i++) {
        if (ONLY_THREADS_RUN && !unit_run_find(tests[i].name))
            continue;
        original[n_run] = run[n_run] = tests[i];
        run[n_run].setup_func = unit_run_setup;
        run[n_run++].test_func = unit_run_one;
    }
    if (!n_run) {
        printf("skipped: starts no thread\n");
        return SKIP;
    }
    unit_run_next = original;
    failed = _cmocka_run_group_tests(group, run, n_run, setup, teardown);
    free(run);
    free(original);
    return failed;
}
