/* What formats report of a folder: datasets, and files that cannot be used; and why no format takes
 * a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/members.h"
#include "base/search.h"
#include "format/records/shards.h"
#include "format/registry.h"
#include "fs/tree/folder_scan_parts.h"

static void find_access(const struct source *source, const char *folder, const char *name,
                        struct access *ret)
{
    AUTO_FREE char *path = NULL;

    *ret = (struct access){0};
    if (*name == '/')
        path = strdup(name + 1);
    else if (asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", name) < 0)
        path = NULL;
    if (path)
        source_access(source, path, ret);
}

/* What the options say of a dataset all of which is prepared. */
static int folder_finish(struct dataset *ds, const void *ctx)
{
    const struct catalog_tools *tools = ctx;
    int r = label_choice_apply(&tools->label, ds);

    return r < 0 ? r : augment_fields_add(ds, &tools->augment);
}

/* What label= says of the dataset, by its name or its path. 0 or -ENOMEM. */
static int want_label(const struct catalog *catalog, const char *folder, const char *name,
                      struct dataset *ds)
{
    const char *label = catalog->tools ? catalog->tools->label.field : NULL;
    AUTO_FREE char *path = NULL;
    char wanted[FORMAT_NAME];

    if (!label)
        return 0;
    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    if (!format_label_of(label, name, wanted) && !format_label_of(label, path, wanted))
        return 0;
    ds->wanted_label = strdup(wanted);
    return ds->wanted_label ? 0 : -ENOMEM;
}

/* A recipe may show the datasets of a folder elsewhere, but not others that are called like these.
 * 0 or -ENOMEM. */
static int move_item(const struct catalog *catalog, const char *root, struct catalog_item *item)
{
    AUTO_FREE char *path = NULL, *moved = NULL;
    const char *base;
    int r = text_print(&path, "%s%s%s", item->folder, *item->folder ? "/" : "", item->name);

    for (size_t i = 0; i < catalog->n_moved && !moved && r == 0; i++) {
        const struct moved_folder *m = &catalog->moved[i];
        const char *below = path + strlen(m->folder);

        if (!members_is_below(path, m->folder) || !members_is_below(root, m->folder))
            continue;
        below += *below == '/';
        r = text_print(&moved, "%s%s%s", m->shown, *m->shown && *below ? "/" : "", below);
    }
    if (!moved)
        return r;
    base = strrchr(moved, '/');
    free(item->folder);
    free(item->name);
    item->folder = strndup(moved, base ? (size_t)(base - moved) : 0);
    item->name = strdup(base ? base + 1 : *moved ? moved : SHARDS_ALL);
    return item->folder && item->name ? 0 : -ENOMEM;
}

int folder_scan_add(struct catalog *catalog, const char *root, const char *folder, const char *name,
                    struct dataset *ds, const char *error)
{
    const char *slash = *name == '/' ? strrchr(name, '/') : NULL;
    struct catalog_item item = {.ds = ds, .is_folder = slash && !strcmp(name + 1, folder)};

    if (array_capacity(&catalog->item, catalog->n, sizeof(item)) < 0) {
        dataset_free(ds);
        return -ENOMEM;
    }
    item.name = strdup(slash ? slash + 1 : name);
    item.folder =
        slash > name ? strndup(name + 1, (size_t)(slash - name) - 1) : strdup(slash ? "" : folder);
    item.error = error ? strdup(error) : NULL;
    if (item.error)
        text_plain(item.error, "\n");
    if (error && catalog->source)
        find_access(catalog->source, folder, name, &item.access);
    catalog->item[catalog->n++] = item;
    catalog->n_datasets += ds != NULL;
    if (!item.name || !item.folder || (error && !item.error) ||
        (root && move_item(catalog, root, &catalog->item[catalog->n - 1]) < 0))
        return -ENOMEM;
    item = catalog->item[catalog->n - 1];
    if (!ds)
        return 0;
    ds->revision = catalog->tools->revision;
    ds->commit = catalog->tools->commit;
    if (want_label(catalog, item.folder, item.name, ds) < 0)
        return -ENOMEM;
    if (dataset_state(ds) == DATASET_READY)
        return folder_finish(ds, catalog->tools);
    ds->finish = folder_finish;
    ds->finish_ctx = catalog->tools;
    return 0;
}

