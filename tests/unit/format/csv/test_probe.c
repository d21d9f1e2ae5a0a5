/* Which files are tables of numbers. */
#include "format/csv/file.h"
#include "support/unit.h"

#include "base/checked.h"

static struct probed_file file_of(const char *name, const char *text)
{
    return (struct probed_file){.name = name,
                                .head = (const uint8_t *)text,
                                .len = strlen(text),
                                .whole = true,
                                .size = strlen(text)};
}

UNIT_TEST(test_csv_probe__texts__tables_or_none)
{
    static const struct {
        const char *name, *text;
        enum claim want;
    } rows[] = {
        {"x", "1,2\n3,4\n", CLAIM_WEAK},
        {"x", "1,2\n", CLAIM_NONE},
        {"x", "1,2\n,\n", CLAIM_WEAK},
        {"x", "1\t2\n\t\n", CLAIM_WEAK}, /* two rows, as with commas */
        {"x", "1\t2\n\t\t\n", CLAIM_NONE},
        {"x", "1,2\n3,4,5\n", CLAIM_NONE},
        {"x.csv", "1\n", CLAIM_STRONG},
        {"x.csv", "1|2\n3|4\n", CLAIM_NONE},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct probed_file file = file_of(rows[i].name, rows[i].text);

        assert_int_equal(csv_probe(&file), rows[i].want);
    }
}

UNIT_TEST(test_csv_hint__texts__only_where_it_helps)
{
    static const struct {
        const char *name, *text, *want; /* want: an option of the hint; NULL: none */
    } rows[] = {
        {"x.csv", "1|2\n3|4\n", "csv_delimiter="},
        {"x.tsv", "a^b\n3^4\n", "csv_delimiter="},
        {"x.csv", "a:b\n3:4.5\n", "csv_delimiter="},
        {"x.txt", "1|2\n3|4\n", NULL},
        {"x.csv", "a|b\n3|c\n", NULL},
        {"x.csv", "LJ001-0001|some words|others\nLJ001-0002|in 1881|in 1881\n", NULL},
        {"x.csv", "Some words.\nMore words.\n", NULL},
        {"x.csv", "\xff\xfe\x01\n\x02|\x03\n", NULL},
        {"x.csv", "# a\n1|2\n", "csv_comment="},
        {"x.csv", "", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct probed_file file = file_of(rows[i].name, rows[i].text);
        const char *hint = csv_hint(&file);

        assert_int_equal(!hint, !rows[i].want);
        assert_true(!hint || strstr(hint, rows[i].want));
    }
}
