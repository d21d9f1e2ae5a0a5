/* The datasets of a folder of Kaldi tables: its data directory, tables alone, and sets of parts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"
#include "format/core/format.h"
#include "format/core/siblings.h"
#include "format/kaldi/set/folder.h"
#include "format/kaldi/set/set.h"
#include "format/kaldi/table/scp.h"

#define JOINED    "all"       /* the dataset of a data directory */
#define ALONE     "data"      /* the field of a single table */
#define NAME_MOST 40          /* bytes of a field's name */
#define SCAN_MOST (16u << 20) /* bytes of an scp file that are searched for archives */

/* ---- making datasets ---- */

/* A table of the folder that is no part of the data directory. */
struct found_table {
    struct kaldi_parts parts; /* of its dataset; the table is the first one */
    const char *name;         /* of the dataset */
};

/* The files of a folder, while datasets are made from them. */
struct folder_files {
    const struct format *format;
    struct source_file *file;
    size_t n;
    const struct format_setup *setup;
    struct finds *finds;
    struct found_table *found; /* [n_found] */
    size_t n_found;
};

static enum kaldi_layout layout_of(const struct folder_files *files, const struct source_file *file)
{
    const struct kaldi_known_file *known = kaldi_known_file(file->name);
    uint8_t head[FORMAT_HEAD];
    size_t len = (size_t)min_u64(sizeof(head), file->blob->size);

    if (files->setup->options.kaldi_layout)
        return files->setup->options.kaldi_layout == KALDI_LAYOUT_SCP ? KALDI_SCRIPT
                                                                      : KALDI_ARCHIVE;
    if (known)
        return kaldi_ends_in(known->name, ".scp") ? KALDI_SCRIPT : KALDI_ARCHIVE;
    if (kaldi_ends_in(file->name, ".scp"))
        return KALDI_SCRIPT;
    if (kaldi_ends_in(file->name, ".ark") || blob_pread(READ_WAITS, file->blob, head, len, 0) < 0)
        return KALDI_ARCHIVE;
    if (kaldi_is_single(head, len))
        return KALDI_SINGLE;
    return !memchr(head, 0, len) && kaldi_is_script(head, len, len == file->blob->size)
               ? KALDI_SCRIPT
               : KALDI_ARCHIVE;
}

/* The name of a field: the file's name without what marks an scp file. */
static void kaldi_field_name(const char *name, char ret[static FIELD_NAME_SIZE])
{
    size_t len = strlen(name);

    if (kaldi_ends_in(name, ".scp") || kaldi_ends_in(name, ".ark"))
        len -= 4;
    snprintf(ret, FIELD_NAME_SIZE, "%.*s", (int)min_u64(len, NAME_MOST), name);
}

/* Open the table of a file and add it. If it cannot be used, the finds have the error, as has d,
 * and nothing is added. */
static int open_table(struct folder_files *files, struct source_file *file, const char *name,
                      struct shards *tables, struct diag *d)
{
    const struct kaldi_known_file *known =
        strcmp(name, ALONE) ? kaldi_known_file(file->name) : NULL;
    struct kaldi_table_setup setup = {
        .name = name,
        .folder = file->folder,
        .layout = layout_of(files, file),
        .type = known ? known->type : KALDI_UNKNOWN,
        .format = files->setup,
    };
    struct diag why = DIAG_INIT;
    struct kaldi_table *table;
    int r = kaldi_table_new(TAKE_PTR(file->blob), &setup, &table, &why);

    if (r == 0) {
        shards_add(tables, &table->base);
        return 0;
    }
    diag_set(d, 0, "%s", diag_text(&why, r));
    return files->finds->failed(files->finds, file->file_name, r, diag_text(&why, r));
}

/* ---- archives that scp files of the folder name ---- */

/* 1, 0, or -ENOMEM. */
static int same_file(const struct blob *a, const struct blob *b)
{
    AUTO_FREE char *x = NULL, *y = NULL;
    int r = blob_identity(a, &x);

    if (r == 0)
        r = blob_identity(b, &y);
    return r == 0 ? !strcmp(x, y) : r == -ENOMEM ? r : 0;
}

/* The archive of the folder that a line names, if it names one, otherwise *ret is NULL. 0, or an
 * error of which blob_says_nothing() is true. */
static int named_archive(struct folder_files *files, const struct scp_line *line,
                         const char *folder, struct source_file **ret)
{
    AUTO_FREE char *path = strndup(line->path, line->path_len);
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path;
    AUTO_BLOB struct blob *blob = NULL;
    int r;

    if (!path)
        return -ENOMEM;
    for (size_t i = 0; i < files->n; i++) {
        struct source_file *file = &files->file[i];

        if (!file->blob || strcmp(file->file_name, name) != 0)
            continue;
        r = opener_file(files->setup->opener, folder, path, &blob, NULL);
        if (r == 0)
            r = same_file(blob, file->blob);
        if (blob_says_nothing(r))
            return r;
        *ret = r == 1 ? file : NULL;
        return 0;
    }
    *ret = NULL;
    return 0;
}

