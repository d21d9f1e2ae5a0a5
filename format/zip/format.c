/* Archives of files: format/files finds its datasets in them as in folders. What it finds by names
 * alone in a large archive is kept, so that the next mount reads neither the directory nor names.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/extensions.h"
#include "format/files/file.h"
#include "format/zip/archive.h"

#define KEPT_LEAST 4096 /* files of an archive whose datasets are kept */

/* What is found in an archive. */
struct zip_found {
    struct claims claims;  /* of the datasets; those that have no files do not count */
    struct members *files; /* [claims.n] of each */
    uint64_t n_others;     /* files that are in none, and */
    char *others;          /* which they are */
    struct zip_archive *archive;
    const char *top, *stem;       /* see zip_list() */
    const struct members *listed; /* while they are looked for: all files */
};

static void zip_found_release(struct zip_found *found)
{
    for (size_t i = 0; i < found->claims.n && found->files; i++)
        members_release(&found->files[i]);
    claims_release(&found->claims, &format_files);
    free(TAKE_PTR(found->files));
    free(TAKE_PTR(found->others));
}

/* ---- what format/files asks of an archive ---- */

static int zip_read_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                          uint8_t *bytes, int *len)
{
    const struct zip_found *found = (const struct zip_found *)claims;

    for (unsigned i = 0; i < n; i++) {
        struct zip_member m = zip_listed(found->listed, file[i]);
        int r = 0;

        len[i] = (int)min_u64(size, m.size);
        if (len[i])
            r = zip_content(READ_WAITS, found->archive->blob, &m, bytes + i * size, (size_t)len[i],
                            NULL);
        if (r == -ENOMEM)
            return r;
        if (r < 0 && r != -EBADMSG) /* the next mount may read it */
            found->archive->found.may_differ = true;
        len[i] = r < 0 ? r : len[i];
    }
    return 0;
}

static int zip_open_listed(const struct claims *claims, size_t file, struct blob **ret,
                           struct diag *d)
{
    const struct zip_found *found = (const struct zip_found *)claims;
    const uint32_t number = (uint32_t)file;
    const struct members *files;
    struct members one = {0};
    int r = members_pick(found->listed, members_folder_of(found->listed, file), &number, 1, &one);

    return r == 0 ? zip_view_new(found->archive, &one, ret, &files, d) : r;
}

/* ---- finding ---- */

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
static int zip_count_others(struct zip_found *found, const struct zip_listing *list)
{
    struct extensions others = {.n = 0};
    AUTO_TEXT struct text t = {0};

    found->n_others = list->n_aside;
    for (size_t i = 0; i < list->files.n; i++)
        if (!found->claims.taken[i]) {
            extensions_add(&others, members_name(&list->files, i));
            found->n_others++;
        }
    if (list->aside.set)
        text_add(&t, "%s", list->aside.text);
    if (others.n || others.others) {
        text_add(&t, "%sother formats are not read inside of an archive; unpack it: ",
                 list->aside.set ? ". And " : "");
        extensions_show(&others, false, &t);
    }
    return text_finish(&t, &found->others, NULL);
}

/* Nothing in the archive is a dataset: say what there is. */
static int zip_say_unusable(const struct zip_found *found, bool has_aside, struct diag *d)
{
    const char *unmet = found->claims.unmet;
    char n[64] = "";

    if (found->listed->n)
        snprintf(n, sizeof(n), "%zu files of which none is: ", found->listed->n);
    return blob_bad(found->archive->blob, d,
                    "expected files that are samples, as in a folder, got %s%s%s%s%s",
                    found->listed->n ? n : "an archive without files",
                    !found->listed->n && has_aside ? ": " : "", found->others, unmet ? ". " : "",
                    unmet ? unmet : "");
}

/* Find the datasets of the files of a listing: at least one. */
static int zip_find_sets(struct zip_found *found, const struct zip_listing *list, struct diag *d)
{
    struct claims *claims = &found->claims;
    bool any = false;
    int r = format_files.claim_names(&list->files, claims);

    if (r == 0)
        r = zip_count_others(found, list);
    if (r == 0) {
        found->files = calloc(claims->n + 1, sizeof(*found->files));
        r = found->files ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < claims->n && r == 0; i++) {
        struct collection *c = &claims->collection[i];

        any = any || c->n;
        r = zip_name_collection(c, found->top);
        if (r == 0)
            r = members_pick(&list->files, c->root, c->file, c->n, &found->files[i]);
    }
    return r == 0 && !any ? zip_say_unusable(found, list->aside.set, d) : r;
}

/* Only what names have said, in an archive of many files. */
static bool zip_may_keep(const struct zip_found *found)
{
    size_t n = 0;

    for (size_t i = 0; i < found->claims.n; i++) {
        const struct collection *c = &found->claims.collection[i];

        if (!c->n || c->missing || !claim_is_of_names(c->impl))
            return false;
        n += c->n;
    }
    return n >= KEPT_LEAST;
}

/* Find all datasets. As zip_list(), but 1. */
static int zip_find(void *impl, struct diag *d)
{
    struct zip_found *found = impl;
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
    AUTO_FREE uint8_t *taken = NULL;
    int r = zip_list(found->archive->blob, found->top, found->stem, &list, d);

    if (r == 0) {
        found->listed = &list.files;
        found->claims.taken = taken = calloc(list.files.n + 1, 1);
        found->claims.heads = zip_read_heads;
        found->claims.open = zip_open_listed;
        r = taken ? zip_find_sets(found, &list, d) : -ENOMEM;
    }
    if (r == 0 && !zip_may_keep(found))
        found->archive->found.may_differ = true; /* it is not kept */
    return r < 0 ? r : 1;
}

