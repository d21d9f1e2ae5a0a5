/* Bytes as a file of CIFAR, of both kinds, and as names of classes next to it. Each sample of what
 * opens has its labels and planes where arithmetic says; a size that is no whole number of records
 * is refused. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/cifar/record.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/memory_blob.h"
#include "support/render.h"

extern const struct format format_cifar;

static void check_sample(const struct dataset *ds, const struct cifar_layout *layout,
                         const uint8_t *data, uint64_t sample)
{
    const uint8_t *record = data + sample * cifar_record_bytes(layout);
    const uint8_t *plane = record + layout->n_labels;
    uint8_t image[CIFAR_PIXELS], label;
    struct one_sample one;

    one_sample_init(&one, sample);
    for (unsigned k = 0; k < ds->n_fields; k++) {
        const struct field *f = &ds->field[k];

        if (f->numbering)
            continue;
        if (!strcmp(f->name, "image")) {
            FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, 0, sizeof(image), image, NULL) ==
                       0);
            for (unsigned i = 0; i < CIFAR_PIXELS; i++)
                FUZZ_CHECK(image[i] == plane[i % 3 * CIFAR_SIDE * CIFAR_SIDE + i / 3]);
            continue;
        }
        FUZZ_CHECK(f->ops->read(READ_WAITS, ds, f, &one.sel, 0, 1, &label, NULL) == 0);
        FUZZ_CHECK(label == record[!strcmp(f->name, "coarse_label") ? 0 : layout->n_labels - 1]);
    }
}

static void open_file(const uint8_t *data, size_t len, const struct cifar_layout *layout)
{
    struct blob_faults faults = {0};
    const struct format_setup setup = {.options.format = layout->word};
    struct blob *blob[] = {
        memory_blob_new(layout->label[layout->n_labels - 1].file, data, len, len, &faults),
        memory_blob_new("train.bin", data, len, len, &faults)};
    bool whole = len % cifar_record_bytes(layout) == 0;
    AUTO_TEXT struct text about = {0};
    struct found found;

    FUZZ_CHECK(format_open(&format_cifar, blob, 2, &setup, &found) == 0);
    FUZZ_CHECK(found.n == 1 && whole == (found.item[0].ds != NULL));
    if (whole) {
        const struct dataset *ds = found.item[0].ds;

        FUZZ_CHECK(ds->samples == len / cifar_record_bytes(layout));
        ds->ops->describe(ds, "", &about);
        for (uint64_t k = 0; k < ds->samples; k++)
            check_sample(ds, layout, data, k);
    }
    saw_found(&found);
    found_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct probed_file file = {.name = "data_batch_1.bin",
                                     .head = data,
                                     .len = min_u64(len, FORMAT_HEAD),
                                     .whole = len <= FORMAT_HEAD,
                                     .size = len};

    cifar_probe(&file);
    open_file(data, len, &cifar_10);
    open_file(data, len, &cifar_100);
    return 0;
}