static int add_material(struct kaldi_parts *parts, struct blob **blob)
{
    int r = array_capacity(&parts->material, parts->n_material, sizeof(struct blob *));

    if (r == 0)
        parts->material[parts->n_material++] = TAKE_PTR(*blob);
    return r;
}

/* Take the archives that an scp file names out of the folder's files. */
static int take_material(struct folder_files *files, const struct kaldi_table *script,
                         struct kaldi_parts *parts)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    AUTO_FREE char *last = NULL;
    uint64_t at = 0;
    int r;

    if (script->layout != KALDI_SCRIPT)
        return 0;
    kaldi_in_init(&in, script->base.blob);
    while (at < in.size && at < SCAN_MOST) {
        bool ended;
        size_t len;
        const uint8_t *text = kaldi_in_line(&in, &at, 4096, &len, &ended);
        struct source_file *file;
        struct scp_line line;

        if (!text)
            return blob_says_nothing(in.error) ? in.error : 0;
        if (scp_line_parse((const char *)text, len, &line) || line.place == SCP_COMMAND ||
            (last && strlen(last) == line.path_len && !memcmp(last, line.path, line.path_len)))
            continue;
        free(last);
        last = strndup(line.path, line.path_len);
        r = named_archive(files, &line, script->folder, &file);
        if (r == 0 && file)
            r = add_material(parts, &file->blob);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- folders ---- */

/* Two known files make a data directory, with join= one. Otherwise it is a single table. */
static bool is_directory(const struct folder_files *files)
{
    unsigned n = files->setup->options.kaldi_join != NULL;

    for (size_t i = 0; i < files->n; i++)
        n += kaldi_known_file(files->file[i].name) != NULL;
    for (size_t i = 0; i < files->finds->n_left_out; i++) /* unread ones among them */
        n += kaldi_known_file(files->finds->left_out[i].name) != NULL;
    return n > 1;
}

/* An unread file of the data directory that the dataset needs; NULL: none. */
static const struct unread_file *missing_known(const struct finds *finds)
{
    for (size_t i = 0; i < finds->n_unread; i++) {
        const struct kaldi_known_file *known = kaldi_known_file(finds->unread[i].name);

        if (known && known->use != NO_FIELD)
            return &finds->unread[i];
    }
    return NULL;
}

/* Find a field that cannot be read, whether this format or none has it: why is in d. */
static void find_lost(const struct finds *finds, struct diag *d)
{
    for (size_t i = 0; i < finds->n_left_out && !d->set; i++) {
        const struct kaldi_known_file *known = kaldi_known_file(finds->left_out[i].name);

        if (known && known->use == A_FIELD && finds->left_out[i].reason)
            diag_set(d, -EBADMSG, "%s", finds->left_out[i].reason);
    }
}

/* Make a dataset of tables; missing: parts that it lacks, or NULL. note: for people, or NULL. */
static int kaldi_add_dataset(struct folder_files *files, const char *name,
                             struct kaldi_parts *parts, bool is_alone,
                             struct missing_parts *missing, const char *note)
{
    struct dataset *ds = NULL;
    int r = kaldi_set_new(files->format, files->setup, parts, is_alone, &ds);

    if (r == 0 && missing) {
        ds->missing = *missing;
        *missing = (struct missing_parts){0};
    }
    if (r == 0 && note)
        notes_add(&ds->notes, "%s", note);
    if (r == -E2BIG)
        return files->finds->error(files->finds, name,
                                   "expected fewer tables in one data directory");
    return r < 0 ? r : files->finds->dataset(files->finds, name, ds);
}

/* A dataset without one of its fields would not be what its folder says. */
static int lose_field(struct finds *finds, const struct diag *why)
{
    char reason[1200];

    snprintf(reason, sizeof(reason),
             "%s. So " JOINED " would lack a field. Move it elsewhere, or mount "
             "with -o kaldi=p, to get " JOINED " without the field",
             why->text);
    return finds->error(finds, JOINED, reason);
}

/* ---- tables that -o join= names ---- */

/* Does join= name what is called that, as a file or as a set? */
static bool join_names(const struct folder_files *files, const char *name)
{
    const char *item = files->setup->options.kaldi_join;
    size_t len;

    for (; item; item += len + (item[len] != '\0')) {
        len = strcspn(item, "+");
        if (!len)
            return false;
        if (len == strlen(name) && !memcmp(item, name, len))
            return true;
    }
    return false;
}

/* Give a table to the data directory, as a field. */
static int join_table(struct kaldi_parts *from, const char *name, struct kaldi_parts *all)
{
    struct kaldi_table *table = (struct kaldi_table *)from->tables.file[0];

    free(table->name);
    table->name = strdup(name);
    if (!table->name)
        return -ENOMEM;
    for (size_t i = 0; i < from->n_material; i++)
        if (add_material(all, &from->material[i]) < 0)
            return -ENOMEM;
    record_file_share(&table->base);
    shards_add(&all->tables, &table->base);
    return 0;
}

/* A name of join= that is no table here. */
static void refuse_join(const struct folder_files *files, const struct kaldi_parts *all,
                        struct diag *d)
{
    const char *item = files->setup->options.kaldi_join;
    char whole[FORMAT_NAME], name[FIELD_NAME_SIZE];

    for (size_t len; item && *item && !d->set; item += len + (item[len] != '\0')) {
        unsigned i = 0;

        len = strcspn(item, "+");
        snprintf(whole, sizeof(whole), "%.*s", (int)len, item);
        kaldi_field_name(whole, name);
        while (i < all->tables.n &&
               strcmp(((struct kaldi_table *)all->tables.file[i])->name, name) != 0)
            i++;
        if (i == all->tables.n)
            diag_set(d, -EBADMSG, "join=%s: no table has that name here", whole);
    }
}

/* ---- folders ---- */

static int open_directory(struct folder_files *files, struct kaldi_parts *parts, struct diag *lost)
{
    int r = 0;

    /* segments is the last table */
    for (unsigned use = A_FIELD; use <= NO_FIELD && r == 0; use++)
        for (size_t i = 0; i < files->n && r == 0; i++) {
            struct source_file *file = &files->file[i];
            const struct kaldi_known_file *known = kaldi_known_file(file->name);
            unsigned before = parts->tables.n;
            char name[FIELD_NAME_SIZE];

            if (!known || known->use != use || !file->blob)
                continue;
            if (use == NO_FIELD) {
                blob_free(TAKE_PTR(file->blob));
                continue;
            }
            kaldi_field_name(file->name, name);
            r = open_table(files, file, name, &parts->tables, lost);
            parts->has_segments |= use == SEGMENTS && parts->tables.n > before;
        }
    find_lost(files->finds, lost);
    if (lost->set && !files->setup->options.kaldi_permissive)
        return r; /* `all` will be an error, and the archives are datasets */
    for (unsigned i = 0; i < parts->tables.n && r == 0; i++)
        r = take_material(files, (struct kaldi_table *)parts->tables.file[i], parts);
    return r;
}

/* The dataset of the data directory, or of the tables that join= names. */
static int add_directory(struct folder_files *files, struct kaldi_parts *parts, struct diag *lost)
{
    const struct unread_file *missing = missing_known(files->finds);

    if (missing)
        return finds_incomplete(files->finds, JOINED, missing);
    if (lost->set && !parts->tables.n && files->setup->options.kaldi_join)
        return files->finds->error(files->finds, JOINED, lost->text);
    if (lost->set && parts->tables.n && !files->setup->options.kaldi_permissive)
        return lose_field(files->finds, lost);
    if (parts->tables.n <= parts->has_segments)
        return 0;
    return kaldi_add_dataset(files, JOINED, parts, false, NULL, lost->set ? lost->text : NULL);
}

/* Open the tables of one layout, each the first one of a dataset with the name of its file. */
static int open_layout(struct folder_files *files, enum kaldi_layout layout)
{
    int r = 0;

    for (size_t i = 0; i < files->n && r == 0; i++) {
        struct found_table *found = &files->found[files->n_found];
        struct source_file *file = &files->file[i];

        if (!file->blob || layout_of(files, file) != layout)
            continue;
        found->name = file->name;
        r = shards_init(&found->parts.tables, 1);
        if (r == 0)
            r = open_table(files, file, ALONE, &found->parts.tables, NULL);
        if (r < 0 || !found->parts.tables.n) {
            kaldi_parts_release(&found->parts);
            continue;
        }
        files->n_found++;
        r = take_material(files, (struct kaldi_table *)found->parts.tables.file[0], &found->parts);
    }
    return r;
}

static struct kaldi_table *found_table(const struct folder_files *files, size_t i)
{
    return (struct kaldi_table *)files->found[i].parts.tables.file[0];
}

/* Join the tables whose names differ by a number, or, of a list, all: another dataset, or a field
 * of the data directory. order: [n] numbers of the tables. */
static int add_set(struct folder_files *files, const size_t *order, size_t n, const char *name,
                   struct missing_parts *missing, struct kaldi_parts *all)
{
    AUTO_FREE struct kaldi_table **part = calloc(n, sizeof(struct kaldi_table *));
    AUTO_KALDI_PARTS struct kaldi_parts set = {0};
    struct kaldi_table *table;
    char note[600];
    int r = part ? shards_init(&set.tables, 1) : -ENOMEM;

    for (size_t i = 0; i < n && r == 0; i++) {
        part[i] = found_table(files, order[i]);
        if (part[i]->layout == KALDI_SINGLE)
            return 0;
        if (part[i]->type == part[0]->type && part[i]->layout == part[0]->layout)
            continue;
        snprintf(note, sizeof(note),
                 "%.200s: not joined with %.200s: expected tables of %s, got %s",
                 blob_name(part[i]->base.blob), blob_name(part[0]->base.blob),
                 kaldi_types[part[0]->type].name, kaldi_types[part[i]->type].name);
        text_add(&part[i]->set_note, "%s\n", note);
        return part[i]->set_note.failed ? -ENOMEM : 0;
    }
    if (r == 0)
        r = kaldi_table_join(part, n, ALONE, files->setup, &table);
    if (r == 0)
        shards_add(&set.tables, &table->base);
    if (r == 0 && join_names(files, name))
        r = join_table(&set, name, all);
    else if (r == 0)
        r = kaldi_add_dataset(files, name, &set, true, missing, NULL);
    return r < 0 ? r : files->setup->options.kaldi_layout != KALDI_LAYOUT_AUTO;
}

/* Find the sets among the tables. */
static int kaldi_add_sets(struct folder_files *files, struct kaldi_parts *all)
{
    AUTO_FREE const char **name = calloc(files->n_found + 1, sizeof(*name));
    AUTO_FREE size_t *order = calloc(files->n_found + 1, sizeof(*order));
    AUTO_SIBLINGS struct siblings siblings = {0};
    int r = name && order ? 0 : -ENOMEM;

    for (size_t i = 0; i < files->n_found && r == 0; i++) {
        name[i] = files->found[i].name;
        order[i] = i;
    }
    if (r == 0 && files->setup->is_list)
        return files->n_found < 2 ? 0 : add_set(files, order, files->n_found, JOINED, NULL, all);
    if (r == 0)
        r = finds_siblings(files->finds, name, files->n_found, &siblings);
    for (size_t i = 0; i < siblings.n && r == 0; i++) {
        AUTO_MISSING_PARTS struct missing_parts missing = {0};
        char file[512], set[FIELD_NAME_SIZE];
        size_t n = 0;

        for (size_t k = 0; k < siblings.set[i].n; k++) {
            size_t member = siblings.member[siblings.set[i].first + k].file;

            if (member < files->n_found)
                order[n++] = member;
        }
        if (!n || !sibling_set_name(&siblings, i, file, sizeof(file)))
            continue;
        kaldi_field_name(file, set);
        r = finds_missing(files->finds, 0, &siblings, files->n_found, i, files->setup, &missing);
        if (r == 0)
            r = add_set(files, order, n, set, &missing, all);
    }
    return r;
}

static int add_found(struct folder_files *files, struct kaldi_parts *all)
{
    char name[FIELD_NAME_SIZE];
    int r = 0;

    for (size_t i = 0; i < files->n_found && r == 0; i++) {
        struct found_table *found = &files->found[i];

        kaldi_field_name(found->name, name);
        if (join_names(files, name) || join_names(files, found->name))
            r = join_table(&found->parts, name, all);
        else
            r = kaldi_add_dataset(files, found->name, &found->parts, true, NULL, NULL);
    }
    return r;
}

int kaldi_folder_open(const struct format *format, struct source_file *sources, size_t n,
                      const struct format_setup *setup, struct finds *finds)
{
    AUTO_FREE struct found_table *found = calloc(n, sizeof(*found));
    struct folder_files files = {
        .format = format, .file = sources, .n = n, .setup = setup, .finds = finds, .found = found};
    AUTO_KALDI_PARTS struct kaldi_parts all = {0};
    struct diag lost = DIAG_INIT;
    int r = found ? shards_init(&all.tables, (unsigned)(2 * n)) : -ENOMEM;

    if (r == 0 && is_directory(&files))
        r = open_directory(&files, &all, &lost);
    /* scp files first: archives that they name are no tables */
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = open_layout(&files,
                        (enum kaldi_layout[]){KALDI_SCRIPT, KALDI_ARCHIVE, KALDI_SINGLE}[i]);
    if (r == 0)
        r = kaldi_add_sets(&files, &all);
    if (r == 1) /* a specifier's files are one table */
        r = 0;
    else if (r == 0)
        r = add_found(&files, &all);
    if (r == 0 && !setup->is_list)
        refuse_join(&files, &all, &lost);
    if (r == 0)
        r = add_directory(&files, &all, &lost);
    for (size_t i = 0; i < files.n_found; i++)
        kaldi_parts_release(&found[i].parts);
    return r;
}
