/* What datasets show, for the sum of a replay (fuzz_saw()). Names, shapes, bytes, keys, places and
 * errno values; no messages. */
#ifndef EPOCHFS_TESTS_FUZZ_SAW_H
#define EPOCHFS_TESTS_FUZZ_SAW_H

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/core/extents.h"
#include "fuzz.h"
#include "support/idx_make.h"
#include "support/libsvm_make.h"
#include "support/memory_blob.h"

#define SAW_SAMPLES 24
#define SAW_BATCH   100        /* of files of a batch */
#define SAW_BYTES   (1u << 16) /* of a field of a file that are read */

static inline void saw_number(uint64_t n)
{
    fuzz_saw(&n, sizeof(n));
}

/* The numbers and lines of a text for people, whose words may change. */
static inline void saw_numbers(const char *text)
{
    for (; text && *text; text++)
        if ((*text >= '0' && *text <= '9') || *text == '-' || *text == '\n')
            fuzz_saw(text, 1);
}

static inline void saw_field(const struct dataset *ds, const struct field *f,
                             const struct selection *sel)
{
    uint8_t bytes[SAW_BYTES], piece[SAW_BYTES];
    struct diag d = DIAG_INIT;
    size_t n;
    struct form form;
    uint64_t size;
    int r = field_form(ds, f, sel, &form, &size);

    saw_number((uint64_t)r);
    if (r < 0)
        return;
    saw_number(form.dtype);
    saw_number(form.width);
    fuzz_saw(form.dim, form.ndim * sizeof(*form.dim));
    saw_number(size);
    size = min_u64(size, sizeof(bytes));
    r = f->ops->read(READ_WAITS, ds, f, sel, 0, (size_t)size, bytes, &d);
    saw_number((uint64_t)r);
    saw_numbers(d.text);
    if (r < 0)
        return;
    fuzz_saw(bytes, (size_t)size);
    for (uint64_t at = 0; at < size; at += n) { /* read in pieces, it is what is read at once */
        n = (size_t)min_u64(size / 7 + 3, size - at);
        piece[n] = (uint8_t)at;
        r = f->ops->read(READ_WAITS, ds, f, sel, at, n, piece, &d);
        if (r == -EIO) /* a target has made one read fail */
            r = f->ops->read(READ_WAITS, ds, f, sel, at, n, piece, &d);
        FUZZ_CHECK(r == 0);
        FUZZ_CHECK(!memcmp(piece, bytes + at, n) && piece[n] == (uint8_t)at);
    }
}

static inline void saw_extent(bool is, const struct extent *e)
{
    saw_number(is);
    if (is)
        saw_number(e->off ^ e->len << 32);
}

static inline void saw_sample(const struct dataset *ds, uint64_t sample)
{
    struct extent extent[EXTENTS_MOST];
    char name[KEY_NAME_SIZE];
    uint8_t key[KEY_SIZE];
    struct one_sample one;
    unsigned n = dataset_extents(ds, sample, NULL, extent);
    uint64_t number = 0;

    fuzz_saw(key, dataset_key(ds, sample, key));
    saw_number(dataset_find(ds, name, dataset_name(ds, sample, false, name), &number));
    saw_number(number);
    for (unsigned i = 0; i < n; i++) {
        saw_number(extent[i].off);
        saw_number(extent[i].len);
    }
    one_sample_init(&one, sample);
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (dataset_has(ds, sample, &ds->field[i])) {
            saw_field(ds, &ds->field[i], &one.sel);
            saw_extent(dataset_copy(ds, sample, &ds->field[i], extent), extent);
        }
}

/* What a field offers, without its bytes. */
static inline void saw_offer(const struct dataset *ds, const struct field *f)
{
    struct extent extent;

    fuzz_saw(f->name, strlen(f->name));
    fuzz_saw(f->folder, strlen(f->folder));
    fuzz_saw(f->ext, strlen(f->ext));
    saw_number(f->in);
    saw_number(f->form);
    saw_number(f->unnamed | f->names_file << 1 | f->form_reads << 2 | f->derived << 3 |
               f->mixed << 4);
    saw_extent(dataset_copy_of_all(ds, f, &extent), &extent);
}

