/* Fields of records, and what a dataset of records does by itself: extents, places, checking. The
 * arrays and texts of these fields are in tests/mount/encodings/case-records.py and the cases of
 * Kaldi. */
#include "format/records/records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/read_context.h"
#include "format/index/index.h"
#include "format/records/record_pictures.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#define RECORDS 5
#define MiB     (UINT64_C(1) << 20)

enum { ARRAY, BOX, IMAGE, WORDS, N_COLUMNS };

static struct world {
    struct blob *blob;
    uint64_t length[N_COLUMNS][RECORDS]; /* of the first axis */
    int fails[N_COLUMNS][RECORDS];       /* -errno of read(), with one text for all contents */
    int no_dims[N_COLUMNS][RECORDS];     /* -errno of dims(), with a text of its own */
    uint64_t read[N_COLUMNS][RECORDS];   /* bytes that were read, from byte 0 */
} world;

static int dims(const struct dataset *ds, const struct record_content *c, uint64_t record,
                uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    (void)ds;
    memcpy(ret_dim, c->dim, sizeof(c->dim));
    if (c->dim[0] == DIM_VARIES)
        ret_dim[0] = world.length[c->column][record];
    return world.no_dims[c->column][record]
               ? diag_set(d, world.no_dims[c->column][record], "column %u of record %llu",
                          c->column, (unsigned long long)record)
               : 0;
}

static int read_content(struct read_context *rc, const struct dataset *ds,
                        const struct record_content *c, uint64_t record, uint64_t off, size_t len,
                        uint8_t *dst, struct diag *d)
{
    (void)rc;
    (void)ds;
    assert_int_equal(off, world.read[c->column][record]);
    assert_true(len > 0 && len <= MiB);
    memset(dst, 1, len); /* the buffer has room */
    world.read[c->column][record] += len;
    return world.fails[c->column][record] ? diag_set(d, world.fails[c->column][record],
                                                     "record %llu", (unsigned long long)record)
                                          : 0;
}

/* A record is 1,000 bytes, a content of it 100. */
static bool extent(const struct dataset *ds, const struct record_content *c, uint64_t record,
                   struct extent *ret)
{
    (void)ds;
    *ret = (struct extent){world.blob, 1000 * record + 100 * c->column, 10};
    return c->dim[0] != DIM_VARIES || world.length[c->column][record] > 0;
}

static void where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                  char ret[static RECORD_WHERE])
{
    (void)ds;
    (void)c;
    snprintf(ret, RECORD_WHERE, "record %llu", (unsigned long long)record);
}

static const struct record_ops content_ops = {
    .dims = dims, .read = read_content, .extent = extent, .where = where};
static const struct dataset_ops ds_ops = {.extents = records_extents, .locate = records_locate};

static const struct index keys = {.rows = RECORDS, .key_most = 7};

/* The contents: int16[n][2], float32[2][3], bytes, text. */
static struct record_content contents[N_COLUMNS];

static struct dataset *open_dataset(void)
{
    struct dataset *ds = NULL;

    world = (struct world){.blob = memory_blob_new("file", "", 0, 10000, NULL)};
    for (unsigned i = 0; i < N_COLUMNS; i++) {
        contents[i] = (struct record_content){.ops = &content_ops,
                                              .column = i,
                                              .is_parsed = true,
                                              .dtype = DTYPE_U1,
                                              .ndim = 1,
                                              .dim = {DIM_VARIES}};
        for (uint64_t k = 0; k < RECORDS; k++)
            world.length[i][k] = k + 1;
    }
    contents[ARRAY].dtype = DTYPE_I2;
    contents[BOX].dtype = DTYPE_F4;
    contents[ARRAY].ndim = contents[BOX].ndim = 2;
    contents[ARRAY].dim[1] = contents[BOX].dim[0] = 2;
    contents[BOX].dim[1] = 3;
    assert_int_equal(dataset_new(NULL, &ds_ops, malloc(1), 20, 1, &ds), 0);
    ds->blob[ds->n_blobs++] = world.blob;
    records_add_arrays(ds, &contents[ARRAY], "points", IN_TAR);
    records_add_item(ds, &contents[BOX], "box", IN_ARRAYS);
    records_add_byte_arrays(ds, &contents[IMAGE], "image");
    records_add_bytes(ds, &contents[IMAGE], "image", "raw", "jpg", IN_FILE_SAMPLES);
    records_add_strings(ds, &contents[WORDS], "words");
    records_add_lines(ds, &contents[WORDS], "words", "txt");
    records_add_keys(ds);
    ds->keys = &keys;
    assert_int_equal(records_finish(ds, ds->keys->rows), 0);
    return ds;
}

