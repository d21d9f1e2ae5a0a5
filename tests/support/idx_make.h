/* IDX files in memory, and the datasets that format_idx makes from them. */
#ifndef EPOCHFS_TESTS_SUPPORT_IDX_MAKE_H
#define EPOCHFS_TESTS_SUPPORT_IDX_MAKE_H

#include "format/core/format.h"
#include "support/memory_blob.h"

extern const struct format format_idx;

/* The byte of the patterned payload at offset i. */
static inline uint8_t idx_pattern(uint64_t i)
{
    return (uint8_t)((i * 167 + 13) ^ (i >> 5) * 31);
}

/* An IDX file of patterned elements, or of zeros that take no memory, for files too large to read
 * through. NULL: no memory. */
struct blob *idx_blob(const char *name, uint8_t type, unsigned axes, const uint32_t *dim,
                      struct blob_faults *faults);
struct blob *idx_blob_zeros(const char *name, uint8_t type, unsigned axes, const uint32_t *dim,
                            struct blob_faults *faults);

/* A file of one axis with those bytes as elements, type 0x08. */
struct blob *idx_blob_labels(const char *name, const uint8_t *label, uint32_t n,
                             struct blob_faults *faults);

/* The datasets and errors of a folder, in the order in which they came. */
#define FOUND_MAX 32
struct found {
    struct finds finds;
    size_t n;
    struct {
        char *name;
        struct dataset *ds; /* NULL: an error, */
        char *reason;
        int error; /* of a file; 0: not known */
    } item[FOUND_MAX];
    struct unread_file unread[FOUND_MAX];
    struct left_out_file left_out[FOUND_MAX];
};

/* Give the n blobs to a format, which takes ownership of them; their names are the file names. A
 * mark before a name says that the format does not get that file of the folder: '!': it cannot be
 * read now, '-': it was reported before, '+': it is empty. Returns its result. */
int format_open(const struct format *format, struct blob **blob, size_t n,
                const struct format_setup *setup, struct found *ret);

/* The same with format_idx. */
int idx_open(struct blob **blob, size_t n, const struct format_options *options, struct found *ret);
void found_release(struct found *found);

/* The item of that name, or -1. */
int found_find(const struct found *found, const char *name);

#endif
