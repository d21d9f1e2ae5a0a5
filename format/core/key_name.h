/* Names of samples in the tree, made of their keys: a key may be any bytes, a name may not.
 *
 * '/', NUL, '%' and a '.' at the start stand as '%' and two hexadecimal digits, upper case. A name
 * that would pass KEY_NAME_MAX is cut and ends in "%~" and the 16 digits of the key's hash. */
#ifndef EPOCHFS_FORMAT_CORE_KEY_NAME_H
#define EPOCHFS_FORMAT_CORE_KEY_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_NAME_MAX  180 /* bytes: with a suffix a file name, which has 255 at most */
#define KEY_NAME_SIZE (KEY_NAME_MAX + 1)

/* Write the name of a key, NUL-terminated; returns its length. dots: all '.' are escaped, and the
 * first of "__", as WebDataset needs it. */
size_t key_name(const void *key, size_t len, bool dots, char ret[static KEY_NAME_SIZE]);

/* The key that a name is of: no longer than the name. false: no key has that name, or it is a cut
 * one. */
bool key_of_name(const char *name, size_t len, uint8_t *ret, size_t *ret_len);

/* Is the name a cut one? *ret_hash: of the key. */
bool key_name_is_cut(const char *name, size_t len, uint64_t *ret_hash);

#endif
