/* What follows the last page: newer writers put a hash there, or encrypt the whole file. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/core/blob_hash.h"
#include "format/mindrecord/layout/header.h"

#define HASH      "HASH"
#define ENCRYPT   "ENCRYPT"
#define HASH_TAIL 8 /* bytes of the hash's length, and of HASH */

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

int mindrecord_check_hash(const struct blob *blob, struct diag *d)
{
    const EVP_MD *const types[] = {EVP_sha224(),   EVP_sha256(),   EVP_sha384(),   EVP_sha512(),
                                   EVP_sha3_224(), EVP_sha3_256(), EVP_sha3_384(), EVP_sha3_512()};
    uint8_t tail[HASH_TAIL], expected[EVP_MAX_MD_SIZE], found[EVP_MAX_MD_SIZE];
    unsigned found_len;
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
        r = blob_hash(blob, blob->size - sizeof(tail) - len, types[i], found, &found_len, d);
        if (r == 0 && !memcmp(found, expected, found_len))
            return 0;
    }
    if (r < 0)
        return r;
    return diag_set(d, -EBADMSG, "%s: byte %llu: expected the hash of the bytes before it, got %s",
                    blob_name(blob), (unsigned long long)(blob->size - sizeof(tail) - len),
                    known ? "another" : "one of a length that no known hash has");
}
