/* A few samples of a dataset, drawn for a terminal: pictures and matrices side by side; rows,
 * vectors and audio as one line of bars each; with their keys, numbers and text; and histograms of
 * the lengths of texts, token lists and other arrays. */
#ifndef EPOCHFS_FS_CLI_DRAWING_H
#define EPOCHFS_FS_CLI_DRAWING_H

#include "format/core/dataset.h"
#include "fs/cli/glyphs.h"

/* Add lines that show the first samples of a dataset that is ready; none if it has no samples or
 * the terminal is too narrow. Blocks while it reads these samples; what cannot be read is reported
 * in a line of its own. false: there is no Python to draw, which was printed. */
bool drawing_add(const struct dataset *ds, const struct glyphs *glyphs, struct text *t);

#endif
