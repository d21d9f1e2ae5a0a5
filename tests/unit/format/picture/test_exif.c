/* Orientation from EXIF data, good and bad. What is bad counts as none. */
#include "format/picture/exif.h"
#include "support/picture_make.h"
#include "support/unit.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/scope.h"

#define HEAD       "Exif\0"
#define HEAD_BYTES 6

/* A JPEG of one segment, and what follows it. */
static unsigned jpeg_of(uint8_t marker, const uint8_t *content, size_t len, size_t cut)
{
    AUTO_FREE uint8_t *bytes = malloc(6 + len);

    assert_non_null(bytes);
    memcpy(bytes, "\xff\xd8\xff", 3);
    bytes[3] = marker;
    bytes[4] = (uint8_t)((len + 2) >> 8);
    bytes[5] = (uint8_t)(len + 2);
    memcpy(bytes + 6, content, len);
    return exif_of_jpeg(bytes, 6 + len - cut);
}

/* The same, of EXIF data. */
static unsigned app1_of(const uint8_t *exif, size_t len)
{
    uint8_t content[256] = HEAD;

    assert_true(len + HEAD_BYTES <= sizeof(content));
    memcpy(content + HEAD_BYTES, exif, len);
    return jpeg_of(0xe1, content, HEAD_BYTES + len, 0);
}

UNIT_TEST(test_exif__each_orientation_in_both_orders__found)
{
    for (unsigned big = 0; big < 2; big++)
        for (unsigned o = 1; o <= 8; o++) {
            uint8_t exif[MADE_EXIF_BYTES];

            make_exif(big, o, exif);
            assert_int_equal(app1_of(exif, sizeof(exif)), o);
        }
}

UNIT_TEST(test_exif__numbers_that_mean_nothing__as_stored)
{
    uint8_t exif[MADE_EXIF_BYTES];

    make_exif(false, 0, exif);
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(false, 9, exif);
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(true, 6, exif);
    exif[18] = 1; /* 0x0106 */
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(true, 6, exif);
    exif[17] = 2; /* two values: the first counts */
    assert_int_equal(app1_of(exif, sizeof(exif)), 6);
    exif[17] = 3; /* three are elsewhere */
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(true, 6, exif);
    exif[17] = 0;
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(true, 6, exif);
    exif[13] = 2; /* text */
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(true, 6, exif);
    exif[11] = 0x13; /* another tag */
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(true, 6, exif);
    exif[0] = 'I'; /* no order of bytes */
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
}

/* As PIL has it: numbers of any type, the first of several, but neither bytes nor texts. */
UNIT_TEST(test_exif__each_type__as_pil)
{
    static const struct {
        unsigned type, bytes;
        uint64_t bits;
        unsigned want;
    } cases[] = {
        {1, 1, 6, 1},
        {2, 1, 6, 1},
        {2, 1, '6', 1},
        {3, 2, 6, 6},
        {4, 4, 6, 6},
        {6, 1, 6, 6},
        {7, 1, 6, 1},
        {8, 2, 6, 6},
        {9, 4, 6, 6},
        {13, 4, 6, 6},
        {0, 2, 6, 1},
        {14, 2, 6, 1},
        {8, 2, 0xfffa, 1},
        {11, 4, 0x40c00000, 6},
        {16, 8, 6, 6},
        {11, 4, 6, 1},
        {12, 8, UINT64_C(0x4018000000000000), 6},
    };

    for (unsigned big = 0; big < 2; big++)
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            uint8_t exif[64] = {0}, *value = exif + 18;

            make_exif(big, 1, exif);
            memset(value, 0, 4);
            exif[big ? 13 : 12] = (uint8_t)cases[i].type;
            if (cases[i].bytes > 4) {
                value = exif + 27; /* an odd place */
                exif[big ? 21 : 18] = 27;
            }
            for (unsigned k = 0; k < cases[i].bytes; k++)
                value[big ? cases[i].bytes - 1 - k : k] = (uint8_t)(cases[i].bits >> 8 * k);
            assert_int_equal(app1_of(exif, sizeof(exif)), cases[i].want);
        }
}

/* Ratios; a directory at an odd place; the number behind the order of bytes in the other order. */
UNIT_TEST(test_exif__other_forms__as_pil)
{
    uint8_t exif[64] = {0};

    make_exif(true, 1, exif);
    exif[13] = 5;
    store_be32(exif + 18, 30);
    store_be32(exif + 30, 12);
    store_be32(exif + 34, 2);
    assert_int_equal(app1_of(exif, sizeof(exif)), 6);
    store_be32(exif + 34, 0);
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    exif[13] = 10;
    store_be32(exif + 30, (uint32_t)-6);
    store_be32(exif + 34, (uint32_t)-1);
    assert_int_equal(app1_of(exif, sizeof(exif)), 6);
    make_exif(true, 6, exif);
    memmove(exif + 9, exif + 8, MADE_EXIF_BYTES - 8);
    exif[7] = 9;
    assert_int_equal(app1_of(exif, sizeof(exif)), 6);
    make_exif(true, 6, exif);
    memcpy(exif, "MM*\0", 4);
    assert_int_equal(app1_of(exif, sizeof(exif)), 6);
}

