/* Small contents that their source has as they are: 64 of them are one read, up to one that must be
 * read by itself. */
#include "format/records/record_items.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/read_context.h"
#include "support/random.h"
#include "support/unit.h"

#define RECORDS 200
#define FIRST   130  /* records of the first blob */
#define EACH    1000 /* bytes from record to record, of which some are a gap */
#define CALLS   (2 * RECORDS)

static struct world {
    struct blob blob[2];
    size_t length[RECORDS];
    bool is_doubted[RECORDS], is_absent[RECORDS], is_stale;
    unsigned reads[RECORDS]; /* of read() */
    unsigned pieces[CALLS];  /* of each read of a blob */
    unsigned calls;
} world;

static uint8_t byte_at(uint64_t record, uint64_t off)
{
    return (uint8_t)(31 * record + 7 * off + 1);
}

/* ---- blobs ---- */

static int runs_pread_many(struct read_context *rc, const struct blob *blob,
                           const struct blob_piece *pieces, size_t n)
{
    int r = 0;

    assert_true(world.calls < CALLS);
    world.pieces[world.calls++] = (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        uint64_t record = pieces[i].off / EACH + (blob == &world.blob[1] ? FIRST : 0);

        assert_true(pieces[i].len > 0);
        assert_true(pieces[i].off % EACH + pieces[i].len <= world.length[record]);
        for (size_t k = 0; k < pieces[i].len; k++)
            ((uint8_t *)pieces[i].buf)[k] = byte_at(record, pieces[i].off % EACH + k);
        if (world.is_absent[record]) {
            memset(pieces[i].buf, 0xa5, pieces[i].len);
            r = missing_add(rc, blob, pieces[i].off, pieces[i].len);
        }
    }
    return r;
}

static int runs_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                      uint64_t off, struct diag *d)
{
    (void)d;
    return runs_pread_many(rc, blob, &(struct blob_piece){buf, len, off}, 1);
}

static int runs_check(const struct blob *blob)
{
    (void)blob;
    return world.is_stale ? -ESTALE : 0;
}

static const struct blob_ops blob_ops = {
    .pread = runs_pread, .pread_many = runs_pread_many, .check = runs_check};

/* ---- contents ---- */

static int runs_dims(const struct dataset *ds, const struct record_content *c, uint64_t record,
                     uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    (void)ds;
    (void)c;
    (void)d;
    ret_dim[0] = world.length[record];
    return 0;
}

static bool runs_extent(const struct dataset *ds, const struct record_content *c, uint64_t record,
                        struct extent *ret)
{
    (void)ds;
    (void)c;
    *ret = (struct extent){&world.blob[record >= FIRST], EACH * (record % FIRST),
                           world.length[record]};
    return true;
}

static bool runs_as_is(const struct dataset *ds, const struct record_content *c, uint64_t record,
                       struct extent *ret)
{
    return !world.is_doubted[record] && runs_extent(ds, c, record, ret);
}

static int runs_read(struct read_context *rc, const struct dataset *ds,
                     const struct record_content *c, uint64_t record, uint64_t off, size_t len,
                     uint8_t *dst, struct diag *d)
{
    struct extent e;

    runs_extent(ds, c, record, &e);
    world.reads[record]++;
    return blob_read(rc, e.blob, dst, len, e.off + off, d);
}

static const struct record_ops content_ops = {
    .dims = runs_dims, .read = runs_read, .extent = runs_extent, .as_is = runs_as_is};
static const struct dataset_ops ds_ops = {.extents = records_extents, .locate = records_locate};

/* ---- a dataset ---- */

struct fixture {
    struct record_content content;
    struct memo *memo;
    struct dataset *ds;
    struct selection sel;
    size_t size; /* of all of them as lines */
    uint8_t want[RECORDS * (EACH + 1)], got[RECORDS * (EACH + 1)];
};

/* Each record has 1 to 40 bytes. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t x = RANDOM_SEED;

    world = (struct world){
        .blob = {{.ops = &blob_ops, .name = (char *)"first", .size = EACH * FIRST},
                 {.ops = &blob_ops, .name = (char *)"second", .size = EACH * (RECORDS - FIRST)}}};
    for (unsigned i = 0; i < RECORDS; i++)
        world.length[i] = 1 + random_below(&x, 40);
    f->content = (struct record_content){
        .ops = &content_ops, .dtype = DTYPE_U1, .ndim = 1, .dim = {DIM_VARIES}};
    assert_int_equal(memo_new(1 << 16, &f->memo), 0);
    assert_int_equal(dataset_new(NULL, &ds_ops, malloc(1), 4, 0, &f->ds), 0);
    f->ds->memo = f->memo;
    records_add_byte_arrays(f->ds, &f->content, "x");
    records_add_lines(f->ds, &f->content, "x", "txt");
    assert_int_equal(records_finish(f->ds, RECORDS), 0);
    f->sel = (struct selection){.count = RECORDS, .in_order = true};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    dataset_free(f->ds);
    memo_free(f->memo);
    free(f);
    return 0;
}

static const struct field *field_of(const struct fixture *f, bool lines)
{
    for (size_t i = 0; i < f->ds->n_fields; i++)
        if (f->ds->field[i].form == (lines ? FORM_BYTES : FORM_RAGGED))
            return &f->ds->field[i];
    fail_msg("no such field");
    return NULL;
}

static int read_part(struct fixture *f, bool lines, size_t off, size_t len, struct read_context *rc,
                     struct diag *d)
{
    const struct field *field = field_of(f, lines);

    memset(f->got, 0xee, sizeof(f->got));
    memset(world.reads, 0, sizeof(world.reads));
    world.calls = 0;
    return field->ops->read(rc, f->ds, field, &f->sel, off, len, f->got, d);
}

/* Read all, and expect its bytes. */
static void expect_all(struct fixture *f, bool lines)
{
    f->size = 0;
    for (unsigned i = 0; i < RECORDS; i++) {
        for (size_t k = 0; k < world.length[i]; k++)
            f->want[f->size++] = byte_at(i, k);
        if (lines)
            f->want[f->size++] = '\n';
    }
    assert_int_equal(read_part(f, lines, 0, f->size, READ_WAITS, NULL), 0);
    assert_memory_equal(f->got, f->want, f->size);
}

