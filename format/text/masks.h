/* Text of numbers as bit masks over 64 bytes at a time: where lines end, where white space and a
 * mark between numbers are, and what cannot be part of a plain number. So a scan at the speed of
 * memory tells lines that need no parsing to be known good.
 *
 * A plain number is [+-] digits [. [digits]], between white space, marks and line ends. */
#ifndef EPOCHFS_FORMAT_TEXT_MASKS_H
#define EPOCHFS_FORMAT_TEXT_MASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bit i of a mask describes byte i of a word of 64 bytes. */
struct text_masks {
    uint64_t end;   /* CR or LF */
    uint64_t space; /* space, TAB, VT, FF, but not the mark */
    uint64_t mark;
    uint64_t digit, point, zero;
    uint64_t odd; /* not part of a plain number, or behind a sign that no digit follows */
};

/* The masks of words * 64 bytes, which begin a line. needs_number: a byte behind a mark that no
 * number begins with is odd as well. */
void text_masks_make(const uint8_t *text, size_t words, char mark, bool needs_number,
                     struct text_masks *ret);

/* The same on any processor: text_masks_make() takes the widest instructions that this one has. */
void text_masks_make_anywhere(const uint8_t *text, size_t words, char mark, bool needs_number,
                              struct text_masks *ret);

/* Only `end`, and only of the lines that end with this character; the rest is 0. Quicker. */
void text_masks_find(const uint8_t *text, size_t words, char end, struct text_masks *ret);

/* Is any of bytes [from, to] odd? */
bool text_masks_odd(const struct text_masks *masks, size_t from, size_t to);

/* Has [from, to), or what goes on behind it, a number of 8 digits or more before its point, of 32
 * bytes, or, if fractions count, of 10 digits in all without leading zeros? float32 holds whole
 * numbers of fewer, and tells others of fewer apart. */
bool text_masks_long(const struct text_masks *masks, size_t from, size_t to, bool fractions);

#endif