int folder_found_dataset(struct finds *finds, const char *name, struct dataset *ds)
{
    struct folder_scan *scan = (struct folder_scan *)finds;

    for (size_t i = 0; i < scan->n_twins; i++)
        for (unsigned k = 0; k < ds->n_blobs; k++)
            if (ds->blob[k] == scan->twin[i].kept)
                notes_add(&ds->notes, "%s", scan->twin[i].note);
    if (scan->group && scan->group->note)
        notes_add(&ds->notes, "%s", scan->group->note);
    return folder_scan_add(scan->catalog, scan->group ? NULL : scan->folder, scan->folder, name, ds,
                           NULL);
}

int folder_found_error(struct finds *finds, const char *name, const char *reason)
{
    struct folder_scan *scan = (struct folder_scan *)finds;

    return folder_scan_add(scan->catalog, scan->group ? NULL : scan->folder, scan->folder, name,
                           NULL, reason);
}

/* reason: NULL: the file is empty. */
int folder_leave_out(struct finds *finds, char *name, char *reason)
{
    if (!name ||
        array_capacity(&finds->left_out, finds->n_left_out, sizeof(*finds->left_out)) < 0) {
        free(name);
        free(reason);
        return -ENOMEM;
    }
    finds->left_out[finds->n_left_out++] = (struct left_out_file){.name = name, .reason = reason};
    return 0;
}

int folder_found_empty(struct finds *finds, const char *name)
{
    return folder_leave_out(finds, strdup(name), NULL);
}

/* Packings that are not read, and the suffix that a name without them has. */
static const struct packing {
    const char *suffix, *stands_for;
} packings[] = {
    {".lz4", ""},  {".zip", ""}, {".7z", ""}, {".rar", ""},    {".Z", ""},  {".br", ""},
    {".lzma", ""}, {".lzo", ""}, {".lz", ""}, {".snappy", ""}, {".sz", ""}, {".tlz4", ".tar"},
};

/* The text after the number in a name of the folder that begins with these bytes and a number; "":
 * there is none. */
static const char *rest_of_sibling(const struct folder_names *names, const char *start, size_t len)
{
    const struct folder_name *file = names->file;
    size_t first = SEARCH(names->n, i,
                          memcmp(file[i].name, start, min_u64(file[i].len, len)) < 0 ||
                              (file[i].len < len && !memcmp(file[i].name, start, file[i].len)));

    if (first == names->n || file[first].len <= len || memcmp(file[first].name, start, len) != 0)
        return "";
    start = file[first].name + len;
    len = strspn(start, "0123456789");
    return len ? start + len : "";
}

/* If the file is of a packing that is not read: it stands for the file that would be in it, unless
 * the folder has that file. 0 or -ENOMEM. */
static int name_packed(const struct folder_scan *scan, const char *file_name,
                       struct left_out_file *ret)
{
    const struct packing *p = packings;
    size_t stem, number;
    char *name;

    while (p < packings + ARRAY_LEN(packings) && !text_ends_with(file_name, p->suffix))
        p++;
    if (p == packings + ARRAY_LEN(packings))
        return 0;
    stem = strlen(file_name) - strlen(p->suffix);
    for (number = stem; number && file_name[number - 1] >= '0' && file_name[number - 1] <= '9';)
        number--;
    if (asprintf(&name, "%.*s%s", (int)stem, file_name,
                 number < stem && !*p->stands_for ? rest_of_sibling(&scan->names, file_name, number)
                                                  : p->stands_for) < 0)
        return -ENOMEM;
    if (folder_names_has(&scan->names, name, strlen(name))) {
        free(name);
        return 0;
    }
    ret->packed = strdup(file_name);
    free(ret->name);
    ret->name = name;
    return ret->packed ? 0 : -ENOMEM;
}