UNIT_TEST(test_records__contents_of_each_kind__their_fields)
{
    static const struct {
        const char *name;
        enum field_form form;
        enum dtype dtype;
        unsigned ndim;
        uint64_t item_bytes;
        const char *ext;
    } want[] = {
        {"points", FORM_RAGGED, DTYPE_I2, 2, 2, ""},
        {"points", FORM_PADDED, DTYPE_I2, 0, 2, ""},
        {"points_len", FORM_LENGTHS, DTYPE_I8, 0, 8, ""},
        {"points_offsets", FORM_OFFSETS, DTYPE_I8, 0, 8, ""},
        {"box", FORM_ITEM, DTYPE_F4, 2, 24, ""},
        {"image", FORM_RAGGED, DTYPE_U1, 1, 1, ""},
        {"image_offsets", FORM_OFFSETS, DTYPE_I8, 0, 8, ""},
        {"image", FORM_BYTES, DTYPE_U1, 0, 1, "jpg"},
        {"words", FORM_TEXT, DTYPE_TEXT, 0, 0, ""},
        {"words", FORM_BYTES, DTYPE_U1, 0, 1, "txt"},
        {"key", FORM_BYTES, DTYPE_U1, 0, 1, "txt"},
    };
    AUTO_DATASET struct dataset *ds = open_dataset();

    assert_int_equal(ds->samples, RECORDS);
    assert_int_equal(ds->n_fields, ARRAY_LEN(want) + 2);
    for (unsigned i = 0; i < ARRAY_LEN(want); i++) {
        const struct field *f = &ds->field[i];

        assert_string_equal(f->name, want[i].name);
        assert_int_equal(f->form, want[i].form);
        assert_int_equal(f->dtype, want[i].dtype);
        assert_int_equal(f->ndim, want[i].ndim);
        assert_int_equal(f->item_bytes, want[i].item_bytes);
        assert_string_equal(f->ext, want[i].ext);
        assert_false(f->mixed);
    }
    assert_int_equal(dataset_field(ds, "box")->dim[1], 3);
    assert_true(dataset_field(ds, "points")->dim[0] == DIM_VARIES);
    assert_string_equal(ds->field[ds->n_fields - 1].name, "key");
    assert_int_equal(ds->field[ds->n_fields - 1].width, 7); /* of the longest key */
}

/* Where a later axis also differs, some batches cannot be one array. */
UNIT_TEST(test_records__later_axis_varies__mixed)
{
    AUTO_DATASET struct dataset *ds = NULL;

    contents[ARRAY].ops = &content_ops;
    contents[ARRAY].ndim = 2;
    contents[ARRAY].dim[0] = contents[ARRAY].dim[1] = DIM_VARIES;
    assert_int_equal(dataset_new(NULL, &ds_ops, malloc(1), 4, 1, &ds), 0);
    records_add_arrays(ds, &contents[ARRAY], "points", 0);
    ds->keys = &keys;
    assert_int_equal(records_finish(ds, ds->keys->rows), 0);
    for (unsigned i = 0; i < ds->n_fields; i++)
        assert_true(ds->field[i].mixed);
}

/* dims() of arrays of two axes that both differ: record i has length[ARRAY][i] x length[BOX][i]. */
static int dims_of_two(const struct dataset *ds, const struct record_content *c, uint64_t record,
                       uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    (void)ds;
    (void)c;
    (void)d;
    ret_dim[0] = world.length[ARRAY][record];
    ret_dim[1] = world.length[BOX][record];
    return 0;
}

/* The forms of the fields for samples [first, first + count), as text; of one that has none, why.
 */
static void assert_forms(const struct dataset *ds, uint64_t first, uint64_t count, const char *want)
{
    const struct selection sel = {.count = count, .in_order = true, .first = first};
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < ds->n_fields; i++) {
        struct form form;
        uint64_t bytes;
        int r = field_form(ds, &ds->field[i], &sel, &form, &bytes);

        text_add(&t, "%s%s ", i ? "; " : "", ds->field[i].name);
        if (r < 0)
            text_add(&t, "%s", r == -ENODATA ? "none" : r == -EFBIG ? "too large" : "fails");
        else
            form_shape_text(&form, &t);
    }
    assert_string_equal(t.data, want);
}

