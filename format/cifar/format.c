/* The files of a folder as datasets: `train` of all data_batch_<n>.bin, or of train.bin, and
 * `test`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "format/cifar/record.h"
#include "format/core/siblings.h"
#include "format/encode/encode.h"

extern const struct format format_cifar;

#define NAMES_MAX     65536 /* bytes of a file that names classes */
#define CHECK_AT_ONCE 256   /* records */
#define BLANKS        " \t\r\v\f"
#define BOM           "\xef\xbb\xbf"

static const char *const split_names[] = {[CIFAR_TRAIN] = "train", [CIFAR_TEST] = "test"};

/* A file that names classes: one on each line that is not empty. */
struct class_names {
    char *text; /* owned. NULL: there is no such file */
    unsigned n;
    char *name[CIFAR_CLASSES_MAX]; /* [n] in text, without white space at their ends */
};

struct cifar_set {
    const struct cifar_layout *layout;
    struct field_run *run[CIFAR_LABELS + 1]; /* of the labels and the image; owned */
    struct class_names names[CIFAR_LABELS];
};

static void cifar_set_free(struct dataset *ds)
{
    struct cifar_set *set = ds->impl;

    for (unsigned i = 0; i <= CIFAR_LABELS; i++)
        free(set->run[i]);
    for (unsigned i = 0; i < CIFAR_LABELS; i++)
        free(set->names[i].text);
    free(set);
}

/* ---- dataset.json, --check ---- */

static void cifar_set_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct cifar_set *set = ds->impl;

    for (unsigned i = set->layout->n_labels; i-- > 0;) {
        const struct class_names *names = &set->names[i];

        if (!names->n)
            continue;
        json_add_texts(t, indent, set->layout->label[i].list, names->name, sizeof(*names->name),
                       names->n);
    }
}

/* Report labels of a file that no class has. */
static int cifar_check_file(const struct cifar_layout *layout, const struct blob *blob,
                            void (*report)(void *ctx, const char *text), void *ctx, struct diag *d)
{
    uint64_t each = cifar_record_bytes(layout), records = blob->size / each;
    AUTO_FREE uint8_t *buf = malloc(CHECK_AT_ONCE * each);

    if (!buf)
        return -ENOMEM;
    for (uint64_t k = 0; k < records; k += CHECK_AT_ONCE) {
        uint64_t n = min_u64(CHECK_AT_ONCE, records - k);
        int r = blob_read(READ_WAITS, blob, buf, n * each, k * each, d);

        if (r < 0)
            return r;
        for (uint64_t i = 0; i < n; i++)
            for (unsigned label = 0; label < layout->n_labels; label++) {
                unsigned found = buf[i * each + label], most = layout->label[label].classes - 1;
                struct diag bad = DIAG_INIT;

                if (found <= most)
                    continue;
                diag_set(&bad, 0, "%s: record %llu, byte %llu: %s: expected 0 to %u, got %u",
                         blob_name(blob), (unsigned long long)(k + i),
                         (unsigned long long)((k + i) * each + label), layout->label[label].field,
                         most, found);
                report(ctx, bad.text);
            }
    }
    return blob_verify(blob, d);
}

static int cifar_set_check(const struct dataset *ds, void (*report)(void *ctx, const char *text),
                           void *ctx, struct diag *d)
{
    const struct cifar_set *set = ds->impl;
    int r = 0;

    for (unsigned i = 0; i < ds->n_blobs && r == 0; i++)
        r = cifar_check_file(set->layout, ds->blob[i], report, ctx, d);
    return r;
}

static bool cifar_set_class_name(const struct dataset *ds, int64_t number, struct text *t)
{
    const struct cifar_set *set = ds->impl;

    for (unsigned i = 0; i < set->layout->n_labels; i++) {
        const struct class_names *names = &set->names[i];

        if (strcmp(set->layout->label[i].field, "label") != 0 || number < 0 || number >= names->n)
            continue;
        text_add(t, "%s", names->name[number]);
        return true;
    }
    return false;
}

