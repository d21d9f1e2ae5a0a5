/* The IDX files of a folder as datasets: images together with their labels, every other file alone.
 *
 * Two files are a pair if their names differ only in the word `images` or `labels` and in the
 * `-idx3-ubyte` part, and if they have the same number of samples (the names of MNIST, Fashion-
 * MNIST, KMNIST, EMNIST and QMNIST, also as `.idx3-ubyte`). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "format/core/encoder.h"
#include "format/core/format.h"
#include "format/encode/encode.h"
#include "format/idx/header.h"

#define FIELDS_MAX       8
#define TRANSPOSE_MAX    (UINT64_C(64) << 20) /* bytes of an item: memory holds one */
#define CLASSES_SCAN_MAX (UINT64_C(64) << 20) /* bytes of labels read to find the largest */
#define SCAN_BYTES       65536

enum role { ROLE_DATA, ROLE_IMAGES, ROLE_LABELS };

static const char *const role_fields[] = {
    [ROLE_DATA] = "data", [ROLE_IMAGES] = "image", [ROLE_LABELS] = "label"};

/* A file's name, parsed: `<stem>images<rest>`. */
struct idx_name {
    bool named; /* it has one of the two words */
    enum role role;
    size_t stem_len;
    char tail[256]; /* without [-._]idx<d>[-._]<type> */
};

static const char *find_last(const char *s, const char *word)
{
    const char *found = NULL;

    for (const char *at = strstr(s, word); at; at = strstr(at + 1, word))
        found = at;
    return found;
}

static bool idx_folder_is_joint(char c)
{
    return c == '-' || c == '.' || c == '_';
}

