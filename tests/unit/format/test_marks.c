/* A byte order mark belongs to no sample, whichever read of a remote file fails first. */
#include "format/core/dataset.h"
#include "support/unit.h"
#include "support/worlds.h"

/* Where the first sample, and the last, are in the file. */
static void check_places(const struct world *w, uint64_t at)
{
    const struct dataset *ds = w->found.item[0].ds;
    AUTO_TEXT struct text first = {0}, last = {0};

    assert_int_equal(dataset_state(ds), DATASET_READY);
    assert_int_equal(ds->samples, 200);
    if (ds->ops->locate) {
        dataset_locate(ds, 0, NULL, &first);
        if (!strstr(first.data, ":3+") && !strstr(first.data, ":7+")) /* behind the header of CSV */
            fail_msg("read %llu fails: sample 0 is at %s", (unsigned long long)at, first.data);
    }
}

static void check_text(bool csv)
{
    AUTO(source_release) struct world_source s = {.n = 0};
    unsigned troubles = 0;

    source_text(&s, csv);
    for (uint64_t at = 1;; at++) {
        AUTO_WORLD struct world w = {.absent = {.fail_read = at, .fail_times = 1}};

        world_open(&w, &s, true);
        if (w.absent.reads < at)
            break;
        troubles += w.troubles;
        if (w.result == 0 && w.found.n && w.found.item[0].ds)
            check_places(&w, at);
    }
    assert_true(troubles > 0);
}

UNIT_TEST(test_mark__jsonl_read_fails__not_in_a_sample)
{
    check_text(false);
}

UNIT_TEST(test_mark__csv_read_fails__not_in_a_sample)
{
    check_text(true);
}
