/* The format: which files are MindRecord, how they are opened, and which of them are one dataset.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/members.h"
#include "format/mindrecord/file.h"

/* ---- a file ---- */

static const char *mindrecord_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void mindrecord_damage(const void *p, struct text *t)
{
    const struct mindrecord *file = p;

    if (file->lost > 1)
        text_add(t, "%s: %s, nor can %llu other rows\n", blob_name(file->base.blob), file->reason,
                 (unsigned long long)file->lost - 1);
    else if (*file->reason)
        text_add(t, "%s: %s\n", blob_name(file->base.blob), file->reason);
}

static void mindrecord_note(const void *p, struct text *t)
{
    const struct mindrecord *file = p;
    const char *address = file->header.address[file->header.shard];

    if (file->header.n_shards > 1 && strcmp(mindrecord_base_name(address),
                                            mindrecord_base_name(blob_name(file->base.blob))) != 0)
        text_add(t, "%s was written as '%s'; the order of shards is that of their numbers\n",
                 blob_name(file->base.blob), address);
}

static int mindrecord_check(void *p, struct diag *d)
{
    return mindrecord_check_hash(((const struct mindrecord *)p)->base.blob, d);
}

static const struct record_format mindrecord_records = {
    .format = &format_mindrecord,
    .file = &mindrecord_file_ops,
    .has = mindrecord_has,
    .dims = mindrecord_dims,
    .extent = mindrecord_extent,
    .extents_are_copies = true,
    .read = mindrecord_content,
    .damage = mindrecord_damage,
    .note = mindrecord_note,
    .check = mindrecord_check,
};

/* ---- the files of a folder ---- */

struct folder_files {
    struct record_file **file; /* [n] each has one user here */
    unsigned n;
};

static void mindrecord_close_files(struct folder_files *folder)
{
    while (folder->n)
        record_file_drop(folder->file[--folder->n]);
    free(folder->file);
}

static int mindrecord_open_files(struct folder_files *folder, struct source_file *source, size_t n,
                                 const struct format_setup *setup, struct finds *finds)
{
    int r = 0;

    folder->file = calloc(n, sizeof(struct record_file *));
    if (!folder->file)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct diag d = DIAG_INIT;

        r = record_file_open(&mindrecord_file_ops, &(struct record_source){source, n, i, setup},
                             &folder->file[folder->n], &d);
        if (r < 0)
            r = finds->failed(finds, source[i].file_name, r, diag_text(&d, r));
        else
            folder->n++;
    }
    return r;
}

static const struct mindrecord *mindrecord_of(const struct record_file *file)
{
    return (const struct mindrecord *)file;
}

static int mindrecord_by_set(const void *a, const void *b)
{
    const struct mindrecord *x = mindrecord_of(*(struct record_file *const *)a);
    const struct mindrecord *y = mindrecord_of(*(struct record_file *const *)b);
    unsigned i = x->header.shard, k = y->header.shard;
    int r = strcmp(x->header.set, y->header.set);

    return r ? r : i != k ? (i > k) - (i < k) : strcmp(x->name, y->name);
}

/* What the names of the shards begin with. */
static char *mindrecord_set_name(const struct mindrecord_header *header)
{
    const char *name = mindrecord_base_name(header->address[0]);
    size_t len = strlen(name);

    while (len > 1 && isdigit((unsigned char)name[len - 1]))
        len--;
    return strndup(name, len);
}

/* Why n files, sorted, are not all shards of their set; false: they are. */
static bool mindrecord_is_incomplete(struct record_file *const *file, unsigned n, const char *name,
                                     struct diag *why)
{
    const struct mindrecord_header *header = &mindrecord_of(file[0])->header;

    for (unsigned i = 0, shard = 0; i < n || shard < header->n_shards; i++, shard++) {
        unsigned found = i < n ? mindrecord_of(file[i])->header.shard : header->n_shards;

        if (found == shard)
            continue;
        if (i && found == shard - 1)
            diag_set(why, -EBADMSG, "%s: expected each shard once, got shard %u as %s and as %s",
                     name, found, mindrecord_of(file[i - 1])->name, mindrecord_of(file[i])->name);
        else
            diag_set(why, -EBADMSG, "%s: expected %u shards, got none that is shard %u, '%s'", name,
                     header->n_shards, shard, header->address[shard]);
        return true;
    }
    return false;
}

static int mindrecord_add_dataset(struct record_file *const *file, unsigned n, const char *name,
                                  bool unlisted, const struct format_setup *setup,
                                  struct finds *finds)
{
    struct dataset *ds = NULL;
    int r = record_set_new(&mindrecord_records, file, n, setup, &ds);

