/* Whether a file ends where its header says. Decoders find out while they decode; these look at the
 * ends of a file only. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/audio/parts.h"

#define ID3_HEAD   10
#define ID3_TAGS   4         /* at most, one after another */
#define MP3_HEAD   192       /* bytes of the first frame that may have a header of the file */
#define FLAC_TAIL  (1 << 16) /* frames that are longer are decoded instead */
#define FLAC_TRIES 64 /* what looks like the head of a frame; by chance there is hardly one */
#define ID3_END    128
#define OGG_HEAD   27
#define OGG_LAST   4          /* flag of a stream's last page */
#define OGG_LIKELY (1u << 14) /* has a page of nearly all files, */
#define OGG_TAIL   (1u << 17) /* and this has one of all: two pages are at most as long */

static int audio_bytes(const struct audio_file *file, uint64_t off, void *dst, size_t len,
                       struct diag *d)
{
    return file->read(file->ctx, off, dst, len, d);
}

bool audio_begins(const uint8_t head[static 4])
{
    static const char *const known[] = {"RIFF", "RIFX", "RF64", "FORM", ".snd",
                                        "dns.", "NIST", "OggS", "fLaC", "ID3"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!memcmp(head, known[i], strlen(known[i])))
            return true;
    return head[0] == 0xff && (head[1] & 0xe0) == 0xe0; /* mp3 */
}

int audio_find_container(const struct audio_file *file, enum audio_container *ret,
                         uint64_t *ret_start, struct diag *d)
{
    uint8_t head[ID3_HEAD] = {0};
    uint64_t start = 0;
    int r = 0;

    *ret = AUDIO_OTHER;
    for (unsigned i = 0; i < ID3_TAGS && file->size - start >= ID3_HEAD; i++) {
        r = audio_bytes(file, start, head, ID3_HEAD, d);
        if (r < 0 || memcmp(head, "ID3", 3) != 0)
            break;
        start = min_u64(file->size, start + ID3_HEAD + ((uint64_t)(head[6] & 127) << 21) +
                                        ((uint64_t)(head[7] & 127) << 14) +
                                        ((uint64_t)(head[8] & 127) << 7) + (head[9] & 127));
    }
    *ret_start = start;
    if (r < 0)
        return r;
    if (!memcmp(head, "fLaC", 4))
        *ret = AUDIO_FLAC;
    else if (!memcmp(head, "OggS", 4))
        *ret = AUDIO_OGG;
    else if (start || (head[0] == 0xff && (head[1] & 0xe0) == 0xe0 && (head[1] & 6)))
        *ret = AUDIO_MP3; /* layer 0 would be AAC */
    return 0;
}

/* ---- FLAC ---- */

static unsigned flac_crc(const uint8_t *p, size_t n, unsigned bits, unsigned polynomial)
{
    unsigned crc = 0, top = 1u << (bits - 1);

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned)p[i] << (bits - 8);
        for (int k = 0; k < 8; k++)
            crc = crc & top ? crc << 1 ^ polynomial : crc << 1;
        crc &= 2 * top - 1;
    }
    return crc;
}

/* Bytes of the header of a frame, without its CRC-8; 0: it is none. */
static size_t flac_head(const uint8_t *p, size_t n)
{
    size_t len = 5; /* with one byte of the coded number */

    if (n < 16 || p[0] != 0xff || (p[1] & 0xfe) != 0xf8 || p[2] >> 4 == 0 || (p[2] & 15) == 15 ||
        (p[3] & 1))
        return 0;
    for (uint8_t bit = 0x40; p[4] & 0x80 && p[4] & bit && len < 11; bit >>= 1)
        len++;
    len += p[2] >> 4 == 6 ? 1 : p[2] >> 4 == 7 ? 2 : 0;
    len += (p[2] & 15) == 12 ? 1 : (p[2] & 15) > 12 ? 2 : 0;
    return len < n && flac_crc(p, len, 8, 0x07) == p[len] ? len : 0;
}

int audio_flac_is_whole(const struct audio_file *file, uint64_t start, struct diag *d)
{
    uint8_t tail[FLAC_TAIL];
    size_t n = (size_t)min_u64(file->size - start, FLAC_TAIL);
    int r = n ? audio_bytes(file, file->size - n, tail, n, d) : 0;

    if (r < 0)
        return r;
    if (n > ID3_END && !memcmp(tail + n - ID3_END, "TAG", 3))
        n -= ID3_END;
    for (size_t at = n, tries = 0; at-- > 0 && tries < FLAC_TRIES;)
        if (flac_head(tail + at, n - at)) {
            if (!flac_crc(tail + at, n - at, 16, 0x8005))
                return 1;
            tries++;
        }
    return 0;
}

/* ---- Ogg ---- */

/* Bytes of the page that begins at p; 0: none does, or it is longer than n. */
static size_t ogg_page(const uint8_t *p, size_t n)
{
    size_t len = OGG_HEAD;

    if (n < OGG_HEAD || memcmp(p, "OggS", 4) != 0 || n < OGG_HEAD + (size_t)p[26])
        return 0;
    len += p[26];
    for (unsigned i = 0; i < p[26]; i++)
        len += p[OGG_HEAD + i];
    return len <= n ? len : 0;
}

int audio_ogg_is_whole(const struct audio_file *file, struct diag *d)
{
    uint8_t tail[OGG_TAIL];

    for (size_t most = OGG_LIKELY; most <= OGG_TAIL; most *= OGG_TAIL / OGG_LIKELY) {
        size_t n = (size_t)min_u64(file->size, most);
        int r = n ? audio_bytes(file, file->size - n, tail, n, d) : 0;

        if (r < 0)
            return r;
        for (size_t at = n; at-- > 0;)
            if (ogg_page(tail + at, n - at))
                return (tail[at + 5] & OGG_LAST) != 0;
    }
    return -ENODATA;
}

/* ---- mp3 ---- */

int audio_mp3_is_whole(const struct audio_file *file, uint64_t start, struct diag *d)
{
    uint8_t head[MP3_HEAD] = {0};
    size_t n = (size_t)min_u64(file->size - start, MP3_HEAD), at;
    unsigned has, least;
    int r = n ? audio_bytes(file, start, head, n, d) : 0;

    if (r < 0 || n < 64 || head[0] != 0xff)
        return r < 0 ? r : 0;
    /* After the side information: MPEG 1 or not, one channel or two. */
    at = (head[1] & 8) ? ((head[3] & 0xc0) == 0xc0 ? 17 : 32) : ((head[3] & 0xc0) == 0xc0 ? 9 : 17);
    at += 4;
    if (memcmp(head + at, "Xing", 4) != 0 && memcmp(head + at, "Info", 4) != 0)
        return 0;
    has = load_be32(head + at + 4);
    if (!(has & 1) || !(has & 2) || !load_be32(head + at + 8))
        return 0;
    least = head[1] & 8 ? 96 : 24; /* bytes of a frame: 32 or 8 kbit/s, at the highest rate */
    return load_be32(head + at + 12) > file->size - start ||
                   load_be32(head + at + 8) > (file->size - start) / least
               ? -EBADMSG
               : 1;
}