/* ---- what is kept ---- */

static int zip_identity(void *impl, struct text *ret)
{
    text_add(ret, " %s", ((const struct zip_found *)impl)->top);
    return 0;
}

static void zip_keep_files(struct kept *k, struct members *files)
{
    struct iovec piece[MEMBERS_PIECES];
    struct members_head head;
    uint64_t size = 0;
    char pad[8] = {0}; /* the table is used where it is */

    kept_bytes(k, pad, -(k->out ? k->out->len : (uintptr_t)k->at) % sizeof(pad));
    members_bytes(files, &head, piece);
    for (unsigned i = 0; i < MEMBERS_PIECES; i++)
        size += piece[i].iov_len;
    kept_number(k, &size, k->left);
    for (unsigned i = 0; i < MEMBERS_PIECES && k->out; i++)
        kept_bytes(k, piece[i].iov_base, piece[i].iov_len);
    if (k->out || k->error)
        return;
    k->error = members_from_bytes(k->at, size, files);
    k->at += size;
    k->left -= size;
}

static void zip_keep(void *impl, struct kept *k)
{
    struct zip_found *found = impl;
    struct claims *claims = &found->claims;
    uint64_t n = claims->n;

    if (!k->out)
        zip_found_release(found);
    kept_number(k, &found->n_others, UINT64_MAX);
    kept_text(k, &found->others);
    kept_number(k, &n, k->left / sizeof(n));
    if (!k->out && n) {
        claims->collection = calloc(n, sizeof(*claims->collection));
        found->files = calloc(n, sizeof(*found->files));
        if (!claims->collection || !found->files)
            k->error = -ENOMEM;
    }
    for (uint64_t i = 0; i < n && !k->error; i++) {
        struct collection *c = &claims->collection[i];
        struct files_claim *claim = c->impl;

        claims->n = i + 1;
        kept_text(k, &c->name);
        kept_text(k, &c->root);
        zip_keep_files(k, &found->files[i]);
        claim_keep(k, &claim, &found->files[i]);
        c->impl = claim;
        c->n = found->files[i].n;
    }
    if (k->at && !n && !k->error)
        k->error = -EBADMSG;
}

/* What names say depends on the rules of format/files, and so on the version of epochfs. */
static const struct prepared_ops zip_ops = {.version = "zip 1 " EPOCHFS_VERSION,
                                            .identity = zip_identity,
                                            .keep = zip_keep,
                                            .step = zip_find};

/* ---- datasets ---- */

static int zip_open_set(struct zip_found *found, size_t i, struct finds *finds)
{
    struct collection *c = &found->claims.collection[i];
    struct zip_archive *archive = found->archive;
    const struct members *files = NULL;
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    int r = 0;

    c->n_unread = found->n_others;
    if (c->n_unread)
        r = text_print(&c->unread, "%s", found->others);
    if (r == 0 && c->missing)
        return finds->error(finds, c->name, c->missing);
    if (r == 0)
        r = zip_view_new(archive, &found->files[i], &blob, &files, &d);
    if (r == 0)
        return format_files.open_collection(c, blob, files, archive->setup, finds);
    return r == -ENOMEM ? r : finds->error(finds, c->name, diag_text(&d, r));
}

/* 0, or -ENOMEM: an archive that cannot be used is reported. */
static int zip_open_file(struct source_file *file, const struct format_setup *setup,
                         struct finds *finds)
{
    size_t len = strlen(file->name) - (text_ends_with(file->name, ".zip") ? 4 : 0);
    AUTO_FREE char *top = NULL;
    AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
    AUTO(zip_found_release) struct zip_found found = {0};
    struct diag d = DIAG_INIT;
    int r =
        text_print(&top, "%s%s%.*s", file->folder, *file->folder ? "/" : "", (int)len, file->name);

    if (r == 0)
        r = zip_archive_new(TAKE_PTR(file->blob), setup, &archive);
    if (r < 0)
        return r;
    found.archive = archive;
    found.top = top;
    found.stem = top + strlen(top) - len;
    archive->found = (struct prepared){.ops = &zip_ops,
                                       .impl = &found,
                                       .keep = setup->keep,
                                       .blob = archive->blob,
                                       .type = "rows",
                                       .name = blob_name(archive->blob),
                                       .source = blob_source(archive->blob),
                                       .size = archive->blob->size};
    r = prepared_step(&archive->found, &d);
    if (r < 0)
        return r == -ENOMEM ? r : finds->failed(finds, file->file_name, r, diag_text(&d, r));
    r = 0;
    for (size_t i = 0; i < found.claims.n && r == 0; i++)
        if (found.claims.collection[i].n)
            r = zip_open_set(&found, i, finds);
    return r;
}

static int zip_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = zip_open_file(&files[i], setup, finds);
    return r;
}

/* The marker of an archive of one part may come first. Archives of NumPy and PyTorch are not meant.
 */
static enum claim zip_probe(const struct probed_file *file)
{
    const uint8_t *head = file->head;
    bool marked =
        file->len >= 8 && (!memcmp(head, "PK\7\10PK\3\4", 8) || !memcmp(head, "PK00PK\3\4", 8));
    bool plain = file->len >= 4 && (!memcmp(head, "PK\3\4", 4) || !memcmp(head, "PK\5\6", 4));

    if ((!plain && !marked) || zip_first_ends(head, file->len, ".npy") ||
        zip_first_ends(head, file->len, "/data.pkl") ||
        zip_first_ends(head, file->len, "/byteorder"))
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
