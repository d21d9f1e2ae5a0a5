/* The format: index.json and the shards that it names become one dataset. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/json.h"
#include "format/mds/mds.h"

#define INDEX_NAME "index.json"
#define INDEX_MAX  (UINT64_C(256) << 20) /* bytes of index.json */

/* ---- contents ---- */

/* Where the bytes of a column of a row are. 0, or -EBADMSG with the reason in d. */
static int mds_find(const struct mds_file *file, uint64_t row, unsigned column, struct extent *ret,
                    struct diag *d)
{
    static const char *const faults[N_MDS_FAULTS] = {
        [MDS_GOOD] = "the kept index is wrong",
        [MDS_OFFSETS] =
            "expected its offsets to rise, after the header and in the file, got others",
        [MDS_SIZES] = "expected sizes of its columns that are all of the sample, got others",
        [MDS_SHAPE] = "expected an array of 1 to 8 axes as large as its shape says, got another",
        [MDS_TYPE] = "expected an array of a type that MDS has, got another",
        [MDS_LENGTHS] = "expected a list as long as its lengths say, got another",
    };
    const struct record_column *shown = &file->base.column[column];
    const struct mds_value *v = &file->spec->value[shown->field];
    const struct blob *blob = file->base.blob;
    const struct index *index = &file->base.prepared.index;
    uint64_t number[INDEX_LEARNED], size, at, skip = 0, fault;

    index_row_start(index, row, file->spec->numbers, number);
    fault = number[MDS_FAULT];
    at = mds_place(file->spec, number, shown->field, &size);
    if (v->form == MDS_LIST)
        skip = number[v->number + MDS_SKIP];
    else if (mds_has_arrays(v) && shown->shown == RECORD_NUMBERS)
        skip = member_array_head(index, row, file->table.column[shown->field].number);
    if (shown->part) { /* what comes before the files of a list */
        size = min_u64(size, skip);
        skip = v->head + UINT64_C(4);
    }
    if (fault || at > blob->size || size > blob->size - at || skip > size)
        return blob_bad(blob, d, "sample %" PRIu64 ": %s", row,
                        faults[fault < N_MDS_FAULTS ? fault : MDS_GOOD]);
    *ret = (struct extent){blob, at + skip, size - skip};
    return 0;
}

static int mds_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                    struct diag *d)
{
    const struct mds_file *file = p;
    const struct record_column *shown = &file->base.column[column];
    const struct mds_value *v = &file->spec->value[shown->field];
    uint64_t bytes = dtype_info(shown->dtype)->bytes;
    struct extent e;
    int r = mds_find(file, row, column, &e, d);

    if (r < 0)
        return r;
    if (shown->part || shown->shown != RECORD_NUMBERS) {
        ret[0] = e.len / bytes;
        return 0;
    }
    if (mds_has_arrays(v))
        member_array_dims(&file->base.prepared.index, row, file->table.column[shown->field].number,
                          ret);
    else
        memcpy(ret, v->column.dim, shown->ndim * sizeof(*ret)); /* one of the column may vary */
    for (unsigned i = 0; i < shown->ndim; i++)
        if (!checked_mul(bytes, ret[i], &bytes))
            bytes = UINT64_MAX;
    return bytes == e.len ? 0
                          : blob_bad(e.blob, d, "sample %" PRIu64 ": the kept index is wrong", row);
}

static bool mds_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    return mds_find(p, row, column, ret, NULL) == 0 && ret->len > 0;
}

static void mds_note(const void *p, struct text *t)
{
    const struct mds_file *file = p;

    text_add(t, "%s", file->spec->note);
    for (unsigned i = 0; i < file->spec->n; i++)
        if (mds_has_arrays(&file->spec->value[i]) && file->samples &&
            file->table.column[i].number[MEMBER_FORM] == MEMBER_AS_BYTES)
            text_add(t, "%s is shown as it is stored: its arrays are of several types or axes\n",
                     file->spec->value[i].name);
}

