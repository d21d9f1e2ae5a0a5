/* Lines that are longer than what the pass reads at once. */
#include "format/csv/row.h"
#include "support/libsvm_make.h"
#include "support/one_store.h"
#include "support/unit.h"

#include <stdlib.h>

extern const struct format format_csv;

#define PIECE (1 << 20) /* what the pass reads at once */

/* Two rows, the first of which is as long as said, most of it blanks. */
static void check_line(size_t len, bool has_end, const char *want)
{
    static const char first[] = "1,2\n";
    size_t before = sizeof(first) - 1, size = before + len + (has_end ? 4 : 0);
    AUTO_FREE char *text = malloc(size + 1);
    struct format_setup setup = {.keep = &no_store};
    struct found found;
    struct blob *blob;
    struct dataset *ds;
    struct bytes x;
    struct one_sample one;

    assert_non_null(text);
    memset(text, ' ', size);
    memcpy(text, first, before);
    memcpy(text + before, "3,", 2);
    text[before + len - 1] = '4';
    if (has_end)
        memcpy(text + before + len, "\n5,6", 4);
    blob = memory_blob_new("a.csv", text, size, size, NULL);
    assert_int_equal(memo_new(1 << 20, &setup.memo), 0);
    assert_int_equal(format_open(&format_csv, &blob, 1, &setup, &found), 0);
    ds = found.item[0].ds;
    assert_non_null(ds);
    while (dataset_state(ds) == DATASET_PREPARING && !dataset_prepare(ds))
        ;
    if (want) {
        assert_int_equal(dataset_state(ds), DATASET_FAILED);
        assert_diag_has(&ds->reason, want);
    } else {
        const float expected[] = {3, 4};

        assert_int_equal(dataset_state(ds), DATASET_READY);
        assert_int_equal(ds->samples, has_end ? 3 : 2);
        one_sample_init(&one, 1);
        assert_int_equal(field_bytes(ds, "x", &one.sel, &x, NULL), 0);
        assert_int_equal(x.len, sizeof(expected));
        assert_memory_equal(x.at, expected, sizeof(expected));
        free(x.at);
    }
    found_release(&found);
    memo_free(setup.memo);
}

static void test_csv_lines__long(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        check_line(PIECE - 5, i, NULL);
        check_line(PIECE - 4, i, NULL);
        check_line(3 * PIECE, i, NULL);
        check_line(CSV_LINE_MOST + 1, i,
                   "a.csv: line 2: expected at most 16777216 bytes, got 1677");
    }
    check_line(CSV_LINE_MOST, true, NULL);
    check_line(2 * CSV_LINE_MOST, true, "a.csv: line 2: expected at most 16777216 bytes, got more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv_lines__long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
