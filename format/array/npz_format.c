/* .npz files: ZIP archives of .npy members. A stored member is read in place; a deflated one is
 * unpacked once, into the cache folder. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/array/archives.h"
#include "format/zip/archive/zip.h"

extern const struct format format_npz;

#define WHAT_SIZE 600

/* An archive that is being read. */
struct npz {
    struct arrays *arrays;
    struct held_blob *held; /* of the archive */
    uint64_t *left;         /* see struct archive_format */
    const struct format_setup *setup;
};

/* Read the start of a member's content. */
static int array_npz_peek(const struct npz *npz, struct zip_member *m, uint8_t *head, size_t most,
                          size_t *ret_len, struct diag *d)
{
    *ret_len = (size_t)min_u64(most, m->size);
    return *ret_len ? zip_content(READ_WAITS, npz->held->blob, m, head, *ret_len, d) : 0;
}

/* Make the array's blob the unpacked content of a deflated member. */
static int unpack_member(const struct npz *npz, const struct zip_member *m, struct array *a,
                         struct diag *d)
{
    const struct packed_part part = {a->name, m->at, m->packed_size, m->size, m->crc};
    struct blob *blob = NULL;
    int r = opener_unpack(npz->setup->opener, npz->held->blob, &part, &blob, d);

    if (r < 0)
        return r;
    held_blob_drop(a->here.held);
    a->here.held = held_blob_new(blob, npz->held);
    return a->here.held ? 0 : -ENOMEM;
}

/* Make an array of a member whose content begins with these bytes. 0; -ENODATA with the reason why
 * no samples can be made of it; or another -errno. */
static int array_npz_read_array(const struct npz *npz, const struct zip_member *m,
                                const uint8_t *head, size_t len, struct array *a, const char *what,
                                struct diag *d)
{
    bool deflated = m->method == ZIP_DEFLATED;
    int r = npy_parse(a, head, len, deflated ? 0 : m->at, m->size, true, what, d);

    if (r == 0 && deflated)
        r = unpack_member(npz, m, a, d);
    if (r == 0 && !deflated) {
        a->here.has_crc = true;
        a->here.crc = m->crc;
        a->here.off = m->at;
        a->here.len = m->size;
    }
    return r < 0 ? r : array_in_c_order(a, npz->left, what, d);
}

static int array_npz_add_member(const struct npz *npz, struct zip_member *m, uint8_t *head,
                                struct diag *d)
{
    const struct blob *blob = npz->held->blob;
    size_t len = 0, name = array_name_without(m->name, m->name_len, ".npy");
    struct diag reason = DIAG_INIT;
    char what[WHAT_SIZE];
    struct array *a;
    int r = array_npz_peek(npz, m, head, NPY_HEAD_START, &len, d);

    if (r < 0 || len < 6 || memcmp(head, NPY_MAGIC, 6) != 0) /* no array */
        return r;
    r = array_npz_peek(npz, m, head, NPY_HEAD_MAX, &len, d);
    if (r < 0)
        return r;
    a = arrays_add(npz->arrays, m->name, min_u64(name, ARRAY_NAME_MAX));
    if (!a)
        return -ENOMEM;
    if (name > ARRAY_NAME_MAX)
        return array_leave_out(a, "its name is longer than 48 bytes");
    if (a->repeats)
        return blob_bad(blob, d, "two members are called %s", a->name);
    a->here.held = held_blob_take(npz->held);
    snprintf(what, sizeof(what), "%s: member %s", blob_name(blob), a->name);
    r = array_npz_read_array(npz, m, head, len, a, what, &reason);
    if (r == -ENODATA)
        return array_leave_out_by(a, &reason, what);
    return r < 0 ? diag_set(d, r, "%s", diag_text(&reason, r)) : 0;
}

/* scipy.sparse writes the parts of a matrix as members of these names. */
static bool is_sparse(const struct arrays *arrays)
{
    static const char *const names[] = {"format", "shape", "data"};
    unsigned found = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (size_t k = 0; k < arrays->n; k++)
            found += !strcmp(arrays->array[k].name, names[i]);
    return found == ARRAY_LEN(names);
}

static int array_npz_read(struct held_blob *held, const struct format_setup *setup, uint64_t *left,
                          struct arrays *ret, struct diag *d)
{
    AUTO_ZIP struct zip zip = {0};
    const struct npz npz = {ret, held, left, setup};
    AUTO_FREE struct zip_member *member = NULL;
    const struct blob *blob = held->blob;
    AUTO_FREE uint8_t *head = malloc(NPY_HEAD_MAX);
    int r = !head ? -ENOMEM : zip_read(blob, false, &zip, d);

    if (r < 0)
        return r;
    if (!zip.n)
        return blob_bad(blob, d, "expected arrays, got an empty archive");
    member = malloc(zip.n * sizeof(*member));
    if (!member)
        return -ENOMEM;
    for (size_t i = 0; i < zip.n && r == 0; i++) {
        member[i] = zip_member(&zip, i);
        r = zip_locate(READ_WAITS, blob, &member[i], d);
    }
    for (size_t i = 0; i < zip.n && r == 0; i++)
        r = array_npz_add_member(&npz, &member[i], head, d);
    if (r == 0 && is_sparse(ret))
        return blob_bad(
            blob, d,
            "expected arrays of samples, got a sparse matrix of scipy, which epochfs does not "
            "read; convert it to libsvm text with sklearn.datasets.dump_svmlight_file");
    return r;
}

static int npz_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    static const struct archive_format npz = {&format_npz, ".npz", "an array", "arrays",
                                              array_npz_read};

    return archives_open_folder(&npz, files, n, setup, finds);
}

/* An archive whose first member is called .npy; or an empty one that is called .npz. */
static enum claim npz_probe(const struct probed_file *file)
{
    bool is_zip = file->len >= 4 && !memcmp(file->head, "PK\3\4", 4);
    bool is_empty = file->len >= 4 && !memcmp(file->head, "PK\5\6", 4);

    return (is_zip && zip_first_ends(file->head, file->len, ".npy")) ||
                   ((is_zip || is_empty) && text_ends_with(file->name, ".npz"))
               ? CLAIM_STRONG
               : CLAIM_NONE;
}

const struct format format_npz = {
    .name = "npz",
    .probe = npz_probe,
    .open_folder = npz_open_folder,
    .title = "npz (NumPy)",
    .add_example = array_set_example,
};