/* The reads had so many pieces; the last is 0. */
static void expect_pieces(const unsigned *pieces)
{
    unsigned n = 0;

    while (pieces[n])
        n++;
    for (unsigned i = 0; i < n && i < world.calls; i++)
        if (world.pieces[i] != pieces[i])
            fail_msg("read %u: expected %u pieces, got %u", i, pieces[i], world.pieces[i]);
    assert_int_equal(world.calls, n);
}

static unsigned count_reads(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < RECORDS; i++)
        n += world.reads[i];
    return n;
}

UNIT_TEST_WITH(test_runs__small__64_in_a_read_of_one_blob, setup, teardown)
{
    static const unsigned pieces[] = {64, 64, 2, 64, 6, 0};

    for (unsigned lines = 0; lines < 2; lines++) {
        expect_all(*state, lines);
        expect_pieces(pieces);
        assert_int_equal(count_reads(), 0);
    }
}

UNIT_TEST_WITH(test_runs__any_part__its_bytes, setup, teardown)
{
    struct fixture *f = *state;
    uint64_t x = RANDOM_SEED;

    for (unsigned i = 0; i < 400; i++) {
        size_t off, len;

        if (i % 200 == 0)
            expect_all(f, i >= 200);
        off = random_below(&x, f->size);
        len = 1 + random_below(&x, min_u64(f->size - off, i % 2 ? 9 : 3000));
        assert_int_equal(read_part(f, i >= 200, off, len, READ_WAITS, NULL), 0);
        assert_memory_equal(f->got, f->want + off, len);
        assert_int_equal(f->got[len], 0xee);
    }
}

/* Nothing is read of an empty one, and the next run begins after it. */
UNIT_TEST_WITH(test_runs__empty_in_the_middle__ends_one, setup, teardown)
{
    static const unsigned pieces[] = {10, 64, 54, 64, 5, 0};

    world.length[10] = world.length[11] = world.length[RECORDS - 1] = 0;
    for (unsigned lines = 0; lines < 2; lines++) {
        expect_all(*state, lines);
        expect_pieces(pieces);
        assert_int_equal(count_reads(), 0);
    }
}

/* read() looks at its row. */
UNIT_TEST_WITH(test_runs__doubted_in_the_middle__read_by_itself, setup, teardown)
{
    static const unsigned pieces[] = {20, 1, 64, 45, 64, 5, 1, 0};

    world.is_doubted[20] = world.is_doubted[RECORDS - 1] = true;
    for (unsigned lines = 0; lines < 2; lines++) {
        expect_all(*state, lines);
        expect_pieces(pieces);
        assert_int_equal(count_reads(), 2);
        assert_int_equal(world.reads[20], 1);
        assert_int_equal(world.reads[RECORDS - 1], 1);
    }
}

/* All runs are asked for, so all that is missing is noted at once. */
UNIT_TEST_WITH(test_runs__a_piece_is_missing__so_are_those_of_other_runs, setup, teardown)
{
    static const unsigned pieces[] = {64, 64, 2, 64, 6, 0};
    struct fixture *f = *state;

    for (unsigned lines = 0; lines < 2; lines++) {
        struct read_context rc;

        expect_all(f, lines);
        read_context_init(&rc, true);
        world.is_absent[7] = world.is_absent[100] = world.is_absent[150] = true;
        assert_int_equal(read_part(f, lines, 0, f->size, &rc, NULL), -EAGAIN);
        expect_pieces(pieces);
        assert_int_equal(count_reads(), 0);
        assert_int_equal(rc.n, 3);
        assert_int_equal(rc.bytes, world.length[7] + world.length[100] + world.length[150]);
        read_context_release(&rc);
        world.is_absent[7] = world.is_absent[100] = world.is_absent[150] = false;
        expect_all(f, lines);
    }
}

UNIT_TEST_WITH(test_runs__changed_source__estale, setup, teardown)
{
    struct fixture *f = *state;

    expect_all(f, false);
    world.is_stale = true;
    for (unsigned lines = 0; lines < 2; lines++) {
        struct diag d = DIAG_INIT;

        assert_int_equal(read_part(f, lines, 0, 100, READ_WAITS, &d), -ESTALE);
        assert_diag_has(&d, "first");
    }
}
