/* Archives of files: format/files finds its datasets in them as in folders. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/extensions.h"
#include "format/files/file.h"
#include "format/zip/archive.h"

struct zip_claims {
    struct claims claims;
    struct zip_archive *archive;
    const char *top;    /* folder of the archive */
    struct text others; /* which files are in no collection, and */
    size_t n_others;    /* how many */
};

/* ---- what format/files asks of an archive ---- */

static int zip_read_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                          uint8_t *bytes, int *len)
{
    const struct zip_archive *archive = ((const struct zip_claims *)claims)->archive;

    for (unsigned i = 0; i < n; i++) {
        struct zip_member m = zip_archive_member(archive, &archive->listing, file[i]);

        int r = 0;

        len[i] = (int)min_u64(size, m.size);
        if (len[i])
            r = zip_content(READ_WAITS, archive->blob, &archive->zip, &m, bytes + i * size,
                            (size_t)len[i], NULL);
        if (r == -ENOMEM)
            return r;
        len[i] = r < 0 ? r : len[i];
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

/* ---- datasets ---- */

/* Make the name of a collection its whole path. One of all of SOURCE is of the archive. */
static int zip_name_collection(struct collection *c, const char *top)
{
    AUTO_FREE char *path = NULL, *name = c->name;
    bool whole = !strcmp(name, "all");
    int r = text_print(&path, "/%s%s%s", c->folder, *c->folder ? "/" : "", name);

    c->name = NULL;
    if (r == 0 && members_is_below(path + 1, top))
        c->name = TAKE_PTR(path);
    else if (r == 0)
        r = text_print(&c->name, "/%s%s%s", top, whole ? "" : "/", whole ? "" : name);
    return r;
}

/* Count the files that are in no collection, and say which. */
static int zip_count_others(struct zip_claims *claims)
{
    const struct zip_archive *archive = claims->archive;
    struct text *t = &claims->others;
    struct extensions others = {.n = 0};

    claims->n_others = (size_t)archive->n_aside;
    for (size_t i = 0; i < archive->listing.n; i++)
        if (!claims->claims.taken[i]) {
            extensions_add(&others, members_name(&archive->listing, i));
            claims->n_others++;
        }
    if (archive->aside.set)
        text_add(t, "%s", archive->aside.text);
    if (others.n || others.others) {
        text_add(t, "%sother formats are not read inside of an archive; unpack it: ",
                 archive->aside.set ? ". And " : "");
        extensions_show(&others, false, t);
    }
    return t->failed ? -ENOMEM : 0;
}

static int zip_open_collection(struct zip_claims *claims, struct collection *c, struct finds *finds)
{
    struct zip_archive *archive = claims->archive;
    const struct members *members = NULL;
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    int r = zip_name_collection(c, claims->top);

    c->n_unread = claims->n_others;
    if (r == 0 && c->n_unread)
        r = text_print(&c->unread, "%s", claims->others.data);
    if (r < 0)
        return r;
    r = zip_view_new(archive, c->root, c->file, c->n, &blob, &members, &d);
    if (r == 0)
        return format_files.open_collection(c, blob, members, archive->setup, finds);
    return r == -ENOMEM ? r : finds->error(finds, c->name, diag_text(&d, r));
}

/* Nothing in the archive is a dataset: say what there is. */
static int zip_say_unusable(const struct zip_claims *claims, const char *file_name,
                            struct finds *finds)
{
    const struct zip_archive *archive = claims->archive;
    AUTO_TEXT struct text t = {0};

    text_add(&t, "%s: expected files that are samples, as in a folder, got ",
             blob_name(archive->blob));
    if (archive->listing.n)
        text_add(&t, "%zu files of which none is: ", archive->listing.n);
    else
        text_add(&t, "an archive without files%s", archive->aside.set ? ": " : "");
    text_add_bytes(&t, claims->others.data, claims->others.len);
    if (claims->claims.unmet)
        text_add(&t, ". %s", claims->claims.unmet);
    return t.failed ? -ENOMEM : finds->failed(finds, file_name, -EBADMSG, t.data);
}

static int zip_find_datasets(struct zip_archive *archive, const char *top, const char *file_name,
                             struct finds *finds)
{
    AUTO_FREE uint8_t *taken = calloc(archive->listing.n + 1, 1);
    struct zip_claims claims = {{.taken = taken, .heads = zip_read_heads, .open = zip_open_listed},
                                .archive = archive,
                                .top = top};
    size_t n = 0;
    int r = taken ? format_files.claim_names(&archive->listing, &claims.claims) : -ENOMEM;

    if (r == 0)
        r = zip_count_others(&claims);
    for (size_t i = 0; i < claims.claims.n && r == 0; i++)
        if (claims.claims.collection[i].n) {
            r = zip_open_collection(&claims, &claims.claims.collection[i], finds);
            n++;
        }
    if (r == 0 && !n)
        r = zip_say_unusable(&claims, file_name, finds);
    claims_release(&claims.claims, &format_files);
    text_release(&claims.others);
    return r;
}

/* 0, or -ENOMEM: an archive that cannot be used is reported. */
static int zip_open_file(struct source_file *file, const struct format_setup *setup,
                         struct finds *finds)
{
    size_t len = strlen(file->name) - (text_ends_with(file->name, ".zip") ? 4 : 0);
    AUTO_FREE char *top = NULL;
    AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
    struct diag d = DIAG_INIT;
    int r =
        text_print(&top, "%s%s%.*s", file->folder, *file->folder ? "/" : "", (int)len, file->name);

    if (r == 0)
        r = zip_archive_open(TAKE_PTR(file->blob), top, top + strlen(top) - len, setup, &archive,
                             &d);
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
