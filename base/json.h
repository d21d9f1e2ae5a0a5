/* JSON of source files, read by jansson, with a limit of what it may allocate.
 *
 * For two members of one name in an object the last counts. Whole numbers beyond int64 are an
 * error, and so are U+0000 in a string, text that is not UTF-8, and more than 2,047 levels.
 *
 * Any thread may call json_read(); a value belongs to one thread at a time. */
#ifndef EPOCHFS_BASE_JSON_H
#define EPOCHFS_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/scope.h"

struct diag;

/* Bytes that the values of an ordinary text of len bytes may take. A hostile one wants 90 times its
 * length. */
static inline size_t json_budget(size_t len)
{
    return 64 * len + 65536;
}

/* The value that the text is, in *ret (the caller's: json_free()); the text needs no NUL. what
 * names the text in messages: "train.manifest, line 3". -EBADMSG: no JSON, with line and column, or
 * with the column alone if `what` names the line; -EFBIG: its values take more than budget bytes;
 * -ENOMEM. */
int json_read(const char *text, size_t len, const char *what, size_t budget, json_t **ret,
              struct diag *d);

/* The same, but two members of one name are an error. */
int json_read_unique(const char *text, size_t len, const char *what, size_t budget, json_t **ret,
                     struct diag *d);

/* The same, but strings may have NULs: json_string_length() is longer than strlen(). */
int json_read_nul(const char *text, size_t len, const char *what, size_t budget, json_t **ret,
                  struct diag *d);

/* For secrets: from a call with true to one with false, all memory of JSON is wiped as it is freed.
 */
void json_wipe(bool on);

void json_free(json_t **value);
#define AUTO_JSON AUTO(json_free)

#endif
