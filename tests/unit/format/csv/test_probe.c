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