/* The length of "-idx3-ubyte", or of "-idx3", at s; 0 if neither exists. */
static size_t idx_part(const char *s)
{
    size_t n = 1;

    if (!idx_folder_is_joint(s[0]) || strncmp(s + 1, "idx", 3) != 0)
        return 0;
    n += 3 + strspn(s + 4, "0123456789");
    if (n == 4)
        return 0;
    if (!idx_folder_is_joint(s[n]))
        return n;
    return n + 1 + strspn(s + n + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
}

/* ret starts zeroed. */
static void idx_name_parse(const char *name, struct idx_name *ret)
{
    const char *images = find_last(name, "images"), *labels = find_last(name, "labels");
    bool is_images = images && (!labels || images > labels);
    const char *word = is_images ? images : labels;

    if (!word)
        return;
    ret->named = true;
    ret->role = is_images ? ROLE_IMAGES : ROLE_LABELS;
    ret->stem_len = (size_t)(word - name);
    word += strlen("images");
    snprintf(ret->tail, sizeof(ret->tail), "%s", word + idx_part(word));
}

struct idx_file {
    struct source_file *source;
    struct idx_name name;
    struct idx_header header;
    bool usable;
    bool alone; /* its other half cannot be read now */
    bool used;
};

static bool names_pair(const struct idx_file *a, const struct idx_file *b)
{
    return a->name.named && b->name.named && a->name.role == ROLE_IMAGES &&
           b->name.role == ROLE_LABELS && a->name.stem_len == b->name.stem_len &&
           !strncmp(a->source->name, b->source->name, a->name.stem_len) &&
           !strcmp(a->name.tail, b->name.tail);
}

/* "train" of "train-images-idx3-ubyte"; the whole name if nothing would be left. */
static void pair_name(const struct idx_file *images, char *ret, size_t capacity)
{
    size_t len = images->name.stem_len;

    while (len && idx_folder_is_joint(images->source->name[len - 1]))
        len--;
    snprintf(ret, capacity, "%.*s%s", (int)len, images->source->name, images->name.tail);
    if (!ret[0] || ret[0] == '.')
        snprintf(ret, capacity, "%s", images->source->name);
}

static int idx_folder_add_stored(struct dataset *ds, const struct idx_file *file,
                                 const struct format_options *options)
{
    const struct idx_header *h = &file->header;
    struct blob *blob = TAKE_PTR(file->source->blob);
    uint64_t dim[IDX_AXES_MAX];
    unsigned ndim = h->axes - 1;
    bool exchange = options->transpose && file->name.role == ROLE_IMAGES && ndim == 2 &&
                    h->item_bytes <= TRANSPOSE_MAX;

    ds->blob[ds->n_blobs++] = blob;
    if (options->transpose && file->name.role == ROLE_IMAGES && !exchange)
        notes_add(
            &ds->notes,
            "%s: transpose does nothing here: expected images of 2 axes and at most 64 MiB, got "
            "%u axes and %llu bytes",
            blob_name(blob), ndim, (unsigned long long)h->item_bytes);
    for (unsigned i = 0; i < ndim; i++)
        dim[exchange ? ndim - 1 - i : i] = h->dim[i + 1];
    return dataset_add_stored(ds, role_fields[file->name.role],
                              &(struct field){.dtype = h->dtype,
                                              .ndim = ndim,
                                              .ops = exchange ? &field_transposed : NULL,
                                              .stored_big_endian = true,
                                              .blob = blob,
                                              .offset = h->payload},
                              dim)
               ? 0
               : -ENOMEM;
}

/* Add a field of float32 [ndim] derived from another, on the same bytes. dim, item_bytes: as of
 * struct field. */
static int idx_folder_add_derived(struct dataset *ds, const struct field *base, const char *suffix,
                                  const struct field_ops *ops, unsigned ndim, const uint64_t *dim,
                                  uint64_t item_bytes)
{
    struct field *f = &ds->field[ds->n_fields];

    *f = *base;
    snprintf(f->name, sizeof(f->name), "%.8s%s", base->name, suffix);
    f->ops = ops;
    f->in = IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_PAGES;
    f->derived = true;
    f->base_field = base;
    f->dtype = DTYPE_F4;
    f->width = 4;
    f->item_bytes = item_bytes;
    f->ndim = ndim;
    f->dim = calloc(ndim + 1u, sizeof(*f->dim));
    if (!f->dim)
        return -ENOMEM;
    for (unsigned i = 0; i < ndim; i++)
        f->dim[i] = dim[i];
    ds->n_fields++;
    return 0;
}

static int add_unit(struct dataset *ds)
{
    const struct field *image = dataset_field(ds, "image");

    if (!image || image->dtype != DTYPE_U1 || image->item_bytes > UINT64_MAX / 4)
        return 0;
    return idx_folder_add_derived(ds, image, "01",
                                  image->ops == &field_transposed ? image->ops : &field_converted,
                                  image->ndim, image->dim, 4 * image->item_bytes);
}

/* The largest label; -1 if there is none, or if a label is negative. */
static int largest_label(const struct field *label, uint64_t samples, int64_t *ret, struct diag *d)
{
    uint64_t bytes = samples * label->stored_bytes;
    AUTO_FREE uint8_t *buf = malloc(SCAN_BYTES);
    int64_t largest = -1;

    if (!buf)
        return -ENOMEM;
    for (uint64_t at = 0; at < bytes; at += SCAN_BYTES) {
        size_t n = (size_t)min_u64(SCAN_BYTES, bytes - at);
        int r = blob_read(READ_WAITS, label->blob, buf, n, label->offset + at, d);

        if (r < 0)
            return r;
        for (size_t i = 0; i < n; i += label->stored_bytes) {
            int64_t v = stored_integer(label, buf + i);

            if (v < 0) {
                *ret = -1;
                return 0;
            }
            largest = v > largest ? v : largest;
        }
    }
    *ret = largest;
    return 0;
}

static int add_one_hot(struct dataset *ds, const struct format_options *options, struct diag *d)
{
    const struct field *label = dataset_field(ds, "label");
    uint64_t classes = options->classes;

    if (!label || !field_is_scalar_integer(label))
        return 0;
    if (!classes) {
        int64_t largest = -1;
        int r = ds->samples * label->stored_bytes <= CLASSES_SCAN_MAX
                    ? largest_label(label, ds->samples, &largest, d)
                    : 0;

        if (r < 0)
            return r;
        if (largest < 0 || largest >= ONE_HOT_MAX)
            return 0;
        classes = (uint64_t)largest + 1;
    }
    return idx_folder_add_derived(ds, label, "1h", &field_one_hot, 1, &classes, 4 * classes);
}

static int dataset_make(struct idx_file *images, struct idx_file *labels,
                        const struct format_options *options, struct dataset **ret, struct diag *d)
{
    extern const struct format format_idx;
    AUTO_DATASET struct dataset *ds = NULL;
    int r = dataset_new(&format_idx, NULL, NULL, FIELDS_MAX, 2, &ds);

    if (r < 0)
        return r;
    dataset_set_samples(ds, images->header.dim[0]);
    r = idx_folder_add_stored(ds, images, options);
    if (r == 0 && labels)
        r = idx_folder_add_stored(ds, labels, options);
    if (r == 0)
        r = add_unit(ds);
    if (r == 0)
        r = add_one_hot(ds, options, d);
    if (r == 0) {
        dataset_add_numbering(ds);
        r = dataset_add_folders(ds);
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(ds);
    return 0;
}

/* Make a dataset from one file or from two; a file that cannot be read becomes an error under its
 * name. */
static int idx_folder_add_dataset(struct idx_file *images, struct idx_file *labels,
                                  const char *name, const struct format_options *options,
                                  struct finds *finds)
{
    struct diag d = DIAG_INIT;
    struct dataset *ds = NULL;
    int r = dataset_make(images, labels, options, &ds, &d);

    images->used = true;
    if (labels)
        labels->used = true;
    if (r == -ENOMEM)
        return r;
    return r < 0 ? finds->error(finds, name, diag_text(&d, r)) : finds->dataset(finds, name, ds);
}

static int idx_folder_add_pair(struct idx_file *images, struct idx_file *labels,
                               const struct format_options *options, struct finds *finds)
{
    char name[256], reason[1024];

    pair_name(images, name, sizeof(name));
    if (images->header.dim[0] == labels->header.dim[0])
        return idx_folder_add_dataset(images, labels, name, options, finds);
    snprintf(
        reason, sizeof(reason),
        "%s has %lu samples and %s has %lu labels at byte 4: expected the same number. Each is "
        "served alone under its own name.",
        blob_name(images->source->blob), (unsigned long)images->header.dim[0],
        blob_name(labels->source->blob), (unsigned long)labels->header.dim[0]);
    return finds->error(finds, name, reason);
}

/* The first labels with a name that fits the images, preferring the same number of samples. */
static struct idx_file *find_labels(struct idx_file *files, size_t n, const struct idx_file *images)
{
    struct idx_file *found = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!files[i].usable || files[i].alone || files[i].used || !names_pair(images, &files[i]))
            continue;
        if (files[i].header.dim[0] == images->header.dim[0])
            return &files[i];
        if (!found)
            found = &files[i];
    }
    return found;
}

