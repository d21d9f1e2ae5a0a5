/* Files that are made whole before they are read. */
#include <errno.h>
#include <string.h>

#include "base/blob.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/layout.h"
#include "support/unit.h"

#define HEAD 4096
#define BODY 100000

static int is_same(const struct blob *blob)
{
    (void)blob;
    return 0;
}

static const struct blob_ops ops = {.check = is_same};
static struct blob blob[LAYOUT_USED];
static unsigned n_blobs;

/* The samples are from n_blobs files. */
static int read_body(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                     size_t len, uint8_t *dst, struct diag *d)
{
    (void)l;
    (void)p;
    (void)off;
    for (unsigned i = 0; i < n_blobs; i++) {
        blob[i].ops = &ops;
        assert_int_equal(blob_used(rc, &blob[i], d), 0);
    }
    memset(dst, 7, len);
    return 0;
}

/* The head needs a checksum of the body, as that of a member of an npz does. */
static int read_head(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                     size_t len, uint8_t *dst, struct diag *d)
{
    uint32_t sum = 0;
    int r = layout_checksum(rc, l, p->size, l->size - p->size, 0, 0, layout_update_crc32, &sum, d);

    (void)off;
    memset(dst, 1, len);
    return r;
}

UNIT_TEST(test_layout__made_from_many_files__memory_stays_until_the_end)
{
    static const struct {
        unsigned n_blobs;
        int result;
    } cases[] = {{1, 0}, {LAYOUT_USED - 1, 0}, {LAYOUT_USED, -EFBIG}};
    static const struct layout_host host;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct selection sel = {0};
        AUTO(read_context_release) struct read_context rc;
        AUTO_LAYOUT struct layout l;

        n_blobs = cases[i].n_blobs;
        read_context_init(&rc, false);
        rc.checks_late = true;
        layout_init(&l, NULL, &sel, &host);
        assert_int_equal(layout_add(&l, &(struct part){.size = HEAD, .read = read_head}), 0);
        assert_int_equal(layout_add(&l, &(struct part){.size = BODY, .read = read_body}), 0);
        assert_int_equal(layout_make(&rc, &l, NULL), cases[i].result);
        assert_int_equal(l.is_whole, cases[i].result == 0);
        if (l.is_whole)
            assert_true(l.made[0] == 1 && l.made[HEAD] == 7 && l.made[HEAD + BODY - 1] == 7);
        else
            assert_null(l.made);
    }
}
