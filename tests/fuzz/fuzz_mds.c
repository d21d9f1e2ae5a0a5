/* An index.json, a byte 0, and a shard of MDS: they are refused with a reason, or each content of
 * each sample is read or is an error with a reason. A kept index changes nothing. */
#include <errno.h>
#include <string.h>

#include "format/mds/mds.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

static void check_source(const uint8_t *index, size_t index_len, const uint8_t *shard, size_t len)
{
    struct blob *blobs[] = {memory_blob_new("index.json", index, index_len, index_len, NULL),
                            memory_blob_new("shard.00000.mds", shard, len, len, NULL)};
    const struct format_setup setup = {.keep = &one_store};
    struct found found;

    FUZZ_CHECK(format_open(&format_mds, blobs, 2, &setup, &found) == 0);
    saw_found(&found);
    found_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *end = memchr(data, 0, len);
    size_t index_len = end ? (size_t)(end - data) : len, shard = end ? index_len + 1 : len;

    for (unsigned again = 0; again < 2; again++)
        check_source(data, index_len, data + shard, len - shard);
    one_store_drop();
    return 0;
}