UNIT_TEST(test_records_pads_axes__forms_follow_from_the_batch)
{
    static const struct record_ops two_ops = {
        .dims = dims_of_two, .read = read_content, .extent = extent, .where = where};
    static const uint64_t rows[RECORDS] = {2, 3, 0, 1, UINT64_C(1) << 40};
    static const uint64_t columns[RECORDS] = {4, 4, 9, UINT64_C(1) << 40, 5};
    AUTO_DATASET struct dataset *ds = NULL;

    memcpy(world.length[ARRAY], rows, sizeof(rows));
    memcpy(world.length[BOX], columns, sizeof(columns));
    contents[ARRAY] = (struct record_content){.ops = &two_ops,
                                              .column = ARRAY,
                                              .pads_axes = true,
                                              .dtype = DTYPE_I2,
                                              .ndim = 2,
                                              .dim = {DIM_VARIES, DIM_VARIES}};
    assert_int_equal(dataset_new(NULL, &ds_ops, malloc(1), 5, 1, &ds), 0);
    records_add_arrays(ds, &contents[ARRAY], "points", 0);
    ds->keys = &keys;
    assert_int_equal(records_finish(ds, ds->keys->rows), 0);
    for (unsigned i = 0; i < ds->n_fields; i++)
        assert_false(ds->field[i].mixed);
    assert_forms(ds, 0, 3, /* one without rows fits with any other */
                 "points (5, 4); points (3, 3, 4); points_len (3,); points_offsets (4,); "
                 "points_shape none");
    assert_forms(ds, 2, 1,
                 "points (0, 9); points (1, 0, 9); points_len (1,); points_offsets (2,); "
                 "points_shape none");
    assert_forms(ds, 1, 3,
                 "points (1099511627788,); points (3, 3, 1099511627776); points_len (3, 2); "
                 "points_offsets (4,); points_shape (3, 2)");
    assert_forms(ds, 3, 2, /* 2^81 elements */
                 "points (6597069766656,); points too large; points_len (2, 2); "
                 "points_offsets (3,); points_shape (2, 2)");
}

/* Each content once, though several fields show it; lengths are known without reading. */
UNIT_TEST(test_records_extents__all_and_one_field__its_bytes)
{
    AUTO_DATASET struct dataset *ds = open_dataset();
    struct extent found[EXTENTS_MOST];
    AUTO_TEXT struct text t = {0};

    assert_int_equal(records_extents(ds, 3, NULL, found), N_COLUMNS);
    for (unsigned i = 0; i < N_COLUMNS; i++) {
        assert_ptr_equal(found[i].blob, world.blob);
        assert_int_equal(found[i].off, 3000 + 100 * i);
    }
    world.length[IMAGE][3] = 0;
    assert_int_equal(records_extents(ds, 3, NULL, found), N_COLUMNS - 1);
    assert_int_equal(records_extents(ds, 3, dataset_field(ds, "image"), found), 0);
    assert_int_equal(records_extents(ds, 3, dataset_field(ds, "points_len"), found), 0);
    assert_int_equal(records_extents(ds, 3, dataset_field(ds, "points_offsets"), found), 0);
    assert_int_equal(records_extents(ds, 3, dataset_field(ds, "key"), found), 0);
    assert_int_equal(records_extents(ds, 2, dataset_field(ds, "words"), found), 1);
    assert_int_equal(found[0].off, 2300);
    records_locate(ds, 3, NULL, &t);
    assert_string_equal(t.data, "file:3000+10,file:3100+10,file:3300+10");
}

struct reports {
    unsigned n;
    char text[8][64];
};

static void note(void *ctx, const char *text)
{
    struct reports *reports = ctx;

    assert_true(reports->n < ARRAY_LEN(reports->text));
    snprintf(reports->text[reports->n++], sizeof(reports->text[0]), "%s", text);
}

/* A check reads every byte of a parsed content once, a piece at a time. */
UNIT_TEST(test_records_check__large_content__read_whole)
{
    AUTO_DATASET struct dataset *ds = open_dataset();
    struct reports reports = {0};
    struct diag d = DIAG_INIT;

    world.length[IMAGE][1] = 3 * MiB + 5;
    contents[WORDS].is_parsed = false;
    assert_int_equal(records_check(ds, note, &reports, &d), 0);
    assert_int_equal(reports.n, 0);
    for (uint64_t k = 0; k < RECORDS; k++) {
        assert_int_equal(world.read[ARRAY][k], 4 * (k + 1));
        assert_int_equal(world.read[BOX][k], 24);
        assert_int_equal(world.read[IMAGE][k], world.length[IMAGE][k]);
        assert_int_equal(world.read[WORDS][k], 0);
    }
}

