/* Bytes as a .npy file. It is refused with a reason; or each row lies within the file, and what a
 * sample's file shows are bytes of it, as numpy has them: turned into C's order and little-endian.
 */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/array/array.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/render.h"

extern const struct format format_npy;

#define READ_MOST 65536

static void check_sample(const struct dataset *ds, const struct field *f, uint64_t sample)
{
    size_t len = (size_t)min_u64(f->item_bytes, READ_MOST), cut = len / 3;
    AUTO_FREE uint8_t *whole = malloc(len + 1), *pieces = malloc(len + 1);
    struct one_sample one;

    one_sample_init(&one, sample);
    FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, 0, len, whole, NULL) == 0);
    FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, 0, cut, pieces, NULL) == 0);
    FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, cut, len - cut, pieces + cut, NULL) == 0);
    FUZZ_CHECK(!memcmp(whole, pieces, len));
}

static void report(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
    FUZZ_CHECK(!"a .npy has no checksum");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct blob *blob = memory_blob_new("x.npy", data, len, len, NULL);
    const struct format_setup setup = {.made = NULL};
    struct found found;

    FUZZ_CHECK(format_open(&format_npy, &blob, 1, &setup, &found) == 0);
    FUZZ_CHECK(found.n == 1);
    if (found.item[0].ds) {
        const struct dataset *ds = found.item[0].ds;
        const struct field *f = ds->field;
        uint64_t bytes;

        FUZZ_CHECK(checked_mul(ds->samples, f->stored_bytes, &bytes));
        FUZZ_CHECK(bytes <= f->blob->size && f->offset <= f->blob->size - bytes);
        FUZZ_CHECK(f->blob->size <= len);
        if (ds->samples) {
            check_sample(ds, f, 0);
            check_sample(ds, f, ds->samples - 1);
        }
        FUZZ_CHECK(ds->ops->check(ds, report, NULL, NULL) == 0);
    } else {
        FUZZ_CHECK(found.item[0].reason[0]);
    }
    saw_found(&found);
    found_release(&found);
    return 0;
}
