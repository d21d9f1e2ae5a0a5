/* EXIF data is a TIFF file of its own: a head that says the order of its bytes and where its first
 * directory is, which has entries of 12 bytes. Only one entry of that directory matters here. */
#include "format/picture/exif.h"

#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/real.h"
#include "base/scope.h"

#define EXIF_HEAD       "Exif\0" /* and one byte more */
#define EXIF_HEAD_BYTES 6
#define TIFF_HEAD       8
#define ENTRY_BYTES     12
#define TAG_ORIENTATION 0x0112

struct bytes {
    const uint8_t *at;
    size_t len;
};

/* ---- TIFF ---- */

static uint32_t load16(const uint8_t *p, bool big)
{
    return big ? load_be16(p) : load_le16(p);
}

static uint32_t load32(const uint8_t *p, bool big)
{
    return big ? load_be32(p) : load_le32(p);
}

/* The bytes of a value of each type, and how it is read: unsigned, integer, ratio of either, float;
 * of others, which are bytes and texts, PIL makes no orientation. */
static const struct value_type {
    unsigned bytes;
    char type;
} exif_types[] = {
    [1] = {1, 0},    [2] = {1, 0},    [3] = {2, 'u'},  [4] = {4, 'u'}, [5] = {8, 'q'},
    [6] = {1, 'i'},  [7] = {1, 0},    [8] = {2, 'i'},  [9] = {4, 'i'}, [10] = {8, 'r'},
    [11] = {4, 'f'}, [12] = {8, 'f'}, [13] = {4, 'u'}, [16] = {8, 'u'}};

static int64_t load_integer(const uint8_t *p, unsigned bytes, bool is_signed, bool big)
{
    uint64_t v = 0, sign = UINT64_C(1) << (8 * bytes - 1);

    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[big ? i : bytes - 1 - i];
    return is_signed && v & sign && bytes < 8 ? (int64_t)(v - 2 * sign) : (int64_t)v;
}

static double exif_load_float(const uint8_t *p, unsigned bytes, bool big)
{
    uint64_t bits = (uint64_t)load_integer(p, bytes, false, big);

    return bytes == 4 ? (double)f4_of_bits((uint32_t)bits) : f8_of_bits(bits);
}

/* The value as an orientation. */
static unsigned exif_value_of(const uint8_t *p, struct value_type type, bool big)
{
    bool is_signed = type.type == 'i' || type.type == 'r';

    for (unsigned o = 1; o <= 8; o++) {
        bool is = false;

        if (type.type == 'u' || type.type == 'i') {
            is = load_integer(p, type.bytes, is_signed, big) == o;
        } else if (type.type == 'f') {
            is = exif_load_float(p, type.bytes, big) == o;
        } else if (type.type) {
            int64_t numerator = load_integer(p, 4, is_signed, big);
            int64_t by = load_integer(p + 4, 4, is_signed, big);

            is = by && numerator == by * o;
        }
        if (is)
            return o;
    }
    return ORIENTATION_AS_STORED;
}

/* Take an entry of the directory. false: its values lie outside, where PIL reads no further. */
static bool take_entry(struct bytes tiff, const uint8_t *entry, bool big, unsigned *ret)
{
    uint32_t number = load16(entry + 2, big);
    struct value_type type =
        number < ARRAY_LEN(exif_types) ? exif_types[number] : (struct value_type){0, 0};
    uint64_t size = (uint64_t)type.bytes * load32(entry + 4, big);
    uint64_t at = size > 4 ? load32(entry + 8, big) : (uint64_t)(entry + 8 - tiff.at);

    if (!size)
        return true;
    if (at > tiff.len || size > tiff.len - at)
        return false;
    if (load16(entry, big) == TAG_ORIENTATION)
        *ret = exif_value_of(tiff.at + at, type, big);
    return true;
}

