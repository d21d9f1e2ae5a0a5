/* The header of IDX files, good and bad. The numbers are rows of the table of edge cases. A bad
 * file is refused with a message that names the file, the byte, the wanted and the found value. */
#include "format/idx/header.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"

#define NAME "sub/train-images-idx3-ubyte"

/* The header of these bytes in a file of that size. */
static int read_bytes(const void *bytes, size_t len, uint64_t size, struct idx_header *ret,
                      struct diag *d)
{
    AUTO_BLOB struct blob *blob = memory_blob_new(NAME, bytes, len, size, NULL);

    return idx_header_read(blob, ret, d);
}

struct bad {
    const char *bytes;
    size_t len;
    uint64_t size;
    const char *message[4];
};

static void check_bad(const struct bad *bad)
{
    struct idx_header h = {.axes = 77};
    struct diag d = DIAG_INIT;

    assert_int_equal(read_bytes(bad->bytes, bad->len, bad->size, &h, &d), -EBADMSG);
    assert_diag_has(&d, NAME ": ");
    for (size_t i = 0; i < 4 && bad->message[i]; i++)
        assert_diag_has(&d, bad->message[i]);
    assert_int_equal(h.axes, 77); /* written only on success */
}

#define BYTES(s) (s), sizeof(s) - 1

UNIT_TEST(test_idx_header__magic_not_zero__ebadmsg) /* I-1 */
{
    check_bad(&(struct bad){BYTES("\x01\x00\x08\x01\0\0\0\0"), 8, {"byte 0", "00 00", "01 00"}});
    check_bad(&(struct bad){BYTES("\x00\xff\x08\x01\0\0\0\0"), 8, {"byte 0", "00 00", "00 ff"}});
    check_bad(&(struct bad){BYTES("\x1f\x8b\x08\x00\0\0\0\0"), 8, {"byte 0", "00 00", "1f 8b"}});
    check_bad(&(struct bad){BYTES("version https://git-lfs.github.com"), 34, {"got 76 65"}});
}

UNIT_TEST(test_idx_header__type_unknown__ebadmsg) /* I-2 */
{
    for (unsigned type = 0; type < 256; type++) {
        char bytes[] = {0, 0, (char)type, 1, 0, 0, 0, 0};
        char found[16];
        struct idx_header h;

        if (type >= 8 && type <= 14 && type != 10) {
            assert_int_equal(read_bytes(bytes, 8, 8, &h, NULL), 0);
            continue;
        }
        snprintf(found, sizeof(found), "got %02x", type);
        check_bad(&(struct bad){bytes, 8, 8, {"byte 2", "expected 08", found}});
    }
}

UNIT_TEST(test_idx_header__no_dimensions__ebadmsg) /* I-3 */
{
    check_bad(&(struct bad){BYTES("\0\0\x08\0"), 4, {"byte 3", "expected 1 to 255", "got 0"}});
    check_bad(&(struct bad){BYTES("\0\0\x08\0x"), 5, {"byte 3", "expected 1 to 255", "got 0"}});
}

UNIT_TEST(test_idx_header__1_to_255_dimensions__read) /* I-4 */
{
    for (unsigned axes = 1; axes <= IDX_AXES_MAX; axes++) {
        uint8_t bytes[4 + 4 * IDX_AXES_MAX + 6] = {0, 0, 0x0b, (uint8_t)axes};
        struct idx_header h;

        for (unsigned i = 0; i < axes; i++)
            store_be32(bytes + 4 + 4 * i, i == 0 || i == axes - 1 ? (axes == 1 ? 3
                                                                     : i       ? 3
                                                                               : 1)
                                                                  : 1);
        assert_int_equal(read_bytes(bytes, 4 + 4 * axes + 6, 4 + 4 * axes + 6, &h, NULL), 0);
        assert_int_equal(h.axes, axes);
        assert_int_equal(h.dtype, DTYPE_I2);
        assert_int_equal(h.payload, 4 + 4 * axes);
        assert_int_equal(h.item_bytes, axes == 1 ? 2 : 6);
        assert_int_equal(h.dim[axes - 1], 3);
    }
}

UNIT_TEST(test_idx_header__payload_cut_short__ebadmsg) /* I-5 */
{
    check_bad(&(struct bad){BYTES("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x04"),
                            16 + 23,
                            {"byte 16", "expected 24 bytes", "got 23", "cut short"}});
    check_bad(&(struct bad){
        BYTES("\0\0\x0e\x01\0\0\0\x02"), 8, {"byte 8", "expected 16 bytes", "got 0"}});
}

UNIT_TEST(test_idx_header__payload_too_long__ebadmsg) /* I-6 */
{
    check_bad(&(struct bad){BYTES("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x04"),
                            16 + 25,
                            {"byte 16", "expected 24 bytes", "got 25", "too long"}});
    check_bad(&(struct bad){
        BYTES("\0\0\x08\x01\0\0\0\0"), 9, {"byte 8", "expected 0 bytes", "got 1", "too long"}});
}

