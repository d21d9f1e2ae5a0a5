/* What follows the last page: newer writers put a hash there, or encrypt the whole file. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/mindrecord/layout/header.h"

#define HASH      "HASH"
#define ENCRYPT   "ENCRYPT"
#define HASH_TAIL 8 /* bytes of the hash's length, and of HASH */
#define CHUNK     (size_t)(1 << 20)

int mindrecord_refuse_encrypted(const struct blob *blob, struct diag *d)
{
    char end[sizeof(ENCRYPT) - 1];
    int r;

    if (blob->size < sizeof(end))
        return 0;
    r = blob_read(READ_WAITS, blob, end, sizeof(end), blob->size - sizeof(end), d);
    if (r == 0 && !memcmp(end, ENCRYPT, sizeof(end)))
        r = diag_set(d, -EBADMSG, "%s: byte %llu: encrypted MindRecord, which is not supported",
                     blob_name(blob), (unsigned long long)(blob->size - sizeof(end)));
    return r;
}

static void mindrecord_free_hash(EVP_MD_CTX **hash)
{
    EVP_MD_CTX_free(*hash);
}

/* Are the bytes before the tail of that hash? 1, 0, or -errno. */
static int mindrecord_is_hash(const struct blob *blob, const EVP_MD *type, uint64_t end,
                              const uint8_t *expected, struct diag *d)
{
    AUTO(mindrecord_free_hash) EVP_MD_CTX *hash = EVP_MD_CTX_new();
    AUTO_FREE uint8_t *bytes = malloc(CHUNK);
    uint8_t found[EVP_MAX_MD_SIZE];
    unsigned len;

    if (!hash || !bytes || !EVP_DigestInit_ex(hash, type, NULL))
        return -ENOMEM;
    for (uint64_t at = 0; at < end; at += CHUNK) {
        size_t n = (size_t)min_u64(CHUNK, end - at);
        int r = blob_read(READ_WAITS, blob, bytes, n, at, d);

        if (r < 0)
            return r;
        if (!EVP_DigestUpdate(hash, bytes, n))
            return -ENOMEM;
    }
    if (!EVP_DigestFinal_ex(hash, found, &len))
        return -ENOMEM;
    return !memcmp(found, expected, len);
}

int mindrecord_check_hash(const struct blob *blob, struct diag *d)
{
    const EVP_MD *const types[] = {EVP_sha224(),   EVP_sha256(),   EVP_sha384(),   EVP_sha512(),
                                   EVP_sha3_224(), EVP_sha3_256(), EVP_sha3_384(), EVP_sha3_512()};
    uint8_t tail[HASH_TAIL], expected[EVP_MAX_MD_SIZE];
    bool known = false;
    uint32_t len;
    int r;

    if (blob->size < sizeof(tail))
        return 0;
    r = blob_read(READ_WAITS, blob, tail, sizeof(tail), blob->size - sizeof(tail), d);
    if (r < 0 || memcmp(tail + 4, HASH, 4) != 0)
        return r;
    len = load_be32(tail);
    if (len <= sizeof(expected) && len <= blob->size - sizeof(tail))
        r = blob_read(READ_WAITS, blob, expected, len, blob->size - sizeof(tail) - len, d);
    else
        len = 0;
    for (size_t i = 0; i < ARRAY_LEN(types) && r == 0; i++) {
        if ((uint32_t)EVP_MD_get_size(types[i]) != len)
            continue;
        known = true;
        r = mindrecord_is_hash(blob, types[i], blob->size - sizeof(tail) - len, expected, d);
    }
    if (r)
        return r < 0 ? r : 0;
    return diag_set(d, -EBADMSG, "%s: byte %llu: expected the hash of the bytes before it, got %s",
                    blob_name(blob), (unsigned long long)(blob->size - sizeof(tail) - len),
                    known ? "another" : "one of a length that no known hash has");
}
