/* What a terminal can show, and numbers as bars on it. */
#ifndef EPOCHFS_FS_CLI_GLYPHS_H
#define EPOCHFS_FS_CLI_GLYPHS_H

#include <stdbool.h>

#include "base/text.h"

struct glyphs {
    unsigned columns; /* of a line */
    bool unicode;     /* else ASCII */
    bool no_drawings; /* there is no Python for them */
    bool greys;       /* the terminal has 256 colours, and the user wants colours */
};

/* What the terminal at fd can show, by the locale, TERM, COLORTERM and NO_COLOR. false: fd is not a
 * terminal. */
bool glyphs_init(struct glyphs *ret, int fd);

/* Add n characters, each a bar of its height, from 0 to 1. */
void glyphs_add_bars(const struct glyphs *g, const float *height, unsigned n, struct text *t);

#endif