UNIT_TEST(test_exif__long_value__found)
{
    uint8_t exif[MADE_EXIF_BYTES];

    make_exif(false, 8, exif);
    exif[12] = 4;
    assert_int_equal(app1_of(exif, sizeof(exif)), 8);
    exif[20] = 1; /* 0x00010008 */
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
}

UNIT_TEST(test_exif__directory_or_entry_outside__as_stored)
{
    uint8_t exif[MADE_EXIF_BYTES];

    for (size_t len = 0; len < 22; len++) { /* the entry ends at 22 */
        make_exif(true, 6, exif);
        assert_int_equal(app1_of(exif, len), 1);
    }
    assert_int_equal(app1_of(exif, 22), 6);
    store_be32(exif + 4, 24); /* the directory: two bytes exist, its number of entries */
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    store_be32(exif + 4, 25);
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    store_be32(exif + 4, UINT32_MAX);
    assert_int_equal(app1_of(exif, sizeof(exif)), 1);
    make_exif(true, 6, exif);
    exif[8] = 0xff; /* 65,281 entries, of which one exists */
    assert_int_equal(app1_of(exif, sizeof(exif)), 6);
}

UNIT_TEST(test_exif__jpeg_segments__passed_over_or_refused)
{
    uint8_t exif[HEAD_BYTES + MADE_EXIF_BYTES] = HEAD;
    uint8_t bytes[128] = "\xff\xd8\xff\xe0\x00\x04JF\xff\xff\xff\xe1\x00\x22";

    make_exif(false, 3, exif + HEAD_BYTES);
    assert_int_equal(jpeg_of(0xe1, exif, sizeof(exif), 0), 3);
    assert_int_equal(jpeg_of(0xe1, exif, sizeof(exif), 1), 1); /* cut short */
    assert_int_equal(jpeg_of(0xe2, exif, sizeof(exif), 0), 1); /* another segment */
    assert_int_equal(jpeg_of(0xda, exif, sizeof(exif), 0), 1); /* a scan */
    memcpy(bytes + 14, exif, sizeof(exif)); /* behind APP0, and with ff repeated */
    assert_int_equal(exif_of_jpeg(bytes, 14 + sizeof(exif)), 3);
    for (size_t len = 0; len < 14 + sizeof(exif); len++)
        assert_int_equal(exif_of_jpeg(bytes, len), 1);
    bytes[5] = 1; /* a length that does not hold itself */
    assert_int_equal(exif_of_jpeg(bytes, 14 + sizeof(exif)), 1);
}

UNIT_TEST(test_exif__png_chunk__checksum_checked)
{
    uint8_t bytes[8 + 12 + MADE_EXIF_BYTES] = "\x89PNG\r\n\x1a\n";

    store_be32(bytes + 8, MADE_EXIF_BYTES);
    memcpy(bytes + 12, "eXIf", 4);
    make_exif(true, 7, bytes + 16);
    store_be32(bytes + 16 + MADE_EXIF_BYTES, (uint32_t)crc32(0, bytes + 12, 4 + MADE_EXIF_BYTES));
    assert_int_equal(exif_of_png(bytes, sizeof(bytes)), 7);
    for (size_t len = 0; len < sizeof(bytes); len++)
        assert_int_equal(exif_of_png(bytes, len), 1);
    bytes[sizeof(bytes) - 1] ^= 1;
    assert_int_equal(exif_of_png(bytes, sizeof(bytes)), 1);
    store_be32(bytes + 8, UINT32_MAX);
    assert_int_equal(exif_of_png(bytes, sizeof(bytes)), 1);
}

UNIT_TEST(test_exif__webp_chunk__behind_odd_one)
{
    uint8_t bytes[12 + 10 + 8 + HEAD_BYTES + MADE_EXIF_BYTES] =
        "RIFF....WEBPVP8 \x01\0\0\0..EXIF\0\0\0\0" HEAD;
    uint8_t *exif = bytes + 30;

    store_le32(bytes + 26, HEAD_BYTES + MADE_EXIF_BYTES);
    make_exif(false, 5, exif + HEAD_BYTES); /* with JPEG's head */
    assert_int_equal(exif_of_webp(bytes, sizeof(bytes)), 5);
    for (size_t len = 0; len < sizeof(bytes); len++)
        assert_int_equal(exif_of_webp(bytes, len), 1);
    store_le32(bytes + 26, MADE_EXIF_BYTES);
    make_exif(false, 5, exif); /* without */
    assert_int_equal(exif_of_webp(bytes, sizeof(bytes)), 5);
    store_le32(bytes + 16, UINT32_MAX);
    assert_int_equal(exif_of_webp(bytes, sizeof(bytes)), 1);
}
