/* Fields whose samples are stored in several places, and a step apart: where a sample is, what a
 * file of many shows, and which samples a range of bytes has. */
#include <string.h>

#include "base/read_context.h"
#include "format/core/dataset.h"
#include "format/core/extents.h"
#include "support/memory_blob.h"
#include "support/unit.h"

/* Two blobs; samples of 3 bytes, 2 apart: 0 1 2 of the first, from byte 1; 3 4 of the second. */
static const char text_a[] = ".abcdefg", text_b[] = "vwxyz";

struct fixture {
    struct blob *blob[2];
    struct field_run run[2];
    struct field field;
    struct dataset ds;
};

static void fixture_make(struct fixture *x)
{
    x->blob[0] = memory_blob_new("a", text_a, 8, 8, NULL);
    x->blob[1] = memory_blob_new("b", text_b, 5, 5, NULL);
    x->run[0] = (struct field_run){0, x->blob[0], 1};
    x->run[1] = (struct field_run){3, x->blob[1], 0};
    x->field = (struct field){.name = "f",
                              .ops = &field_as_stored,
                              .dtype = DTYPE_U1,
                              .width = 1,
                              .stored_width = 1,
                              .item_bytes = 3,
                              .stored_bytes = 3,
                              .stored_step = 2,
                              .blob = x->blob[0],
                              .offset = 1,
                              .run = x->run,
                              .n_runs = 2};
    x->ds = (struct dataset){.n_fields = 1, .field = &x->field, .samples = 5};
}

static void fixture_end(struct fixture *x)
{
    blob_free(x->blob[0]);
    blob_free(x->blob[1]);
}

UNIT_TEST(test_reads_any_range)
{
    static const char whole[] = "abccdeefgvwxxyz";
    struct selection sel = {.count = 5, .in_order = true};
    struct diag d = DIAG_INIT;
    AUTO(fixture_end) struct fixture x;

    fixture_make(&x);
    for (size_t off = 0; off < 15; off++)
        for (size_t len = 1; len <= 15 - off; len++) {
            uint8_t got[15];

            assert_int_equal(
                field_as_stored.read(READ_WAITS, &x.ds, &x.field, &sel, off, len, got, &d), 0);
            assert_memory_equal(got, whole + off, len);
        }
}

UNIT_TEST(test_shuffled)
{
    static const uint64_t list[] = {4, 3, 0, 1, 4};
    struct selection sel = {.count = 5, .list = list};
    struct diag d = DIAG_INIT;
    AUTO(fixture_end) struct fixture x;
    uint8_t got[15];

    fixture_make(&x);
    assert_int_equal(field_read_stored(READ_WAITS, &x.field, &sel, 0, 15, got, &d), 0);
    assert_memory_equal(got, "xyzvwxabccdexyz", 15);
}

UNIT_TEST(test_places)
{
    struct extent extent[EXTENTS_MOST];
    AUTO_TEXT struct text t = {0};
    AUTO(fixture_end) struct fixture x;
    uint64_t off;

    fixture_make(&x);
    assert_ptr_equal(field_place(&x.field, 2, &off), x.blob[0]);
    assert_int_equal(off, 5);
    assert_ptr_equal(field_place(&x.field, 4, &off), x.blob[1]);
    assert_int_equal(off, 2);
    assert_int_equal(dataset_extents(&x.ds, 3, NULL, extent), 1);
    assert_ptr_equal(extent[0].blob, x.blob[1]);
    assert_int_equal(extent[0].off, 0);
    dataset_locate(&x.ds, 4, NULL, &t);
    assert_string_equal(t.data, "b:2+3");
}

/* For each range of each blob: the samples that have a byte of it, one by one. */
UNIT_TEST(test_samples_of_bytes)
{
    AUTO(fixture_end) struct fixture x;

    fixture_make(&x);
    for (unsigned b = 0; b < 2; b++)
        for (uint64_t off = 0; off < x.blob[b]->size; off++)
            for (uint64_t len = 1; len <= x.blob[b]->size - off; len++) {
                uint64_t want_first = UINT64_MAX, want_last = 0, first, last;

                for (uint64_t s = 0; s < 5; s++) {
                    uint64_t at;

                    if (field_place(&x.field, s, &at) != x.blob[b] || at >= off + len ||
                        at + 3 <= off)
                        continue;
                    want_first = want_first < s ? want_first : s;
                    want_last = s;
                }
                assert_int_equal(field_samples_at(&x.field, x.blob[b], off, len, &first, &last),
                                 want_first != UINT64_MAX);
                if (want_first != UINT64_MAX) {
                    assert_int_equal(first, want_first);
                    /* what follows the last sample is not known to the field */
                    assert_int_equal(last < 5 ? last : 4, want_last);
                }
            }
}
