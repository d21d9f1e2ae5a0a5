/* Archives of files: format/files finds its datasets in them as in folders. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/extensions.h"
#include "format/files/file.h"
#include "format/zip/archive.h"

/* ---- what format/files asks of an archive ---- */

struct zip_claims {
    struct claims claims;
    struct zip_archive *archive;
};

static int zip_read_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                          uint8_t *bytes, int *len)
{
    const struct zip_archive *archive = ((const struct zip_claims *)claims)->archive;

    for (unsigned i = 0; i < n; i++) {
        len[i] = zip_view_head(archive, file[i], bytes + i * size, size);
        if (len[i] == -ENOMEM)
            return -ENOMEM;
    }
    return 0;
}

static int zip_open_listed(const struct claims *claims, size_t file, struct blob **ret,
                           struct diag *d)
{
    struct zip_archive *archive = ((const struct zip_claims *)claims)->archive;
    const uint32_t number = (uint32_t)file;
    const struct members *members;

    return zip_view_new(archive, members_folder_of(&archive->listing, file), &number, 1, ret,
                        &members, d);
}

/* No other format looks into an archive. */
static bool zip_is_taken(const struct claims *claims, size_t file, const uint8_t *head, size_t len)
{
    (void)claims;
    (void)file;
    (void)head;
    (void)len;
    return false;
}

/* ---- datasets ---- */

/* Gets datasets of a collection, and hands them on under their whole paths. */
struct zip_finds {
    struct finds finds;
    struct finds *outer;
    const char *top, *folder; /* of the archive, of the collection */
    size_t n;                 /* datasets and errors so far */
};

/* A collection of the whole archive is called like the archive, not `all`. */
static char *zip_path_of(const struct zip_finds *finds, const char *name)
{
    AUTO_FREE char *path = NULL;
    char *ret = NULL;

    if (asprintf(&path, "%s%s%s", finds->folder, *finds->folder ? "/" : "", name) < 0)
        return path = NULL;
    if (*name == '/')
        ret = strdup(name);
    else if (members_is_below(path, finds->top) && asprintf(&ret, "/%s", path) < 0)
        return NULL;
    else if (!ret && asprintf(&ret, "/%s%s%s", finds->top, !strcmp(name, "all") ? "" : "/",
                              !strcmp(name, "all") ? "" : name) < 0)
        return NULL;
    return ret;
}

static int zip_found_dataset(struct finds *base, const char *name, struct dataset *ds)
{
    struct zip_finds *finds = (struct zip_finds *)base;
    AUTO_FREE char *path = zip_path_of(finds, name);

    if (!path) {
        dataset_free(ds);
        return -ENOMEM;
    }
    finds->n++;
    return finds->outer->dataset(finds->outer, path, ds);
}

static int zip_found_error(struct finds *base, const char *name, const char *reason)
{
    struct zip_finds *finds = (struct zip_finds *)base;
    AUTO_FREE char *path = zip_path_of(finds, name);

    finds->n++;
    return path ? finds->outer->error(finds->outer, path, reason) : -ENOMEM;
}

static int zip_found_failed(struct finds *base, const char *name, int error, const char *reason)
{
    (void)error;
    return zip_found_error(base, name, reason);
}

/* Count the files that are in no collection, and say which; n_aside of the archive are others. */
static int zip_count_others(const struct zip_archive *archive, const struct claims *claims,
                            uint64_t *ret_n, struct text *t)
{
    struct extensions others = {.n = 0};

    *ret_n = archive->n_aside;
    for (size_t i = 0; i < archive->listing.n; i++)
        if (!claims->taken[i]) {
            extensions_add(&others, members_name(&archive->listing, i));
            ++*ret_n;
        }
    if (archive->aside)
        text_add(t, "%s", archive->aside);
    if (others.n || others.others) {
        text_add(t, "%sother formats are not read inside of an archive; unpack it: ",
                 archive->aside ? ". And " : "");
        extensions_show(&others, false, t);
    }
    return t->failed ? -ENOMEM : 0;
}

static int zip_open_collections(struct zip_archive *archive, struct claims *claims,
                                struct zip_finds *finds)
{
    AUTO_TEXT struct text others = {0};
    uint64_t n = 0;
    int r = zip_count_others(archive, claims, &n, &others);

