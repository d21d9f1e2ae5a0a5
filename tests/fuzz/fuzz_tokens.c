/* Bytes as token files of each kind, and what lies next to them. Whatever comes out: no window
 * leaves its file, what is read in pieces is what is read at once, x and y are the tokens, and doc,
 * pos and cu agree.
 *
 * The input: a byte of flags, a byte for the length of windows, two of the length of the first
 * file, that file (.idx, .ds.index), and the tokens. If windows are packed and have an even length,
 * the tokens are also the kept packing. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memo.h"
#include "format/core/format.h"
#include "format/index/index.h"
#include "fuzz.h"
#include "saw.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

extern const struct format format_tokens;

enum {
    DATATROVE = 1,
    LLMC = 2,
    DOCUMENTS = 4,
    SPLIT = 8,
    SEQUENCES = 16,
    WIDE = 32,
    LOSS = 64,
    PACK = 128
};

/* The field's bytes, checked; NULL: it has none, or its file is damaged there. */
static uint8_t *read_field(const struct dataset *ds, const struct field *f, uint64_t sample)
{
    AUTO_FREE uint8_t *once = NULL;
    struct one_sample one;
    struct form form;
    uint64_t bytes;
    int r;

    one_sample_init(&one, sample);
    if (field_form(ds, f, &one.sel, &form, &bytes) < 0)
        return NULL;
    FUZZ_CHECK(bytes < 1 << 24);
    once = malloc(bytes + 1);
    FUZZ_CHECK(once);
    r = f->ops->read(READ_WAITS, ds, f, &one.sel, 0, bytes, once, NULL);
    FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ESTALE);
    return r < 0 ? NULL : TAKE_PTR(once);
}

static uint8_t *read_named(const struct dataset *ds, const char *name, uint64_t sample)
{
    const struct field *f = dataset_field(ds, name);

    return f ? read_field(ds, f, sample) : NULL;
}

static void check_window(const struct dataset *ds, uint64_t sample, unsigned seq)
{
    AUTO_FREE uint8_t *tokens = read_named(ds, "tokens", sample);
    AUTO_FREE uint8_t *x = read_named(ds, "x", sample), *y = read_named(ds, "y", sample);
    AUTO_FREE uint8_t *doc = read_named(ds, "doc", sample), *pos = read_named(ds, "pos", sample);
    AUTO_FREE uint8_t *cu = read_named(ds, "cu", sample);
    unsigned width = (unsigned)dataset_field(ds, "tokens")->width, piece = 0;

    if (tokens && x && y)
        for (unsigned i = 0; i < seq; i++) {
            FUZZ_CHECK(!memcmp(x + 8 * i, tokens + width * i, width));
            FUZZ_CHECK(!memcmp(y + 8 * i, tokens + width * (i + 1), width));
        }
    if (!doc || !pos || !cu)
        return;
    FUZZ_CHECK(!load_le32(doc) && !load_le32(pos) && !load_le32(cu));
    for (unsigned i = 1; i <= seq; i++) {
        bool begins = load_le32(doc + 4 * i) != load_le32(doc + 4 * i - 4);

        FUZZ_CHECK(load_le32(doc + 4 * i) == load_le32(doc + 4 * i - 4) + begins);
        FUZZ_CHECK(load_le32(pos + 4 * i) == (begins ? 0 : load_le32(pos + 4 * i - 4) + 1));
        if (begins && i < seq)
            FUZZ_CHECK(load_le32(cu + 4 * ++piece) == i);
    }
    while (piece < seq)
        FUZZ_CHECK(load_le32(cu + 4 * ++piece) == seq);
}

static void check_dataset(struct dataset *ds, unsigned seq)
{
    while (!dataset_prepare(ds))
        ;
    if (dataset_state(ds) == DATASET_FAILED)
        return;
    for (uint64_t sample = 0; sample < min_u64(ds->samples, 40); sample++) {
        if (seq)
            check_window(ds, sample, seq);
        for (unsigned i = 0; i < ds->n_fields; i++)
            free(read_field(ds, &ds->field[i], sample));
    }
}

/* ---- a kept packing: rows of three bytes, which add to the sample and to the full windows before
 * it, and are the document ---- */

static const uint8_t *kept;
static size_t n_kept;