int folder_found_failed(struct finds *finds, const char *file_name, int error, const char *reason)
{
    struct unread_file unread = {0};
    char *copy;
    int r;

    if (error == -ENOMEM)
        return error;
    copy = strdup(reason);
    r = copy ? folder_leave_out(finds, unpacked_name(file_name), copy) : -ENOMEM;
    if (r == 0)
        r = name_packed((struct folder_scan *)finds, file_name,
                        &finds->left_out[finds->n_left_out - 1]);
    if (r < 0)
        return r;
    if (blob_may_pass(error)) {
        if (array_capacity(&finds->unread, finds->n_unread, sizeof(unread)) < 0)
            return -ENOMEM;
        unread = (struct unread_file){unpacked_name(file_name), strdup(reason), error};
        finds->unread[finds->n_unread++] = unread;
        if (!unread.name || !unread.reason)
            return -ENOMEM;
    }
    return folder_found_error(finds, file_name, reason);
}

/* Text that replaces content stored elsewhere. */
static const struct pointer {
    const char *start;
    const char *what;
    const char *remedy;
} pointers[] = {
    {"version https://git-lfs", "a git-lfs pointer", "git lfs pull"},
    {"/annex/objects/", "a git-annex pointer", "git annex get"},
};

static const struct pointer *find_pointer(const struct probed_file *file)
{
    for (size_t i = 0; i < ARRAY_LEN(pointers); i++)
        if (file->len >= strlen(pointers[i].start) &&
            !memcmp(file->head, pointers[i].start, strlen(pointers[i].start)))
            return &pointers[i];
    return NULL;
}

bool folder_is_pointer(const struct probed_file *file)
{
    return find_pointer(file) != NULL;
}

/* What a user can do with a file of that kind. */
static void add_fix(const struct folder_scan *scan, const struct foreign *foreign, struct text *t)
{
    if (!foreign->is_picture)
        text_add(t, "%s", foreign->fix);
    else if (scan->source->only_file)
        text_add(t, "Mount the folder of the pictures");
    else
        text_add(
            t,
            "A folder of pictures is a dataset, and class folders are%s%s. Mount the folder of "
            "the pictures itself, or write an epochfs.json (docs/folders.md)",
            scan->catalog->unmet ? "; these are not, because " : "",
            scan->catalog->unmet ? scan->catalog->unmet : "");
}

/* Is it zeros, and 16 at least? */
static bool is_zeros(const uint8_t *head, size_t len)
{
    return len >= 16 && !head[0] && !memcmp(head, head + 1, len - 1);
}

/* Is it text, of 4 bytes at least? Its words are not shown: they may be secret. */
static bool head_is_text(const uint8_t *head, size_t len)
{
    size_t at = 0, n = 1;

    for (; at < len && n; at += n)
        if (memchr("\t\n\r", head[at], 3))
            n = 1;
        else
            n = text_command(head + at, len - at) ? 0 : text_character(head + at, len - at);
    return len >= 4 && (n || len - at < 4); /* the last character may be cut */
}

int folder_describe_unknown(const struct folder_scan *scan, const struct blob *blob,
                            const struct probed_file *file, struct text *t)
{
    const struct foreign *foreign = foreign_find(file);
    const uint8_t *head = file->head;
    size_t len = file->len;
    const struct pointer *p = find_pointer(file);

    text_add(t, "%s: ", blob_name(blob));
    if (p) {
        text_add(t, "is %s; its content is not on this machine. Fetch it with `%s`", p->what,
                 p->remedy);
        return -ENOMEDIUM;
    }
    if (!blob->size) {
        text_add(t, "is empty");
    } else if (foreign) {
        text_add(t, "is %s, which epochfs does not read%s. ", foreign->name,
                 foreign->is_picture ? " by itself" : "");
        add_fix(scan, foreign, t);
    } else if (is_zeros(head, len)) {
        text_add(t,
                 "begins with %zu zeros, as a file does whose content was never written. Copy "
                 "it again",
                 len);
    } else {
        bool text = head_is_text(head, len);

        text_add(t, "is %s",
                 text ? "text of no format that epochfs knows; texts are read as JSON "
                        "lines, or as files in class folders"
                      : "of no format that epochfs knows; it begins with");
        for (size_t i = 0; !text && i < min_u64(len, 4); i++)
            text_add(t, " %02x", head[i]);
        for (unsigned i = 0; i < n_formats; i++) {
            const char *hint = formats[i]->hint ? formats[i]->hint(file) : NULL;

            if (hint)
                text_add(t, "; %s", hint);
        }
    }
    return -EBADMSG;
}