static void mds_damage(const void *p, struct text *t)
{
    const struct mds_file *file = p;

    if (file->base.blob->size > file->bytes)
        text_add(t, "%s: expected %" PRIu64 " bytes, as index.json says, got %" PRIu64 "\n",
                 blob_name(file->base.blob), file->bytes, file->base.blob->size);
}

static const struct record_format mds_records = {
    .format = &format_mds,
    .file = &mds_file_ops,
    .dims = mds_dims,
    .extent = mds_extent,
    .text_folder = "json",
    .note = mds_note,
    .damage = mds_damage,
    .check = mds_check,
};

/* ---- index.json ---- */

static int mds_load_index(const struct blob *blob, json_t **ret, struct diag *d)
{
    AUTO_FREE char *text = NULL;
    size_t len = (size_t)blob->size;
    int r;

    if (blob->size > INDEX_MAX)
        return blob_bad(blob, d, "expected at most 256 MiB, got %" PRIu64 " bytes", blob->size);
    text = malloc(len + 1);
    r = text ? blob_read(READ_WAITS, blob, text, len, 0, d) : -ENOMEM;
    return r < 0 ? r : json_read(text, len, blob_name(blob), json_budget(len), ret, d);
}

static json_t *mds_hashes(const json_t *shard, const char *which)
{
    return json_incref(json_object_get(json_object_get(shard, which), "hashes"));
}

static const char *mds_basename(const json_t *shard, const char *which)
{
    return json_string_value(json_object_get(json_object_get(shard, which), "basename"));
}

/* Open a file by its path below a folder of SOURCE; one of that name elsewhere is none. */
static int mds_open_below(const struct format_setup *setup, const char *folder, const char *path,
                          struct blob **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_FREE char *name = NULL;
    int r = setup->opener ? opener_file(setup->opener, folder, path, &blob, NULL) : -ENOENT;

    if (r == -ENOMEM || text_print(&name, "%s%s%s", folder, *folder ? "/" : "", path) < 0)
        return -ENOMEM;
    if (r == 0 && strcmp(blob_name(blob), name) != 0)
        r = -ENOENT;
    if (r < 0)
        return diag_set(d, r, "%s: %s", name, strerror(-r));
    *ret = TAKE_PTR(blob);
    return 0;
}

/* Does the index of the folder above, if it is one, list shards below this folder? An index without
 * shards belongs to it if it lists any below folders. */
static bool mds_is_merged(const struct source_file *file, bool is_empty,
                          const struct format_setup *setup)
{
    const char *slash = strrchr(file->folder, '/'), *name = slash ? slash + 1 : file->folder;
    AUTO_FREE char *folder = strndup(file->folder, slash ? (size_t)(slash - file->folder) : 0);
    AUTO_JSON json_t *above = NULL;
    AUTO_BLOB struct blob *blob = NULL;
    bool found = false;
    json_t *shard;
    size_t i;

    if (!*file->folder || !folder || mds_open_below(setup, folder, INDEX_NAME, &blob, NULL) < 0 ||
        mds_load_index(blob, &above, NULL) < 0)
        return false;
    json_array_foreach(json_object_get(above, "shards"), i, shard)
    {
        const char *path = mds_basename(shard, "raw_data");
        size_t len = strlen(name);

        found = found || (path && !strncmp(path, name, len) && path[len] == '/') ||
                (path && is_empty && strchr(path, '/'));
    }
    return found;
}

/* ---- shards ---- */

/* A folder that has an index. */
struct mds_folder {
    struct source_file *file; /* [n] */
    size_t n, next;           /* next: the file behind the one that was found last */
    const struct format_setup *setup;
    const char *index; /* its name in messages */
    struct mds_spec *spec;
    struct record_file **shard; /* [n_shards] */
    unsigned n_shards;
};

static bool mds_leads_outside(const char *path)
{
    return *path == '/' || strstr(path, "://") || strchr(path, '\\') || !strncmp(path, "../", 3) ||
           strstr(path, "/../") || !strcmp(path, "..") || !*path;
}

