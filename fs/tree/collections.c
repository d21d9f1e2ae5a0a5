/* A listing is packed, and what a collection takes of it is copied to a table of its own: no file
 * of it becomes an entry of a list. The listing ends here. */
#include "fs/tree/collections.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/source/listing.h"
#include "format/registry.h"
#include "fs/tree/folder_scan.h"

/* Make the blob of a collection. 0, or -errno with the reason in d. */
static int collections_join(const struct source *source, const struct known *listing,
                            const struct collection *c, struct blob **ret, struct diag *d)
{
    AUTO_MEMBERS struct members members = {0};
    struct joined_head head;
    int r = members_pick(&listing->files, c->root, c->file, c->n, &members);

    if (r < 0)
        return r;
    listing_head(listing, c->file, c->n, &head);
    head.name = c->root;
    return source_join(source, &head, &members, ret, d);
}

/* The collection that a failed file is below; NULL: none. What lies in SOURCE itself is shown, and
 * what stays what it is next to class folders. */
static struct collection *find_above(const struct claims *claims, const struct source_entry *entry)
{
    for (size_t i = 0; i < claims->n && *entry->folder; i++) {
        struct collection *c = &claims->collection[i];

        if (members_is_below(entry->folder, c->root) &&
            !(c->has_beside && !strcmp(entry->folder, c->root)))
            return c;
    }
    return NULL;
}

/* May what failed have samples of the collection? Not a file next to its class folders. */
static bool may_have_samples(const struct known *listing, const struct collection *c,
                             const struct source_entry *entry)
{
    const struct members *files = &listing->files;
    char path[PATH_MAX];

    /* Hidden ones, and the one that a file system has for itself, are never data. */
    if (*entry->name == '.' || !strcmp(entry->name, "lost+found") ||
        !members_is_below(entry->folder, c->root))
        return false;
    if (strcmp(entry->folder, c->root) != 0)
        return true;
    if (snprintf(path, sizeof(path), "%s%s%s", entry->folder, *entry->folder ? "/" : "",
                 entry->name) >= (int)sizeof(path))
        return false;
    return members_folder_number(files, path, strlen(path)) < files->n_folders ||
           (c->n && !strcmp(members_folder_of(files, c->file[0]), c->root));
}

/* A collection of which something cannot be read, but perhaps later, or by others, is an error. */
static int collections_note_missing(const struct known *listing, struct claims *claims,
                                    const struct source_entry *entry)
{
    for (size_t i = 0; i < claims->n; i++) {
        struct collection *c = &claims->collection[i];

        if (!blob_may_pass(entry->failure) || c->missing || !may_have_samples(listing, c, entry))
            continue;
        c->missing = incomplete_reason(c->name, entry->failure, entry->error);
        if (!c->missing)
            return -ENOMEM;
    }
    return 0;
}

/* Files that cannot be read, and are below a collection, become a note of it: they would be shown
 * in a folder called like the dataset. taken: of them, from files.n on. */
static int take_failed(const struct known *listing, struct claims *claims, uint8_t *taken)
{
    int r = 0;

    for (size_t i = 0; i < listing->failed.n && r == 0; i++) {
        const struct source_entry *entry = &listing->failed.entry[i];
        struct collection *c = taken[i] ? NULL : find_above(claims, entry);

        if (!taken[i])
            r = collections_note_missing(listing, claims, entry);
        if (!c)
            continue;
        taken[i] = 1;
        if (!c->n_unread++ && !(c->unread = strdup(entry->error)))
            return -ENOMEM;
    }
    return r;
}

/* Hand over what one format has claimed. -EOPNOTSUPP: nothing was, for this source joins no files.
 */
static int add_claimed(const struct source *source, struct collections_user *user,
                       const struct format *format, const struct known *listing,
                       const struct claims *claims)
{
    int r = 0;

    for (size_t i = 0; i < claims->n && r == 0; i++) {
        struct collection *c = &claims->collection[i];
        struct blob *blob = NULL;
        struct diag d = DIAG_INIT;

        if (!c->n && !c->missing)
            continue;
        r = c->missing ? -EREMOTEIO : collections_join(source, listing, c, &blob, &d);
        if (r == -ENOMEM || r == -EOPNOTSUPP)
            return r;
        r = user->add(user, format, c, blob,
                      c->missing ? c->missing
                      : r < 0    ? diag_text(&d, r)
                                 : NULL);
    }
    return r;
}

/* A format's claims, and what reads the heads of files for it. */
struct claiming {
    struct claims claims;
    const struct source *source;
    const struct known *listing;
    const struct format_options *options;
};

