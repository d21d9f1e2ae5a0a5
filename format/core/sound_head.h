/* The head of a file of audio: where its samples begin, and what they are. WAVE (RIFF, RIFX, RF64)
 * with whole numbers or floats, and NIST SPHERE with whole numbers; not what is compressed. It is
 * hostile. */
#ifndef EPOCHFS_FORMAT_CORE_SOUND_HEAD_H
#define EPOCHFS_FORMAT_CORE_SOUND_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sound_head {
    unsigned channels; /* at least 1; their samples alternate */
    unsigned width;    /* bytes of a sample: 1 to 4 of whole numbers, 4 or 8 of floats */
    bool is_float;     /* else whole numbers, */
    bool is_unsigned;  /* with a sign but here: WAVE's of one byte */
    bool big_endian;
    uint32_t rate; /* samples of a channel in a second; 0: it is not said */
    size_t data;   /* the byte where the samples begin, at most len */
    size_t size;   /* bytes of samples from there on, as far as the len bytes have them */
};

/* Read the head from the first len bytes of a file. false: they are of no such file, or end before
 * its samples. */
bool sound_head_read(const uint8_t *bytes, size_t len, struct sound_head *ret);

/* A sample, from -1 to 1 where whole numbers are used in full. p: [width] */
double sound_sample(const struct sound_head *head, const uint8_t *p);

#endif
