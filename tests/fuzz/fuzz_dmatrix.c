/* Bytes as XGBoost's binary DMatrix. It is refused with a reason; or each file of its samples can
 * be read and has the size that was promised, or a row has an index that is too large. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/core/format.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/memory_blob.h"
#include "support/one_store.h"
#include "support/render.h"

extern const struct format format_dmatrix;

#define COLUMNS_MOST 100000 /* dense rows of more take long */

static void read_files(const struct dataset *ds, const struct selection *sel)
{
    enum scope scope = sel->single ? SCOPE_SAMPLES : SCOPE_BATCHES;

    for (unsigned i = 0; i < ds->n_folders; i++)
        for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++) {
            const struct file_kind *kind = &ds->folder[i].files[scope][k];
            struct bytes whole = {0};
            int r = render(READ_WAITS, ds, kind, sel, NULL, &whole);

            FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -EFBIG);
            if (r == 0)
                free(whole.at);
        }
}

static void ignore(void *ctx, const char *text)
{
    (void)ctx;
    FUZZ_CHECK(strstr(text, "expected an index below num_col"));
}

static void open_file(const uint8_t *data, size_t len, uint64_t fail_read)
{
    struct blob_faults faults = {.fail_read = fail_read};
    struct blob *blob = memory_blob_new("x.buffer", data, len, len, &faults);
    struct format_setup setup = {.keep = &no_store};
    struct memo *memo;
    struct found found;

    FUZZ_CHECK(memo_new(1 << 20, &memo) == 0);
    setup.memo = memo;
    FUZZ_CHECK(format_open(&format_dmatrix, &blob, 1, &setup, &found) == 0);
    FUZZ_CHECK(found.n == 1 && (found.item[0].ds || found.item[0].reason[0]));
    if (found.item[0].ds) {
        struct dataset *ds = found.item[0].ds;
        AUTO_TEXT struct text t = {0};

        for (unsigned i = 0; i < 4 && !dataset_prepare(ds); i++)
            faults.fail_read = 0; /* the next step goes on */
        faults.fail_read = 0;
        if (dataset_state(ds) == DATASET_READY && dataset_field(ds, "x")->dim[0] <= COLUMNS_MOST) {
            const uint64_t some[3] = {ds->samples - 1, 0, ds->samples / 2};
            struct list_selection list;
            struct one_sample one;

            list_selection_init(&list, some, ds->samples ? 3 : 0);
            read_files(ds, &list.sel);
            one_sample_init(&one, 0);
            if (ds->samples)
                read_files(ds, &one.sel);
            ds->ops->describe(ds, "", &t);
            FUZZ_CHECK(ds->ops->check(ds, ignore, NULL, NULL) == 0);
        } else if (dataset_state(ds) == DATASET_FAILED) {
            FUZZ_CHECK(ds->reason.text[0]);
        }
    }
    if (!fail_read)
        saw_found(&found);
    found_release(&found);
    memo_free(memo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint64_t way = fuzz_hash(data, len);

    if (fuzz_takes(way, 0, 2))
        open_file(data, len, 0);
    if (fuzz_takes(way, 1, 2))
        open_file(data, len, 1 + way % 5);
    return 0;
}