static const struct dataset_ops cifar_set_ops = {.check = cifar_set_check,
                                                 .describe = cifar_set_describe,
                                                 .free = cifar_set_free,
                                                 .class_name = cifar_set_class_name};

/* ---- making a dataset ---- */

/* A file of a folder. */
struct cifar_file {
    struct source_file *source;
    struct cifar_name name;
};

static int by_number(const void *a, const void *b)
{
    const struct cifar_file *x = a, *y = b;

    if (x->name.number != y->name.number)
        return x->name.number < y->name.number ? -1 : 1;
    return strcmp(x->source->file_name, y->source->file_name);
}

/* What a dataset is made of: the files of a kind that are of this split, or a file alone. */
struct cifar_part {
    const struct cifar_layout *layout;
    enum cifar_split split;
    const struct cifar_file *alone;
};

static bool is_named_of(const struct cifar_name *name, const struct cifar_part *part)
{
    return name->layout == part->layout && name->split == part->split && name->names_of_label < 0 &&
           !name->is_pickle;
}

static bool is_of(const struct cifar_file *file, const struct cifar_part *part)
{
    return part->alone ? file == part->alone : is_named_of(&file->name, part);
}

/* Add the field that is stored `offset` bytes into each record. number: of its runs in the set. */
static int cifar_add_field(struct dataset *ds, const char *name, uint64_t offset, unsigned number)
{
    static const uint64_t dim[] = {CIFAR_SIDE, CIFAR_SIDE, 3};
    struct cifar_set *set = ds->impl;
    uint64_t each = cifar_record_bytes(set->layout), first = 0;
    bool is_image = offset == set->layout->n_labels;
    struct field_run *run = calloc(ds->n_blobs, sizeof(*run));
    struct field *f;
    unsigned n = 0;

    set->run[number] = run;
    if (!run)
        return -ENOMEM;
    for (unsigned i = 0; i < ds->n_blobs; i++) {
        if (!ds->blob[i]->size)
            continue;
        run[n++] = (struct field_run){first, ds->blob[i], offset};
        first += ds->blob[i]->size / each;
    }
    f = dataset_add_stored(ds, name,
                           &(struct field){.dtype = DTYPE_U1,
                                           .ndim = is_image ? 3 : 0,
                                           .ops = is_image ? &field_planes : NULL,
                                           .blob = n ? run->blob : ds->blob[0],
                                           .offset = offset,
                                           .run = run,
                                           .n_runs = n,
                                           .stored_step = each},
                           dim);
    if (!f)
        return -ENOMEM;
    f->in |= is_image ? IN_PICTURES : 0;
    return 0;
}

/* Find the names in the text. Where their number is not that of the classes, and a line between
 * them is empty, it is not known which class lacks a name: then none has one. */
static void find_names(struct class_names *names, unsigned classes, const struct blob *blob,
                       struct notes *notes)
{
    unsigned n = 0, gaps = 0, empty = 0;
    char *text = names->text + (strncmp(names->text, BOM, strlen(BOM)) ? 0 : strlen(BOM));

    for (char *at = text, *end; *at; at = end) {
        size_t len = strcspn(at, "\n");

        end = at + len + (at[len] != '\0');
        at[len] = '\0';
        at += strspn(at, BLANKS);
        for (len = strlen(at); len && strchr(BLANKS, at[len - 1]);)
            at[--len] = '\0';
        if (!len) {
            empty++;
            continue;
        }
        gaps += empty;
        empty = 0;
        if (n++ < classes)
            names->name[names->n++] = at;
    }
    if (n == classes)
        return;
    if (gaps)
        names->n = 0;
    notes_add(notes, "%s: expected %u names of classes, got %u%s", blob_name(blob), classes, n,
              gaps ? " and empty lines between them, so no class has a name" : "");
}