UNIT_TEST(test_idx_header__dimension_zero__empty) /* I-7 */
{
    struct idx_header h;

    assert_int_equal(read_bytes("\0\0\x08\x01\0\0\0\0", 8, 8, &h, NULL), 0);
    assert_int_equal(h.dim[0], 0);
    assert_int_equal(h.item_bytes, 1);
    assert_int_equal(read_bytes("\0\0\x0c\x03\0\0\0\x05\0\0\0\0\0\0\0\x1c", 16, 16, &h, NULL), 0);
    assert_int_equal(h.dim[0], 5);
    assert_int_equal(h.item_bytes, 0);
    /* However large the other axes are. */
    assert_int_equal(read_bytes("\0\0\x0e\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                                "\0\0\0\0\xff\xff\xff\xff",
                                24, 24, &h, NULL),
                     0);
    assert_int_equal(h.item_bytes, 0);
}

UNIT_TEST(test_idx_header__dims_overflow__ebadmsg) /* I-8 */
{
    /* 2^32 elements, which 32 bits take for 0 */
    check_bad(&(struct bad){BYTES("\0\0\x08\x03\0\0\0\x01\0\x01\0\0\0\x01\0\0"),
                            16,
                            {"byte 16", "expected 4294967296 bytes", "got 0"}});
    /* 2^64, which 64 bits take for 0 */
    check_bad(&(struct bad){
        BYTES("\0\0\x08\x03\0\x01\0\0\x01\0\0\0\x01\0\0\0"), 16, {"byte 4", "below 2^64", "more"}});
    /* 2^32 x 2^32 x 8 in the item alone, one sample */
    check_bad(&(struct bad){BYTES("\0\0\x0e\x04\0\0\0\x01\x80\0\0\0\x80\0\0\0\x80\0\0\0"),
                            20,
                            {"byte 4", "below 2^64", "more"}});
    /* items that fit, samples that do not */
    check_bad(&(struct bad){BYTES("\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x02"),
                            16,
                            {"byte 4", "below 2^64", "more"}});
}

UNIT_TEST(test_idx_header__large_dimensions__unsigned) /* I-9, I-10 */
{
    static const char bytes[] = "\0\0\x08\x02\x80\0\0\x01\0\0\0\x03";
    struct idx_header h;

    assert_int_equal(read_bytes(bytes, 12, 12 + UINT64_C(0x80000001) * 3, &h, NULL), 0);
    assert_int_equal(h.dim[0], 0x80000001);
    assert_int_equal(h.item_bytes, 3);
    assert_int_equal(
        read_bytes("\0\0\x0e\x01\xff\xff\xff\xff", 8, 8 + UINT64_C(0xffffffff) * 8, &h, NULL), 0);
    assert_int_equal(h.dim[0], UINT32_MAX);
}

UNIT_TEST(test_idx_header__every_type__element_bytes) /* I-11, I-12 */
{
    static const struct {
        uint8_t code;
        enum dtype dtype;
        uint64_t bytes;
    } types[] = {{8, DTYPE_U1, 1},  {9, DTYPE_I1, 1},  {11, DTYPE_I2, 2},
                 {12, DTYPE_I4, 4}, {13, DTYPE_F4, 4}, {14, DTYPE_F8, 8}};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        uint8_t bytes[12] = {0, 0, types[i].code, 2, 0, 0, 0, 7, 0, 0, 0, 5};
        struct idx_header h;

        assert_int_equal(read_bytes(bytes, 12, 12 + 35 * types[i].bytes, &h, NULL), 0);
        assert_int_equal(h.dtype, types[i].dtype);
        assert_int_equal(h.item_bytes, 5 * types[i].bytes);
    }
}

UNIT_TEST(test_idx_header__truncated_header__ebadmsg) /* I-18 */
{
    static const char bytes[] = "\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x04";

    for (size_t len = 0; len < 4; len++) {
        char found[32];

        snprintf(found, sizeof(found), "got %zu", len);
        check_bad(&(struct bad){bytes, len, len, {"expected at least 4 bytes", found}});
    }
    for (size_t len = 4; len < 16; len++) {
        char found[32];

        snprintf(found, sizeof(found), "got %zu", len);
        check_bad(&(struct bad){bytes, len, len, {"3 dimensions", "expected 16 bytes", found}});
    }
}

UNIT_TEST(test_idx_header__read_fails__that_error)
{
    static const char bytes[] = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
                                "abcdef";
    struct idx_header h;

    for (uint64_t n = 1;; n++) {
        struct blob_faults faults = {.fail_read = n};
        AUTO_BLOB struct blob *blob = memory_blob_new(NAME, bytes, 18, 18, &faults);
        struct diag d = DIAG_INIT;
        int r = idx_header_read(blob, &h, &d);

        if (faults.reads < n) {
            assert_int_equal(r, 0);
            assert_int_equal(n, 2);
            return;
        }
        assert_int_equal(r, -EIO);
        assert_diag_has(&d, NAME);
        assert_diag_has(&d, "byte");
        assert_diag_has(&d, strerror(EIO));
    }
}
