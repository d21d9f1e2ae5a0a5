/* Tools of the program that are written in Python: python/__main__.py runs them. */
#ifndef EPOCHFS_FS_CLI_PYTHON_H
#define EPOCHFS_FS_CLI_PYTHON_H

#include "base/text.h"

/* Become the tool, with a word and what it reads from stdin. Returns only if there is no Python, or
 * the tool is not installed: an exit code, of what was printed.
 *
 * Python is EPOCHFS_PYTHON, an absolute path, or /usr/bin/python3.
 * The tool is found from where this program is, and imports nothing from the working directory,
 * from PYTHONPATH or from the home of the user: root may run it anywhere. */
int python_become(const char *tool, const char *word, const struct text *input);

/* Run the tool, and get what it writes to stdout. EXIT_DONE, or an exit code, of what was printed.
 */
int python_run(const char *tool, const struct text *input, struct text *ret);

#endif
