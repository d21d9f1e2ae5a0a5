/* Lines of scp files and ranges, as Kaldi interprets them: cases K-50 to K-59. */
#include <stdio.h>

#include "base/scope.h"
#include "format/kaldi/table/scp.h"
#include "support/unit.h"

#define ALL                                                                                        \
    {                                                                                              \
        0, UINT64_MAX                                                                              \
    }

struct good {
    const char *line, *key;
    enum scp_place place;
    const char *path;
    uint64_t offset;
    struct scp_range range;
};

static bool is_text(const char *piece, size_t len, const char *want)
{
    return len == strlen(want) && !memcmp(piece, want, len);
}

static bool same_pair(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

static void check_good(const struct good *want)
{
    struct scp_range range = want->range;
    struct scp_line found;
    const char *wrong = scp_line_parse(want->line, strlen(want->line), &found);

    if (!range.is_given)
        range = (struct scp_range){.row = ALL, .column = ALL};
    if (wrong)
        fail_msg("\"%s\": %s", want->line, wrong);
    if (!is_text(found.key, found.key_len, want->key))
        fail_msg("\"%s\": key \"%.*s\"", want->line, (int)found.key_len, found.key);
    if (found.place != want->place || !is_text(found.path, found.path_len, want->path))
        fail_msg("\"%s\": kind %d, path \"%.*s\"", want->line, (int)found.place,
                 (int)found.path_len, found.path);
    if (found.offset != want->offset)
        fail_msg("\"%s\": offset %llu", want->line, (unsigned long long)found.offset);
    if (found.range.is_given != range.is_given || found.range.has_columns != range.has_columns ||
        !same_pair(found.range.row, range.row) || !same_pair(found.range.column, range.column))
        fail_msg("\"%s\": another range", want->line);
}

UNIT_TEST(test_scp_line__places__what_kaldi_takes)
{
    static const struct good cases[] = {
        {"a x", "a", SCP_FILE, "x", 0, {0}},
        {"a x\r", "a", SCP_FILE, "x", 0, {0}},
        {" \t a\t\v\f x y  z.ark \r\n", "a", SCP_FILE, "x y  z.ark", 0, {0}},
        {"\xc3\xa4\xff[1] /d/x.ark:0", "\xc3\xa4\xff[1]", SCP_OFFSET, "/d/x.ark", 0, {0}},
        {"a:1 x", "a:1", SCP_FILE, "x", 0, {0}},
        {"| x", "|", SCP_FILE, "x", 0, {0}},
        {"a x.ark:12", "a", SCP_OFFSET, "x.ark", 12, {0}},
        {"a x.ark:0012", "a", SCP_OFFSET, "x.ark", 12, {0}},
        {"a x.ark:9223372036854775807", "a", SCP_OFFSET, "x.ark", INT64_MAX, {0}},
        {"a x:1:2", "a", SCP_OFFSET, "x:1", 2, {0}},
        {"a x::2", "a", SCP_OFFSET, "x:", 2, {0}},
        {"a x|y:2", "a", SCP_OFFSET, "x|y", 2, {0}},
        {"a x y :2", "a", SCP_OFFSET, "x y ", 2, {0}},
        {"a x:12b", "a", SCP_FILE, "x:12b", 0, {0}},
        {"a x:-12", "a", SCP_FILE, "x:-12", 0, {0}},
        {"a x:", "a", SCP_FILE, "x:", 0, {0}},
        {"a :", "a", SCP_FILE, ":", 0, {0}},
        {"a 12", "a", SCP_FILE, "12", 0, {0}},
        {"a --", "a", SCP_FILE, "--", 0, {0}},
        {"a -:12", "a", SCP_OFFSET, "-", 12, {0}},
        {"a cat x |", "a", SCP_COMMAND, "cat x ", 0, {0}},
        {"a ark:x|", "a", SCP_COMMAND, "ark:x", 0, {0}},
        {"a sox a.wav -t wav - | cat x[0] |",
         "a",
         SCP_COMMAND,
         "sox a.wav -t wav - | cat x[0] ",
         0,
         {0}},
        {"a x[0:1].ark", "a", SCP_FILE, "x[0:1].ark", 0, {0}},
        /* Not specifiers: another start, an unknown or empty option, none of ark and scp, one
         * twice, both in the wrong order, without a second file, or with an option of readers. */
        {"a a.ark:", "a", SCP_FILE, "a.ark:", 0, {0}},
        {"a b,ark:x", "a", SCP_FILE, "b,ark:x", 0, {0}},
        {"a Ark:x", "a", SCP_FILE, "Ark:x", 0, {0}},
        {"a ark,x:y", "a", SCP_FILE, "ark,x:y", 0, {0}},
        {"a ark,:y", "a", SCP_FILE, "ark,:y", 0, {0}},
        {"a ark, t:y", "a", SCP_FILE, "ark, t:y", 0, {0}},
        {"a s,cs:y", "a", SCP_FILE, "s,cs:y", 0, {0}},
        {"a scp,ark:x,y", "a", SCP_FILE, "scp,ark:x,y", 0, {0}},
        {"a ark,ark:x,y", "a", SCP_FILE, "ark,ark:x,y", 0, {0}},
        {"a scp,scp:x,y", "a", SCP_FILE, "scp,scp:x,y", 0, {0}},
        {"a ark,scp:x", "a", SCP_FILE, "ark,scp:x", 0, {0}},
        {"a ark,scp,cs:x,y", "a", SCP_FILE, "ark,scp,cs:x,y", 0, {0}},
        {"a ark,f,cs:x", "a", SCP_FILE, "ark,f,cs:x", 0, {0}},
        {"a ark", "a", SCP_FILE, "ark", 0, {0}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_good(&cases[i]);
}

UNIT_TEST(test_scp_line__ranges__what_kaldi_takes)
{
    static const struct good cases[] = {
        {"a foo.ark:12[0:51]", "a", SCP_OFFSET, "foo.ark", 12, {true, false, {0, 51}, ALL}},
        {"a foo.ark:12[0:51,2:5]", "a", SCP_OFFSET, "foo.ark", 12, {true, true, {0, 51}, {2, 5}}},
        {"a foo.ark:12[:,2:5]", "a", SCP_OFFSET, "foo.ark", 12, {true, true, ALL, {2, 5}}},
        {"a foo.ark[3:3,:]", "a", SCP_FILE, "foo.ark", 0, {true, true, {3, 3}, ALL}},
        {"a foo.ark[:] \r", "a", SCP_FILE, "foo.ark", 0, {true, false, ALL, ALL}},
        {"a cat x |[0:0]", "a", SCP_COMMAND, "cat x ", 0, {true, false, {0, 0}, ALL}},
        {"a x[0:2147483647]", "a", SCP_FILE, "x", 0, {true, false, {0, INT32_MAX}, ALL}},
        /* numbers as strtoll() parses them */
        {"a x[ +00:\t0005]", "a", SCP_FILE, "x", 0, {true, false, {0, 5}, ALL}},
        {"a x[-0:1]", "a", SCP_FILE, "x", 0, {true, false, {0, 1}, ALL}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_good(&cases[i]);
}

static void check_bad(const char *line, size_t len, const char *piece)
{
    struct scp_line found;
    const char *wrong;

    memset(&found, 0x5a, sizeof(found));
    wrong = scp_line_parse(line, len, &found);
    if (!wrong)
        fail_msg("\"%s\" was taken", line);
    if (strncmp(wrong, "expected ", 5) != 0 || !strstr(wrong, ", got ") || !strstr(wrong, piece))
        fail_msg("\"%s\": \"%s\": expected \"%s\" in it", line, wrong, piece);
    assert_int_equal(found.path_len, 0);
    assert_int_equal(found.key_len > 0, strcmp(piece, "blank line") != 0);
}

UNIT_TEST(test_scp_line__bad__what_is_wrong)
{
    static const struct {
        const char *line, *piece;
    } cases[] = {
        {"", "blank line"},
        {" \t\r\n\v\f", "blank line"},
        {"a", "after the key"},
        {"  a \r", "after the key"},
        {"a -", "standard input"},
        {"a -[0:1]", "standard input"},
        {"a |", "'|' before it"},
        {"a | cat x", "'|' before it"},
        {"a |cat|", "'|' before it"},
        {"a cat x | wc", "got it inside"},
        {"a x|12", "got it inside"},
        {"a x [0:1]", "the range right after the path"},
        {"a cat x | [0:1]", "the range right after the path"},
        {"a ark:x", "specifier"},
        {"a ark:", "specifier"},
        {"a ark:x:12", "specifier"},
        {"a scp:x", "specifier"},
        {"a scp:x[0:1]", "specifier"},
        {"a ark,t:x", "specifier"},
        {"a s,b,o,no,p,np,ns,cs,ncs,bg,ark:x", "specifier"},
        {"a scp,b,t,f,nf,p:x", "specifier"},
        {"a ark,scp:x,y", "specifier"},
        {"a ark scp,t:x,y", "specifier"},
        {"a :12", "before the ':'"},
        {"a :12[0:1]", "before the ':'"},
        {"a x:9223372036854775808", "offset of up to"},
        {"a x:18446744073709551616", "offset of up to"},
        {"a x:99999999999999999999999", "offset of up to"},
        {"a [0:1]", "before the range"},
        {"a x]", "got none"},
        {"a ]", "got none"},
        {"a x[1][0:1]", "one '['"},
        {"a x[[0:1]", "one '['"},
        {"a x[]", "between '[' and ']'"},
        {"a x[0]", "got no ':'"},
        {"a x[0:1,]", "got no ':'"},
        {"a x[,0:1]", "got no ':'"},
        {"a x[0:1,2]", "got no ':'"},
        {"a x[0:1,2:3,4:5]", "more than one ','"},
        {"a x[:1]", "on both sides"},
        {"a x[1:]", "on both sides"},
        {"a x[::]", "on both sides"},
        {"a x[0:1:2]", "on both sides"},
        {"a x[-1:1]", "on both sides"},
        {"a x[0:-1]", "on both sides"},
        {"a x[0:1 ]", "on both sides"},
        {"a x[0 :1]", "on both sides"},
        {"a x[+:1]", "on both sides"},
        {"a x[+-0:1]", "on both sides"},
        {"a x[0:1x]", "on both sides"},
        {"a x[a:1,0:1]", "on both sides"},
        {"a x[0:1,a:1]", "on both sides"},
        {"a x[0:2147483648]", "on both sides"},
        {"a x[0:18446744073709551616]", "on both sides"},
        {"a x[2:1]", "does not end before"},
        {"a x[0:1,2:1]", "does not end before"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_bad(cases[i].line, strlen(cases[i].line), cases[i].piece);
    check_bad("a x\0y", 5, "NUL");
    check_bad("a \0", 3, "NUL");
    check_bad("a x\0|", 5, "NUL");
    check_bad("a x[0:1\0]", 9, "on both sides");
}

UNIT_TEST(test_scp_line__nul_in_key__part_of_it)
{
    struct scp_line line;

    assert_null(scp_line_parse("a\0b x", 5, &line));
    assert_int_equal(line.key_len, 3);
    assert_memory_equal(line.key, "a\0b", 3);
}

typedef const char *(*limit)(const struct scp_range *range, uint64_t n, uint64_t *ret_first,
                             uint64_t *ret_n);

struct leaves {
    const char *range; /* as in a line */
    uint64_t of, first, n;
    const char *wrong; /* a piece of the message, or NULL */
};

static void check_leaves(limit get, const struct leaves *want)
{
    char text[64];
    struct scp_line line;
    uint64_t first = 77, n = 77;
    const char *wrong;

    snprintf(text, sizeof(text), "a x%s", want->range);
    assert_null(scp_line_parse(text, strlen(text), &line));
    wrong = get(&line.range, want->of, &first, &n);
    if (want->wrong ? !wrong || !strstr(wrong, want->wrong) || strncmp(wrong, "expected ", 5) != 0
                    : wrong != NULL)
        fail_msg("%s of %llu: \"%s\"", want->range, (unsigned long long)want->of,
                 wrong ? wrong : "taken");
    if (first != (wrong ? 77 : want->first) || n != (wrong ? 77 : want->n))
        fail_msg("%s of %llu: %llu from %llu", want->range, (unsigned long long)want->of,
                 (unsigned long long)n, (unsigned long long)first);
}

UNIT_TEST(test_scp_range__rows__up_to_2_behind_the_end)
{
    static const struct leaves cases[] = {
        {"", 5, 0, 5, NULL},
        {"", 0, 0, 0, NULL},
        {"[:]", 5, 0, 5, NULL},
        {"[0:0]", 1, 0, 1, NULL},
        {"[1:3]", 5, 1, 3, NULL},
        {"[4:4]", 5, 4, 1, NULL},
        {"[0:1]", 2, 0, 2, NULL},
        {"[0:2]", 2, 0, 2, NULL},
        {"[0:4]", 2, 0, 2, NULL},
        {"[1:4]", 2, 1, 1, NULL},
        {"[1:4,0:0]", 2, 1, 1, NULL},
        {"[:,0:0]", 2, 0, 2, NULL},
        {"[0:2147483647]", UINT64_C(1) << 40, 0, UINT64_C(1) << 31, NULL},
        {"[0:5]", 2, 0, 0, "ends after"},
        {"[0:2147483647]", 2, 0, 0, "ends after"},
        /* where Kaldi aborts */
        {"[2:2]", 2, 0, 0, "starts after"},
        {"[2:3]", 2, 0, 0, "starts after"},
        {"[:]", 0, 0, 0, "empty"},
        {"[0:0]", 0, 0, 0, "empty"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_leaves(scp_range_rows, &cases[i]);
}

UNIT_TEST(test_scp_range__columns__within_the_object)
{
    static const struct leaves cases[] = {
        {"", 5, 0, 5, NULL},
        {"", 0, 0, 0, NULL},
        {"[1:1]", 5, 0, 5, NULL},
        {"[1:1,:]", 5, 0, 5, NULL},
        {"[1:1,0:4]", 5, 0, 5, NULL},
        {"[1:1,2:3]", 5, 2, 2, NULL},
        {"[:,4:4]", 5, 4, 1, NULL},
        {"[:,4:5]", 5, 0, 0, "ends after"},
        {"[:,5:5]", 5, 0, 0, "ends after"},
        {"[:,0:2147483647]", 5, 0, 0, "ends after"},
        {"[:,:]", 0, 0, 0, "empty"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_leaves(scp_range_columns, &cases[i]);
}
