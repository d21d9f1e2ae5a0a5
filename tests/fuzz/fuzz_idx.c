/* Bytes as an IDX file: as images, as their labels and as data. Where a dataset comes out, files
 * of every encoder are made in pieces. Nothing may crash, leak or contradict itself. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/render.h"

#define PIECE         3000
#define SIZE_MAX_READ (1 << 20)

static uint64_t way; /* of this input: its hash */

static void read_piece(struct layout *l, uint64_t off)
{
    size_t len = (size_t)min_u64(PIECE, l->size - off), cut = len / 3;
    AUTO_FREE uint8_t *whole = malloc(len ? len : 1), *pieces = malloc(len ? len : 1);
    struct diag d = DIAG_INIT;
    int r = layout_read(READ_WAITS, l, off, len, whole, &d);

    /* A label outside of its classes is the one thing that is first seen here. */
    FUZZ_CHECK(r == 0 || (r == -EBADMSG && d.set));
    if (r < 0)
        return;
    FUZZ_CHECK(layout_read(READ_WAITS, l, off, cut, pieces, NULL) == 0);
    FUZZ_CHECK(layout_read(READ_WAITS, l, off + cut, len - cut, pieces + cut, NULL) == 0);
    FUZZ_CHECK(!memcmp(whole, pieces, len));
}

static void make_file(const struct dataset *ds, const struct file_kind *kind,
                      const struct selection *sel)
{
    AUTO_LAYOUT struct layout l = {0};
    int r;

    layout_init(&l, ds, sel, NULL);
    r = kind->encoder->layout(&l, kind);
    FUZZ_CHECK(r == 0 || r == -EFBIG);
    if (r < 0)
        return;
    if (fuzz_takes(way, 0, 3))
        read_piece(&l, 0);
    if (l.size > SIZE_MAX_READ) /* the sheet of no pictures at all can have 2 GiB */
        return;
    if (fuzz_takes(way, 1, 3))
        read_piece(&l, l.size / 2);
    if (fuzz_takes(way, 2, 3))
        read_piece(&l, l.size - min_u64(l.size, PIECE));
}

static void make_files(const struct dataset *ds, enum scope scope, const struct selection *sel)
{
    for (unsigned i = 0; i < ds->n_folders; i++)
        for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++)
            make_file(ds, &ds->folder[i].files[scope][k], sel);
}

static void use_dataset(const struct dataset *ds)
{
    const uint64_t last = ds->samples - 1;
    const uint64_t mixed[] = {last, 0, last / 2, last / 2, last};
    struct list_selection list;
    struct one_sample one;

    if (fuzz_takes(way >> 2, 0, 8)) {
        list_selection_init(&list, mixed, 0);
        make_files(ds, SCOPE_BATCHES, &list.sel);
    }
    if (!ds->samples)
        return;
    if (fuzz_takes(way >> 4, 0, 2)) {
        one_sample_init(&one, last);
        make_files(ds, SCOPE_SAMPLES, &one.sel);
    }
    if (fuzz_takes(way >> 4, 1, 2)) {
        list_selection_init(&list, mixed, ARRAY_LEN(mixed));
        make_files(ds, SCOPE_BATCHES, &list.sel);
    }
}

static void open_files(struct blob **blob, size_t n, const struct format_options *options)
{
    struct found found;

    FUZZ_CHECK(idx_open(blob, n, options, &found) == 0);
    FUZZ_CHECK(found.n >= 1);
    for (size_t i = 0; i < found.n; i++) {
        if (found.item[i].ds)
            use_dataset(found.item[i].ds);
        else
            FUZZ_CHECK(found.item[i].reason[0] == 'x'); /* the name of the file */
    }
    saw_found(&found);
    found_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    way = fuzz_hash(data, len);
    for (unsigned i = 0; i < 4; i++) {
        const struct format_options options = {.transpose = i & 1, .classes = i & 1 ? 7 : 0};
        struct blob *blob[2];

        if (!fuzz_takes(way >> 8, i, 4))
            continue;
        blob[0] = memory_blob_new(i < 2 ? "x-images-idx3-ubyte" : "x", data, len, len, NULL);
        if (i < 2)
            blob[1] = memory_blob_new("x-labels-idx1-ubyte", data, len, len, NULL);
        open_files(blob, i < 2 ? 2 : 1, &options);
    }
    return 0;
}
