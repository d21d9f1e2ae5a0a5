/* Reading the JSON that epochfs itself writes: one value by its path.
 *
 * This is safe for malformed text, too: a value that cannot be reached is not found. */
#ifndef EPOCHFS_FS_CLI_STATUS_VALUES_H
#define EPOCHFS_FS_CLI_STATUS_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The place of the value with this path: member names with '.' between them, as in "remote.hits".
 * NULL: there is none. */
const char *status_value(const char *json, const char *path);

/* The first element of the list with this path, and the element after another; NULL: there is none.
 * The functions also find paths in an element. */
const char *status_first(const char *json, const char *path);
const char *status_next(const char *at);

/* The unsigned number with this path; 0: there is none. */
uint64_t status_number(const char *json, const char *path);
double status_real(const char *json, const char *path);

/* The string with this path, without quotes and escapes, cut to capacity after a whole character.
 * false: there is none, and ret is "". */
bool status_string(const char *json, const char *path, char *ret, size_t capacity);

#endif
