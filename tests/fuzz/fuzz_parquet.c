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
#define READ (1u << 20) /* bytes of a content that are read */

static struct memo *memo;
static struct dataset *found;

static int take(struct finds *finds, const char *name, struct dataset *ds)
{
    (void)finds;
    (void)name;
    FUZZ_CHECK(!found);
    found = ds;
    return 0;
}

static int refuse(struct finds *finds, const char *name, int error, const char *reason)
{
    (void)finds;
    (void)name;
    FUZZ_CHECK(error < 0 && *reason);
    return 0;
}

static int refuse_name(struct finds *finds, const char *name, const char *reason)
{
    return refuse(finds, name, -EBADMSG, reason);
}

/* All of a field of a sample, in pieces of each bytes. */
static int read_all(const struct dataset *ds, const struct field *f, uint64_t sample,
                    uint64_t bytes, size_t each, uint8_t *ret)
{
    struct one_sample one;
    int r = 0;

    one_sample_init(&one, sample);
    for (uint64_t at = 0; at < bytes && r == 0; at += each)
        r = f->ops->read(READ_WAITS, ds, f, &one.sel, at, (size_t)min_u64(each, bytes - at),
                         ret + at, NULL);
    return r;
}

static void check_field(const struct dataset *ds, const struct field *f, uint64_t sample)
{
    AUTO_FREE uint8_t *once = NULL, *pieces = NULL;
    struct one_sample one;
    struct form form;
    uint64_t bytes;
    int r;

    if (!dataset_has(ds, sample, f) || f->numbering || f->form == FORM_OFFSETS ||
        f->form == FORM_LENGTHS || f->form == FORM_SHAPES || f->form == FORM_PADDED)
        return;
    one_sample_init(&one, sample);
    r = field_form(ds, f, &one.sel, &form, &bytes);
    if (r < 0 || bytes > READ)
        return;
    once = malloc(bytes + 1);
    pieces = malloc(bytes + 1);
    FUZZ_CHECK(once && pieces);
    r = read_all(ds, f, sample, bytes, bytes + 1, once);
    FUZZ_CHECK(r == read_all(ds, f, sample, bytes, bytes / 7 + 3, pieces));
    FUZZ_CHECK(r < 0 || !memcmp(once, pieces, bytes));
}

static void check_dataset(struct dataset *ds)
{
    while (!dataset_prepare(ds))
        ;
    if (dataset_state(ds) == DATASET_FAILED)
        return;
    for (uint64_t sample = 0; sample < ds->samples && sample < 40; sample++)
        for (unsigned i = 0; i < ds->n_fields && i < 60; i++)
            check_field(ds, &ds->field[i], sample);
}

static void check_file(const uint8_t *bytes, size_t size)
{
    struct finds finds = {.dataset = take, .error = refuse_name, .failed = refuse};
    const struct format_setup setup = {.keep = &one_store, .memo = memo};
    struct source_file file = {.name = "x", .file_name = "x", .folder = ""};

    file.blob = memory_blob_new("x", bytes, size, size, NULL);
    FUZZ_CHECK(file.blob && format_parquet.open_folder(&file, 1, &setup, &finds) == 0);
    FUZZ_CHECK(!file.blob);
    if (found)
        check_dataset(found);
    if (found)
        saw_dataset(found);
    dataset_free(found);
    found = NULL;
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