/* Returns how many bytes there are, or -errno. */
static int collections_read_head(const struct source *source, const struct source_entry *entry,
                                 size_t size, uint8_t *ret)
{
    AUTO_BLOB struct blob *blob = NULL;
    int r = source_blob_packed(source, entry, &blob, NULL);

    if (r < 0)
        return r;
    size = (size_t)min_u64(size, blob->size);
    r = size ? blob_read(READ_WAITS, blob, ret, size, 0, NULL) : 0;
    return r < 0 ? r : (int)size;
}

/* All are asked for before the first is waited for. */
static int read_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                      uint8_t *bytes, int *len)
{
    const struct claiming *claiming = (const struct claiming *)claims;
    AUTO_SOURCE_LIST struct source_list list = {0};
    int r = 0;

    for (unsigned i = 0; i < n && r == 0; i++) {
        struct source_entry entry;

        r = known_entry(claiming->source, claiming->listing, file[i], &entry);
        if (r == 0)
            r = source_list_take(&list, &entry);
        if (r == 0)
            source_fetch_head(claiming->source, &list.entry[i], &claiming->source->cache, size, 0);
    }
    for (unsigned i = 0; i < n && r == 0; i++) {
        len[i] = collections_read_head(claiming->source, &list.entry[i], size, bytes + i * size);
        r = len[i] == -ENOMEM ? -ENOMEM : 0;
    }
    return r;
}

static int collections_open_file(const struct claims *claims, size_t file, struct blob **ret,
                                 struct diag *d)
{
    const struct claiming *claiming = (const struct claiming *)claims;
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};
    int r = known_entry(claiming->source, claiming->listing, file, &entry);

    return r < 0 ? r : source_blob_packed(claiming->source, &entry, ret, d);
}

static bool collections_is_taken(const struct claims *claims, size_t file, const uint8_t *head,
                                 size_t len)
{
    const struct claiming *claiming = (const struct claiming *)claims;
    const struct members *files = &claiming->listing->files;
    uint64_t size = members_size(files, file);

    return folder_scan_takes(&(struct probed_file){.name = members_name(files, file),
                                                   .head = head,
                                                   .len = len,
                                                   .whole = len == size,
                                                   .size = size,
                                                   .options = claiming->options});
}

#define LAYOUT_BYTES (1 << 20) /* of a recipe, at most */

