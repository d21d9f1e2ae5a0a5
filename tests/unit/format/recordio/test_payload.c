/* A record of several parts, read at each place; parts that are not those of the index; headers of
 * parts; side files: which they are, and an .idx that is too large. */
#include "format/recordio/file.h"
#include "support/absent_blob.h"
#include "support/memory_blob.h"
#include "support/one_store.h"
#include "support/unit.h"

#include <errno.h>
#include <limits.h>

#include "base/bytes.h"
#include "base/read_context.h"

/* Parts of 8, 0 and 3 bytes, with a magic number between each two. */
static const uint8_t parts[] = "\x0a\x23\xd7\xce\x08\0\0\x20"
                               "abcdefgh"
                               "\x0a\x23\xd7\xce\0\0\0\x40"
                               "\x0a\x23\xd7\xce\3\0\0\x60"
                               "ijk\0";
static const uint8_t payload[] = "abcdefgh\x0a\x23\xd7\xce\x0a\x23\xd7\xceijk";

#define LENGTH (sizeof(payload) - 1)
#define SIZE   (sizeof(parts) - 1)

UNIT_TEST(test_recordio_read__each_range__that_of_the_payload)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("x.rec", parts, SIZE, SIZE, NULL);
    uint8_t bytes[LENGTH];

    for (uint64_t off = 0; off <= LENGTH; off++)
        for (size_t len = 0; len <= LENGTH - off; len++) {
            assert_int_equal(recordio_read(READ_WAITS, blob, 0, LENGTH, 3, off, len, bytes, NULL),
                             0);
            assert_memory_equal(bytes, payload + off, len);
        }
}

UNIT_TEST(test_recordio_read__another_index__eio)
{
    static const struct {
        uint64_t at, length, n_parts;
        const char *want;
    } rows[] = {
        {0, 7, 3, "x.rec: byte 0: the part is longer than its record"},
        {0, 8, 3, "x.rec: byte 0: its parts are longer than the record"},
        {0, 11, 3, "x.rec: byte 0: its parts are longer than the record"},
        {0, 15, 3, "x.rec: byte 16: its parts are longer than the record"},
        {0, 18, 3, "x.rec: byte 24: the part is longer than its record"},
        {0, 20, 3, "x.rec: byte 24: its parts are shorter than the record"},
        {0, 19, 2, "x.rec: byte 16: its parts are shorter than the record"},
        {4, 19, 3, "x.rec: byte 4: expected the magic number"},
    };
    AUTO_BLOB struct blob *blob = memory_blob_new("x.rec", parts, SIZE, SIZE, NULL);
    uint8_t bytes[64];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag d = DIAG_INIT;

        assert_int_equal(recordio_read(READ_WAITS, blob, rows[i].at, rows[i].length,
                                       rows[i].n_parts, 0, rows[i].length, bytes, &d),
                         -EIO);
        assert_diag_has(&d, rows[i].want);
    }
}

static void count_done(struct waiter *waiter)
{
    assert_int_equal(waiter->error, 0);
}

/* Where a part is says the one before it: one fetch brings all that may follow. */
UNIT_TEST(test_recordio_read__absent__one_fetch)
{
    uint8_t file[4096] = {0}, bytes[2000];
    struct absent absent = {0};
    struct blob_faults faults = {.absent = &absent};
    AUTO_BLOB struct blob *blob = NULL;
    struct waiter waiter = {.done = count_done};
    struct read_context rc;
    uint64_t random = 1;

    for (size_t i = 0; i < 4; i++) { /* parts of 600 bytes */
        store_le32(file + 608 * i, RECORDIO_MAGIC);
        store_le32(file + 608 * i + 4, 600 | (i == 3 ? 3u : i ? 2u : 1u) << 29);
        memset(file + 608 * i + 8, (int)('a' + i), 600);
    }
    blob = memory_blob_new("x.rec", file, sizeof(file), sizeof(file), &faults);
    absent_drop(&absent, 256, &random);
    read_context_init(&rc, true);
    assert_int_equal(recordio_read(&rc, blob, 0, 2412, 4, 100, 2000, bytes, NULL), -EAGAIN);
    missing_fetch(&rc, &waiter);
    assert_int_equal(recordio_read(&rc, blob, 0, 2412, 4, 100, 2000, bytes, NULL), 0);
    read_context_release(&rc);
    assert_int_equal(bytes[0], 'a');
    assert_int_equal(bytes[499], 'a');
    assert_int_equal(bytes[500], 0x0a);
    assert_int_equal(bytes[504], 'b');
    assert_int_equal(bytes[1999], 'd');
}

