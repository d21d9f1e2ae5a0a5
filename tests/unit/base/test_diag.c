#include "base/diag.h"
#include "support/unit.h"

#include <errno.h>

static void test_diag__first_message__wins(void **state)
{
    struct diag d = DIAG_INIT;

    (void)state;
    assert_int_equal(diag_set(&d, -EBADMSG, "first %d", 1), -EBADMSG);
    assert_int_equal(diag_set(&d, -EIO, "second"), -EIO);
    assert_string_equal(diag_text(&d, -EIO), "first 1");
}

static void test_diag__none_set__strerror(void **state)
{
    struct diag d = DIAG_INIT;

    (void)state;
    assert_string_equal(diag_text(&d, -ENOENT), strerror(ENOENT));
    assert_string_equal(diag_text(NULL, -EIO), strerror(EIO));
}

static void test_diag__null__only_returns(void **state)
{
    (void)state;
    assert_int_equal(diag_set(NULL, -ESTALE, "%s", "lost"), -ESTALE);
}

static void test_diag__too_long__cut(void **state)
{
    struct diag d = DIAG_INIT;
    char longer[3000];

    (void)state;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    diag_set(&d, -EIO, "%s", longer);
    assert_int_equal(strlen(d.text), sizeof(d.text) - 1);
}

static void test_diag__empty_message__counts_as_set(void **state)
{
    struct diag d = DIAG_INIT;

    (void)state;
    diag_set(&d, -EIO, "%s", "");
    diag_set(&d, -EIO, "later");
    assert_string_equal(diag_text(&d, -EIO), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diag__first_message__wins),
        cmocka_unit_test(test_diag__none_set__strerror),
        cmocka_unit_test(test_diag__null__only_returns),
        cmocka_unit_test(test_diag__too_long__cut),
        cmocka_unit_test(test_diag__empty_message__counts_as_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