    for (size_t i = 0; i < claims->n && r == 0; i++) {
        struct collection *c = &claims->collection[i];
        const struct members *members = NULL;
        struct blob *blob = NULL;
        struct diag d = DIAG_INIT;

        if (!c->n)
            continue;
        c->n_unread = n;
        c->unread = n ? strdup(others.data) : NULL;
        finds->folder = c->folder;
        r = n && !c->unread ? -ENOMEM
                            : zip_view_new(archive, c->root, c->file, c->n, &blob, &members, &d);
        if (r == 0)
            r = format_files.open_collection(c, blob, members, archive->setup, &finds->finds);
        else if (r != -ENOMEM)
            r = zip_found_error(&finds->finds, c->name, diag_text(&d, r));
    }
    return r;
}

/* Nothing in the archive is a dataset: say what there is. */
static int zip_say_unusable(const struct zip_archive *archive, const struct zip_claims *claims,
                            const char *file_name, struct finds *finds)
{
    AUTO_TEXT struct text t = {0};
    uint64_t n = 0;
    int r;

    text_add(&t, "%s: expected files that are samples, as in a folder, got ",
             blob_name(archive->blob));
    if (archive->listing.n)
        text_add(&t, "%zu files of which none is: ", archive->listing.n);
    else
        text_add(&t, "an archive without files%s", archive->aside ? ": " : "");
    r = zip_count_others(archive, &claims->claims, &n, &t);
    if (r == 0 && claims->claims.unmet)
        text_add(&t, ". %s", claims->claims.unmet);
    return r < 0 || t.failed ? -ENOMEM : finds->failed(finds, file_name, -EBADMSG, t.data);
}

static int zip_find_datasets(struct zip_archive *archive, const char *top, const char *file_name,
                             struct finds *finds)
{
    struct zip_finds inner = {.finds = {.dataset = zip_found_dataset,
                                        .error = zip_found_error,
                                        .failed = zip_found_failed},
                              .outer = finds,
                              .top = top};
    AUTO_FREE uint8_t *taken = calloc(archive->listing.n + 1, 1);
    struct zip_claims claims = {{.taken = taken,
                                 .heads = zip_read_heads,
                                 .open = zip_open_listed,
                                 .is_taken = zip_is_taken},
                                archive};
    int r = taken ? format_files.claim_names(&archive->listing, &claims.claims) : -ENOMEM;

    if (r == 0)
        r = zip_open_collections(archive, &claims.claims, &inner);
    if (r == 0 && !inner.n)
        r = zip_say_unusable(archive, &claims, file_name, finds);
    claims_release(&claims.claims, &format_files);
    return r;
}

/* 0, or -ENOMEM: an archive that cannot be used is reported. */
static int zip_open_file(struct source_file *file, const struct format_setup *setup,
                         struct finds *finds)
{
    size_t len = strlen(file->name) - (text_ends_with(file->name, ".zip") ? 4 : 0);
    AUTO_FREE char *stem = strndup(file->name, len), *top = NULL;
    AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
    struct diag d = DIAG_INIT;
    int r;

    if (!stem || asprintf(&top, "%s%s%s", file->folder, *file->folder ? "/" : "", stem) < 0) {
        top = NULL;
        return -ENOMEM;
    }
    r = zip_archive_open(TAKE_PTR(file->blob), top, stem, setup, &archive, &d);
    if (r == -ENOMEM)
        return r;
    return r < 0 ? finds->failed(finds, file->file_name, r, diag_text(&d, r))
                 : zip_find_datasets(archive, top, file->file_name, finds);
}

static int zip_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = zip_open_file(&files[i], setup, finds);
    return r;
}

/* Is the first member of that name's end? */
static bool zip_first_ends(const struct probed_file *file, const char *end)
{
    size_t len = file->len >= 30 ? load_le16(file->head + 26) : 0, n = strlen(end);

    return len >= n && 30 + len <= file->len && !memcmp(file->head + 30 + len - n, end, n);
}

/* The marker of an archive of one part may come first. Archives of NumPy and PyTorch are not meant.
 */
static enum claim zip_probe(const struct probed_file *file)
{
    const uint8_t *head = file->head;
    bool marked =
        file->len >= 8 && (!memcmp(head, "PK\7\10PK\3\4", 8) || !memcmp(head, "PK00PK\3\4", 8));
    bool plain = file->len >= 4 && (!memcmp(head, "PK\3\4", 4) || !memcmp(head, "PK\5\6", 4));

    if ((!plain && !marked) || zip_first_ends(file, ".npy") || zip_first_ends(file, "/data.pkl") ||
        zip_first_ends(file, "/byteorder"))
        return CLAIM_NONE;
    return CLAIM_STRONG;
}

extern const struct format format_zip;
const struct format format_zip = {
    .name = "zip",
    .probe = zip_probe,
    .open_folder = zip_open_folder,
    .title = "zip archives of files",
    .example = "",
};