/* Read the recipe that the user has given. 0, or -errno with the reason in d. */
static int collections_read_layout(const char *path, char **ret, struct diag *d)
{
    AUTO_FREE char *text = calloc(LAYOUT_BYTES + 1, 1);
    AUTO_CLOSE int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* no pipe blocks */
    struct stat st;
    size_t len = 0;
    ssize_t n = 1;

    if (!text)
        return -ENOMEM;
    if (fd < 0 || fstat(fd, &st) < 0)
        return diag_set(d, -errno, "layout=%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return diag_set(d, -EINVAL, "layout=%s: expected a file, got something else", path);
    while (n > 0 && len < LAYOUT_BYTES) {
        n = read(fd, text + len, LAYOUT_BYTES - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return diag_set(d, -errno, "layout=%s: %s", path, strerror(errno));
    if (len == LAYOUT_BYTES || strlen(text) != len)
        return diag_set(d, -EINVAL, "layout=%s: expected JSON of less than 1 MiB, got other bytes",
                        path);
    *ret = TAKE_PTR(text);
    return 0;
}

static int add_collections(const struct source *source, const struct format_options *options,
                           struct collections_user *user, struct known *listing,
                           const struct unread_file *unread, struct source_list *ret_rest,
                           struct diag *d)
{
    AUTO_FREE uint8_t *taken = calloc(listing->files.n + listing->failed.n + 1, 1);
    AUTO_FREE char *layout = NULL;
    int r = taken ? 0 : -ENOMEM;

    if (r == 0 && options->layout)
        r = collections_read_layout(options->layout, &layout, d);
    if (r < 0)
        return r;

    for (unsigned f = 0; f < n_formats && r == 0; f++) {
        struct claiming claiming = {{.taken = taken,
                                     .heads = read_heads,
                                     .open = collections_open_file,
                                     .is_taken = collections_is_taken,
                                     .takes_groups = true,
                                     .format_given = options->format,
                                     .layout = layout,
                                     .unread = unread,
                                     .n_unread = listing->failed.n,
                                     .shows_recipe = options->shows_layout,
                                     .layout_name = options->layout},
                                    source,
                                    listing,
                                    options};
        struct claims *claims = &claiming.claims;

        if (!formats[f]->claim_names)
            continue;
        r = formats[f]->claim_names(&listing->files, claims);
        if (r == 0)
            r = take_failed(listing, claims, taken + listing->files.n);
        if (r == 0 && user->others)
            r = user->others(user, source, listing, claims);
        for (size_t i = 0; i < listing->files.n && !user->others; i++)
            taken[i] = taken[i] == CLAIMS_GROUPED ? 0 : taken[i];
        if (r == 0)
            r = add_claimed(source, user, formats[f], listing, claims);
        if (claims->recipe && user->recipe && !*user->recipe)
            *user->recipe = TAKE_PTR(claims->recipe);
        if (claims->unmet && user->unmet && !*user->unmet)
            *user->unmet = TAKE_PTR(claims->unmet);
        claims_release(claims, formats[f]);
    }
    if (r == -EOPNOTSUPP)
        return known_list(source, listing, NULL, ret_rest);
    if (r == 0)
        r = known_list(source, listing, taken, ret_rest);
    for (size_t i = 0; i < listing->files.n; i++)
        taken[i] = taken[i] == CLAIMS_SAMPLE;
    return r < 0 || !source->remote->far ? r : known_drop(listing, taken);
}

int collections_each(const struct source *source, const struct format_options *options,
                     struct collections_user *user, struct source_list *ret_rest, struct diag *d)
{
    AUTO_KNOWN struct known local = {0};
    AUTO_FREE struct unread_file *unread = NULL; /* [failed.n] by their paths */
    struct known *listing;
    int r = source_listing(source, now_ns(), &local, &listing, d);

    if (r < 0)
        return r;
    unread = calloc(listing->failed.n + 1, sizeof(*unread));
    r = unread ? 0 : -ENOMEM;
    for (size_t i = 0; i < listing->failed.n && r == 0; i++) {
        const struct source_entry *entry = &listing->failed.entry[i];

        unread[i].reason = entry->error;
        r = text_print(&unread[i].name, "%s%s%s", entry->folder, *entry->folder ? "/" : "",
                       entry->name);
    }
    if (r == 0)
        r = add_collections(source, options, user, listing, unread, ret_rest, d);
    for (size_t i = 0; unread && i < listing->failed.n; i++)
        free(unread[i].name);
    return r;
}

/* ---- for the catalog ---- */

struct opening {
    struct collections_user user;
    struct finds finds;
    struct catalog *catalog;
    const char *root, *folder; /* of a collection; where datasets that are found are shown */
};

static const struct opening *opening_of(const struct finds *finds)
{
    return (const struct opening *)((const char *)finds - offsetof(struct opening, finds));
}

static int collections_add_dataset(struct finds *finds, const char *name, struct dataset *ds)
{
    const struct opening *opening = opening_of(finds);

    return folder_scan_add(opening->catalog, opening->root, opening->folder, name, ds, NULL);
}

static int collections_add_error(struct finds *finds, const char *name, const char *reason)
{
    const struct opening *opening = opening_of(finds);

    return folder_scan_add(opening->catalog, opening->root, opening->folder, name, NULL, reason);
}

static int collections_add_failed(struct finds *finds, const char *name, int error,
                                  const char *reason)
{
    (void)error;
    return collections_add_error(finds, name, reason);
}

static int open_datasets(struct collections_user *user, const struct format *format,
                         struct collection *c, struct blob *blob, const char *error)
{
    struct opening *opening = (struct opening *)user;

    opening->root = c->root;
    opening->folder = c->folder;
    return error ? collections_add_error(&opening->finds, c->name, error)
                 : format->open_collection(c, blob, joined_members(blob),
                                           &opening->catalog->tools->setup, &opening->finds);
}

static int collections_open_group(const struct source *source, const struct known *listing,
                                  const struct named_group *group, struct catalog *catalog)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    int r = 0;

    for (size_t i = 0; i < group->n && r == 0; i++) {
        struct source_entry entry;

        r = known_entry(source, listing, group->file[i], &entry);
        if (r == 0)
            r = source_list_take(&list, &entry);
    }
    return r < 0 ? r : folder_scan_group(source, &list, group, catalog);
}

static int collections_add_others(struct collections_user *user, const struct source *source,
                                  const struct known *listing, struct claims *claims)
{
    struct catalog *catalog = ((struct opening *)user)->catalog;
    int r = 0;

    if (claims->n_moved) {
        catalog->moved = TAKE_PTR(claims->moved);
        catalog->n_moved = claims->n_moved;
        claims->n_moved = 0;
    }
    if (claims->note)
        catalog->note = TAKE_PTR(claims->note);
    for (size_t i = 0; i < claims->n_groups && r == 0; i++)
        r = collections_open_group(source, listing, &claims->group[i], catalog);
    return r;
}

int collections_open(const struct source *source, struct catalog *catalog,
                     struct source_list *ret_rest, struct diag *d)
{
    struct opening opening = {
        .user = {open_datasets, collections_add_others, &catalog->recipe, &catalog->unmet},
        .finds = {.dataset = collections_add_dataset,
                  .error = collections_add_error,
                  .failed = collections_add_failed},
        .catalog = catalog,
    };

    return collections_each(source, &catalog->tools->setup.options, &opening.user, ret_rest, d);
}