/* The file of the folder that has the shard, raw or packed, which is mostly the next one. */
static struct source_file *mds_find_file(struct mds_folder *f, const char *raw, const char *packed)
{
    for (size_t i = 0; i < f->n; i++) {
        struct source_file *file = &f->file[(f->next + i) % f->n];

        if (file->blob && (!strcmp(file->name, raw) || !strcmp(file->file_name, raw) ||
                           (packed && !strcmp(file->file_name, packed)))) {
            f->next += i + 1;
            return file;
        }
    }
    return NULL;
}

/* Open the shard of that name, which is in the folder, or below it, of a packing that is read. */
static int mds_find_shard(struct mds_folder *f, const json_t *shard, const char *raw,
                          const char *packed, struct blob **ret, struct diag *d)
{
    const char *packing = json_string_value(json_object_get(shard, "compression"));
    struct source_file *file = mds_find_file(f, raw, packed);
    struct diag reason = DIAG_INIT;
    int r = 0;

    if (!file)
        r = mds_open_below(f->setup, f->file[0].folder, raw, ret, &reason);
    if ((r < 0 || (file && strcmp(file->file_name, raw) != 0)) && packing &&
        (!strncmp(packing, "br", 2) || !strncmp(packing, "snappy", 6)))
        return diag_set(d, -EBADMSG,
                        "%s: shard %s: expected zstd, gz, bz2 or no packing, got %.20s. Unpack it",
                        f->index, raw, packing);
    if (file)
        *ret = TAKE_PTR(file->blob);
    if (r == -ENOENT && packed) {
        struct diag other = DIAG_INIT;
        int q = mds_open_below(f->setup, f->file[0].folder, packed, ret, &other);

        if (q == 0)
            return opener_unpack_file(f->setup->opener, ret, d);
        if (q != -ENOENT)
            return diag_set(d, q, "%s", other.text);
    }
    return r < 0 ? diag_set(d, r, "%s", reason.text) : 0;
}

/* Has the shard as many samples and bytes as index.json says? */
static int mds_check_counts(const struct blob *blob, uint64_t samples, uint64_t bytes,
                            struct diag *d)
{
    uint8_t head[4];
    int r;

    if (blob->size < bytes)
        return blob_bad(blob, d, "expected %" PRIu64 " bytes of index.json, got %" PRIu64, bytes,
                        blob->size);
    if (blob->size < 4 * (samples + 2))
        return blob_bad(blob, d,
                        "expected %" PRIu64 " samples of index.json, got %" PRIu64 " bytes",
                        samples, blob->size);
    r = blob_read(READ_WAITS, blob, head, sizeof(head), 0, d);
    if (r == 0 && load_le32(head) != samples)
        r = blob_bad(blob, d, "expected %" PRIu64 " samples of index.json, got %u in the shard",
                     samples, load_le32(head));
    return r;
}

/* Are the columns those of the shards before? */
static int mds_check_columns(struct mds_folder *f, const json_t *shard, struct diag *d)
{
    AUTO_FREE char *text = NULL;

    if (!f->spec)
        return mds_spec_new(shard, &f->spec, d);
    if (mds_spec_text(shard, &text) < 0)
        return -ENOMEM;
    return !strcmp(text, f->spec->text)
               ? 0
               : diag_set(d, -EBADMSG,
                          "%s: expected the same columns in all shards, got %.300s and %.300s",
                          f->index, f->spec->text, text);
}

/* Add a file with that many samples of the columns, and take its bytes. */
static int mds_add_file(struct mds_folder *f, struct blob **blob, json_int_t samples,
                        json_int_t bytes, struct mds_file **ret)
{
    int r = record_file_new(&mds_file_ops, *blob, f->setup, ret);

    if (r < 0)
        return r;
    *blob = NULL;
    f->shard[f->n_shards++] = &(*ret)->base;
    (*ret)->spec = f->spec;
    f->spec->users++;
    (*ret)->samples = (uint64_t)samples;
    (*ret)->bytes = (uint64_t)bytes;
    return text_print(&(*ret)->base.prepared.depends, " %s", f->spec->text);
}

