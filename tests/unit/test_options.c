#include "fs/options.h"
#include "support/unit.h"

#include <errno.h>

#include "fs/log.h"

static int parse(struct options *o, const char *text, struct diag *d)
{
    options_init(o);
    return options_parse(o, text, d);
}

static void check_good(struct options *o, const char *text)
{
    struct diag d = DIAG_INIT;

    if (parse(o, text, &d) < 0)
        fail_msg("'%s': %s", text, d.text);
}

static void check_bad(const char *text, const char *message)
{
    AUTO_OPTIONS struct options o;
    struct diag d = DIAG_INIT;

    if (parse(&o, text, &d) != -EINVAL)
        fail_msg("'%s' was taken", text);
    assert_diag_has(&d, message);
}

static void test_options__none__defaults(void **state)
{
    AUTO_OPTIONS struct options o;

    (void)state;
    check_good(&o, "");
    assert_int_equal(o.n_plans, 0);
    assert_int_equal(o.epochs, 1);
    assert_null(o.cache);
    assert_false(o.format.transpose);
    assert_int_equal(o.format.classes, 0);
    assert_false(o.allow_other);
    assert_int_equal(o.log_level, LOG_LEVEL_INFO);
    assert_int_equal(o.for_fuse.len, 0);
}

static void test_options__ours__all_taken(void **state)
{
    AUTO_OPTIONS struct options o;

    (void)state;
    check_good(&o, "plan=batch=128,plan=seed=7+batch=4,epochs=20,cache=/x y,classes=62,transpose,"
                   "log=debug");
    assert_int_equal(o.n_plans, 2);
    assert_int_equal(o.plan[0].batch, 128);
    assert_int_equal(o.plan[1].batch, 4);
    assert_int_equal(o.plan[1].seed, 7);
    assert_int_equal(o.epochs, 20);
    assert_string_equal(o.cache, "/x y");
    assert_int_equal(o.format.classes, 62);
    assert_true(o.format.transpose);
    assert_int_equal(o.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(o.for_fuse.len, 0);
}

static void test_options__fstab_lines__taken(void **state)
{
    static const struct {
        const char *text, *for_fuse;
    } cases[] = {
        {"ro,plan=batch=128", NULL},
        {"rw", NULL},
        {"defaults,noauto,user,_netdev,nofail", NULL},
        {"ro,x-systemd.automount,x-systemd.idle-timeout=10min,X-mount.mkdir=0755", NULL},
        {"noauto,users,comment=systemd.automount", NULL},
        {"ro,nosuid,nodev,noexec,relatime", "nosuid,nodev,noexec"},
        {"allow_other,default_permissions,noatime", "allow_other,noatime"},
        {"fsname=mnist,max_read=65536", "fsname=mnist,max_read=65536"},
        {",,ro,,", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OPTIONS struct options o;

        check_good(&o, cases[i].text);
        if (cases[i].for_fuse)
            assert_string_equal(o.for_fuse.data, cases[i].for_fuse);
        else
            assert_int_equal(o.for_fuse.len, 0);
        assert_int_equal(o.allow_other, strstr(cases[i].text, "allow_other") != NULL);
    }
}

static void test_options__unknown__a_guess(void **state)
{
    (void)state;
    check_bad("epoch=3", "is it 'epochs'?");
    check_bad("cahce=/x", "is it 'cache'?");
    check_bad("Plan=batch=1", "is it 'plan'?");
    check_bad("class=3", "is it 'classes'?");
    check_bad("transpos", "is it 'transpose'?");
    check_bad("lgo=debug", "is it 'log'?");
    check_bad("ro,nonsense", "unknown option 'nonsense'; `epochfs mount --help`");
    check_bad("=", "unknown option '='");
    check_bad("an_option_with_a_name_that_is_longer_than_any_table_here_could_ever_be=1",
              "unknown option 'an_option");
}

static void test_options__plan_with_commas__hint(void **state)
{
    (void)state;
    check_bad("plan=batch=128,seed=7", "plan=batch=128+seed=7");
    check_bad("plan=batch=128,rank=0of4", "joined by +");
    check_bad("tail=drop", "joined by +");
    check_bad("batch=128", "joined by +");
    check_bad("plan=batch=128\\,seed=7", "joined by +");
}

static void test_options__escaped_comma__part_of_value(void **state)
{
    AUTO_OPTIONS struct options o, p, q;

    (void)state;
    check_good(&o, "cache=/a\\,b,transpose");
    assert_string_equal(o.cache, "/a,b");
    assert_true(o.format.transpose);
    check_good(&p, "cache=/a\\\\,transpose");
    assert_string_equal(p.cache, "/a\\");
    assert_true(p.format.transpose);
    check_good(&q, "fsname=a\\,b,noatime"); /* for libfuse the comma is escaped again */
    assert_string_equal(q.for_fuse.data, "fsname=a\\,b,noatime");
}

static void test_options__backslash_at_the_end__kept(void **state)
{
    AUTO_OPTIONS struct options o;

    (void)state;
    check_good(&o, "cache=/a\\");
    assert_string_equal(o.cache, "/a\\");
}

static void test_options__values__checked(void **state)
{
    (void)state;
    check_bad("plan", "want plan=PLAN");
    check_bad("plan=", "option plan=");
    check_bad("plan=batch=0", "found '0'");
    check_bad("plan=batch=1+batch=2", "batch stands twice");
    check_bad("epochs", "want epochs=N");
    check_bad("epochs=", "want a number from 0 to");
    check_bad("epochs=-1", "want a number from 0 to");
    check_bad("epochs=01", "want a number from 0 to");
    check_bad("epochs=1x", "want a number from 0 to");
    check_bad("epochs=65537", "want a number from 0 to 65536");
    check_bad("epochs=18446744073709551617", "want a number from 0 to 65536");
    check_bad("classes=0", "want a number from 1 to 65536");
    check_bad("classes=65537", "want a number from 1 to 65536");
    check_bad("cache", "want cache=DIR");
    check_bad("cache=", "want a folder");
    check_bad("transpose=1", "takes no value, found '1'");
    check_bad("log=loud", "want error, warning, info or debug");
}

static void test_options__several_texts__add_up(void **state)
{
    AUTO_OPTIONS struct options o;

    (void)state;
    check_good(&o, "plan=batch=1,cache=/a,nosuid");
    assert_int_equal(options_parse(&o, "plan=batch=2,cache=/b,nodev", NULL), 0);
    assert_int_equal(o.n_plans, 2);
    assert_string_equal(o.cache, "/b");
    assert_string_equal(o.for_fuse.data, "nosuid,nodev");
}

static void test_options__help__names_every_option(void **state)
{
    static const char *const names[] = {
        "plan=", "epochs=", "cache=", "classes=", "transpose", "log="};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_non_null(strstr(options_help(), names[i]));
    assert_true(strlen(options_help()) < 2047); /* not cut */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options__none__defaults),
        cmocka_unit_test(test_options__ours__all_taken),
        cmocka_unit_test(test_options__fstab_lines__taken),
        cmocka_unit_test(test_options__unknown__a_guess),
        cmocka_unit_test(test_options__plan_with_commas__hint),
        cmocka_unit_test(test_options__escaped_comma__part_of_value),
        cmocka_unit_test(test_options__backslash_at_the_end__kept),
        cmocka_unit_test(test_options__values__checked),
        cmocka_unit_test(test_options__several_texts__add_up),
        cmocka_unit_test(test_options__help__names_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
