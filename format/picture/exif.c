/* EXIF data is a TIFF file of its own: a head that says the order of its bytes and where its first
 * directory is, which has entries of 12 bytes. Only one entry of that directory matters here. */
#include "format/picture/exif.h"

#include <string.h>
#include <zlib.h>

#include "base/bytes.h"

#define EXIF_HEAD       "Exif\0" /* and one byte more */
#define EXIF_HEAD_BYTES 6
#define TIFF_HEAD       8
#define ENTRY_BYTES     12
#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT      3
#define TYPE_LONG       4

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

static unsigned value_of(const uint8_t *entry, bool big)
{
    uint32_t type = load16(entry + 2, big), value = 0;

    if (type == TYPE_SHORT)
        value = load16(entry + 8, big);
    else if (type == TYPE_LONG)
        value = load32(entry + 8, big);
    return load32(entry + 4, big) == 1 && value >= 1 && value <= 8 ? value : ORIENTATION_AS_STORED;
}

static unsigned orientation_of(struct bytes tiff)
{
    unsigned found = ORIENTATION_AS_STORED;
    size_t left, at;
    uint32_t n;
    bool big;

    if (tiff.len < TIFF_HEAD || (memcmp(tiff.at, "II*\0", 4) && memcmp(tiff.at, "MM\0*", 4)))
        return found;
    big = tiff.at[0] == 'M';
    at = load32(tiff.at + 4, big);
    if (at > tiff.len || tiff.len - at < 2)
        return found;
    n = load16(tiff.at + at, big);
    left = (tiff.len - at - 2) / ENTRY_BYTES;
    for (size_t i = 0; i < n && i < left; i++) {
        const uint8_t *entry = tiff.at + at + 2 + i * ENTRY_BYTES;

        if (load16(entry, big) == TAG_ORIENTATION)
            found = value_of(entry, big);
    }
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
