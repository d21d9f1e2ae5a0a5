/* Bytes as a file of RecordIO, and its .idx: after a NUL byte that ends the latter. Whatever comes
 * out, no content leaves its record, what is read in pieces is what is read at once, parts put
 * together are those of the reader that is written here again, and an index that is kept is taken
 * again or refused. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/recordio/file.h"
#include "fuzz.h"
#include "saw.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

/* ---- the dataset ---- */

/* The payload of the record at *at, put together plainly. false: there is none. */
static bool next_payload(const uint8_t *bytes, size_t size, size_t *at, uint8_t *ret,
                         uint64_t *ret_len)
{
    unsigned flag;

    *ret_len = 0;
    for (bool first = true;; first = false) {
        size_t len;

        if (size - *at < 8 || load_le32(bytes + *at) != 0xced7230a)
            return false;
        flag = load_le32(bytes + *at + 4) >> 29;
        len = load_le32(bytes + *at + 4) & 0x1fffffff;
        if (flag > 3 || (first ? flag > 1 : flag < 2) || (flag % 3 && len % 4) ||
            (len + 3) / 4 * 4 > size - *at - 8)
            return false;
        if (!first) {
            store_le32(ret + *ret_len, 0xced7230a);
            *ret_len += 4;
        }
        memcpy(ret + *ret_len, bytes + *at + 8, len);
        *ret_len += len;
        *at += 8 + (len + 3) / 4 * 4;
        if (flag % 3 == 0)
            return true;
    }
}

static void check_field(const struct dataset *ds, const struct field *f, uint64_t sample,
                        const uint8_t *payload, uint64_t length)
{
    AUTO_FREE uint8_t *once = NULL;
    struct one_sample one;
    struct form form;
    uint64_t bytes;

    if (!dataset_has(ds, sample, f) || f->numbering || f->form == FORM_OFFSETS ||
        f->form == FORM_LENGTHS || f->form == FORM_SHAPES || f->form == FORM_PADDED)
        return;
    one_sample_init(&one, sample);
    if (field_form(ds, f, &one.sel, &form, &bytes) < 0)
        return;
    FUZZ_CHECK(bytes <= length + 24);
    once = malloc(bytes + 1);
    FUZZ_CHECK(once && f->ops->read(READ_WAITS, ds, f, &one.sel, 0, bytes, once, NULL) == 0);
    if (f->form == FORM_BYTES && (!strcmp(f->name, "record") || !strncmp(f->name, "image", 5)))
        FUZZ_CHECK(bytes <= length && !memcmp(once, payload + length - bytes, bytes));
}

static void check_dataset(struct dataset *ds, const uint8_t *bytes, size_t size)
{
    AUTO_FREE uint8_t *payload = malloc(size + 4);
    size_t at = 0;

    FUZZ_CHECK(payload);
    while (!dataset_prepare(ds))
        ;
    if (dataset_state(ds) == DATASET_FAILED)
        return;
    FUZZ_CHECK(ds->samples > 0);
    for (uint64_t sample = 0; sample < ds->samples; sample++) {
        uint64_t length;

        FUZZ_CHECK(next_payload(bytes, size, &at, payload, &length));
        for (unsigned i = 0; i < ds->n_fields; i++)
            check_field(ds, &ds->field[i], sample, payload, length);
    }
    FUZZ_CHECK(at == size || ds->notes.n > 0);
}

static void check_file(const uint8_t *idx, size_t idx_len, const uint8_t *bytes, size_t size)
{
    const struct format_setup setup = {.keep = &one_store};
    struct blob *blobs[] = {memory_blob_new("x.rec", bytes, size, size, NULL),
                            memory_blob_new("x.idx", idx, idx_len, idx_len, NULL)};
    struct found found;

    FUZZ_CHECK(format_open(&format_recordio, blobs, idx_len ? 2 : 1, &setup, &found) == 0);
    if (!idx_len)
        blob_free(blobs[1]);
    saw_found(&found);
    if (found.n && found.item[0].ds)
        check_dataset(found.item[0].ds, bytes, size);
    found_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *nul = len ? memchr(data, '\0', len) : NULL;
    size_t idx = nul ? (size_t)(nul - data) : 0;

    if (!nul)
        return 0;
    for (unsigned again = 0; again < 2; again++)
        check_file(data, idx, nul + 1, len - idx - 1);
    one_store_drop();
    return 0;
}
