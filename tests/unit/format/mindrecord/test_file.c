/* A file with holes: what is read of it; packed integers, shapes, the hash at the end; and which
 * files are MindRecord. */
#include "format/mindrecord/file.h"
#include "support/memory_blob.h"
#include "support/one_store.h"
#include "support/unit.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/members.h"

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

UNIT_TEST(test_file__with_holes__reads_only_pages)
{
    struct holed h;
    unsigned at_open;

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
UNIT_TEST(test_file__a_read_fails_once__goes_on)
{
    struct holed h;

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

UNIT_TEST(test_unpack__all_widths__as_they_are)
{
    /* 1, -2, 300, -70000, 2^40: of 1, 1, 2, 4, 8 bytes */
    static const uint8_t packed[] = {0,    0,    0,    5, 0x06, 0xc0, 1, 0xfe, 0x2c, 0x01, 0x90,
                                     0xee, 0xfe, 0xff, 0, 0,    0,    0, 0,    1,    0,    0};
    static const int64_t want[] = {1, -2, 300, -70000, INT64_C(1) << 40};
    uint8_t got[40];

    assert_true(mindrecord_unpack(packed, sizeof(packed), 5, 8, got));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal((int64_t)load_le64(got + 8 * i), want[i]);
    assert_false(mindrecord_unpack(packed, sizeof(packed), 5, 4, got)); /* 2^40 */
    assert_false(mindrecord_unpack(packed, sizeof(packed), 4, 8, got)); /* not its count */
    for (size_t len = 0; len < sizeof(packed); len++)
        assert_false(mindrecord_unpack(packed, len, 5, 8, got));
}

UNIT_TEST(test_unpack__int32__has_its_range)
{
    static const uint8_t least[] = {0, 0, 0, 1, 0x80, 0, 0, 0, 0x80};
    static const uint8_t below[] = {0,    0,    0,    1,    0xc0, 0xff, 0xff,
                                    0xff, 0x7f, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t more[] = {0, 0, 0, 1, 0, 7, 7}, none[] = {0, 0, 0, 0};
    uint8_t got[8];

    assert_true(mindrecord_unpack(least, sizeof(least), 1, 4, got));
    assert_int_equal((int32_t)load_le32(got), INT32_MIN);
    assert_false(mindrecord_unpack(below, sizeof(below), 1, 4, got));
    assert_false(mindrecord_unpack(more, sizeof(more), 1, 4, got));
    assert_true(mindrecord_unpack(none, sizeof(none), 0, 4, got));
}

/* ---- shapes ---- */

UNIT_TEST(test_fits__shapes__with_one_axis_that_varies)
{
#define V DIM_VARIES
    static const struct {
        unsigned ndim;
        uint64_t dim[3], elements;
        bool want;
        uint64_t axis;
    } rows[] = {
        {1, {3}, 3, true, 0},
        {1, {3}, 4, false, 0},
        {2, {3, 4}, 12, true, 0},
        {2, {3, 4}, 7, false, 0},
        {1, {V}, 5, true, 5},
        {1, {V}, 0, true, 0},
        {2, {V, 4}, 12, true, 3},
        {2, {4, V}, 12, true, 3},
        {2, {V, 4}, 13, false, 3},
        {2, {V, 0}, 0, true, 0},
        {2, {V, 0}, 1, false, 0},
        {2, {0, 5}, 0, true, 0},
        {3, {2, V, 3}, 6, true, 1},
        {3, {2, V, 3}, 5, false, 0},
        {3, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, 1, false, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mindrecord_field f = {.ndim = rows[i].ndim};
        uint64_t axis = 0;

        memcpy(f.dim, rows[i].dim, sizeof(rows[i].dim));
        assert_int_equal(mindrecord_fits(&f, rows[i].elements, &axis), rows[i].want);
        if (rows[i].want)
            assert_int_equal(axis, rows[i].axis);
    }
}

/* ---- the end of a file ---- */

UNIT_TEST(test_check_hash__end_of_the_file__compared)
{
    static const char text[] = "some bytes of a file";
    static const struct {
        int bits;        /* of the hash at the end; 0: none; 1: of no known length */
        int error;       /* expected */
        unsigned change; /* the byte that differs, from 1; 0: none */
        const char *want;
    } rows[] = {
        {0, 0, 0, NULL},
        {224, 0, 0, NULL},
        {256, 0, 0, NULL},
        {384, 0, 0, NULL},
        {512, 0, 0, NULL},
        {-224, 0, 0, NULL}, /* SHA-3 */
        {-256, 0, 0, NULL},
        {-512, 0, 0, NULL},
        {256, -EBADMSG, 1, "x: byte 20: expected the hash of the bytes before it, got another"},
        {-384, -EBADMSG, 20 + 48, "x: byte 20: expected the hash"},
        {512, -EBADMSG, 20 + 64 + 4,
         "x: byte 84: expected the hash of the bytes before it, got one of a length that no known "
         "hash has"},
        {256, 0, 20 + 32 + 5, NULL}, /* it is no hash */
        {256, 0, 20 + 32 + 8, NULL},
        {1, -EBADMSG, 0, "got one of a length that no known hash has"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t bytes[sizeof(text) - 1 + EVP_MAX_MD_SIZE + 8];
        size_t len = sizeof(text) - 1;
        AUTO_BLOB struct blob *blob = NULL;
        struct diag d = DIAG_INIT;
        unsigned n = 1;

        memcpy(bytes, text, len);
        if (rows[i].bits) {
            const EVP_MD *type = rows[i].bits == 1      ? EVP_sha256()
                                 : rows[i].bits == 224  ? EVP_sha224()
                                 : rows[i].bits == 256  ? EVP_sha256()
                                 : rows[i].bits == 384  ? EVP_sha384()
                                 : rows[i].bits == 512  ? EVP_sha512()
                                 : rows[i].bits == -224 ? EVP_sha3_224()
                                 : rows[i].bits == -256 ? EVP_sha3_256()
                                 : rows[i].bits == -384 ? EVP_sha3_384()
                                                        : EVP_sha3_512();

            assert_int_equal(EVP_Digest(text, len, bytes + len, &n, type, NULL), 1);
            n -= rows[i].bits == 1;
            store_be32(bytes + len + n, n);
            memcpy(bytes + len + n + 4, "HASH", 4);
            len += n + 8;
        }
        if (rows[i].change)
            bytes[rows[i].change - 1] ^= 1;
        blob = memory_blob_new("x", bytes, len, len, NULL);
        assert_int_equal(mindrecord_check_hash(blob, &d), rows[i].error);
        if (rows[i].want)
            assert_diag_has(&d, rows[i].want);
    }
}

UNIT_TEST(test_end__short_files__nothing_is_there)
{
    static const char *const ends[] = {"", "HASH", "000HASH", "NCRYPT"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t len = strlen(ends[i]);
        AUTO_BLOB struct blob *blob = memory_blob_new("x", ends[i], len, len, NULL);

        assert_int_equal(mindrecord_check_hash(blob, NULL), 0);
        assert_int_equal(mindrecord_refuse_encrypted(blob, NULL), 0);
    }
}

/* ---- the header ---- */

/* Rows that a small file may promise. */
UNIT_TEST(test_header__rows__at_most_a_million)
{
    static const char format[] =
        "{\"header_size\":16384,\"page_size\":16777216,\"version\":\"3.0\",\"shard_id\":0,\"shard_"
        "addresses\":[\"x\"],\"schema\":[{\"blob_fields\":[\"b\"],\"schema\":{\"b\":{\"type\":"
        "\"bytes\"}}}],\"page\":[{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,"
        "\"start_row_id\":0,\"end_row_id\":%u,\"page_size\":16777216}]}";
    static const struct {
        unsigned rows;
        uint64_t size;
        int error;
    } cases[] = {{1 << 20, 1000, 0},
                 {(1 << 20) + 1, 1000, -EBADMSG},
                 {(1 << 20) + 1, 8 * ((1 << 20) + 1), 0},
                 {(1 << 20) + 1, 8 * ((1 << 20) + 1) - 1, -EBADMSG}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(mindrecord_header_release) struct mindrecord_header header = {0};
        struct diag d = DIAG_INIT;
        char text[1024];

        snprintf(text, sizeof(text), format, cases[i].rows);
        assert_int_equal(
            mindrecord_header_parse(text, strlen(text), "x", cases[i].size, &header, &d),
            cases[i].error);
        if (cases[i].error)
            assert_diag_has(&d, "x: header: expected 1048577 rows, got ");
        else
            assert_int_equal(header.rows, cases[i].rows);
    }
}

UNIT_TEST(test_header__source_changes__estale)
{
    uint8_t bytes[sizeof(json) + 7];
    struct blob_faults faults = {.stale = true};
    AUTO(mindrecord_header_release) struct mindrecord_header header = {0};
    AUTO_BLOB struct blob *blob = NULL;

    store_le64(bytes, sizeof(json) - 1);
    memcpy(bytes + 8, json, sizeof(json) - 1);
    blob = memory_blob_new("x", bytes, sizeof(bytes), sizeof(bytes), &faults);
    assert_int_equal(mindrecord_header_read(blob, &header, NULL), -ESTALE);
    faults.stale = false;
    assert_int_equal(mindrecord_header_read(blob, &header, NULL), 0);
}

/* ---- which files are MindRecord ---- */

UNIT_TEST(test_probe__heads_and_names)
{
    static const struct {
        const char *name, *head;
        size_t len;
        enum claim want;
    } rows[] = {
#define HEAD(s) (s), sizeof(s) - 1
        {"x", HEAD("\x20\0\0\0\0\0\0\0{\"header_size\":1"), CLAIM_NAMED},
        {"x", HEAD("\x20\0\0\0\0\1\0\0{\"header_size\":1"), CLAIM_NONE}, /* too long */
        {"x", HEAD("\0\0\0\0\0\1\0\0{\"header_size\":1"), CLAIM_NONE},
        {"x", HEAD("\x20\xff\xff\xff\xff\0\0\0{\"header_size\":1"), CLAIM_NAMED},
        {"x", HEAD("\x20\0\0\0\0\0\0\0[\"header_size\":1"), CLAIM_NONE},
        {"x", HEAD("\x20\0\0\0\0\0\0\0{\"header_siz"), CLAIM_NONE},
        {"x", HEAD("\x20\0\0\0\0\0\0\0"), CLAIM_NONE},
        {"x.mindrecord", HEAD("\1\2\3"), CLAIM_WEAK},
        {"x.mindrecord0", HEAD("\1\2\3"), CLAIM_WEAK},
        {"x.mindrecord", HEAD("a\x7f"), CLAIM_WEAK},
        {"x.mindrecord", HEAD("text\t~ \n"), CLAIM_NONE},
        {"x.mindrecord.db", HEAD("\1\2\3"), CLAIM_NONE},
        {"x.mindrecord.db-wal", HEAD("\1\2\3"), CLAIM_NONE},
        {"x.mindrec", HEAD("\1\2\3"), CLAIM_NONE},
        {"x.mindrecord", HEAD("0123456789012345678901234567890123456789012345678901234567890123\1"),
         CLAIM_NONE},
        {"x.mindrecord", HEAD("012345678901234567890123456789012345678901234567890123456789012\1"),
         CLAIM_WEAK},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct probed_file file = {.name = rows[i].name,
                                         .head = (const uint8_t *)rows[i].head,
                                         .len = rows[i].len,
                                         .size = rows[i].len};

        assert_int_equal(format_mindrecord.probe(&file), rows[i].want);
    }
}

/* A database next to its file is put aside. */
UNIT_TEST(test_claim_names__databases__aside)
{
    static const char *const names[] = {"a",        "a.db",  "a.db-journal", "a.db-shm",
                                        "a.db-wal", "a.dbx", ".db",          "b.db"};
    static const uint8_t want[] = {0, 1, 1, 1, 2, 0, 0, 0};
    AUTO(members_release) struct members all = {0};
    uint8_t taken[ARRAY_LEN(names) + 1] = {0};
    struct claims claims = {.taken = taken};
    uint32_t folder;

    assert_int_equal(members_add_folder(&all, "d", &folder), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(members_add(&all, folder, names[i], 1, (uint64_t[2]){0}), 0);
    assert_int_equal(members_add_folder(&all, "e", &folder), 0);
    assert_int_equal(members_add(&all, folder, "a.db", 1, (uint64_t[2]){0}), 0);
    assert_int_equal(members_sort(&all), 0);
    for (size_t i = 0; i < all.n; i++)
        taken[i] = !strcmp(members_name(&all, i), "a.db-wal") ? 2 : 0; /* something else's */
    assert_int_equal(format_mindrecord.claim_names(&all, &claims), 0);
    for (size_t i = 0; i < all.n; i++) {
        uint8_t expected = 0;

        for (size_t k = 0; k < ARRAY_LEN(names) && !strcmp(members_folder_of(&all, i), "d"); k++)
            expected = strcmp(members_name(&all, i), names[k]) ? expected : want[k];
        assert_int_equal(taken[i], expected);
    }
}
