/* SOURCE as a specifier of Kaldi: what is mounted for it, and what is refused. */
#include <errno.h>
#include <unistd.h>

#include "base/scope.h"
#include "fs/options/options.h"
#include "support/temp_folder.h"
#include "support/unit.h"

UNIT_TEST_WITH(test_specifier__table__source_and_options, temp_setup, temp_teardown)
{
    static const struct {
        const char *spec;
        const char *want; /* what is mounted, or a piece of the reason */
        unsigned layout;
        int error;
        bool once, sorted, permissive;
    } cases[] = {
        {"ark:a.ark", "a.ark", KALDI_LAYOUT_ARK, 0, false, false, false},
        {"scp:a", "a", KALDI_LAYOUT_SCP, 0, false, false, false},
        {"ark,s,cs:a", "a", KALDI_LAYOUT_ARK, 0, false, true, false},
        {"o,ark,p:a b", "a b", KALDI_LAYOUT_ARK, 0, true, false, true},
        {"ark s,ns,bg,t,b:a", "a", KALDI_LAYOUT_ARK, 0, false, false, false},
        {"ark:s3://b/a:1", "s3://b/a:1", KALDI_LAYOUT_ARK, 0, false, false, false},
        {"ark:gunzip -c a.gz|", "a.gz", KALDI_LAYOUT_ARK, 0, false, false, false},
        {"ark: zcat no.1 no.2 |", "no white space", 0, -EINVAL, false, false, false},
        {"ark:zcat a.1  a.2 |", "a.1;a.2", KALDI_LAYOUT_ARK, 0, false, false, false},
        {"scp:gzip -cd\ta.gz |", "a.gz", KALDI_LAYOUT_SCP, 0, false, false, false},
        {"ark:cat a.*|", "a.1;a.2;a.gz", KALDI_LAYOUT_ARK, 0, false, false, false},
        {"ark:cat a.1 a..|", "a..: No such file", 0, -ENOENT, false, false, false},
        {"ark:cat a.1 folder|", "folder: expected a file", 0, -EINVAL, false, false, false},
        {"ark:cat b*|", "allow_commands", 0, -EACCES, false, false, false},
        {"ark:cat no.1 | head|", "allow_commands", 0, -EACCES, false, false, false},
        {"ark:cat|", "allow_commands", 0, -EACCES, false, false, false},
        {"ark:cat a.1 -n|", "allow_commands", 0, -EACCES, false, false, false},
        {"ark:cat -n no|", "allow_commands", 0, -EACCES, false, false, false},
        {"ark:catch no|", "allow_commands", 0, -EACCES, false, false, false},
        {"ark:cat $HOME|", "allow_commands", 0, -EACCES, false, false, false},
        {"ark:-", "standard input", 0, -EINVAL, false, false, false},
        {"ark:", "standard input", 0, -EINVAL, false, false, false},
        {"-", "standard input", 0, -EINVAL, false, false, false},
        {"|cat", "'|' before it", 0, -EINVAL, false, false, false},
        {"ark:|cat", "'|' before it", 0, -EINVAL, false, false, false},
        {"ark:a ", "no white space", 0, -EINVAL, false, false, false},
        {"ark, s:a", "got ''", 0, -EINVAL, false, false, false},
        {"ark,:a", "got ''", 0, -EINVAL, false, false, false},
        {"ark,x:a", "got 'x'", 0, -EINVAL, false, false, false},
        {"ark,longer:a", "got 'longer'", 0, -EINVAL, false, false, false},
        {"ark,scp:a,b", "got both", 0, -EINVAL, false, false, false},
        {"ARK:a", "ARK:a", KALDI_LAYOUT_AUTO, 0, false, false, false},
        {"s3://ark/scp", "s3://ark/scp", KALDI_LAYOUT_AUTO, 0, false, false, false},
        {"no/ark", "no/ark", KALDI_LAYOUT_AUTO, 0, false, false, false},
        {"/", "/", KALDI_LAYOUT_AUTO, 0, false, false, false},
    };

    static const char *const files[] = {"a.1", "a.2", "a.gz", "b;a.1"};
    const char *folder = *state;

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        temp_write(folder, files[i], "", 0);
    temp_folder(folder, "folder");
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OPTIONS struct options o;
        const char *source = cases[i].spec;
        struct diag d = DIAG_INIT;
        int r;

        options_init(&o);
        r = options_take_specifier(&o, &source, &d);
        if (r != cases[i].error)
            fail_msg("%s: %d: %s", cases[i].spec, r, d.text);
        if (r < 0) {
            assert_diag_has(&d, cases[i].want);
            continue;
        }
        assert_string_equal(source, cases[i].want);
        assert_int_equal(o.format.kaldi_layout, cases[i].layout);
        assert_int_equal(o.format.format != NULL, cases[i].layout != KALDI_LAYOUT_AUTO);
        assert_int_equal(o.reads_once, cases[i].once);
        assert_int_equal(o.format.kaldi_sorted && o.reads_sorted, cases[i].sorted);
        assert_int_equal(o.format.kaldi_permissive, cases[i].permissive);
    }
}

/* What a shell would run has none of the files that were found before. */
UNIT_TEST_WITH(test_specifier__commands__whole_or_files, temp_setup, temp_teardown)
{
    AUTO_OPTIONS struct options o;
    const char *source = "ark:cat a.1 -n|";

    options_init(&o);
    o.allow_commands = true;
    temp_write(*state, "a.1", "", 0);
    assert_int_equal(chdir(*state), 0);
    assert_int_equal(options_take_specifier(&o, &source, NULL), 0);
    assert_string_equal(source, "command:cat a.1 -n");
}