/* Read a file that names classes. What cannot be read is noted: the records do not need it. */
static int cifar_read_names(const struct cifar_file *file, struct dataset *ds)
{
    struct cifar_set *set = ds->impl;
    unsigned number = (unsigned)file->name.names_of_label;
    struct class_names *names = &set->names[number];
    const struct blob *blob = file->source->blob;
    struct diag d = DIAG_INIT;
    AUTO_FREE char *text = NULL;
    int r;

    if (names->text)
        return 0;
    if (blob->size > NAMES_MAX) {
        notes_add(&ds->notes, "%s: expected at most %u bytes of names of classes, got %llu",
                  blob_name(blob), NAMES_MAX, (unsigned long long)blob->size);
        return 0;
    }
    text = calloc(1, (size_t)blob->size + 1);
    if (!text)
        return -ENOMEM;
    r = blob->size ? blob_read(READ_WAITS, blob, text, (size_t)blob->size, 0, &d) : 0;
    if (r < 0) {
        notes_add(&ds->notes, "no names of classes: %s", diag_text(&d, r));
        return r == -ENOMEM ? r : 0;
    }
    names->text = TAKE_PTR(text);
    find_names(names, set->layout->label[number].classes, blob, &ds->notes);
    return 0;
}

static int cifar_make_set(struct cifar_file *file, size_t n, const struct cifar_part *part,
                          struct dataset **ret)
{
    const struct cifar_layout *layout = part->layout;
    struct cifar_set *set = calloc(1, sizeof(*set));
    AUTO_DATASET struct dataset *ds = NULL;
    uint64_t samples = 0;
    int r = dataset_new(&format_cifar, &cifar_set_ops, set, CIFAR_LABELS + 3, n, &ds);

    if (r < 0)
        return r;
    set->layout = layout;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (is_of(&file[i], part)) {
            samples += file[i].source->blob->size / cifar_record_bytes(layout);
            ds->blob[ds->n_blobs++] = TAKE_PTR(file[i].source->blob);
        } else if (file[i].name.layout == layout && file[i].name.names_of_label >= 0 &&
                   file[i].source->blob) {
            r = cifar_read_names(&file[i], ds);
        }
    }
    dataset_set_samples(ds, samples);
    if (r == 0)
        r = cifar_add_field(ds, "image", layout->n_labels, CIFAR_LABELS);
    for (unsigned i = layout->n_labels; i-- > 0 && r == 0;)
        r = cifar_add_field(ds, layout->label[i].field, i, i);
    if (r == 0) {
        dataset_add_numbering(ds);
        r = dataset_add_folders(ds);
    }
    if (r == 0)
        *ret = TAKE_PTR(ds);
    return r;
}

/* Siblings of the files of a part that it lacks, such as data_batch_3.bin. */
static int cifar_find_missing(const struct cifar_file *file, size_t n,
                              const struct cifar_part *part, const struct format_setup *setup,
                              const struct finds *finds, struct missing_parts *ret)
{
    AUTO_SIBLINGS struct siblings siblings = {0};
    AUTO_FREE const char **name = calloc(n, sizeof(*name));
    size_t k = 0;
    int r = name ? 0 : -ENOMEM;

    for (size_t i = 0; i < n && name; i++)
        if (is_of(&file[i], part))
            name[k++] = file[i].source->name;
    if (r == 0)
        r = finds_siblings(finds, name, k, &siblings);
    if (r < 0 || !k || !siblings.set_of[0])
        return r;
    return finds_missing(finds, finds->n_left_out, &siblings, k, siblings.set_of[0] - 1, setup,
                         ret);
}