/* The role of a file that its name leaves open, from the two magics that MNIST made familiar:
 * 0x0803 for images and 0x0801 for labels. */
static enum role role_of_magic(const struct idx_header *h)
{
    if (h->dtype != DTYPE_U1)
        return ROLE_DATA;
    return h->axes == 3 ? ROLE_IMAGES : h->axes == 1 ? ROLE_LABELS : ROLE_DATA;
}

static int read_headers(struct idx_file *files, struct source_file *sources, size_t n,
                        struct finds *finds)
{
    for (size_t i = 0; i < n; i++) {
        struct diag d = DIAG_INIT;
        int r;

        files[i].source = &sources[i];
        idx_name_parse(sources[i].name, &files[i].name);
        r = idx_header_read(sources[i].blob, &files[i].header, &d);
        files[i].usable = r == 0;
        if (r == 0 && files[i].name.role == ROLE_DATA)
            files[i].name.role = role_of_magic(&files[i].header);
        if (r < 0)
            r = finds->failed(finds, sources[i].file_name, r, diag_text(&d, r));
        if (r < 0)
            return r;
    }
    return 0;
}

/* The unread file is half of a pair: the pair becomes an error, and its other half is served alone
 * if that has another name. */
static int miss_half(struct idx_file *files, size_t n, size_t which, struct finds *finds)
{
    const struct source_file source = {.name = finds->unread[which].name};
    struct idx_file missing = {.source = (struct source_file *)&source};
    int r = 0;

    idx_name_parse(source.name, &missing.name);
    for (size_t i = 0; i < n && r == 0; i++) {
        bool has_images = names_pair(&files[i], &missing);
        char name[256];

        if (!files[i].usable || files[i].alone || !(has_images || names_pair(&missing, &files[i])))
            continue;
        pair_name(has_images ? &files[i] : &missing, name, sizeof(name));
        files[i].alone = true;
        files[i].used = !strcmp(name, files[i].source->name);
        r = finds_incomplete(finds, name, &finds->unread[which]);
    }
    return r;
}

