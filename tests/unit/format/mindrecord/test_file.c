/* A file with holes: what is read of it; and packed integers. */
#include "format/mindrecord/file.h"
#include "support/one_store.h"
#include "support/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"

/* ---- a file of 48 MiB, nearly all of it holes ---- */

#define HEADER_SIZE (UINT64_C(16) << 20)
#define PAGE_SIZE   (UINT64_C(32) << 20)
#define ROWS        64
#define BLOBS       (ROWS * (8 + 3)) /* used bytes of page 0 */
#define PASS_READS  5                /* of windows: blobs two, raw rows three */
#define RAWS        (ROWS * (8 + 4)) /* of page 1 */

static const char json[] =
    "{\"header_size\":16777216,\"page_size\":33554432,\"version\":\"3.0\",\"shard_id\":0,\"shard_"
    "addresses\":[\"x\"],\"schema\":[{\"blob_fields\":[\"b\"],\"schema\":{\"b\":{\"type\":"
    "\"bytes\"},\"n\":{\"type\":\"int32\"}}}],\"page\":[{\"page_id\":0,\"page_type\":\"BLOB_DATA\","
    "\"page_type_id\":0,\"start_row_id\":0,\"end_row_id\":64,\"page_size\":704},{\"page_id\":1,"
    "\"page_type\":\"RAW_DATA\",\"page_size\":768,\"row_group_ids\":[{\"id\":0,\"offset\":0}]}]}";

struct part {
    uint64_t at;
    size_t len;
    uint8_t bytes[1024];
};

struct holed {
    struct blob blob;
    struct part part[3];
    unsigned reads, in_holes;
    unsigned fails; /* the read that fails once, from 1; 0: none */
};

static int holed_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                       uint64_t off, struct diag *d)
{
    struct holed *h = (struct holed *)(uintptr_t)blob;

    (void)rc;
    (void)d;
    if (++h->reads == h->fails)
        return -EREMOTEIO;
    for (size_t i = 0; i < ARRAY_LEN(h->part); i++) {
        const struct part *p = &h->part[i];

        if (off < p->at || off - p->at > p->len || len > p->len - (off - p->at))
            continue;
        memcpy(buf, p->bytes + (off - p->at), len);
        return 0;
    }
    h->in_holes++;
    memset(buf, 0, len);
    return 0;
}

static int holed_check(const struct blob *blob)
{
    (void)blob;
    return 0;
}

static int holed_identity(const struct blob *blob, char **ret)
{
    (void)blob;
    *ret = strdup("holed");
    return *ret ? 0 : -ENOMEM;
}

static void holed_free(struct blob *blob)
{
    (void)blob;
}

static const struct blob_ops holed_ops = {
    .pread = holed_pread, .check = holed_check, .identity = holed_identity, .free = holed_free};

static void make_holed(struct holed *h)
{
    struct part *header = &h->part[0], *blobs = &h->part[1], *raws = &h->part[2];

    *h = (struct holed){0};
    header->len = 8 + strlen(json);
    store_le64(header->bytes, strlen(json));
    memcpy(header->bytes + 8, json, strlen(json));
    blobs->at = HEADER_SIZE;
    raws->at = HEADER_SIZE + PAGE_SIZE;
    for (uint8_t i = 0; i < ROWS; i++) {
        const uint8_t row[4] = {0x81, 0xa1, 'n', i};

        store_le64(blobs->bytes + blobs->len, 3);
        memset(blobs->bytes + blobs->len + 8, 'a' + i % 26, 3);
        blobs->len += 11;
        store_le64(raws->bytes + raws->len, 4);
        memcpy(raws->bytes + raws->len + 8, row, 4);
        raws->len += 12;
    }
    assert_int_equal(blobs->len, BLOBS);
    assert_int_equal(raws->len, RAWS);
    h->blob = (struct blob){
        .ops = &holed_ops, .name = (char *)(uintptr_t) "x", .size = raws->at + raws->len};
}

/* ---- its dataset ---- */

static struct dataset *found;

static int take_dataset(struct finds *finds, const char *name, struct dataset *ds)
{
    (void)finds;
    assert_string_equal(name, "x");
    found = ds;
    return 0;
}

