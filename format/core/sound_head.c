/* WAVE: Microsoft's "Multimedia Programming Interface and Data Specifications 1.0", and RF64 (EBU
 * Tech 3306), whose chunks are found in the same way. SPHERE: NIST's header, lines `name -i number`
 * or `name -sN text`. */
#include "format/core/sound_head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/real.h"

/* ---- WAVE ---- */

#define WAVE_PCM        1
#define WAVE_FLOAT      3
#define WAVE_EXTENSIBLE 0xfffe
#define WAVE_FMT        16 /* bytes of "fmt " that every one has */
#define WAVE_SUBTYPE    24 /* where an extensible one says what it is */
#define CHUNK_HEAD      8

static uint32_t sound_head_get32(const struct sound_head *h, const uint8_t *p)
{
    return h->big_endian ? load_be32(p) : load_le32(p);
}

static unsigned sound_head_get16(const struct sound_head *h, const uint8_t *p)
{
    return h->big_endian ? load_be16(p) : load_le16(p);
}

/* fmt: [len], at least WAVE_FMT */
static bool read_fmt(struct sound_head *h, const uint8_t *fmt, size_t len)
{
    unsigned codec = sound_head_get16(h, fmt), bits = sound_head_get16(h, fmt + 14);

    if (codec == WAVE_EXTENSIBLE && len >= WAVE_SUBTYPE + 2)
        codec = sound_head_get16(h, fmt + WAVE_SUBTYPE);
    h->channels = sound_head_get16(h, fmt + 2);
    h->rate = sound_head_get32(h, fmt + 4);
    h->width = bits / 8;
    h->is_float = codec == WAVE_FLOAT;
    h->is_unsigned = codec == WAVE_PCM && h->width == 1;
    if (!h->channels || bits % 8)
        return false;
    return h->is_float ? h->width == 4 || h->width == 8
                       : codec == WAVE_PCM && h->width >= 1 && h->width <= 4;
}

/* A program that writes to a pipe cannot go back to fill in how long all is. Then the samples go on
 * to the end. size: of the chunk "data", behind which there may be others */
static bool is_stream(const struct sound_head *h, const uint8_t *bytes, uint64_t size)
{
    uint32_t all = sound_head_get32(h, bytes + 4);

    return size == UINT32_MAX || (!size && (!all || all == UINT32_MAX));
}

static bool read_wave(const uint8_t *bytes, size_t len, struct sound_head *h)
{
    size_t at = 12;
    bool formed = false;

    h->big_endian = !memcmp(bytes, "RIFX", 4);
    while (len - at >= CHUNK_HEAD) {
        const uint8_t *chunk = bytes + at;
        uint64_t size = sound_head_get32(h, chunk + 4);

        at += CHUNK_HEAD;
        if (!memcmp(chunk, "data", 4)) {
            h->data = at;
            h->size = is_stream(h, bytes, size) ? len - at : (size_t)min_u64(size, len - at);
            return formed;
        }
        if (size > len - at)
            return false;
        if (!memcmp(chunk, "fmt ", 4))
            formed = size >= WAVE_FMT && read_fmt(h, bytes + at, (size_t)size);
        at += (size_t)min_u64(size + size % 2, len - at);
    }
    return false;
}

/* ---- SPHERE ---- */

#define SPHERE_START 16 /* "NIST_1A\n", and the bytes of the head in a line of 8 */
#define SPHERE_MOST  65536

/* The number of that line of the head; 0: there is none. */
static unsigned sphere_number(const char *head, const char *name)
{
    const char *line = strstr(head, name);
    unsigned long v = line ? strtoul(line + strlen(name), NULL, 10) : 0;

    return v <= INT32_MAX ? (unsigned)v : 0;
}

static bool read_sphere(const uint8_t *bytes, size_t len, struct sound_head *h)
{
    char text[SPHERE_START + 1] = {0}, *head;
    unsigned long size;
    bool ok;

    memcpy(text, bytes, SPHERE_START);
    size = strtoul(text + 8, NULL, 10);
    if (size < SPHERE_START || size > SPHERE_MOST || size > len)
        return false;
    head = calloc(1, size + 1);
    if (!head)
        return false;
    memcpy(head, bytes, size);
    h->data = size;
    h->size = len - size;
    h->rate = sphere_number(head, "\nsample_rate -i ");
    h->width = sphere_number(head, "\nsample_n_bytes -i ");
    h->channels = sphere_number(head, "\nchannel_count -i ");
    h->channels = h->channels ? h->channels : 1;
    h->big_endian = strstr(head, "\nsample_byte_format -s2 10") != NULL;
    ok = strstr(head, "\nsample_coding -s3 pcm\n") || !strstr(head, "\nsample_coding ");
    free(head);
    return ok && h->width >= 1 && h->width <= 4;
}

/* ---- both ---- */

bool sound_head_read(const uint8_t *bytes, size_t len, struct sound_head *ret)
{
    struct sound_head h = {0};
    bool ok = false;

    if (len >= SPHERE_START && !memcmp(bytes, "NIST_1A\n", 8))
        ok = read_sphere(bytes, len, &h);
    else if (len >= 12 &&
             (!memcmp(bytes, "RIFF", 4) || !memcmp(bytes, "RIFX", 4) ||
              !memcmp(bytes, "RF64", 4)) &&
             !memcmp(bytes + 8, "WAVE", 4))
        ok = read_wave(bytes, len, &h);
    if (ok)
        *ret = h;
    return ok;
}

double sound_sample(const struct sound_head *head, const uint8_t *p)
{
    unsigned width = head->width;
    uint64_t bits = 0, half = UINT64_C(1) << (8 * width - 1);

    for (unsigned i = 0; i < width; i++)
        bits = bits << 8 | p[head->big_endian ? i : width - 1 - i];
    if (head->is_float)
        return width == 8 ? f8_of_bits(bits) : (double)f4_of_bits((uint32_t)bits);
    if (head->is_unsigned)
        bits ^= half;
    return ((double)(bits ^ half) - (double)half) / (double)half;
}