/* What only some formats say of a dataset. */
static inline void saw_ops(const struct dataset *ds)
{
    static const char *const names[] = {"label", "0", "1", "y"};
    const struct dataset_ops *ops = ds->ops;
    AUTO_TEXT struct text shown = {0}, lines = {0};
    uint64_t size = 0;

    if (ops->describe)
        ops->describe(ds, "", &shown);
    if (ops->columns)
        ops->columns(ds, &shown);
    for (int64_t i = 0; i < 3; i++) {
        if (ops->class_name)
            saw_number(ops->class_name(ds, i, &shown));
        if (ops->class_size)
            saw_number(ops->class_size(ds, (uint64_t)i, &size));
        saw_number(size);
    }
    for (size_t i = 0; i < ARRAY_LEN(names) && ops->calls_label; i++)
        saw_number(ops->calls_label(ds, names[i]));
    if (ops->identity)
        saw_number((uint64_t)ops->identity(ds, &shown));
    if (ops->about)
        ops->about(ds, &lines);
    saw_numbers(lines.data);
    fuzz_saw(shown.data, shown.len);
}

static inline void saw_fault(void *ctx, const char *text)
{
    (void)ctx;
    saw_numbers(text);
}

static inline void saw_dataset(struct dataset *ds)
{
    uint64_t sample[SAW_SAMPLES + 1], n;
    struct list_selection list;
    struct selection batch;
    struct diag d = DIAG_INIT;
    AUTO_TEXT struct text text = {0};

    while (dataset_state(ds) == DATASET_PREPARING && !dataset_prepare(ds))
        ;
    saw_number((uint64_t)ds->failed);
    if (dataset_state(ds) == DATASET_FAILED) {
        saw_numbers(ds->reason.text);
        return;
    }
    notes_show(&ds->notes, &text);
    dataset_locate(ds, 0, NULL, &text);
    saw_numbers(text.data);
    text_release(&text);
    for (size_t i = 0; i < missing_parts_kept(&ds->missing); i++)
        fuzz_saw(ds->missing.part[i].name, strlen(ds->missing.part[i].name));
    if (ds->ops)
        saw_ops(ds);
    saw_number(ds->n_blobs << 1 | ds->shares_blobs);
    saw_number(ds->samples);
    n = min_u64(ds->samples, SAW_SAMPLES);
    for (uint64_t i = 0; i < n; i++)
        saw_sample(ds, i);
    for (uint64_t i = 0; i < n; i++)
        sample[i] = ds->samples - 1 - i;
    sample[n] = ds->samples / 2;
    mixed_init(&list, sample, n ? n + 1 : 0); /* with an id of its own */
    for (unsigned i = 0; i < ds->n_fields; i++) {
        saw_offer(ds, &ds->field[i]);
        saw_field(ds, &ds->field[i], &list.sel);
    }
    in_order_init(&batch, 0, min_u64(ds->samples, SAW_BATCH));
    for (unsigned i = 0; i < ds->n_fields && ds->samples > SAW_SAMPLES; i++)
        saw_field(ds, &ds->field[i], &batch);
    for (uint64_t part = 0; part < 3 && ds->ops && ds->ops->share; part++) {
        ds->ops->share(ds, part, 3, &sample[0], &sample[1]);
        fuzz_saw(sample, 2 * sizeof(*sample));
    }
    if (ds->ops && ds->ops->check)
        saw_number((uint64_t)ds->ops->check(ds, saw_fault, NULL, &d));
    if (ds->ops && ds->ops->checked)
        ds->ops->checked(ds, &text);
    saw_numbers(text.data);
}

static inline void saw_found(struct found *found)
{
    for (size_t i = 0; i < found->n; i++) {
        fuzz_saw(found->item[i].name, strlen(found->item[i].name));
        saw_number((uint64_t)found->item[i].error);
        saw_numbers(found->item[i].reason);
        if (found->item[i].ds)
            saw_dataset(found->item[i].ds);
    }
}

/* Bytes as a file of a format. */
static inline void saw_file(const struct format *format, const char *name, const uint8_t *data,
                            size_t len, const struct format_setup *setup)
{
    struct blob *blob = memory_blob_new(name, data, len, len, NULL);
    struct found found;

    FUZZ_CHECK(format_open(format, &blob, 1, setup, &found) == 0);
    saw_found(&found);
    found_release(&found);
}

#endif