UNIT_TEST(test_recordio_read_idx__sizes)
{
    AUTO_BLOB struct blob *large =
        memory_blob_new("x.idx", "0\t0\n", 4, (UINT64_C(1) << 30) + 1, NULL);
    struct blob_faults faults = {.stale = true};
    AUTO_BLOB struct blob *small = memory_blob_new("x.idx", "7\t9\n8\t3", 7, 7, &faults);
    AUTO_FREE uint64_t *place = NULL;
    struct diag d = DIAG_INIT;
    size_t n = 0;

    assert_int_equal(recordio_read_idx(large, 10, &place, &n, &d), -EBADMSG);
    assert_diag_has(&d, "x.idx: expected at most 1073741824 bytes, got 1073741825");
    assert_int_equal(recordio_read_idx(small, 10, &place, &n, NULL), -ESTALE);
    faults.stale = false;
    assert_int_equal(recordio_read_idx(small, 9, &place, &n, NULL), -EBADMSG);
    assert_int_equal(recordio_read_idx(small, 10, &place, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(place[0], 3);
    assert_int_equal(place[1], 9);
}

/* A picture's record whose source has changed since it was indexed, a byte each. */
UNIT_TEST(test_recordio_verify__a_byte_differs__ebadmsg)
{
    static const struct {
        unsigned at; /* of the payload, which has an empty list of labels; UINT_MAX: none */
        bool want;   /* is it another record? */
    } rows[] = {{UINT_MAX, false}, {0, true},  {4, true},  {8, true},   {16, true},
                {23, true},        {24, true}, {31, true}, {32, false}, {39, false}};
    static const uint8_t png[] = "\x89PNG\r\n\x1a\n\0\0\0\0\0\0\0";
    const struct format_setup setup = {.keep = &no_store};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t bytes[RECORDIO_PART + RECORDIO_IMAGE + 16] = {0};
        struct source_file source = {.name = "x.rec", .file_name = "x.rec", .folder = ""};
        struct recordio *file = NULL;
        struct diag d = DIAG_INIT;
        struct blob *indexed;
        int r;

        store_le32(bytes, RECORDIO_MAGIC);
        store_le32(bytes + 4, RECORDIO_IMAGE + 16);
        memcpy(bytes + RECORDIO_PART + RECORDIO_IMAGE, png, sizeof(png));
        source.blob = memory_blob_new("x.rec", bytes, sizeof(bytes), sizeof(bytes), NULL);
        r = record_file_open(&recordio_file_ops, &(struct record_source){&source, 1, 0, &setup},
                             &file, &d);
        while (r == 0)
            r = prepared_step(&file->base.prepared, &d);
        assert_int_equal(r, 1);
        assert_true(file->has_pictures);
        if (rows[i].at != UINT_MAX)
            bytes[RECORDIO_PART + rows[i].at] ^= 1;
        indexed = file->base.blob;
        file->base.blob = memory_blob_new("x.rec", bytes, sizeof(bytes), sizeof(bytes), NULL);
        assert_int_equal(recordio_verify(READ_WAITS, file, 0, &d), rows[i].want ? -EBADMSG : 0);
        if (rows[i].want)
            assert_diag_has(&d, "byte 0: expected the record of the index, got another");
        blob_free(file->base.blob);
        file->base.blob = indexed;
        record_file_drop(&file->base);
    }
}

UNIT_TEST(test_recordio_part__headers__edges)
{
    static const struct {
        uint32_t magic, word;
        uint64_t at, size, end;
        unsigned flag;
        const char *want; /* what is wrong; NULL: nothing */
    } rows[] = {
        {RECORDIO_MAGIC, 5, 0, 16, 16, 0, NULL},
        {RECORDIO_MAGIC, 5, 4, 20, 20, 0, NULL},
        {RECORDIO_MAGIC, 8, 4, 20, 20, 0, NULL},
        {RECORDIO_MAGIC, 0, 4, 12, 12, 0, NULL},
        {RECORDIO_MAGIC, 3u << 29 | 5, 0, 16, 16, 3, NULL},
        {RECORDIO_MAGIC, 4u << 29 | 5, 0, 16, 16, 4, "expected flags from 0 to 3, got 4"},
        {RECORDIO_MAGIC, 5, 0, 15, 16, 0, "expected 16 bytes, got 15"},
        {RECORDIO_MAGIC, 9, 4, 20, 24, 0, "expected 20 bytes, got 16"},
        {RECORDIO_MAGIC, 0x1fffffff, 0, 9, 0x20000008, 0, "expected 536870920 bytes, got 9"},
        {RECORDIO_MAGIC + 1, 5, 0, 16, 16, 0,
         "expected the magic number 0a 23 d7 ce, got 0b 23 d7 ce"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t header[RECORDIO_PART];
        char text[RECORDIO_WHY];
        const char *wrong;
        uint64_t len, end;
        unsigned flag;

        store_le32(header, rows[i].magic);
        store_le32(header + 4, rows[i].word);
        wrong = recordio_part(header, rows[i].at, rows[i].size, &flag, &len, &end, text);
        assert_int_equal(!wrong, !rows[i].want);
        if (wrong)
            assert_string_equal(wrong, rows[i].want);
        assert_int_equal(flag, rows[i].flag);
        assert_int_equal(len, rows[i].word & 0x1fffffff);
        assert_int_equal(end, rows[i].end);
    }
}

UNIT_TEST(test_recordio_is_side__first_lines)
{
    static const struct {
        const char *name, *text;
        bool is_cut, want;
    } rows[] = {
        {"x.idx", "0\t0\n", false, true},
        {"x.idx", "0\t0", false, true},
        {"x.idx", "0\t0", true, false},
        {"x.idx", "0\t0\nx", true, true},
        {"x.IDX", "18446744073709551615\t7\n", false, true},
        {"x.idx", "18446744073709551616\t7\n", false, false},
        {"x.idx", "0 0\n", false, false},
        {"x.idx", "0\t0\r\n", false, false},
        {"x.idx", "\t0\n", false, false},
        {"x.idx", "0\t\n", false, false},
        {"x.idx", "0\t0\t0\n", false, false},
        {"x.idx", "", false, false},
        {"x.txt", "0\t0\n", false, false},
        {"x.lst", "0\t0\n", false, false},
        {"x.lst", "0\t1\ta b.jpg\n", false, true},
        {"x.lst", "  78 \t -1.5e+3\t2E0 \ta\n", false, true},
        {"x.lst", "9\t1\t", false, true},
        {"x.lst", "\t1\ta\n", false, false},
        {"x.lst", " \t1\ta\n", false, false},
        {"x.lst", "7x\t1\ta\n", false, false},
        {"x.lst", "7 8\t1\ta\n", false, false},
        {"x.lst", "7\tx\ta\n", false, false},
        {"x.lst", "7\t1\ta\n", true, true},
        {"x.lst", "7\t1\ta", true, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct probed_file file = {.name = rows[i].name,
                                         .head = (const uint8_t *)rows[i].text,
                                         .len = strlen(rows[i].text),
                                         .whole = !rows[i].is_cut};

        if (recordio_is_side(&file) != rows[i].want)
            fail_msg("row %zu: %s", i, rows[i].text);
        assert_int_equal(format_recordio.probe(&file), rows[i].want ? CLAIM_NAMED : CLAIM_NONE);
    }
    assert_true(recordio_is_beside("x.idx") && recordio_is_beside("x.lst"));
    assert_false(recordio_is_beside("x.rec"));
}

UNIT_TEST(test_recordio_take_idx__names)
{
    static const struct {
        const char *rec, *other;
        bool want;
    } rows[] = {
        {"a.rec", "a.idx", true},   {"a.rec", "a.IDX", true},     {"a", "a.idx", true},
        {"a.rec", "b.idx", false},  {"a.rec", "a.idx.gz", false}, {"a.b.rec", "a.b.idx", true},
        {"a.rec", "aa.idx", false}, {"a.rec", "a.lst", false},    {"a.b.rec", "a.idx", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct blob *blob = memory_blob_new("x", "", 0, 0, NULL);
        struct source_file files[] = {{.name = rows[i].other, .blob = blob},
                                      {.name = rows[i].rec, .blob = blob},
                                      {.name = rows[i].other}};

        assert_ptr_equal(recordio_take_idx(files, 3, 1), rows[i].want ? blob : NULL);
        assert_ptr_equal(files[0].blob, rows[i].want ? NULL : blob);
        blob_free(blob);
    }
}
