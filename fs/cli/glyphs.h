/* Numbers as characters of a terminal: pixels as half blocks in shades of grey, heights as bars; in
 * simpler forms without colours, or without Unicode. */
#ifndef EPOCHFS_FS_CLI_GLYPHS_H
#define EPOCHFS_FS_CLI_GLYPHS_H

#include <stdbool.h>

#include "base/text.h"

struct glyphs {
    unsigned columns; /* of a line */
    bool unicode;     /* else ASCII */
    bool greys;       /* the terminal has 256 colours, and the user wants colours */
};

/* What the terminal at fd can show, by the locale, TERM, COLORTERM and NO_COLOR. false: fd is not a
 * terminal. */
bool glyphs_init(struct glyphs *ret, int fd);

/* Add n characters, each of two pixels one above the other, from 0, black, to 1. */
void glyphs_add_pixels(const struct glyphs *g, const float *upper, const float *lower, unsigned n,
                       struct text *t);

/* Add n characters, each a bar of its height, from 0 to 1. */
void glyphs_add_bars(const struct glyphs *g, const float *height, unsigned n, struct text *t);

/* Add len bytes of text, cut to columns and padded with spaces. Bytes that a terminal would obey as
 * commands, or cannot show, become '?'. */
void glyphs_add_words(const struct glyphs *g, const char *bytes, size_t len, unsigned columns,
                      struct text *t);

/* How many columns len bytes of text take. */
unsigned glyphs_columns(const struct glyphs *g, const char *bytes, size_t len);

#endif