/* An index without shards counts as a shard without samples, of which no column is shown. */
static int mds_add_empty(struct mds_folder *f, struct blob **index, struct diag *d)
{
    AUTO_JSON json_t *shard = json_pack("{s[s]s[s]s[i]}", "column_names", "none",
                                        "column_encodings", "int", "column_sizes", 8);
    struct mds_file *file;
    int r = shard ? mds_check_columns(f, shard, d) : -ENOMEM;

    return r < 0 ? r : mds_add_file(f, index, 0, (json_int_t)(*index)->size, &file);
}

static int mds_add_shard(struct mds_folder *f, json_t *shard, struct diag *d)
{
    const char *name = mds_basename(shard, "raw_data"), *packed = mds_basename(shard, "zip_data");
    const char *format = json_string_value(json_object_get(shard, "format"));
    json_int_t version = json_integer_value(json_object_get(shard, "version"));
    json_int_t samples = json_integer_value(json_object_get(shard, "samples"));
    json_int_t bytes =
        json_integer_value(json_object_get(json_object_get(shard, "raw_data"), "bytes"));
    AUTO_BLOB struct blob *blob = NULL;
    struct mds_file *file = NULL;
    int r;

    if (version != 2 || !format || strcmp(format, "mds") != 0)
        return diag_set(d, -EBADMSG,
                        "%s: expected shards of format mds, version 2, got %.20s, %lld", f->index,
                        format ? format : "none", (long long)version);
    if (!name || samples < 0 || samples >= UINT32_MAX || bytes < 0)
        return diag_set(
            d, -EBADMSG,
            "%s: shard %u: expected a basename and numbers of samples and bytes, got others",
            f->index, f->n_shards);
    if (mds_leads_outside(name) || (packed && mds_leads_outside(packed)))
        return diag_set(d, -EBADMSG, "%s: expected shards below its folder, got %.200s", f->index,
                        name);
    r = mds_check_columns(f, shard, d);
    if (r == 0)
        r = mds_find_shard(f, shard, name, packed, &blob, d);
    if (r == 0)
        r = mds_check_counts(blob, (uint64_t)samples, (uint64_t)bytes, d);
    if (r == 0)
        r = mds_add_file(f, &blob, samples, bytes, &file);
    if (r < 0)
        return r;
    file->hashes = mds_hashes(shard, "raw_data");
    if (packed && mds_open_below(f->setup, f->file[0].folder, packed, &file->packed, NULL) == 0)
        file->hashes_of_packed = mds_hashes(shard, "zip_data");
    return 0;
}

static int mds_open_shards(struct mds_folder *f, struct blob **blob, const json_t *index,
                           struct diag *d)
{
    json_t *shards = json_object_get(index, "shards");
    json_int_t version = json_integer_value(json_object_get(index, "version"));
    size_t n = json_array_size(shards);
    int r = 0;

    if (version != 2 || !json_is_array(shards))
        return diag_set(d, -EBADMSG, "%s: expected version 2 of MDS with shards, got version %lld",
                        f->index, (long long)version);
    f->shard = calloc(n + 1, sizeof(struct record_file *));
    if (!f->shard)
        return -ENOMEM;
    if (!n)
        return mds_add_empty(f, blob, d);
    for (size_t i = 0; i < n && r == 0; i++)
        r = mds_add_shard(f, json_array_get(shards, i), d);
    return r;
}

static void mds_folder_release(struct mds_folder *f)
{
    while (f->n_shards)
        record_file_drop(f->shard[--f->n_shards]);
    free(f->shard);
    mds_spec_drop(f->spec);
}

/* ---- folders ---- */