static void open_holed(struct holed *h)
{
    struct finds finds = {.dataset = take_dataset};
    const struct format_setup setup = {.keep = &no_store};
    struct source_file file = {.name = "x", .file_name = "x", .folder = "", .blob = &h->blob};

    make_holed(h);
    assert_int_equal(format_open_folder(&format_mindrecord, &file, 1, &setup, &finds), 0);
    assert_non_null(found);
}

/* The bytes of each row exist. */
static void check_rows(void)
{
    unsigned fields = 0;

    assert_int_equal(found->samples, ROWS);
    for (unsigned i = 0; i < found->n_fields; i++) {
        const struct field *f = &found->field[i];

        if (f->form != FORM_BYTES || strcmp(f->name, "b") != 0)
            continue;
        fields++;
        for (unsigned row = 0; row < ROWS; row++) {
            const char letter = (char)('a' + row % 26), want[3] = {letter, letter, letter};
            struct one_sample one;
            uint8_t got[3];

            one_sample_init(&one, row);
            assert_int_equal(f->ops->read(READ_WAITS, found, f, &one.sel, 0, 3, got, NULL), 0);
            assert_memory_equal(got, want, 3);
        }
    }
    assert_int_equal(fields, 1);
}

static void test_file__with_holes__reads_only_pages(void **state)
{
    struct holed h;
    unsigned at_open;

    (void)state;
    open_holed(&h);
    at_open = h.reads;
    while (!dataset_prepare(found))
        ;
    assert_int_equal(dataset_state(found), DATASET_READY);
    assert_true(h.reads - at_open <= PASS_READS);
    check_rows();
    assert_int_equal(h.in_holes, 0);
    dataset_free(found);
    found = NULL;
}

/* The pass goes on where it was when bytes could not be fetched for a moment. */
static void test_file__a_read_fails_once__goes_on(void **state)
{
    struct holed h;

    (void)state;
    for (unsigned i = 1; i <= PASS_READS; i++) {
        open_holed(&h);
        h.fails = h.reads + i;
        while (!dataset_prepare(found))
            ;
        assert_int_equal(dataset_state(found), DATASET_READY);
        assert_true(h.reads > h.fails);
        check_rows();
        dataset_free(found);
        found = NULL;
    }
}

/* ---- packed integers ---- */

static void test_unpack__all_widths__as_they_are(void **state)
{
    /* 1, -2, 300, -70000, 2^40: of 1, 1, 2, 4, 8 bytes */
    static const uint8_t packed[] = {0,    0,    0,    5, 0x06, 0xc0, 1, 0xfe, 0x2c, 0x01, 0x90,
                                     0xee, 0xfe, 0xff, 0, 0,    0,    0, 0,    1,    0,    0};
    static const int64_t want[] = {1, -2, 300, -70000, INT64_C(1) << 40};
    uint8_t got[40];

    (void)state;
    assert_true(mindrecord_unpack(packed, sizeof(packed), 5, 8, got));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal((int64_t)load_le64(got + 8 * i), want[i]);
    assert_false(mindrecord_unpack(packed, sizeof(packed), 5, 4, got)); /* 2^40 */
    assert_false(mindrecord_unpack(packed, sizeof(packed), 4, 8, got)); /* not its count */
    for (size_t len = 0; len < sizeof(packed); len++)
        assert_false(mindrecord_unpack(packed, len, 5, 8, got));
}

static void test_unpack__int32__has_its_range(void **state)
{
    static const uint8_t least[] = {0, 0, 0, 1, 0x80, 0, 0, 0, 0x80};
    static const uint8_t below[] = {0,    0,    0,    1,    0xc0, 0xff, 0xff,
                                    0xff, 0x7f, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t more[] = {0, 0, 0, 1, 0, 7, 7}, none[] = {0, 0, 0, 0};
    uint8_t got[8];

    (void)state;
    assert_true(mindrecord_unpack(least, sizeof(least), 1, 4, got));
    assert_int_equal((int32_t)load_le32(got), INT32_MIN);
    assert_false(mindrecord_unpack(below, sizeof(below), 1, 4, got));
    assert_false(mindrecord_unpack(more, sizeof(more), 1, 4, got));
    assert_true(mindrecord_unpack(none, sizeof(none), 0, 4, got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file__with_holes__reads_only_pages),
        cmocka_unit_test(test_file__a_read_fails_once__goes_on),
        cmocka_unit_test(test_unpack__all_widths__as_they_are),
        cmocka_unit_test(test_unpack__int32__has_its_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
