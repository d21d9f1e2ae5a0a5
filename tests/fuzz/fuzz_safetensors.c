/* Bytes as a safetensors file. It is refused with a reason; or the tensors of its datasets lie
 * after the header, each on its own bytes, and each sample of them can be read. Reads that fail
 * change nothing but that. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/core/format.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/memory_blob.h"
#include "support/render.h"

extern const struct format format_safetensors;

#define READ_MOST 65536

static void check_field(const struct dataset *ds, const struct field *f, const uint8_t *data,
                        uint64_t size)
{
    size_t len = (size_t)min_u64(f->item_bytes, READ_MOST);
    AUTO_FREE uint8_t *item = malloc(len + 1);
    uint64_t bytes;
    struct one_sample one;

    FUZZ_CHECK(checked_mul(ds->samples, f->stored_bytes, &bytes));
    FUZZ_CHECK(bytes <= size && f->offset <= size - bytes);
    FUZZ_CHECK(f->offset >= 8 + load_le64(data));
    for (uint64_t k = 0; k < 2 && ds->samples; k++) {
        uint64_t sample = k ? ds->samples - 1 : 0;

        one_sample_init(&one, sample);
        FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, 0, len, item, NULL) == 0);
        FUZZ_CHECK(!memcmp(item, data + f->offset + sample * f->stored_bytes, len));
    }
}

static void check_apart(const struct field *a, uint64_t n, const struct field *b, uint64_t m)
{
    FUZZ_CHECK(!n || !m || !a->stored_bytes || !b->stored_bytes ||
               a->offset + n * a->stored_bytes <= b->offset ||
               b->offset + m * b->stored_bytes <= a->offset);
}

static void open_file(const uint8_t *data, size_t len, bool pair_off, uint64_t fail_read)
{
    struct blob_faults faults = {.fail_read = fail_read};
    struct blob *blob = memory_blob_new("x.safetensors", data, len, len, &faults);
    const struct format_setup setup = {.options.pair_off = pair_off};
    struct found found;

    FUZZ_CHECK(format_open(&format_safetensors, &blob, 1, &setup, &found) == 0);
    faults.fail_read = 0;
    for (size_t i = 0; i < found.n; i++) {
        const struct dataset *ds = found.item[i].ds;

        FUZZ_CHECK(ds || found.item[i].reason[0]);
        for (unsigned k = 0; ds && k < ds->n_fields; k++) {
            const struct field *f = &ds->field[k];

            if (f->numbering)
                continue;
            check_field(ds, f, data, len);
            for (unsigned m = 0; m < k; m++)
                check_apart(f, ds->samples, &ds->field[m], ds->samples);
        }
    }
    if (!fail_read)
        saw_found(&found);
    found_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint64_t way = fuzz_hash(data, len);

    if (len > FOUND_MAX * 40) /* more tensors than datasets can be taken */
        return 0;
    if (fuzz_takes(way, 0, 3))
        open_file(data, len, true, 0);
    if (fuzz_takes(way, 1, 3))
        open_file(data, len, false, 0);
    if (fuzz_takes(way, 2, 3))
        open_file(data, len, false, 1 + way % 3);
    return 0;
}
