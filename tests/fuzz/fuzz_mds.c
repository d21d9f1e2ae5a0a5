/* An index.json, a byte 0, and a shard of MDS: they are refused with a reason, or each content of
 * each sample is read or is an error with a reason. A kept index changes nothing. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/mds/mds.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

#define READ_MOST 4096

static void check_field(const struct dataset *ds, const struct field *f, uint64_t sample)
{
    uint8_t once[READ_MOST], pieces[READ_MOST];
    struct one_sample one;
    struct form form;
    uint64_t bytes;

    if (!dataset_has(ds, sample, f) || f->numbering || f->form == FORM_OFFSETS ||
        f->form == FORM_LENGTHS || f->form == FORM_SHAPES || f->form == FORM_PADDED)
        return;
    one_sample_init(&one, sample);
    if (field_form(ds, f, &one.sel, &form, &bytes) < 0 || bytes > READ_MOST || bytes < 2)
        return;
    if (f->ops->read(READ_WAITS, ds, f, &one.sel, 0, bytes, once, NULL) < 0)
        return;
    FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, 1, bytes - 1, pieces, NULL) == 0);
    FUZZ_CHECK(!memcmp(once + 1, pieces, bytes - 1));
}

static void ignore(void *ctx, const char *text)
{
    (void)ctx;
    FUZZ_CHECK(*text);
}

static void check_source(const uint8_t *index, size_t index_len, const uint8_t *shard, size_t len)
{
    struct blob *blobs[] = {memory_blob_new("index.json", index, index_len, index_len, NULL),
                            memory_blob_new("shard.00000.mds", shard, len, len, NULL)};
    const struct format_setup setup = {.keep = &one_store};
    struct found found;

    FUZZ_CHECK(format_open(&format_mds, blobs, 2, &setup, &found) == 0);
    for (size_t i = 0; i < found.n; i++) {
        struct dataset *ds = found.item[i].ds;

        FUZZ_CHECK(ds || found.item[i].reason[0]);
        while (ds && !dataset_prepare(ds))
            ;
        if (!ds || dataset_state(ds) == DATASET_FAILED)
            continue;
        for (uint64_t sample = 0; sample < ds->samples && sample < 20; sample++)
            for (unsigned k = 0; k < ds->n_fields; k++)
                check_field(ds, &ds->field[k], sample);
        FUZZ_CHECK(ds->ops->check(ds, ignore, NULL, &(struct diag){.set = false}) == 0);
    }
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
