#include "base/diag.h"
#include "support/unit.h"

#include <errno.h>

UNIT_TEST(test_diag__first_message__wins)
{
    struct diag d = DIAG_INIT;

    assert_int_equal(diag_set(&d, -EBADMSG, "first %d", 1), -EBADMSG);
    assert_int_equal(diag_set(&d, -EIO, "second"), -EIO);
    assert_string_equal(diag_text(&d, -EIO), "first 1");
}

UNIT_TEST(test_diag__none_set__strerror)
{
    struct diag d = DIAG_INIT;

    assert_string_equal(diag_text(&d, -ENOENT), strerror(ENOENT));
    assert_string_equal(diag_text(NULL, -EIO), strerror(EIO));
}

UNIT_TEST(test_diag__null__only_returns)
{
    assert_int_equal(diag_set(NULL, -ESTALE, "%s", "lost"), -ESTALE);
}

UNIT_TEST(test_diag__too_long__cut)
{
    struct diag d = DIAG_INIT;
    char longer[3000];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    diag_set(&d, -EIO, "%s", longer);
    assert_int_equal(strlen(d.text), sizeof(d.text) - 1);
}

UNIT_TEST(test_diag__empty_message__counts_as_set)
{
    struct diag d = DIAG_INIT;

    diag_set(&d, -EIO, "%s", "");
    diag_set(&d, -EIO, "later");
    assert_string_equal(diag_text(&d, -EIO), "");
}