static int load_forged(const struct index_store *keep, const char *type, const char *identity,
                       struct kept_index *ret)
{
    const struct index_shape shape = {.columns = 3, .rising = 3};
    AUTO_INDEX_BUILDER struct index_builder *b = NULL;
    uint64_t number[3] = {0}, end[3], about[4] = {0};
    struct iovec pieces[INDEX_PIECES];
    struct index index;

    (void)keep;
    (void)type;
    (void)identity;
    FUZZ_CHECK(index_builder_new(&shape, &b) == 0);
    for (size_t i = 0; i + 3 <= n_kept; i += 3) {
        number[0] += kept[i] % 8;
        number[1] += kept[i + 1] % 4;
        number[2] = kept[i + 2];
        FUZZ_CHECK(index_add(b, NULL, 0, number) == 0);
    }
    end[0] = number[0] + 1;
    end[1] = about[3] = number[1];
    FUZZ_CHECK(index_finish(b, end, NULL, NULL, &index) == 0);
    FUZZ_CHECK(index_bytes(b, about, sizeof(about), &index, pieces) == 0);
    *ret = (struct kept_index){0};
    for (unsigned i = 0; i < INDEX_PIECES; i++)
        ret->size += pieces[i].iov_len;
    ret->bytes = malloc(ret->size);
    FUZZ_CHECK(ret->bytes);
    for (size_t i = 0, at = 0; i < INDEX_PIECES; at += pieces[i++].iov_len)
        if (pieces[i].iov_len)
            memcpy(ret->bytes + at, pieces[i].iov_base, pieces[i].iov_len);
    return 0;
}

static void remove_forged(const struct index_store *keep, const char *type, const char *identity)
{
    (void)keep;
    (void)type;
    (void)identity;
}

static int save_nowhere(const struct index_store *keep, const char *type, const char *identity,
                        const char *source, const struct iovec *pieces, unsigned n,
                        struct kept_index *ret, struct diag *d)
{
    return index_store_save(&no_store, type, identity, source, pieces, n + !keep, ret, d);
}

static const struct index_store_ops forged_ops = {
    .load = load_forged, .save = save_nowhere, .remove = remove_forged};
static const struct index_store forged_store = {.ops = &forged_ops};

static struct blob *file_of(const char *name, const uint8_t *bytes, size_t len)
{
    return memory_blob_new(name, bytes, len, len, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct format_setup setup = {.keep = &no_store};
    struct blob *file[4];
    struct found found;
    size_t n = 0, first;
    struct memo *memo;
    unsigned flags;

    if (len < 4)
        return 0;
    FUZZ_CHECK(memo_new(1 << 20, &memo) == 0);
    setup.memo = memo;
    flags = data[0];
    first = (size_t)min_u64(load_le16(data + 2), len - 4);
    setup.options.seq = flags & DOCUMENTS ? 0 : data[1] % 40 + 1;
    setup.options.split_docs = flags & SPLIT;
    setup.options.sequences = flags & SEQUENCES;
    if (flags & PACK && setup.options.seq) {
        setup.options.pack = 1 + data[1] / 40;
        if (data[1] % 2)
            setup.keep = &forged_store;
        kept = data + 4 + first;
        n_kept = len - 4 - first;
    }
    if (flags & DATATROVE) {
        const char *about = flags & WIDE ? "t|4" : "t|2";

        file[n++] = file_of("x.ds", data + 4 + first, len - 4 - first);
        file[n++] = file_of("x.ds.index", data + 4, first);
        file[n++] = file_of("x.ds.metadata", (const uint8_t *)about, 3);
        if (flags & LOSS)
            file[n++] = file_of("x.ds.loss", data + 4, min_u64(first, (len - 4 - first) / 2));
    } else if (flags & LLMC) {
        file[n++] = file_of("x.bin", data + 4, len - 4);
    } else {
        file[n++] = file_of("x.bin", data + 4 + first, len - 4 - first);
        file[n++] = file_of("x.idx", data + 4, first);
    }
    FUZZ_CHECK(format_open(&format_tokens, file, n, &setup, &found) == 0);
    saw_found(&found);
    for (size_t i = 0; i < found.n; i++) {
        struct dataset *ds = found.item[i].ds;

        if (ds && (flags & DOCUMENTS || dataset_field(ds, "tokens")))
            check_dataset(ds, (unsigned)setup.options.seq);
    }
    found_release(&found);
    memo_free(memo);
    return 0;
}
