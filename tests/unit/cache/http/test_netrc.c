/* The hosts for which a netrc has users. */
#include <stdio.h>
#include <stdlib.h>

#include "cache/http/netrc.h"
#include "support/temp_folder.h"
#include "support/unit.h"

static bool names(const char *netrc, const char *host)
{
    /* Without a NUL, so that sanitizers catch reads past the end. */
    size_t len = strlen(netrc);
    char *copy = malloc(len ? len : 1);
    bool found;

    assert_non_null(copy);
    memcpy(copy, netrc, len);
    found = netrc_names(copy, len, host);
    free(copy);
    return found;
}

static void test_netrc__machines__found(void **state)
{
    static const char text[] = "# a comment machine c\nmachine a.b login x password machine\n"
                               "machine \"q.r\"\n\tlogin machine password s account d\n"
                               "macdef init\nmachine m\ncd x\n\nmachine LAST";

    (void)state;
    assert_true(names(text, "a.b"));
    assert_true(names(text, "A.B"));
    assert_true(names(text, "q.r"));
    assert_true(names(text, "last"));
    for (const char *const *host =
             (const char *const[]){"c", "m", "x", "s", "d", "a", "a.bc", "password", "", NULL};
         *host; host++)
        assert_false(names(text, *host));
}

static void test_netrc__default__every_host(void **state)
{
    (void)state;
    assert_true(names("machine a login x default login y", "b"));
    assert_false(names("machine default login x", "b"));
    assert_false(names("", "b"));
    assert_false(names("machine", "b"));
    assert_false(names("machine \"b", "c"));
    assert_false(names("\"", "b"));
    assert_false(names("machine \"b\\", "c"));
    assert_false(names("macdef b", "b"));
}

static void test_netrc__file__of_home(void **state)
{
    static const char text[] = "machine h login me password hush\n";

    setenv("HOME", *state, 1);
    assert_false(netrc_file_names("h"));
    temp_write(*state, ".netrc", text, strlen(text));
    assert_true(netrc_file_names("h"));
    assert_false(netrc_file_names("i"));
    unsetenv("HOME");
    assert_false(netrc_file_names("h"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_netrc__machines__found),
        cmocka_unit_test(test_netrc__default__every_host),
        cmocka_unit_test_setup_teardown(test_netrc__file__of_home, temp_setup, temp_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