    if (r < 0)
        return r;
    ds->unlisted = unlisted;
    return finds->dataset(finds, name, ds);
}

/* The dataset of n files, sorted, that are shards of one set. */
static int mindrecord_add_set(struct record_file *const *file, unsigned n, bool is_all,
                              const struct format_setup *setup, struct finds *finds)
{
    AUTO_FREE char *set = mindrecord_set_name(&mindrecord_of(file[0])->header);
    const char *name = is_all ? SHARDS_ALL : set;
    struct diag why = DIAG_INIT;

    if (!set)
        return -ENOMEM;
    return mindrecord_is_incomplete(file, n, name, &why)
               ? finds->error(finds, name, why.text)
               : mindrecord_add_dataset(file, n, name, false, setup, finds);
}

static int mindrecord_open_folder(struct source_file *source, size_t n,
                                  const struct format_setup *setup, struct finds *finds)
{
    AUTO(mindrecord_close_files) struct folder_files folder = {0};
    int r = mindrecord_open_files(&folder, source, n, setup, finds), joins;
    struct record_file **file = folder.file;

    if (r < 0)
        return r;
    joins = shards_join(folder.n, finds);
    if (joins < 0)
        return joins;
    for (unsigned i = 0; i < folder.n && r == 0; i++)
        r = mindrecord_add_dataset(&file[i], 1, mindrecord_of(file[i])->name,
                                   joins == 1 && folder.n > RECORD_LISTED, setup, finds);
    qsort(file, folder.n, sizeof(struct record_file *), mindrecord_by_set);
    for (unsigned first = 0, end; first < folder.n && joins == 1 && r == 0; first = end) {
        const struct mindrecord_header *header = &mindrecord_of(file[first])->header;

        for (end = first + 1;
             end < folder.n && !strcmp(header->set, mindrecord_of(file[end])->header.set);)
            end++;
        if (end - first > 1 && header->n_shards > 1)
            r = mindrecord_add_set(&file[first], end - first, end - first == folder.n, setup,
                                   finds);
    }
    return r;
}

/* ---- the format ---- */

/* MindSpore's index of file x is x.db, a file of SQLite, which is never opened. SQLite itself may
 * leave more beside it. */
static bool mindrecord_is_database(const char *name, size_t *ret_len)
{
    static const char *const ends[] = {".db", ".db-journal", ".db-wal", ".db-shm"};
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        *ret_len = len - strlen(ends[i]);
        if (len > strlen(ends[i]) && !strcmp(name + *ret_len, ends[i]))
            return true;
    }
    return false;
}

static int mindrecord_claim_names(const struct members *listing, struct claims *ret)
{
    size_t len;

    for (size_t i = 0; i < listing->n; i++) {
        AUTO_FREE char *data = NULL;
        const char *folder = members_folder_of(listing, i);

        if (ret->taken[i] || !mindrecord_is_database(members_name(listing, i), &len))
            continue;
        data = strndup(members_name(listing, i), len);
        if (!data)
            return -ENOMEM;
        if (members_lookup(listing, folder, strlen(folder), data) < listing->n)
            ret->taken[i] = CLAIMS_ASIDE;
    }
    return 0;
}

static bool mindrecord_is_text(const struct probed_file *file)
{
    for (size_t i = 0; i < file->len && i < 64; i++)
        if (file->head[i] >= 0x7f || (file->head[i] < ' ' && !isspace(file->head[i])))
            return false;
    return true;
}

/* Bytes of that name without the header are encrypted, or damaged: ERROR.txt says so. Text is not,
 * it may be a pointer to a file, or what a server says. */
static enum claim mindrecord_probe(const struct probed_file *file)
{
    size_t len;

    if (file->len > 8 && file->head[8] == '{' && load_le64(file->head) < UINT64_C(1) << 40 &&
        memmem(file->head, file->len, "\"header_size\"", 13))
        return CLAIM_NAMED;
    return strstr(file->name, ".mindrecord") && !mindrecord_is_database(file->name, &len) &&
                   !mindrecord_is_text(file)
               ? CLAIM_WEAK
               : CLAIM_NONE;
}

const struct format format_mindrecord = {
    .name = "mindrecord",
    .claim_names = mindrecord_claim_names,
    .probe = mindrecord_probe,
    .open_folder = mindrecord_open_folder,
    .title = "MindRecord",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  for field in batch.files: print(field, batch[field].shape)\n",
};
