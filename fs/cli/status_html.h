/* The state of a mount as a page for a browser: one file, without scripts, that fetches nothing. */
#ifndef EPOCHFS_FS_CLI_STATUS_HTML_H
#define EPOCHFS_FS_CLI_STATUS_HTML_H

#include <stdint.h>

#include "base/text.h"

/* Write the page, from the texts status.json and history.json of a mount. history: NULL or "" where
 * there is none. real: ns since 1970, now. Values are shown as text, whatever they are. */
void status_html(const char *status, const char *history, int64_t real, struct text *ret);

#endif
