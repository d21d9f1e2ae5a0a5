/* Reading the JSON that epochfs itself writes: one value of it by its path.
 *
 * The text need not be well-formed for this to be safe: what cannot be followed is not found. */
#ifndef EPOCHFS_FS_CLI_JSON_H
#define EPOCHFS_FS_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the value is that has this path: names of members with '.' between them, as in
 * "remote.hits". NULL: there is none. */
const char *json_find(const char *json, const char *path);

/* The first element of the list that has this path, and the one behind an element; NULL: there is
 * none. Paths can be looked for in an element as in a text. */
const char *json_first(const char *json, const char *path);
const char *json_next(const char *at);

/* An unsigned number, 0 where there is none of that path. */
uint64_t json_number(const char *json, const char *path);
double json_real(const char *json, const char *path);

/* A string without its quotes and escapes, cut to room; "" where there is none. false: so it is. */
bool json_text(const char *json, const char *path, char *ret, size_t capacity);

#endif
