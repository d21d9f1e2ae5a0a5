/* Bytes as a file of Parquet, whose footer follows its pages. The length of the footer is made, so
 * that inputs reach it: an input is the length of the pages (2 bytes), pages, footer. Whatever
 * comes out, what is read in pieces is what is read at once, and an index that is kept is taken
 * again. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/parquet/file.h"
#include "fuzz.h"
#include "saw.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

#define MOST (1u << 16) /* bytes of a file */

static struct memo *memo;
static void check_file(const uint8_t *bytes, size_t size)
{
    const struct format_setup setup = {.keep = &one_store, .memo = memo};
    struct blob *blob = memory_blob_new("x", bytes, size, size, NULL);
    struct found found;

    FUZZ_CHECK(format_open(&format_parquet, &blob, 1, &setup, &found) == 0);
    saw_found(&found);
    found_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE uint8_t *bytes = malloc(MOST + 16);
    size_t pages, footer;

    if (len < 2 || len > MOST)
        return 0;
    pages = (size_t)min_u64(load_le16(data), len - 2);
    footer = len - 2 - pages;
    FUZZ_CHECK(bytes && memo_new(1 << 18, &memo) == 0);
    memcpy(bytes, "PAR1", 4);
    memcpy(bytes + 4, data + 2, pages);
    memcpy(bytes + 4 + pages, data + 2 + pages, footer);
    store_le32(bytes + 4 + pages + footer, (uint32_t)footer);
    memcpy(bytes + 8 + pages + footer, "PAR1", 4);
    for (unsigned again = 0; again < 2; again++)
        check_file(bytes, 12 + pages + footer);
    one_store_drop();
    memo_free(memo);
    return 0;
}