/* Make the dataset of a part, if it has files; one that cannot be used is an error of all. */
static int add_part(struct cifar_file *file, size_t n, const struct cifar_part *part,
                    const struct format_setup *setup, struct finds *finds)
{
    const char *name = part->alone ? part->alone->source->name : split_names[part->split];
    uint64_t each = cifar_record_bytes(part->layout);
    AUTO_DATASET struct dataset *ds = NULL;
    struct diag d = DIAG_INIT;
    bool any = false;
    int r;

    for (size_t i = 0; i < n; i++) {
        const struct blob *blob = file[i].source->blob;

        if (!is_of(&file[i], part))
            continue;
        any = true;
        if (blob->size % each == 0)
            continue;
        diag_set(&d, 0, "%s: expected records of %s of %llu bytes, got %llu records and %llu bytes",
                 blob_name(blob), part->layout->name, (unsigned long long)each,
                 (unsigned long long)(blob->size / each), (unsigned long long)(blob->size % each));
        return finds->error(finds, name, d.text);
    }
    for (size_t i = 0; i < finds->n_unread && !part->alone; i++) {
        struct cifar_name unread;

        cifar_name_judge(finds->unread[i].name, setup->options.format, &unread);
        if (any && is_named_of(&unread, part))
            return finds_incomplete(finds, name, &finds->unread[i]);
    }
    if (!any)
        return 0;
    r = cifar_make_set(file, n, part, &ds);
    if (r == 0 && !part->alone)
        r = cifar_find_missing(file, n, part, setup, finds, &ds->missing);
    if (r == 0)
        return finds->dataset(finds, name, TAKE_PTR(ds));
    return r == -ENOMEM ? r : finds->error(finds, name, strerror(-r));
}

/* Report a pickle, or a file that only format=cifar gives to this format. */
static int cifar_refuse(const struct cifar_file *file, struct finds *finds)
{
    struct diag d = DIAG_INIT;

    if (file->name.is_pickle)
        diag_set(&d, 0,
                 "%s: byte 0: expected the binary version of CIFAR-10 (data_batch_1.bin), got a "
                 "pickle of Python, which is never read; take cifar-10-binary.tar.gz",
                 blob_name(file->source->blob));
    else
        diag_set(&d, 0,
                 "%s: expected a name that says which CIFAR it is (data_batch_1.bin, "
                 "test_batch.bin, train.bin, test.bin), or format=%s or format=%s",
                 blob_name(file->source->blob), cifar_10.word, cifar_100.word);
    return finds->failed(finds, file->source->file_name, -EBADMSG, d.text);
}

static int cifar_open_folder(struct source_file *sources, size_t n,
                             const struct format_setup *setup, struct finds *finds)
{
    const struct cifar_layout *const layouts[] = {&cifar_10, &cifar_100};
    AUTO_FREE struct cifar_file *file = calloc(n ? n : 1, sizeof(*file));
    int r = 0;

    if (!file)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        file[i].source = &sources[i];
        cifar_name_judge(sources[i].name, setup->options.format, &file[i].name);
        if (file[i].name.is_pickle || !file[i].name.layout)
            r = cifar_refuse(&file[i], finds);
    }
    qsort(file, n, sizeof(*file), by_number);
    for (size_t k = 0; k < ARRAY_LEN(layouts) && r == 0; k++)
        for (enum cifar_split split = 0; split < N_CIFAR_SPLITS && r == 0; split++)
            r = add_part(file, n, &(struct cifar_part){layouts[k], split, NULL}, setup, finds);
    for (size_t i = 0; i < n && r == 0; i++)
        if (file[i].name.layout && file[i].name.split == CIFAR_ALONE)
            r = add_part(file, n, &(struct cifar_part){file[i].name.layout, CIFAR_ALONE, &file[i]},
                         setup, finds);
    return r;
}

static void cifar_example(const struct dataset *ds, struct text *t)
{
    text_add(t, "  batch = np.load(root + '/batches/batch=128,seed=7/epoch=0/npz/000000.npz')\n"
                "  x, y, index = batch['image'], batch['label'], batch['index']\n");
    if (ds->samples)
        text_add(t, "  one = np.load(root + '/samples/npy/%0*d.image.npy')\n", (int)ds->key_digits,
                 0);
}

const struct format format_cifar = {
    .name = "cifar",
    .probe = cifar_probe,
    .open_folder = cifar_open_folder,
    .kinds = cifar_words,
    .title = "CIFAR-10 and CIFAR-100",
    .add_example = cifar_example,
};
