#include "fs/options/options.h"
#include "support/unit.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "fs/log/log.h"
#include "fs/options/table.h"

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

UNIT_TEST(test_options__none__defaults)
{
    AUTO_OPTIONS struct options o;

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

/* What via= makes of the defaults of keep= and cache_size=. */
UNIT_TEST(test_options__via__keeps_less)
{
    static const struct {
        const char *text;
        bool stages; /* epochfs stage */
        enum stage_keep keep;
        uint64_t own_limit;
    } cases[] = {
        {"", false, STAGE_PIN, 0},
        {"keep=plan", false, STAGE_PLAN, 0},
        {"via=http://127.0.0.1:1", false, STAGE_PLAN, 1 << 30},
        {"via=http://127.0.0.1:1", true, STAGE_PIN, 0},
        {"via=http://127.0.0.1:1,keep=pin", false, STAGE_PIN, 0},
        {"via=http://127.0.0.1:1,keep=once", false, STAGE_ONCE, 1 << 30},
        {"via=http://127.0.0.1:1,cache_size=5G", false, STAGE_PLAN, 0},
        {"keep=once,via=http://127.0.0.1:1,cache_size=50%", false, STAGE_ONCE, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OPTIONS struct options o;
        struct source_options source;

        check_good(&o, cases[i].text);
        o.stages_local = cases[i].stages;
        options_source(&o, NULL, &source);
        assert_int_equal(source.stage.keep, cases[i].keep);
        assert_int_equal(source.stage.own_limit, cases[i].own_limit);
    }
}

UNIT_TEST(test_options__via__loopback_only)
{
    AUTO_OPTIONS struct options o;

    check_good(&o, "via=http://127.0.0.1:8081,via_secret=/a/b");
    assert_string_equal(o.source.via, "http://127.0.0.1:8081");
    assert_string_equal(o.source.via_secret, "/a/b");
    check_bad("via=http://10.0.0.1:8081", "option via: expected http://127.0.0.1:PORT");
    check_bad("via=https://127.0.0.1:8081", "option via: expected http://127.0.0.1:PORT");
    check_bad("via=http://127.0.0.1", "option via: expected http://127.0.0.1:PORT");
}

UNIT_TEST(test_options__ours__all_taken)
{
    AUTO_OPTIONS struct options o;

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

UNIT_TEST(test_options__fstab_lines__taken)
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
        {"fsname=mnist,dirsync", "fsname=mnist,dirsync"},
        {",,ro,,", NULL},
    };

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

UNIT_TEST(test_options__unknown__a_guess)
{
    check_bad("epoch=3", "is it 'epochs'?");
    check_bad("plan=batch=3,sed=7", "is it 'seed' of a plan?");
    check_bad("plan=batch=3,sed=7", "plan=batch=128+seed=7");
    check_bad("cache_size=0", "at least 1, such as 200G, or a share");
    check_bad("cache_szie=3", "is it 'cache_size'?");
    check_bad("cahce=/x", "is it 'cache_dir'?");
    check_bad("Plan=batch=1", "is it 'plan'?");
    check_bad("class=3", "is it 'one_hot'?");
    check_bad("transpos", "is it 'transpose'?");
    check_bad("lgo=debug", "is it 'log_level'?");
    check_bad("Ro", "is it 'ro'?");
    check_bad("allow-other", "is it 'allow_other'?");
    check_bad("no-fail", "is it 'nofail'?");
    check_bad("foo", "unknown option 'foo'; `epochfs");
    check_bad("ro,nonsense", "unknown option 'nonsense'; `epochfs mount --help`");
    check_bad("=", "unknown option '='");
    /* What other tools call it, as they write it. */
    check_bad("cache_path=/x", "unknown option 'cache_path=/x'. Use cache_dir=DIR");
    check_bad("vfs-cache-max-size=10G", "Use cache_size=SIZE");
    check_bad("Endpoint-URL=http://x", "is it 'endpoint_url'?");
    check_bad("public_bucket", "Use no_sign_request");
    check_bad("uid=1000", "allow_other");
    check_bad("umask=022", "allow_other");
    check_bad("use_cache=/x", "Use cache_dir=DIR");
    check_bad("drop_last", "tail=drop");
    check_bad("an_option_with_a_name_that_is_longer_than_any_table_here_could_ever_be=1",
              "unknown option 'an_option");
}

/* The description of an option in the help, in one line. */
static void entry_of(const char *name, struct text *ret)
{
    AUTO_TEXT struct text help = {0};
    char begin[80];
    const char *at;

    options_help(&help, true);
    snprintf(begin, sizeof(begin), "\n    %s=", name);
    at = strstr(help.data, begin);
    if (!at)
        fail_msg("%s is not in the help", name);
    for (at++; *at && (at[0] != '\n' || !strncmp(at + 1, "        ", 8)); at++)
        if (!isspace((unsigned char)at[0]) || !isspace((unsigned char)at[1]))
            text_add_bytes(ret, *at == '\n' ? " " : at, 1);
}

/* Numbers out of range are refused by the limits that the help states. */
UNIT_TEST(test_options__number_out_of_range__limits_as_in_help)
{
    static const struct {
        const char *name, *help;
        uint64_t least, most;
    } cases[] = {
        {"epochs", "range: 0 to 65536)", 0, 65536},
        {"one_hot", "range: 1 to 65536)", 1, 65536},
        {"transfers", "range: 2 to 64)", 2, 64},
        {"retry_timeout", "range: 1 to 86400)", 1, 86400},
        {"timeout", "range: 1 to 3600)", 1, 3600},
        {"command_timeout", "range: 1 to 86400)", 1, 86400},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TEXT struct text entry = {0};
        AUTO_OPTIONS struct options o;
        char option[80], limits[80];

        entry_of(cases[i].name, &entry);
        if (!strstr(entry.data, cases[i].help))
            fail_msg("expected '%s' in: %s", cases[i].help, entry.data);
        snprintf(limits, sizeof(limits), "expected a number from %llu to %llu",
                 (unsigned long long)cases[i].least, (unsigned long long)cases[i].most);
        snprintf(option, sizeof(option), "%s=%llu", cases[i].name,
                 (unsigned long long)cases[i].most + 1);
        check_bad(option, limits);
        snprintf(option, sizeof(option), "%s=x", cases[i].name);
        check_bad(option, limits);
        snprintf(option, sizeof(option), "%s=%llu", cases[i].name,
                 (unsigned long long)cases[i].most);
        check_good(&o, option);
    }
}

UNIT_TEST(test_options__plan_with_commas__hint)
{
    check_bad("plan=batch=128,seed=7", "plan=batch=128+seed=7");
    check_bad("plan=batch=128,rank=0of4", "joined by +");
    check_bad("tail=drop", "joined by +");
    check_bad("batch=128", "joined by +");
    check_bad("plan=batch=128\\,seed=7", "joined by +");
}

UNIT_TEST(test_options__escaped_comma__part_of_value)
{
    AUTO_OPTIONS struct options o, p, q;

    check_good(&o, "cache=/a\\,b,transpose");
    assert_string_equal(o.cache, "/a,b");
    assert_true(o.format.transpose);
    check_good(&p, "cache=/a\\\\,transpose");
    assert_string_equal(p.cache, "/a\\");
    assert_true(p.format.transpose);
    check_good(&q, "fsname=a\\,b,noatime"); /* for libfuse the comma is escaped again */
    assert_string_equal(q.for_fuse.data, "fsname=a\\,b,noatime");
}

UNIT_TEST(test_options__backslash_at_the_end__kept)
{
    AUTO_OPTIONS struct options o;

    check_good(&o, "cache=/a\\");
    assert_string_equal(o.cache, "/a\\");
}

UNIT_TEST(test_options__values__checked)
{
    check_bad("plan", "expected plan=PLAN");
    check_bad("plan=", "option plan=");
    check_bad("plan=batch=0", "got '0'");
    check_bad("plan=batch=1+batch=2", "batch is given twice");
    check_bad("epochs", "expected epochs=N");
    check_bad("epochs=", "expected a number from 0 to");
    check_bad("epochs=-1", "expected a number from 0 to");
    check_bad("epochs=01", "expected a number from 0 to");
    check_bad("epochs=1x", "expected a number from 0 to");
    check_bad("epochs=65537", "expected a number from 0 to 65536");
    check_bad("epochs=18446744073709551617", "expected a number from 0 to 65536");
    check_bad("classes=0", "expected a number from 1 to 65536");
    check_bad("classes=65537", "expected a number from 1 to 65536");
    check_bad("cache", "expected cache=DIR");
    check_bad("cache=", "expected a folder");
    check_bad("transpose=1", "takes no value, got '1'");
    check_bad("log=loud", "expected error, warning, info or debug");
}

UNIT_TEST(test_options__several_texts__add_up)
{
    AUTO_OPTIONS struct options o;

    check_good(&o, "plan=batch=1,cache=/a,nosuid");
    assert_int_equal(options_parse(&o, "plan=batch=2,cache=/b,nodev", NULL), 0);
    assert_int_equal(o.n_plans, 2);
    assert_string_equal(o.cache, "/b");
    assert_string_equal(o.for_fuse.data, "nosuid,nodev");
}

UNIT_TEST(test_options__source__defaults)
{
    AUTO_OPTIONS struct options o;
    const struct cache_folder folder = {0};
    struct source_options source;

    check_good(&o, "");
    options_source(&o, &folder, &source);
    assert_ptr_equal(source.cache, &folder);
    assert_false(source.stages_local);
    assert_int_equal(source.stage.keep, STAGE_PIN);
    assert_int_equal(source.stage.limit, 0);
    assert_int_equal(source.stage.limit_percent, 80);
    assert_int_equal(source.stage.block, 0);
    assert_int_equal(source.stage.jobs, 8);
    assert_int_equal(source.stage.small_jobs, 128);
    assert_int_equal(source.stage.rate, 0);
    assert_int_equal(source.stage.retry_limit_s, 60);
    assert_true(source.stage.background);
    assert_int_equal(source.timeout_s, 20);
    assert_null(source.files);
    assert_null(source.endpoint);
    assert_null(source.region);
    assert_null(source.profile);
    assert_null(source.ca);
    assert_false(source.anonymous);
    assert_false(source.virtual_host);
}

UNIT_TEST(test_options__source__all_taken)
{
    AUTO_OPTIONS struct options o;
    struct source_options source;

    check_good(&o, "keep=plan,block=8K,block=auto");
    options_source(&o, NULL, &source);
    assert_int_equal(source.stage.keep, STAGE_PLAN);
    assert_int_equal(source.stage.block, 0);
    options_release(&o);
    check_good(&o,
               "cache=/c,cache_size=10G,keep=once,block=64K,jobs=3,rate=5M,patience=7,timeout=9,"
               "stage=off,endpoint=https://s3.example.org:9000,region=eu-1,profile=lab,"
               "anonymous,virtual_host,ca=/etc/ca.pem,files=a;b/c");
    options_source(&o, NULL, &source);
    assert_true(source.stages_local);
    assert_int_equal(source.stage.keep, STAGE_ONCE);
    assert_true(source.stage.limit == UINT64_C(10) << 30);
    assert_int_equal(source.stage.limit_percent, 0);
    assert_int_equal(source.stage.block, 64 * 1024);
    assert_int_equal(source.stage.jobs, 3);
    assert_int_equal(source.stage.small_jobs, 0);
    assert_int_equal(source.stage.rate, 5 << 20);
    assert_int_equal(source.stage.retry_limit_s, 7);
    assert_false(source.stage.background);
    assert_int_equal(source.timeout_s, 9);
    assert_string_equal(source.files, "a;b/c");
    assert_string_equal(source.endpoint, "https://s3.example.org:9000");
    assert_string_equal(source.region, "eu-1");
    assert_string_equal(source.profile, "lab");
    assert_string_equal(source.ca, "/etc/ca.pem");
    assert_true(source.anonymous);
    assert_true(source.virtual_host);
}

UNIT_TEST(test_options__sizes__powers_of_1024)
{
    static const struct {
        const char *text;
        uint64_t limit;
        unsigned percent;
    } cases[] = {
        {"cache_size=1", 1, 0},
        {"cache_size=500", 500, 0},
        {"cache_size=4K", 4096, 0},
        {"cache_size=4M", UINT64_C(4) << 20, 0},
        {"cache_size=3T", UINT64_C(3) << 40, 0},
        {"cache_size=16777215T", UINT64_C(16777215) << 40, 0},
        {"cache_size=1%", 0, 1},
        {"cache_size=100%", 0, 100},
        {"cache_size=5G,cache_size=7%", 0, 7}, /* the last one counts */
        {"cache_size=7%,cache_size=5G", UINT64_C(5) << 30, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OPTIONS struct options o;

        check_good(&o, cases[i].text);
        assert_true(o.source.stage.limit == cases[i].limit);
        assert_int_equal(o.source.stage.limit_percent, cases[i].percent);
    }
}

UNIT_TEST(test_options__source_values__checked)
{
    check_bad("cache_size", "expected cache_size=SIZE");
    check_bad("cache_size=", "cache_size=: expected a number of bytes");
    check_bad("cache_size=0", "expected a number of bytes");
    check_bad("cache_size=0G", "expected a number of bytes");
    check_bad("cache_size=1.5G", "cache_size=1.5G: expected a number of bytes");
    check_bad("cache_size=5g", "expected a number of bytes");
    check_bad("cache_size=5GB", "expected a number of bytes");
    check_bad("cache_size=G", "expected a number of bytes");
    check_bad("cache_size=-1", "expected a number of bytes");
    check_bad("cache_size=16777216T", "expected a number of bytes");
    check_bad("cache_size=18446744073709551616", "expected a number of bytes");
    check_bad("cache_size=0%", "expected 1% to 100%");
    check_bad("cache_size=101%", "expected 1% to 100%");
    check_bad("cache_size=%", "expected 1% to 100%");
    check_bad("keep=all", "keep=all: expected never, after_use or plan");
    check_bad("stage=of", "expected off or on");
    check_bad("prefetch=of", "prefetch=of: expected off or on");
    check_bad("csv_comment=ab", "csv_comment=ab: expected a character");
    check_bad("block=2K", "expected a power of two from 4K to 256K");
    check_bad("block=512K", "expected a power of two from 4K to 256K");
    check_bad("block=96K", "expected a power of two");
    check_bad("block=x", "expected a number of bytes");
    check_bad("jobs=1", "expected a number from 2 to 64");
    check_bad("jobs=65", "expected a number from 2 to 64");
    check_bad("rate=0", "expected a number of bytes");
    check_bad("patience=0", "expected a number from 1 to 86400");
    check_bad("timeout=3601", "expected a number from 1 to 3600");
    check_bad("files=", "expected names of files");
    check_bad("ca=", "expected a file");
    check_bad("region=", "expected the name of a region");
    check_bad("anonymous=1", "takes no value");
    check_bad("endpoint=s3.example.org", "expected a URL");
    check_bad("endpoint=ftp://x", "expected a URL");
    check_bad("endpoint=https://", "expected a URL");
    check_bad("endpoint=https:///x", "expected a URL");
}

/* Secrets are refused, and the message does not repeat them. */
UNIT_TEST(test_options__secrets__refused_and_not_shown)
{
    static const char *const cases[] = {"access_key=AKIAHUSH",
                                        "secret=HUSH",
                                        "secret_key=HUSH",
                                        "aws_session_token=HUSH",
                                        "aws_secret_access_key=HUSH",
                                        "password=HUSH",
                                        "passwd=HUSH",
                                        "AWS_ACCESS_KEY_ID=HUSH",
                                        "endpoint=https://me:HUSH@s3.example.org",
                                        "endpoint=https://me:HU/SHHUSH@s3"};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OPTIONS struct options o;
        struct diag d = DIAG_INIT;

        assert_int_equal(parse(&o, cases[i], &d), -EINVAL);
        assert_diag_has(&d, "$AWS_ACCESS_KEY_ID");
        assert_diag_has(&d, "~/.aws/credentials");
        assert_diag_has(&d, "endpoints");
        assert_null(strstr(d.text, "HUSH"));
    }
}

UNIT_TEST(test_options__paths__made_absolute)
{
    AUTO_OPTIONS struct options o;
    char here[4096], want[8192];

    assert_non_null(getcwd(here, sizeof(here)));
    check_good(&o, "cache=my cache,ca=../ca.pem");
    snprintf(want, sizeof(want), "%s/my cache", here);
    assert_string_equal(o.cache, want);
    snprintf(want, sizeof(want), "%s/../ca.pem", here);
    assert_string_equal(o.source.ca, want);
}

UNIT_TEST(test_options__help__names_every_option)
{
    AUTO_TEXT struct text all = {0}, common = {0};
    static const char *const names[] = {
        "plan=",        "epochs=",        "cache_dir=", "one_hot=",    "transpose",
        "log_level=",   "cache_size=",    "evict=",     "block_size=", "transfers=",
        "bwlimit=",     "retry_timeout=", "timeout=",   "prefetch=",   "endpoint_url=",
        "region=",      "ca_cert=",       "profile=",   "files=",      "no_sign_request",
        "virtual_host", "requester_pays"};

    options_help(&all, true);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_non_null(strstr(all.data, names[i]));
    assert_non_null(strstr(all.data, " allow_root, "));
    assert_non_null(strstr(all.data, " comment=\n")); /* the end: not cut */
    options_help(&common, false);
    assert_true(common.len < all.len / 2);
    for (unsigned i = 0; i < n_options_ours; i++) { /* the short help has at least their names */
        const struct option *option = &options_ours[i];

        assert_non_null(strstr(all.data, option->name));
        assert_non_null(strstr(common.data, option->name));
        assert_true(option->preset || option->show || option->n_words || option->set ||
                    option->type != OPTION_NUMBER || option->most);
    }
}

/* The value that an option's help names as its default. False: it names none. */
static bool default_of(const char *help, char ret[static 32])
{
    const char *at = strstr(help, "(default: ");

    if (!at)
        return false;
    at += strlen("(default: ");
    snprintf(ret, 32, "%.*s", (int)strcspn(at, ");,"), at);
    return true;
}

UNIT_TEST(test_options__defaults_in_the_help__are_those_of_the_code)
{
    /* These depend on the machine or on other options. */
    static const char *const others[] = {"readahead", "format"};
    unsigned compared = 0;

    for (unsigned i = 0; i < n_options_ours; i++) {
        AUTO_OPTIONS struct options given = {0}, none = {0};
        AUTO_TEXT struct text entry = {0};
        char value[32], text[64];
        bool is_other = !!options_ours[i].preset; /* described in words */

        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            is_other = is_other || !strcmp(options_ours[i].name, others[k]);
        if (is_other || !options_ours[i].form)
            continue;
        entry_of(options_ours[i].name, &entry);
        if (!default_of(entry.data, value))
            continue;
        snprintf(text, sizeof(text), "%s=%s", options_ours[i].name, value);
        options_init(&none);
        if (parse(&given, text, NULL) < 0)
            fail_msg("%s: cannot be parsed", text);
        given.source.limits_all = false; /* only says that cache_size= was given, ... */
        given.keep_given = false;        /* ... and that keep= was */
        given.source.stage.small_jobs = none.source.stage.small_jobs; /* as many with jobs= */
        if (memcmp(&given, &none, sizeof(given)) != 0)
            fail_msg("%s: not the default of the code", text);
        compared++;
    }
    assert_true(compared >= 12);
}

/* ---- names and values of earlier versions ---- */

/* A value that an option without a list of words takes. */
static const char *value_for(const struct option *option)
{
    static const struct {
        const char *name, *value;
    } values[] = {
        {"subset", "hard=/lists/hard"},
        {"readahead", "5M"},
        {"block_size", "64K"},
        {"transfers", "3"},
        {"endpoint_url", "https://s3.example.org"},
        {"peers", "http://127.0.0.1:8080"},
        {"csv_delimiter", "semicolon"},
        {"csv_comment", "#"},
        {"token_dtype", "raw:uint32"},
        {"image_size", "64x48"},
    };

    if (!option->form)
        return NULL;
    if (option->type == OPTION_NUMBER)
        return "7";
    if (option->type == OPTION_SIZE)
        return "3M";
    if (option->type == OPTION_TEXT || option->type == OPTION_PATH)
        return "/some/text";
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (!strcmp(values[i].name, option->name))
            return values[i].value;
    fail_msg("%s has an old name: expected a value for it here", option->name);
    return NULL;
}

/* Compare texts, then forget where they are. */
static void compare_text(const char *typed, const char **a, const char **b)
{
    if (!*a != !*b || (*a && strcmp(*a, *b) != 0))
        fail_msg("%s: '%s' and '%s'", typed, *a ? *a : "", *b ? *b : "");
    *a = *b;
}

/* Both give the same options. */
static void check_same(const char *old, const char *new)
{
    AUTO_OPTIONS struct options a = {0}, b = {0};
    struct options seen;

    check_good(&a, old);
    check_good(&b, new);
    seen = a; /* which still owns its texts */
    compare_text(old, &seen.cache, &b.cache);
    compare_text(old, &seen.source.endpoint, &b.source.endpoint);
    compare_text(old, &seen.source.ca, &b.source.ca);
    compare_text(old, &seen.source.via, &b.source.via);
    compare_text(old, &seen.source.via_secret, &b.source.via_secret);
    assert_int_equal(a.n_lists, b.n_lists);
    for (size_t i = 0; i < a.n_lists; i++) {
        assert_string_equal(a.list[i].name, b.list[i].name);
        assert_string_equal(a.list[i].file, b.list[i].file);
    }
    seen.list = b.list;
    if (memcmp(&seen, &b, sizeof(b)) != 0)
        fail_msg("%s and %s are not the same", old, new);
}

/* The n-th of names, which | separates, or "". */
static const char *nth_name(const char *names, unsigned n, char ret[static 64])
{
    for (; n && *names; n--)
        names += strcspn(names, "|") + (names[strcspn(names, "|")] != '\0');
    snprintf(ret, 64, "%.*s", (int)strcspn(names, "|"), names);
    return ret;
}

static void check_word(const struct option *option, const char *name, unsigned word)
{
    char value[64], first[64], old[160], new[160];

    nth_name(option->word[word], 0, first);
    snprintf(new, sizeof(new), "%s=%s", option->name, first);
    for (unsigned k = 0; *nth_name(option->word[word], k, value); k++) {
        snprintf(old, sizeof(old), "%s=%s", name, value);
        check_same(old, new);
    }
}

static void check_name(const struct option *option, const char *name)
{
    const char *value = option->n_words || !option->form ? NULL : value_for(option);
    char old[160], new[160];

    for (unsigned i = 0; i < option->n_words; i++)
        check_word(option, name, i);
    if (option->n_words)
        return;
    snprintf(old, sizeof(old), "%s%s%s", name, value ? "=" : "", value ? value : "");
    snprintf(new, sizeof(new), "%s%s%s", option->name, value ? "=" : "", value ? value : "");
    check_same(old, new);
}

/* Old names and values of options are taken. */
UNIT_TEST(test_options__old_names__same_as_new)
{
    unsigned names = 0;
    char name[64];

    for (unsigned i = 0; i < n_options_ours; i++) {
        const struct option *option = &options_ours[i];

        if (option->n_words)
            check_name(option, option->name);
        for (unsigned k = 0; option->old && *nth_name(option->old, k, name); k++) {
            assert_ptr_equal(option_find(name, strlen(name)), option);
            check_name(option, name);
            names++;
        }
    }
    assert_true(names >= 28);
    check_same("tokens=u2", "token_dtype=uint16");
    check_same("tokens=raw:i8", "token_dtype=raw:int64");
    check_same("block=auto", "block_size=auto");
}

/* A message about a value has the name that was typed. */
UNIT_TEST(test_options__message__name_that_was_typed)
{
    check_bad("patience=0", "option patience=0: ");
    check_bad("retry_timeout=0", "option retry_timeout=0: ");
    check_bad("picture=big", "option picture=big: ");
    check_bad("image_size=big", "option image_size=big: ");
    check_bad("anonymous=1", "option anonymous takes no value");
    check_bad("via", "option via: expected via=URL");
}

/* fstab's comment= is for people, unless it is the old name of csv_comment=. */
UNIT_TEST(test_options__comment__csv_or_fstab)
{
    AUTO_OPTIONS struct options o, p;

    check_good(&o, "comment=#,comment=systemd.automount,comment=a,comment=");
    assert_int_equal(o.format.comment, '#');
    check_good(&p, "csv_comment=%,x-systemd.automount,comment=my data");
    assert_int_equal(p.format.comment, '%');
    check_bad("csv_comment=systemd.automount", "option csv_comment=systemd.automount: ");
}
