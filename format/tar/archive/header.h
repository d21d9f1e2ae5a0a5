/* Header blocks of tar archives, as POSIX (ustar, pax), GNU tar, star and the old v7 write them;
 * and the records of a pax header. They are hostile. */
#ifndef EPOCHFS_FORMAT_TAR_ARCHIVE_HEADER_H
#define EPOCHFS_FORMAT_TAR_ARCHIVE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK       512u
#define TAR_HEADER_NAME 256  /* bytes of a name in one block, at most: the prefix, '/', the name */
#define TAR_NAME_MAX    4096 /* bytes of a name that is taken, at most */

enum tar_entry_type {
    TAR_FILE,
    TAR_FOLDER,
    TAR_OTHER,       /* a link, device, dump: no content for a sample */
    TAR_SPARSE,      /* a file with holes that are not stored: never expanded */
    TAR_PAX,         /* records for the next member */
    TAR_PAX_GLOBAL,  /* records for all members that follow */
    TAR_LONG_NAME,   /* GNU: the name of the next member */
    TAR_LONG_TARGET, /* GNU: the same of its link, which nothing uses */
    TAR_END,         /* a block of zeros */
};

struct tar_header {
    enum tar_entry_type type;
    bool has_data;   /* bytes follow the header; */
    bool has_map;    /* of a sparse file: blocks that go on with its map come before them */
    uint64_t stored; /* the number that is stored as their size */
    size_t name_len;
    uint8_t name[TAR_HEADER_NAME];
};

/* Parse a block. NULL, or what is wrong with it: "expected ..., got ..." without numbers. */
const char *tar_header_parse(const uint8_t block[static TAR_BLOCK], struct tar_header *ret);

/* Whether another block of a sparse file's map follows this one. */
bool tar_map_goes_on(const uint8_t block[static TAR_BLOCK]);

/* What pax records say of members; starts as {0}. A later record of a name counts. */
struct tar_pax {
    bool is_sparse;
    enum tar_pax_state { TAR_PAX_NONE, TAR_PAX_SET, TAR_PAX_DELETED } path, size;
    uint64_t size_value;
    size_t path_len;
    uint8_t path_value[TAR_NAME_MAX];
    size_t sparse_len;                 /* 0: none */
    uint8_t sparse_name[TAR_NAME_MAX]; /* of a sparse file; its path is made up */
};

/* Take the records of a pax header into *pax. NULL, or what is wrong; *pax is changed then. */
const char *tar_pax_parse(const uint8_t *bytes, size_t len, struct tar_pax *pax);

#endif
