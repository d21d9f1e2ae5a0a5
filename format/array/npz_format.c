/* .npz files: ZIP archives of .npy members. A stored member is read in place; a deflated one is
 * unpacked once, into the cache folder. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/array/archives.h"
#include "format/array/zip.h"

extern const struct format format_npz;

#define WHAT_SIZE 600

/* An archive that is being read. */
struct npz {
    struct arrays arrays;
    struct held_blob *held; /* of the archive */
    struct zip zip;
    uint64_t *left; /* bytes of arrays in Fortran's order that memory may still take */
    const struct format_setup *setup;
};

static void npz_release(struct npz *npz)
{
    arrays_release(&npz->arrays);
    held_blob_drop(npz->held);
    zip_release(&npz->zip);
}

/* Make a->held the unpacked content of a deflated member. */
static int unpack_member(struct npz *npz, const struct zip_member *m, struct array *a,
                         struct diag *d)
{
    AUTO_FREE char *name = NULL;
    const struct packed_part part = {a->name, m->at, m->packed_size, m->size, m->crc};
    struct blob *blob = NULL;
    int r = opener_unpack(npz->setup->opener, npz->held->blob, &part, &blob, d);

    if (r < 0)
        return r;
    held_blob_drop(a->held);
    a->held = held_blob_new(blob, npz->held);
    return a->held ? 0 : -ENOMEM;
}

/* Take a member whose content begins with these bytes as an array. 0; -ENODATA with the reason why
 * it is none that samples could be made of; or another -errno. */
static int take_array(struct npz *npz, const struct zip_member *m, const uint8_t *head, size_t len,
                      struct array *a, const char *what, struct diag *d)
{
    bool deflated = m->method == ZIP_DEFLATED;
    int r = npy_parse(a, head, len, deflated ? 0 : m->at, m->size, true, what, d);

    if (r == 0 && deflated)
        r = unpack_member(npz, m, a, d);
    if (r == 0 && !deflated) {
        a->has_crc = true;
        a->crc = m->crc;
        a->crc_off = m->at;
        a->crc_len = m->size;
    }
    return r < 0 ? r : array_in_c_order(a, npz->left, what, d);
}

static int array_npz_add_member(struct npz *npz, const struct zip_member *m, uint8_t *head,
                                struct diag *d)
{
    const struct blob *blob = npz->held->blob;
    size_t len = 0, name = array_name_without(m->name, m->name_len, ".npy");
    struct diag reason = DIAG_INIT;
    char what[WHAT_SIZE];
    struct array *a;
    int r = zip_peek(blob, m, head, NPY_HEAD_START, &len, d);

    if (r < 0 || len < 6 || memcmp(head, "\x93NUMPY", 6) != 0) /* another kind of file */
        return r;
    r = zip_peek(blob, m, head, NPY_HEAD_MAX, &len, d);
    if (r < 0)
        return r;
    a = arrays_add(&npz->arrays, m->name, min_u64(name, ARRAY_NAME_MAX));
    if (!a)
        return -ENOMEM;
    if (name > ARRAY_NAME_MAX)
        return array_leave_out(a, "its name is longer than 48 bytes");
    if (a->repeats)
        return diag_set(d, -EBADMSG, "%s: two members are called %s", blob_name(blob), a->name);
    a->held = held_blob_take(npz->held);
    snprintf(what, sizeof(what), "%s: member %s", blob_name(blob), a->name);
    r = take_array(npz, m, head, len, a, what, &reason);
    if (r == -ENODATA) {
        size_t skip = strlen(what);

        return array_leave_out(a, strlen(reason.text) > skip + 2 ? reason.text + skip + 2
                                                                 : reason.text);
    }
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

static int read_members(struct npz *npz, struct diag *d)
{
    const struct blob *blob = npz->held->blob;
    AUTO_FREE uint8_t *head = malloc(NPY_HEAD_MAX);
    bool any = false;
    int r = !head ? -ENOMEM : zip_read(blob, &npz->zip, d);

    if (r < 0)
        return r;
    if (!npz->zip.n)
        return diag_set(d, -EBADMSG, "%s: expected arrays, got an empty archive", blob_name(blob));
    for (size_t i = 0; i < npz->zip.n && r == 0; i++)
        r = zip_check(blob, &npz->zip.member[i], d);
    if (r == 0)
        r = zip_find(blob, &npz->zip, d);
    for (size_t i = 0; i < npz->zip.n && r == 0; i++)
        r = array_npz_add_member(npz, &npz->zip.member[i], head, d);
    if (r < 0)
        return r;
    if (is_sparse(&npz->arrays))
        return diag_set(d, -EBADMSG,
                        "%s: expected arrays of samples, got a sparse matrix of scipy, which "
                        "epochfs does not read; convert it to libsvm text with "
                        "sklearn.datasets.dump_svmlight_file",
                        blob_name(blob));
    for (size_t i = 0; i < npz->arrays.n; i++)
        any = any || !npz->arrays.array[i].left_out;
    if (any)
        return 0;
    return npz->arrays.n
               ? diag_set(d, -EBADMSG, "%s: expected an array of samples, got %s: %s",
                          blob_name(blob), npz->arrays.array[0].name, npz->arrays.array[0].left_out)
               : diag_set(d, -EBADMSG, "%s: expected arrays, got none in %zu members",
                          blob_name(blob), npz->zip.n);
}

/* left: bytes of memory for arrays in Fortran's order, of all files of the folder. */
static int array_npz_read_archive(struct blob *blob, const struct format_setup *setup, void *left,
                                  struct arrays *ret, struct diag *d)
{
    AUTO(npz_release) struct npz npz = {.left = left, .setup = setup};
    int r;

    npz.held = held_blob_new(blob, NULL);
    if (!npz.held)
        return -ENOMEM;
    r = read_members(&npz, d);
    if (r < 0)
        return r;
    *ret = npz.arrays;
    npz.arrays = (struct arrays){0};
    return 0;
}

static int npz_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    static const struct archive_kind kind = {&format_npz, ".npz", array_npz_read_archive};
    uint64_t left = FORTRAN_MAX;

    return archives_open_folder(&kind, files, n, setup, &left, finds);
}

/* An archive whose first member is called .npy; or an empty one that is called .npz. */
static enum claim npz_probe(const struct probed_file *file)
{
    const uint8_t *h = file->head;
    size_t len = file->len >= 30 ? (size_t)(h[26] | h[27] << 8) : 0;

    if (file->len >= 4 && !memcmp(h, "PK\3\4", 4) && 30 + len <= file->len &&
        array_name_without((const char *)h + 30, len, ".npy") < len)
        return CLAIM_STRONG;
    if (file->len >= 4 && (!memcmp(h, "PK\5\6", 4) || !memcmp(h, "PK\3\4", 4)) &&
        text_ends_with(file->name, ".npz"))
        return CLAIM_STRONG;
    return CLAIM_NONE;
}

const struct format format_npz = {
    .name = "npz",
    .probe = npz_probe,
    .open_folder = npz_open_folder,
    .title = "npz (NumPy)",
    .add_example = array_set_example,
};
