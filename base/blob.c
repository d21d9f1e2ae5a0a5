#include "base/blob.h"

#include <errno.h>

int blob_pread(const struct blob *blob, void *buf, size_t len, uint64_t off)
{
    if (off > blob->size || len > blob->size - off)
        return -EINVAL;
    return len ? blob->ops->pread(blob, buf, len, off) : 0;
}