UNIT_TEST(test_records_check__faults__each_once_for_a_record)
{
    AUTO_DATASET struct dataset *ds = open_dataset();
    struct reports reports = {0};
    struct diag d = DIAG_INIT;

    world.fails[ARRAY][1] = world.fails[BOX][1] = -EBADMSG; /* one text */
    world.fails[ARRAY][2] = -EBADMSG;
    world.no_dims[WORDS][2] = -EBADMSG; /* another text */
    world.fails[IMAGE][4] = -EIO;
    assert_int_equal(records_check(ds, note, &reports, &d), 0);
    assert_int_equal(reports.n, 4);
    assert_string_equal(reports.text[0], "record 1");
    assert_string_equal(reports.text[1], "record 2");
    assert_string_equal(reports.text[2], "column 3 of record 2");
    assert_string_equal(reports.text[3], "record 4");
}

/* A remote that is gone says nothing of the records behind it. */
UNIT_TEST(test_records_check__remote_gone__ends_and_reports_none)
{
    AUTO_DATASET struct dataset *ds = open_dataset();
    struct reports reports = {0};
    struct diag d = DIAG_INIT;

    world.fails[BOX][2] = -EREMOTEIO;
    world.fails[ARRAY][3] = -EBADMSG;
    assert_int_equal(records_check(ds, note, &reports, &d), -EREMOTEIO);
    assert_diag_has(&d, "record 2");
    assert_int_equal(reports.n, 0);
}

static void memo_scope_free(struct memo **memo)
{
    memo_free(*memo);
}

/* Contents that are costly to make: what they were asked for. */
static struct makes {
    unsigned calls, n, n_needed, reads;
    uint64_t record[RECORD_MAKES], is_made;
    int result;
} makes;

static int make_dims(const struct dataset *ds, const struct record_content *c, uint64_t record,
                     uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    (void)ds;
    (void)d;
    memcpy(ret_dim, c->dim, sizeof(c->dim));
    ret_dim[0] = record == 3 && c->dim[0] == DIM_VARIES ? 0 : 2;
    return 0;
}

static int make_read(struct read_context *rc, const struct dataset *ds,
                     const struct record_content *c, uint64_t record, uint64_t off, size_t len,
                     uint8_t *dst, struct diag *d)
{
    (void)rc;
    (void)ds;
    (void)c;
    (void)d;
    makes.reads++;
    for (size_t i = 0; i < len; i++)
        dst[i] = (uint8_t)(10 * record + off + i);
    return 0;
}

static bool is_made(const struct dataset *ds, const struct record_content *c, uint64_t record)
{
    (void)ds;
    (void)c;
    return makes.is_made >> record & 1;
}

static int make(struct read_context *rc, const struct dataset *ds, const struct record_content *c,
                const uint64_t *record, unsigned n, unsigned n_needed)
{
    (void)rc;
    (void)ds;
    assert_true(n <= c->make_at_once);
    memcpy(makes.record, record, n * sizeof(*record));
    makes.calls++;
    makes.n = n;
    makes.n_needed = n_needed;
    for (unsigned i = 0; i < n; i++)
        makes.is_made |= UINT64_C(1) << record[i];
    return makes.result;
}

static const struct record_ops make_ops = {
    .dims = make_dims, .read = make_read, .where = where, .is_made = is_made, .make = make};

/* Read bytes of the field of a dataset of contents [2]: stacked, or with a hole at record 3. */
static int read_made(struct read_context *rc, bool has_holes, const uint64_t *list, size_t n,
                     uint64_t off, size_t len, uint8_t *dst)
{
    struct record_content content = {.ops = &make_ops,
                                     .make_at_once = 4,
                                     .dtype = DTYPE_U1,
                                     .ndim = 1,
                                     .dim = {has_holes ? DIM_VARIES : 2}};
    struct selection sel = {.count = n, .list = list};
    AUTO_DATASET struct dataset *ds = NULL;
    AUTO(memo_scope_free) struct memo *memo = NULL;

    assert_int_equal(memo_new(1 << 16, &memo), 0);
    assert_int_equal(dataset_new(NULL, &ds_ops, malloc(1), 4, 0, &ds), 0);
    ds->memo = memo;
    if (has_holes)
        records_add_arrays(ds, &content, "image", 0);
    else
        records_add_item(ds, &content, "image", IN_ARRAYS);
    assert_int_equal(records_finish(ds, 8), 0);
    return ds->field[0].ops->read(rc, ds, &ds->field[0], &sel, off, len, dst, NULL);
}

