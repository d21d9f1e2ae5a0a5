/* Hashes of whole files. */
#ifndef EPOCHFS_FORMAT_CORE_BLOB_HASH_H
#define EPOCHFS_FORMAT_CORE_BLOB_HASH_H

#include <openssl/evp.h>

#include "base/blob.h"

/* The hash of the bytes before byte `end`. It waits for them. 0, -ENOMEM, or as blob_read(). */
int blob_hash(const struct blob *blob, uint64_t end, const EVP_MD *type,
              uint8_t ret[static EVP_MAX_MD_SIZE], unsigned *ret_len, struct diag *d);

#endif
