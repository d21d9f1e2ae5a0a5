/* The lines of a text, one after another, by the bit masks of their ends: the one loop over lines
 * of all formats of text. A line ends with LF, CR or CRLF; by masks of text_masks_find(), with one
 * character only. */
#ifndef EPOCHFS_FORMAT_TEXT_LINES_H
#define EPOCHFS_FORMAT_TEXT_LINES_H

#include "format/text/masks.h"

/* White space in a line, except CR. */
static inline bool text_is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

/* The bytes of the line that begins at *at, which is below len, without its end: LF, CR or CRLF.
 * *at becomes the begin of the next line; len + 1: the line has no end here. */
static inline size_t text_next_line(const uint8_t *text, size_t len, size_t *at)
{
    size_t start = *at, end = start;

    while (end < len && text[end] != '\n' && text[end] != '\r')
        end++;
    *at = end + 1;
    if (*at < len && text[end] == '\r' && text[*at] == '\n')
        ++*at;
    return end - start;
}

struct text_lines {
    const uint8_t *text;
    const struct text_masks *masks; /* of the text, from its first byte on */
    size_t len;
    size_t start;  /* of the next line; when there is none, of the one that has no end here */
    size_t word;   /* behind the word of `ends` */
    uint64_t ends; /* left of it */
    uint8_t before;
};

/* A line is text[start, end), without its end. */
struct text_line {
    size_t start, end;
};

/* before: the byte before the text: LF after CR ends no line, in the next text as well. */
static inline struct text_lines text_lines_of(const uint8_t *text, size_t len,
                                              const struct text_masks *masks, uint8_t before)
{
    return (struct text_lines){.text = text, .masks = masks, .len = len, .before = before};
}

/* The next line that ends in the text. false: there is none. */
static inline bool text_lines_next(struct text_lines *lines, struct text_line *ret)
{
    for (;;) {
        size_t end;

        while (!lines->ends) {
            if (lines->word * 64 >= lines->len)
                return false;
            lines->ends = lines->masks[lines->word++].end;
            if (lines->word * 64 > lines->len)
                lines->ends &= (UINT64_C(1) << lines->len % 64) - 1;
        }
        end = (lines->word - 1) * 64 + (unsigned)__builtin_ctzll(lines->ends);
        lines->ends &= lines->ends - 1;
        *ret = (struct text_line){lines->start, end};
        lines->start = end + 1;
        if (lines->text[end] != '\n' || (end ? lines->text[end - 1] : lines->before) != '\r')
            return true;
        if (ret->start < end) /* by masks of LF only, CR is a character of the line */
            return true;
    }
}

#endif
