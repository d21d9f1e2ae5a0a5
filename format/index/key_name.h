/* Names of samples in the tree, made from their keys: a key may be any bytes, a name may not.
 *
 * '/', NUL, '%' and a '.' at the start are escaped as '%' and two upper-case hexadecimal digits. A
 * name that would exceed KEY_NAME_MAX is cut and ends in "%~" and the 16 digits of the key's
 * hash. */
#ifndef EPOCHFS_FORMAT_INDEX_KEY_NAME_H
#define EPOCHFS_FORMAT_INDEX_KEY_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_NAME_MAX  180 /* bytes: leaves room for a suffix in a file name of 255 at most */
#define KEY_NAME_SIZE (KEY_NAME_MAX + 1)

/* Write the name of a key, NUL-terminated; returns its length. dots: escape all '.', and the first
 * byte of "__", as WebDataset needs it. */
size_t key_name(const void *key, size_t len, bool dots, char ret[static KEY_NAME_SIZE]);

/* The key of a name: no longer than the name. false: no key has that name, or the name is cut. */
bool key_of_name(const char *name, size_t len, uint8_t *ret, size_t *ret_len);

/* Is the name cut? *ret_hash: the key's hash. */
bool key_name_is_cut(const char *name, size_t len, uint64_t *ret_hash);

#endif
