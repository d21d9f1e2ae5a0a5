/* Names of members, by WebDataset's rule: everything before the first dot of the last part of the
 * path is the key of a sample, all after it the extension. */
#ifndef EPOCHFS_FORMAT_TAR_NAME_H
#define EPOCHFS_FORMAT_TAR_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tar_name_type {
    TAR_NAME_SAMPLE,
    TAR_NAME_META,  /* __x__ or below __x__/: WebDataset's own */
    TAR_NAME_NO_EXT /* no extension, or a hidden file */
};

struct tar_name {
    size_t key_len; /* bytes of the name that are the key */
    size_t ext;     /* where the extension begins in it */
};

/* Lower-cases the extension in place, ASCII only. *ret is written for samples. */
enum tar_name_type tar_name_split(uint8_t *name, size_t len, struct tar_name *ret);

/* Does the name say that the archive has the files of a project: is it a file that builds one, at
 * the top or in a folder there? */
bool tar_name_is_of_project(const uint8_t *name, size_t len);

#endif