static int idx_open_folder(struct source_file *sources, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    const struct format_options *options = &setup->options;
    AUTO_FREE struct idx_file *files = calloc(n ? n : 1, sizeof(*files));
    int r;

    if (!files)
        return -ENOMEM;
    r = read_headers(files, sources, n, finds);
    for (size_t i = 0; i < finds->n_unread && r == 0; i++)
        r = miss_half(files, n, i, finds);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct idx_file *labels = files[i].usable && !files[i].alone && files[i].name.named &&
                                          files[i].name.role == ROLE_IMAGES
                                      ? find_labels(files, n, &files[i])
                                      : NULL;

        if (labels)
            r = idx_folder_add_pair(&files[i], labels, options, finds);
    }
    for (size_t i = 0; i < n && r == 0; i++)
        if (files[i].usable && !files[i].used)
            r = idx_folder_add_dataset(&files[i], NULL, sources[i].name, options, finds);
    return r;
}

/* A stream of tokens may begin like an IDX file, but is hardly as long as the header says. So if
 * the user says that there are tokens, a file must be as long. */
static enum claim idx_probe(const struct probed_file *file)
{
    bool is_exact = file->options && file->options->tokens_given;
    const char *ext = strrchr(file->name, '.');
    bool is_bin = ext && !strcmp(ext, ".bin");
    struct idx_header h;

    if (file->len < 2 || file->head[0] || file->head[1])
        return CLAIM_NONE;
    if (file->len >= 4 && !strstr(file->name, "idx") && !strstr(file->name, "ubyte") &&
        ((!file->head[2] && !file->head[3]) ||
         (is_bin && (file->head[2] < 0x08 || file->head[2] > 0x0e || !file->head[3]))))
        return CLAIM_NONE; /* zeros where the content was never written, or tokens */
    return is_exact && idx_header_parse("", file->head, file->len, file->size, &h, NULL) < 0
               ? CLAIM_NONE
               : CLAIM_STRONG;
}

static void idx_example(const struct dataset *ds, struct text *t)
{
    const char *field = ds->field[0].name;
    bool has_labels = strcmp(field, "label") != 0 && dataset_field(ds, "label");
    char key[KEY_NAME_SIZE];

    text_add(t,
             "  batch = np.load(root + '/batches/batch=128,seed=7/epoch=0/npz/000000.npz')\n"
             "  x, %sindex = batch['%s'], %sbatch['index']\n",
             has_labels ? "y, " : "", field, has_labels ? "batch['label'], " : "");
    if (!ds->samples)
        return;
    dataset_name(ds, 0, false, key);
    text_add(t, "  one = np.load(root + '/samples/npy/%s.%s.npy')\n", key, field);
}

const struct format format_idx = {
    .name = "idx",
    .probe = idx_probe,
    .open_folder = idx_open_folder,
    .title = "IDX",
    .add_example = idx_example,
};