/* The dataset is called like its folder. */
static int mds_open_index(struct mds_folder *f, struct blob **blob, struct finds *finds)
{
    const char *folder = f->file[0].folder;
    AUTO_FREE char *name = NULL;
    AUTO_JSON json_t *index = NULL;
    struct dataset *ds = NULL;
    struct diag d = DIAG_INIT;
    int r = text_print(&name, "%s%s", *folder ? "/" : "", *folder ? folder : SHARDS_ALL);

    if (r < 0)
        return r;
    r = mds_load_index(*blob, &index, &d);
    if (r == 0)
        r = mds_open_shards(f, blob, index, &d);
    if (r == 0)
        r = record_set_new(&mds_records, f->shard, f->n_shards, f->setup, &ds);
    if (r == 0)
        return finds->dataset(finds, name, ds);
    return r == -ENOMEM ? r : finds->error(finds, name, diag_text(&d, r));
}

/* Shards without an index. */
static int mds_say_no_index(struct source_file *files, size_t n, const struct format_setup *setup,
                            struct finds *finds)
{
    bool merged = mds_is_merged(&files[0], false, setup);
    int r = 0;

    for (size_t i = 0; i < n && r == 0 && !merged; i++) {
        AUTO_FREE char *why = NULL;

        r = text_print(&why,
                       "%s: expected " INDEX_NAME
                       " in its folder, which says what is in a shard of MDS, got none",
                       files[i].file_name);
        if (r == 0)
            r = finds->failed(finds, files[i].file_name, -EBADMSG, why);
    }
    return r;
}

static int mds_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    AUTO(mds_folder_release) struct mds_folder f = {.file = files, .n = n, .setup = setup};
    AUTO_BLOB struct blob *index = NULL;

    for (size_t i = 0; i < n && !index; i++)
        if (!strcmp(files[i].name, INDEX_NAME))
            index = TAKE_PTR(files[i].blob);
    if (!index)
        return mds_say_no_index(files, n, setup, finds);
    f.index = blob_name(index);
    return mds_is_merged(&files[0], n == 1, setup) ? 0 : mds_open_index(&f, &index, finds);
}

static bool mds_has(const struct probed_file *file, const char *word)
{
    return memmem(file->head, file->len, word, strlen(word));
}

/* Are there shards in the folder? */
static bool mds_has_shards(const struct folder_names *folder)
{
    for (size_t i = 0; i < folder->n; i++)
        if (memmem(folder->file[i].name, folder->file[i].len, ".mds", 4))
            return true;
    return false;
}

/* Is it a .meta file of a shard of texts, which may be packed? */
static bool mds_is_meta(const char *name)
{
    static const char *const packings[] = {"", ".zstd", ".zst", ".gz", ".bz2", ".br", ".snappy"};
    const char *meta = strstr(name, ".meta");
    bool is = false;

    for (size_t i = 0; meta && i < ARRAY_LEN(packings); i++)
        is = is || !strcmp(meta + 5, packings[i]);
    return is && strstr(name, "shard.");
}

static enum claim mds_probe(const struct probed_file *file)
{
    const char *mds = strstr(file->name, ".mds");

    if (mds && mds > file->name && (!mds[4] || mds[4] == '.'))
        return CLAIM_NAMED;
    if (mds_is_meta(file->name))
        return CLAIM_ASIDE;
    if (strcmp(file->name, INDEX_NAME) != 0 || !mds_has(file, "\"shards\""))
        return CLAIM_NONE;
    if (mds_has(file, "\"raw_meta\"")) /* JSON lines or CSV: their formats read them */
        return CLAIM_ASIDE;
    return mds_has(file, "\"raw_data\"") || mds_has(file, "\"version\"") ||
                   mds_has_shards(&file->folder)
               ? CLAIM_NAMED
               : CLAIM_NONE;
}

const struct format format_mds = {
    .name = "mds",
    .probe = mds_probe,
    .open_folder = mds_open_folder,
    .title = "MDS (MosaicML Streaming)",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n",
};
