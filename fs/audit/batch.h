/* The samples of a batch, from its .npz: which samples they are, and a digest of what each holds.
 */
#ifndef EPOCHFS_FS_AUDIT_BATCH_H
#define EPOCHFS_FS_AUDIT_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/text.h"
#include "cache/disk/sha256.h"

/* A batch; {0} before the first one, and memory is used again for the next. */
struct audit_batch {
    size_t n;                        /* samples */
    size_t capacity;                 /* of the arrays, which are owned */
    uint64_t *number;                /* [n] the sample's number in its dataset, field `index` */
    uint64_t *source;                /* [n] of a mix: which source, field `source`; else 0 */
    double *value;                   /* [n] of the field that was asked for */
    uint64_t longest;                /* of the lengths that were asked for; 0: not known */
    uint8_t (*digest)[DIGEST_BYTES]; /* [n] of all fields but `index` and `source` */
    uint8_t *buffer;                 /* for reading */
};

/* What to read of batches. */
struct audit_request {
    const char *field;   /* a scalar whose values are wanted; NULL: none */
    const char *length;  /* how lengths are counted, as batch=HOW:N says; NULL: not at all */
    const char *members; /* only these are part of the digest, as audit_batch_members() writes them;
                            NULL: all but `index` and `source` */
};

/* Read one. The file is not trusted.
 * A sample's digest is the same in every batch, with whichever neighbours. 0; -EBADMSG: it is no
 * batch of samples, -ENOENT: it lacks that field; or the -errno of a read; with the reason in d. */
int audit_batch_read(const struct blob *blob, const struct audit_request *request,
                     struct audit_batch *ret, struct diag *d);

/* Write the names of the members that samples of a batch share with other datasets: without their
 * numbers and keys. A line each, with a newline before the first. As audit_batch_read(). */
int audit_batch_members(const struct blob *blob, struct text *ret, struct diag *d);
void audit_batch_release(struct audit_batch *batch);
#define AUTO_AUDIT_BATCH AUTO(audit_batch_release)

#endif
