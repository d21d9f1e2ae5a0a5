#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/unit.h"

static struct unit_test *unit_tests; /* [n_unit_tests] in the order of their lines */
static size_t n_unit_tests;

void unit_add(struct unit_test *test)
{
    struct unit_test **at = &unit_tests;

    while (*at && (*at)->line < test->line)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
    n_unit_tests++;
}

/* With an argument, only the tests that have it in their names. */
int main(int argc, char **argv)
{
    struct CMUnitTest *tests = calloc(n_unit_tests, sizeof(*tests));
    size_t n = 0;
    int failed;

    for (const struct unit_test *test = unit_tests; test && tests; test = test->next)
        if (argc < 2 || strstr(test->test.name, argv[1]))
            tests[n++] = test->test;
    if (!n)
        fprintf(stderr, "no test has %s in its name\n", argc > 1 ? argv[1] : "anything");
    failed = n ? unit_run("tests", tests, n, unit_setup, unit_teardown) : 1;
    free(tests);
    return failed;
}
