/* Names and values that options had in earlier versions. */
#include "fs/options/options.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>

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
