/* The header of an IDX file.
 *
 * offset 0  00 00     two zero bytes
 * offset 2  TT        type code, see format/encode/idx_types.h
 * offset 3  ND        number of axes, 1 to 255
 * offset 4  ND x u32  sizes, big-endian, outermost first
 * then the elements, big-endian, last axis fastest, to the end of the file
 *
 * Source: http://yann.lecun.com/exdb/mnist, "the IDX file format". */
#ifndef EPOCHFS_FORMAT_IDX_HEADER_H
#define EPOCHFS_FORMAT_IDX_HEADER_H

#include "base/blob.h"
#include "base/diag.h"
#include "format/core/dtype.h"

#define IDX_AXES_MAX   255
#define IDX_HEADER_MAX (4 + 4 * IDX_AXES_MAX) /* bytes */

struct idx_header {
    enum dtype dtype;
    unsigned axes;              /* 1 to IDX_AXES_MAX */
    uint32_t dim[IDX_AXES_MAX]; /* [axes]; dim[0]: samples */
    uint64_t payload;           /* byte offset of the first element */
    uint64_t item_bytes;        /* of one sample */
};

/* Parse and check the header of a file of size bytes, of which head has the first len: at least
 * IDX_HEADER_MAX, or all. The payload must have exactly the size that the header states. name: of
 * the file, in messages. 0; or -EBADMSG with the reason in d. *ret is written only
 * on success. */
int idx_header_parse(const char *name, const uint8_t *head, size_t len, uint64_t size,
                     struct idx_header *ret, struct diag *d);

/* The same of a file, or the blob's error. */
int idx_header_read(const struct blob *blob, struct idx_header *ret, struct diag *d);

#endif