/* Some writers have the second half of the head in the other order of bytes. */
static unsigned orientation_of(struct bytes tiff)
{
    unsigned found = ORIENTATION_AS_STORED;
    size_t left, at;
    uint32_t n;
    bool big;

    if (tiff.len < TIFF_HEAD || (memcmp(tiff.at, "II", 2) && memcmp(tiff.at, "MM", 2)) ||
        (memcmp(tiff.at + 2, "*\0", 2) && memcmp(tiff.at + 2, "\0*", 2)))
        return found;
    big = tiff.at[0] == 'M';
    at = load32(tiff.at + 4, big);
    if (at > tiff.len || tiff.len - at < 2)
        return found;
    n = load16(tiff.at + at, big);
    left = (tiff.len - at - 2) / ENTRY_BYTES;
    for (size_t i = 0; i < n && i < left; i++)
        if (!take_entry(tiff, tiff.at + at + 2 + i * ENTRY_BYTES, big, &found))
            break;
    return found;
}

/* PNG and WebP have TIFF as such, but some writers put JPEG's head before it. */
static unsigned orientation_behind_head(struct bytes exif)
{
    if (exif.len >= EXIF_HEAD_BYTES && !memcmp(exif.at, EXIF_HEAD, sizeof(EXIF_HEAD) - 1)) {
        exif.at += EXIF_HEAD_BYTES;
        exif.len -= EXIF_HEAD_BYTES;
    }
    return orientation_of(exif);
}

/* ---- where the files have it ---- */

#define JPEG_APP1 0xe1
#define JPEG_SOS  0xda
#define JPEG_EOI  0xd9

/* The segments before the first scan, each ff <marker> <u16 length>. */
unsigned exif_of_jpeg(const uint8_t *bytes, size_t len)
{
    size_t at = 2;

    while (at < len && len - at >= 4) {
        struct bytes s = {bytes + at + 4, (size_t)load_be16(bytes + at + 2) - 2};
        uint8_t marker = bytes[at + 1];

        if (bytes[at] != 0xff || marker == JPEG_SOS || marker == JPEG_EOI)
            break;
        if (marker == 0xff) { /* ff may be repeated */
            at++;
            continue;
        }
        if (s.len > len - at - 4) /* also a length that does not hold itself */
            break;
        if (marker == JPEG_APP1 && s.len >= EXIF_HEAD_BYTES &&
            !memcmp(s.at, EXIF_HEAD, sizeof(EXIF_HEAD) - 1))
            return orientation_behind_head(s);
        at += 4 + s.len;
    }
    return ORIENTATION_AS_STORED;
}

#define PNG_MAGIC_BYTES 8
#define PNG_CHUNK       12 /* u32 length, type; content; u32 CRC */

/* The chunk may come before or behind the pixels. Damaged ones count for nothing. */
unsigned exif_of_png(const uint8_t *bytes, size_t len)
{
    size_t at = PNG_MAGIC_BYTES;

    while (at < len && len - at >= PNG_CHUNK) {
        struct bytes s = {bytes + at + 8, load_be32(bytes + at)};

        if (s.len > len - at - PNG_CHUNK)
            break;
        if (!memcmp(bytes + at + 4, "eXIf", 4) &&
            crc32_z(0, s.at - 4, s.len + 4) == load_be32(s.at + s.len))
            return orientation_behind_head(s);
        at += PNG_CHUNK + s.len;
    }
    return ORIENTATION_AS_STORED;
}

#define RIFF_HEAD  12 /* "RIFF", u32 length, "WEBP" */
#define RIFF_CHUNK 8  /* type, u32 length; content, filled up to an even length */

unsigned exif_of_webp(const uint8_t *bytes, size_t len)
{
    size_t at = RIFF_HEAD;

    while (at < len && len - at >= RIFF_CHUNK) {
        struct bytes s = {bytes + at + RIFF_CHUNK, load_le32(bytes + at + 4)};

        if (s.len > len - at - RIFF_CHUNK)
            break;
        if (!memcmp(bytes + at, "EXIF", 4))
            return orientation_behind_head(s);
        at += RIFF_CHUNK + s.len + (s.len & 1);
    }
    return ORIENTATION_AS_STORED;
}