UNIT_TEST(test_records__costly_contents__made_together_ahead)
{
    static const uint64_t list[] = {7, 1, 4, 0, 2, 6};
    uint8_t got[12];

    /* One byte of the second: it and what follows, of which one is needed. */
    makes = (struct makes){0};
    assert_int_equal(read_made(NULL, false, list, 6, 3, 1, got), 0);
    assert_int_equal(got[0], 11);
    assert_int_equal(makes.calls, 1);
    assert_int_equal(makes.n, 4);
    assert_int_equal(makes.n_needed, 1);
    assert_memory_equal(makes.record, (&(uint64_t[]){1, 4, 0, 2}), 4 * sizeof(uint64_t));
    /* The next pieces need no more, until what follows was not made: all that there is. */
    assert_int_equal(read_made(NULL, false, list, 6, 4, 6, got), 0);
    assert_int_equal(makes.calls, 1);
    assert_int_equal(read_made(NULL, false, list, 6, 0, 12, got), 0);
    assert_int_equal(makes.calls, 2); /* from the first on: not 1, 4, 0 again */
    assert_memory_equal(got, (&(uint8_t[]){70, 71, 10, 11, 40, 41, 0, 1, 20, 21, 60, 61}), 12);
    /* What comes after one that is made is also made together. */
    makes = (struct makes){.is_made = UINT64_C(1) << 7};
    assert_int_equal(read_made(NULL, false, list, 6, 0, 10, got), 0);
    assert_int_equal(makes.calls, 1);
    assert_int_equal(makes.n_needed, 4);
    assert_memory_equal(makes.record, (&(uint64_t[]){1, 4, 0, 2}), 4 * sizeof(uint64_t));
    /* A file of one sample makes one. */
    makes = (struct makes){0};
    assert_int_equal(read_made(NULL, false, list, 1, 0, 2, got), 0);
    assert_int_equal(makes.calls, 0);
}

UNIT_TEST(test_records__costly_contents_are_missing__noted_once)
{
    static const uint64_t list[] = {7, 1, 4, 0, 2, 6};
    struct read_context rc;
    uint8_t got[12];

    read_context_init(&rc, true);
    makes = (struct makes){.result = -EAGAIN};
    assert_int_equal(read_made(&rc, false, list, 6, 1, 4, got), -EAGAIN);
    assert_int_equal(makes.calls, 1);
    assert_int_equal(makes.n_needed, 3);
    assert_int_equal(makes.reads, 0); /* what makes them has noted what is missing */
    read_context_release(&rc);
}

UNIT_TEST(test_records__costly_contents_with_holes__made_together)
{
    static const uint64_t list[] = {5, 3, 1};
    uint8_t got[4];

    makes = (struct makes){0};
    assert_int_equal(read_made(NULL, true, list, 3, 0, 4, got), 0);
    assert_memory_equal(got, (&(uint8_t[]){50, 51, 10, 11}), 4);
    assert_int_equal(makes.calls, 1);
    assert_int_equal(makes.n, 3);
}

/* ---- pictures and their masks ---- */

UNIT_TEST(test_masks__several__first_that_no_record_lacks)
{
    static const struct record_column column[] = {
        {.ext = "jpg"},
        {.ext = "seg.txt", .is_target = true},
        {.ext = "part.png", .is_target = true, .has_holes = true},
        {.ext = "mask.png", .is_target = true},
        {.ext = "gt.png", .is_target = true},
        {.ext = "other.png"}};
    static const unsigned found[] = {0};
    AUTO_NOTES struct notes notes = {0};

    assert_int_equal(record_pictures_find_mask(column, ARRAY_LEN(column), found, 1, &notes), 3);
    assert_int_equal(notes.n, 2);
    assert_notes_have(&notes, "there is no mask: some samples have no .part.png");
    assert_notes_have(&notes, "mask shows .mask.png, and not .gt.png");
}
