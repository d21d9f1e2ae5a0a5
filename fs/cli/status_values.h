/* Reading what a mount says of itself, by paths: the names of members with '.' between them, as in
 * "remote.hits". Any value may be NULL: it has nothing. */
#ifndef EPOCHFS_FS_CLI_STATUS_VALUES_H
#define EPOCHFS_FS_CLI_STATUS_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* Parse a text; the caller frees it. NULL: it is not JSON. */
json_t *status_parse(const char *text);

/* The value with this path; NULL: there is none. */
json_t *status_value(const json_t *json, const char *path);

/* The number with this path; 0: there is none, or it is negative. */
uint64_t status_number(const json_t *json, const char *path);
double status_real(const json_t *json, const char *path);

/* The string with this path, cut to capacity after a whole character. false: there is none, and ret
 * is "". */
bool status_string(const json_t *json, const char *path, char *ret, size_t capacity);

#endif
