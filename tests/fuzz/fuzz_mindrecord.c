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

static void check_field(const struct dataset *ds, const struct field *f, uint64_t sample,
                        uint64_t size)
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
    if (r < 0)
        return;
    FUZZ_CHECK(bytes <= UNPACK * size);
    once = malloc(bytes + 1);
    pieces = malloc(bytes + 1);
    FUZZ_CHECK(once && pieces);
    r = read_all(ds, f, sample, bytes, bytes + 1, once);
    FUZZ_CHECK(r == read_all(ds, f, sample, bytes, bytes / 7 + 3, pieces));
    FUZZ_CHECK(r < 0 || !memcmp(once, pieces, bytes));
}

static void check_dataset(struct dataset *ds, uint64_t size)
{
    while (!dataset_prepare(ds))
        ;
    if (dataset_state(ds) == DATASET_FAILED)
        return;
    for (uint64_t sample = 0; sample < ds->samples && sample < 100; sample++)
        for (unsigned i = 0; i < ds->n_fields; i++)
            check_field(ds, &ds->field[i], sample, size);
}

static void check_file(const uint8_t *bytes, size_t size)
{
    struct finds finds = {.dataset = take, .error = refuse_name, .failed = refuse};
    const struct format_setup setup = {.keep = &one_store, .memo = memo};
    struct source_file file = {.name = "x", .file_name = "x", .folder = ""};

    file.blob = memory_blob_new("x", bytes, size, size, NULL);
    FUZZ_CHECK(file.blob && format_mindrecord.open_folder(&file, 1, &setup, &finds) == 0);
    FUZZ_CHECK(!file.blob);
    if (found)
        check_dataset(found, size);
    if (found)
        saw_dataset(found);
    dataset_free(found);
    found = NULL;
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
