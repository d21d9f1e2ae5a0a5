/* How long the texts, token lists and other arrays of a dataset are: a histogram in a line of bars.
 */
#ifndef EPOCHFS_FS_CLI_LENGTHS_H
#define EPOCHFS_FS_CLI_LENGTHS_H

#include "format/core/dataset.h"
#include "fs/cli/glyphs.h"

/* Is it a file of text, or of audio that can be drawn, by its extension? */
bool lengths_is_text_file(const struct field *f);
bool lengths_is_sound_file(const struct field *f);

/* Add two lines for each of the first fields of a ready dataset whose items differ in length:
 * least, middle and largest length, and the bars. For many samples, evenly spaced ones count. Reads
 * nothing of the source. */
void lengths_add(const struct dataset *ds, const struct glyphs *glyphs, struct text *t);

#endif
