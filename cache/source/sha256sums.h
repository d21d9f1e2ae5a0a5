/* SHA256SUMS: what sha256sum writes, a list of files with the SHA-256 of each. */
#ifndef EPOCHFS_CACHE_SOURCE_SHA256SUMS_H
#define EPOCHFS_CACHE_SOURCE_SHA256SUMS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32

/* Number i of an array of sums; NULL: it is unknown, as zeros are, and all where there is no array.
 */
const uint8_t *sum_at(const uint8_t *sums, size_t i);

struct sum {
    uint8_t sha256[SHA256_LEN];
    char path[PATH_MAX]; /* relative, its folders with '/' between them: see name_wrong() */
};

/* Read the next line of the text from *at (0 at first) on. 1 and *ret; 0: no more lines; -EINVAL:
 * the line is unusable, and *ret_why says why, as text; the caller may go on with the next.
 * -ENODATA: the line has no file and needs no report: it is empty, a comment, or names a hidden
 * file. */
int sums_next(const char *text, size_t len, size_t *at, struct sum *ret, const char **ret_why);

#endif
