#include "format/core/blob_hash.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"

#define PIECE (UINT64_C(1) << 20)

static void blob_hash_free(EVP_MD_CTX **hash)
{
    EVP_MD_CTX_free(*hash);
}

int blob_hash(const struct blob *blob, uint64_t end, const EVP_MD *type,
              uint8_t ret[static EVP_MAX_MD_SIZE], unsigned *ret_len, struct diag *d)
{
    AUTO(blob_hash_free) EVP_MD_CTX *hash = EVP_MD_CTX_new();
    AUTO_FREE uint8_t *bytes = malloc(PIECE);

    if (!hash || !bytes || !EVP_DigestInit_ex(hash, type, NULL))
        return -ENOMEM;
    for (uint64_t at = 0; at < end; at += PIECE) {
        size_t n = (size_t)min_u64(PIECE, end - at);
        int r = blob_read(READ_WAITS, blob, bytes, n, at, d);

        if (r < 0)
            return r;
        if (!EVP_DigestUpdate(hash, bytes, n))
            return -ENOMEM;
    }
    return EVP_DigestFinal_ex(hash, ret, ret_len) ? 0 : -ENOMEM;
}
