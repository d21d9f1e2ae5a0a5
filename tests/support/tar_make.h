/* Archives, block by block, by the description of the format alone. */
#ifndef EPOCHFS_TESTS_SUPPORT_TAR_MAKE_H
#define EPOCHFS_TESTS_SUPPORT_TAR_MAKE_H

#include <stdint.h>

#include "base/text.h"

#define TAR_MADE_BLOCK 512

/* A header for a file of that name (at most 100 bytes) and size, with its checksum. */
void tar_make_header(uint8_t ret[static TAR_MADE_BLOCK], const char *name, uint64_t size,
                     char type);

/* Write the checksum of a header that was changed. */
void tar_make_sum(uint8_t header[static TAR_MADE_BLOCK]);

/* Add a header, len bytes of content, and zeros to the end of its block. */
void tar_put(struct text *t, const char *name, const void *content, size_t len, char type);

/* The same for a file whose content is that text. */
void tar_put_file(struct text *t, const char *name, const char *content);

/* Add a pax header of that type with one record. */
void tar_put_pax(struct text *t, char type, const char *key, const char *value);

void tar_put_end(struct text *t);

/* A whole archive of members "NAME=CONTENT", with "|" between them. */
void tar_put_members(struct text *t, const char *members);

#endif
