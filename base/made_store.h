/* A made store: keeps arrays that were costly to make, such as decoded pictures, for later reads
 * and other mounts. All arrays of a file of the store have one size, and each is there or not.
 *
 * cache/ implements it, format/ uses it. A file belongs to an identity: a text that differs
 * wherever an array of it may differ. Processes that use one file write the same bytes, so it needs
 * no claims: an array is good if its checksum is. */
#ifndef EPOCHFS_BASE_MADE_STORE_H
#define EPOCHFS_BASE_MADE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

struct made_store;
struct made_file;

struct made_store_ops {
    int (*open)(struct made_store *store, const char *identity, const char *source, uint64_t rows,
                uint64_t row_bytes, struct made_file **ret, struct diag *d);
};

struct made_store {
    const struct made_store_ops *ops;
};

struct made_file_ops {
    bool (*read)(const struct made_file *file, uint64_t row, uint8_t *ret);
    bool (*has)(const struct made_file *file, uint64_t row);
    void (*write)(struct made_file *file, uint64_t row, const uint8_t *bytes);
    void (*close)(struct made_file *file);
};

/* The head of every file of the store. Any thread may use it. */
struct made_file {
    const struct made_file_ops *ops;
};

/* Open the file for that many arrays of row_bytes each; make it if it is not there. source: what
 * they are made from, for people. 0, or -errno with the reason in d: then nothing is kept. */
static inline int made_open(struct made_store *store, const char *identity, const char *source,
                            uint64_t rows, uint64_t row_bytes, struct made_file **ret,
                            struct diag *d)
{
    return store->ops->open(store, identity, source, rows, row_bytes, ret, d);
}

/* Read the array of a row into ret. false: it is not there, or is damaged; ret is undefined then.
 */
static inline bool made_read(const struct made_file *file, uint64_t row, uint8_t *ret)
{
    return file->ops->read(file, row, ret);
}

/* Is it probably there? Its checksum is not compared. */
static inline bool made_has(const struct made_file *file, uint64_t row)
{
    return file->ops->has(file, row);
}

/* Keep the array of a row, if there is room. That it cannot be kept is no error. */
static inline void made_write(struct made_file *file, uint64_t row, const uint8_t *bytes)
{
    file->ops->write(file, row, bytes);
}

static inline void made_close(struct made_file *file) /* takes NULL */
{
    if (file)
        file->ops->close(file);
}

/* What was done in a mount. */
struct made_counts {
    _Atomic uint64_t decoded; /* pictures */
    _Atomic uint64_t kept;    /* pictures that were read from the store instead */
    _Atomic uint64_t zeroed;  /* how often zeros were shown for one that cannot be decoded */
};

#endif
