/* Bytes as a file of MindRecord: the JSON of its header, a NUL byte, and its pages, each with its
 * length in front (2 bytes), because between pages files are mostly holes. Whatever comes out, what
 * is read in pieces is what is read at once, no content is larger than its file can have, and an
 * index that is kept is taken again. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/mindrecord/file.h"
#include "fuzz.h"
#include "saw.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

#define HEADER 16384 /* bytes: what the corpus has as header_size and page_size */
#define PAGE   32768
#define PAGES  4
#define UNPACK 8 /* a byte of the file is 8 bytes of a packed integer at most */

/* ---- the dataset ---- */

static struct memo *memo;
static void check_sizes(const struct dataset *ds, uint64_t size)
{
    struct one_sample one;
    struct form form;
    uint64_t bytes;

    for (uint64_t sample = 0; sample < ds->samples && sample < 100; sample++)
        for (unsigned i = 0; i < ds->n_fields; i++) {
            one_sample_init(&one, sample);
            if (dataset_has(ds, sample, &ds->field[i]) && ds->field[i].form == FORM_BYTES &&
                field_form(ds, &ds->field[i], &one.sel, &form, &bytes) == 0)
                FUZZ_CHECK(bytes <= UNPACK * size);
        }
}

static void check_file(const uint8_t *bytes, size_t size)
{
    const struct format_setup setup = {.keep = &one_store, .memo = memo};
    struct blob *blob = memory_blob_new("x", bytes, size, size, NULL);
    struct found found;

    FUZZ_CHECK(format_open(&format_mindrecord, &blob, 1, &setup, &found) == 0);
    saw_found(&found);
    for (size_t i = 0; i < found.n; i++)
        if (found.item[i].ds && dataset_state(found.item[i].ds) == DATASET_READY)
            check_sizes(found.item[i].ds, size);
    found_release(&found);
}

/* Returns the size of the file; 0: the input is none. */
static size_t make_file(const uint8_t *data, size_t len, uint8_t *ret)
{
    const uint8_t *nul = len ? memchr(data, '\0', len) : NULL, *end = data + len;
    size_t json = nul ? (size_t)(nul - data) : 0, size = MINDRECORD_LENGTH + json;

    if (!nul || size > HEADER)
        return 0;
    store_le64(ret, json);
    memcpy(ret + MINDRECORD_LENGTH, data, json);
    data = nul + 1;
    for (unsigned i = 0; i < PAGES && end - data >= 2; i++) {
        size_t n = (size_t)min_u64(min_u64(load_le16(data), PAGE), (uint64_t)(end - data) - 2);

        if (n)
            memcpy(ret + HEADER + i * PAGE, data + 2, n);
        size = HEADER + i * PAGE + n;
        data += 2 + n;
    }
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE uint8_t *bytes = calloc(1, HEADER + PAGES * PAGE);
    size_t size;

    FUZZ_CHECK(bytes && memo_new(1 << 16, &memo) == 0);
    size = make_file(data, len, bytes);
    for (unsigned again = 0; again < 2 && size; again++)
        check_file(bytes, size);
    one_store_drop();
    memo_free(memo);
    return 0;
}
