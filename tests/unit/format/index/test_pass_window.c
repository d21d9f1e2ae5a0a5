/* What a pass reads: little after a hop, ever more where headers are near to each other, never
 * behind the end that it is given, and always the right bytes. */
#include <errno.h>

#include "base/scope.h"
#include "format/index/pass_window.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#define SIZE 100000

struct reads {
    struct blob *blob;
    uint8_t bytes[SIZE];
    struct pass_window w;
};

static void begin(struct reads *r, struct blob_faults *faults)
{
    *r = (struct reads){.w = {.least = 100, .most = 1000}};
    for (size_t i = 0; i < SIZE; i++)
        r->bytes[i] = (uint8_t)(i % 251);
    r->blob = memory_blob_new("x", r->bytes, SIZE, SIZE, faults);
    assert_non_null(r->blob);
}

static void end(struct reads *r)
{
    pass_window_release(&r->w);
    blob_free(r->blob);
}

/* Returns how many bytes it has then. */
static size_t look(struct reads *r, uint64_t at, uint64_t len, uint64_t last)
{
    const uint8_t *found;
    struct diag d = DIAG_INIT;

    assert_int_equal(pass_window_at(&r->w, r->blob, at, len, last, &found, &d), 0);
    assert_memory_equal(found, r->bytes + at, (size_t)len);
    assert_true(pass_window_has(&r->w, at, len));
    assert_true(pass_window_end(&r->w) <= last);
    return r->w.have;
}

UNIT_TEST(test_window__near__reads_more)
{
    struct reads r;

    begin(&r, NULL);
    assert_int_equal(look(&r, 0, 8, SIZE), 100);
    assert_int_equal(look(&r, 92, 8, SIZE), 100); /* it has these */
    assert_int_equal(look(&r, 93, 8, SIZE), 200); /* not all of these */
    assert_int_equal(look(&r, 300, 8, SIZE), 400);
    assert_int_equal(look(&r, 4000, 8, SIZE), 800); /* a small gap */
    assert_int_equal(look(&r, 4800, 8, SIZE), 1000);
    assert_int_equal(look(&r, 50000, 8, SIZE), 100); /* a hop */
    assert_int_equal(look(&r, 10, 8, SIZE), 100);    /* back */
    end(&r);
}

UNIT_TEST(test_window__end__reads_no_further)
{
    struct reads r;

    begin(&r, NULL);
    assert_int_equal(look(&r, 10, 8, 50), 40);
    assert_int_equal(look(&r, SIZE - 8, 8, SIZE), 8);
    assert_int_equal(look(&r, 7, 5000, SIZE), 5000); /* more than the most */
    assert_int_equal(look(&r, 7, SIZE - 7, SIZE), SIZE - 7);
    end(&r);
}

UNIT_TEST(test_window__read_fails__has_nothing)
{
    struct blob_faults faults = {.fail_read = 2};
    const uint8_t *found;
    struct diag d = DIAG_INIT;
    struct reads r;

    begin(&r, &faults);
    look(&r, 0, 8, SIZE);
    assert_int_equal(pass_window_at(&r.w, r.blob, 500, 8, SIZE, &found, &d), -EIO);
    assert_false(pass_window_has(&r.w, 0, 1));
    assert_false(pass_window_has(&r.w, 500, 1));
    end(&r);
}
