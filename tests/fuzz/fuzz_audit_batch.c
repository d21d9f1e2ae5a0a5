/* Bytes as a batch that `epochfs audit` reads: refused with a reason, or each sample has a number
 * and a digest. Reading it again gives the same. */
#include <string.h>

#include "fs/audit/batch.h"
#include "fuzz.h"
#include "support/memory_blob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_AUDIT_BATCH struct audit_batch one = {0};
    AUTO_AUDIT_BATCH struct audit_batch two = {0};
    struct blob *blob = memory_blob_new("x.npz", data, len, len, NULL);
    struct diag d = DIAG_INIT, again = DIAG_INIT;
    AUTO_TEXT struct text members = {0};
    struct audit_request want = {.field = fuzz_takes(fuzz_hash(data, len), 0, 2) ? "label" : NULL};
    int r = audit_batch_read(blob, &want, &one, &d);

    FUZZ_CHECK(r == 0 || d.set);
    FUZZ_CHECK(audit_batch_read(blob, &want, &two, &again) == r);
    if (r == 0) {
        FUZZ_CHECK(one.n <= len && two.n == one.n);
        FUZZ_CHECK(!one.n || !memcmp(one.number, two.number, one.n * sizeof(*one.number)));
        FUZZ_CHECK(!one.n || !memcmp(one.digest, two.digest, one.n * sizeof(*one.digest)));
    }
    if (audit_batch_members(blob, &members, NULL) == 0) {
        want.members = members.data;
        FUZZ_CHECK(audit_batch_read(blob, &want, &two, NULL) <= 0);
    }
    blob_free(blob);
    return 0;
}
