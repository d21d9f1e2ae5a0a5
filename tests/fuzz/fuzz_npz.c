/* Bytes as a .npz archive. The directory is refused with a reason, or its members lie in the
 * archive and do not overlap; as a source it is refused, or each row of its datasets can be read.
 * Reads that fail now and then change nothing but that. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/zip/archive/zip.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/memory_opener.h"
#include "support/render.h"

extern const struct format format_npz;

#define READ_MOST   4096
#define UNPACK_MOST (1 << 20)

static void check_directory(const struct blob *blob)
{
    AUTO_ZIP struct zip zip = {0};
    struct zip_member member[100];
    struct diag d = DIAG_INIT;

    if (zip_read(blob, false, &zip, &d) < 0) {
        FUZZ_CHECK(d.set);
        return;
    }
    FUZZ_CHECK(zip.directory <= blob->size);
    for (size_t i = 0; i < zip.n && i < ARRAY_LEN(member); i++) {
        struct zip_member *m = &member[i];

        *m = zip_member(&zip, i);
        if (zip_locate(READ_WAITS, blob, m, &d) < 0) {
            FUZZ_CHECK(d.set);
            return;
        }
        FUZZ_CHECK(m->at >= 30 && m->at <= zip.directory);
        FUZZ_CHECK(m->packed_size <= zip.directory - m->at);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(m->at + m->packed_size <= member[k].header ||
                       member[k].at + member[k].packed_size <= m->header);
    }
}

static void check_field(const struct dataset *ds, const struct field *f)
{
    size_t len = (size_t)min_u64(f->item_bytes, READ_MOST);
    AUTO_FREE uint8_t *item = malloc(len + 1);
    struct one_sample one;

    for (uint64_t k = 0; k < 2 && ds->samples; k++) {
        one_sample_init(&one, k ? ds->samples - 1 : 0);
        FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, 0, len, item, NULL) == 0);
    }
}

static void ignore(void *ctx, const char *text)
{
    (void)ctx;
    FUZZ_CHECK(*text);
}

static int unpack_small(const struct opener *opener, const struct blob *blob,
                        const struct packed_part *part, struct blob **ret, struct diag *d)
{
    struct memory_opener real = {.n_files = 0};

    (void)opener;
    FUZZ_CHECK(part->off <= blob->size && part->len <= blob->size - part->off);
    if (part->size > UNPACK_MOST)
        return diag_set(d, -ENOSPC, "too large for this test");
    memory_opener_init(&real);
    return opener_unpack(&real.opener, blob, part, ret, d);
}

static void open_archive(const uint8_t *data, size_t len, bool pair_off, uint64_t fail_read)
{
    static const struct opener_ops ops = {.unpack = unpack_small};
    struct blob_faults faults = {.fail_read = fail_read};
    struct blob *blob = memory_blob_new("x.npz", data, len, len, &faults);
    const struct opener opener = {.ops = &ops};
    const struct format_setup setup = {.options.pair_off = pair_off, .opener = &opener};
    struct found found;

    FUZZ_CHECK(format_open(&format_npz, &blob, 1, &setup, &found) == 0);
    faults.fail_read = 0;
    for (size_t i = 0; i < found.n; i++) {
        const struct dataset *ds = found.item[i].ds;

        FUZZ_CHECK(ds || found.item[i].reason[0]);
        for (unsigned k = 0; ds && k < ds->n_fields; k++)
            check_field(ds, &ds->field[k]);
        FUZZ_CHECK(!ds || ds->ops->check(ds, ignore, NULL, NULL) == 0);
    }
    if (!fail_read)
        saw_found(&found);
    found_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct blob *blob = memory_blob_new("x.npz", data, len, len, NULL);
    AUTO_ZIP struct zip zip = {0};
    uint64_t way = fuzz_hash(data, len);

    check_directory(blob);
    if (zip_read(blob, false, &zip, NULL) < 0) {
        open_archive(data, len, false, 0);
    } else if (zip.n <= FOUND_MAX) {
        if (fuzz_takes(way, 0, 3))
            open_archive(data, len, true, 0);
        if (fuzz_takes(way, 1, 3))
            open_archive(data, len, false, 0);
        if (fuzz_takes(way, 2, 3))
            open_archive(data, len, false, 1 + way % 7);
    }
    blob_free(blob);
    return 0;
}
