/* Kaldi tables as a format: which files they are, and what datasets they make.
 *
 * A table is a dataset, called like its file; the known tables of a data directory are one, `all`.
 * An archive that an scp file of the same folder names is not one of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "format/encoder.h"
#include "format/format.h"
#include "format/kaldi_scp.h"
#include "format/kaldi_set.h"

#define JOINED      "all"  /* the dataset of a data directory */
#define ALONE       "data" /* the field of a table on its own */
#define NAME_MOST   40     /* bytes of a field's name */
#define PROBE_LINES 32
#define SCAN_MOST   (16u << 20) /* bytes of an scp file in which archives are looked for */

/* ---- which files ---- */

/* The files of a data directory. */
static const struct known_file {
    const char *name;
    enum kaldi_type type; /* of text; KALDI_UNKNOWN: it is an scp file */
    enum { A_FIELD, SEGMENTS, NO_FIELD } use;
} known_files[] = {
    {"feats.scp", KALDI_UNKNOWN, A_FIELD},
    {"cmvn.scp", KALDI_UNKNOWN, A_FIELD},
    {"vad.scp", KALDI_UNKNOWN, A_FIELD},
    {"wav.scp", KALDI_WAVE, A_FIELD},
    {"text", KALDI_TOKENS, A_FIELD},
    {"utt2spk", KALDI_TOKEN, A_FIELD},
    {"spk2gender", KALDI_TOKEN, A_FIELD},
    {"utt2lang", KALDI_TOKEN, A_FIELD},
    {"utt2uniq", KALDI_TOKEN, A_FIELD},
    {"utt2dur", KALDI_DOUBLE, A_FIELD},
    {"utt2num_frames", KALDI_INT, A_FIELD},
    {"reco2dur", KALDI_DOUBLE, A_FIELD},
    {"reco2file_and_channel", KALDI_TOKENS, A_FIELD},
    {"segments", KALDI_TOKENS, SEGMENTS},
    {"spk2utt", KALDI_TOKENS, NO_FIELD}, /* utt2spk says the same */
    {"frame_shift", KALDI_UNKNOWN, NO_FIELD},
};

static const struct known_file *known_file(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(known_files); i++)
        if (!strcmp(known_files[i].name, name))
            return &known_files[i];
    return NULL;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);

    return n > k && !memcmp(name + n - k, end, k);
}

static bool is_blank(uint8_t c)
{
    return memchr(" \t\n\v\f\r", c, 6);
}

/* The first key and what follows it. NULL: there is none. */
static const uint8_t *behind_key(const uint8_t *head, size_t len, size_t *ret_left)
{
    size_t at = 0, key;

    while (at < len && is_blank(head[at]))
        at++;
    key = at;
    while (at < len && !is_blank(head[at]))
        at++;
    if (at == key || at - key > KEY_MAX || at == len)
        return NULL;
    at += head[at] != '\n';
    *ret_left = len - at;
    return head + at;
}

/* Do the first lines name objects, by offset or as the output of commands? */
static bool is_script(const uint8_t *head, size_t len, bool whole)
{
    const uint8_t *at = head, *end;
    unsigned n = 0;

    for (; n < PROBE_LINES && at < head + len; at = end + 1, n++) {
        struct scp_line line;

        end = memchr(at, '\n', (size_t)(head + len - at));
        if (!end && n && !whole)
            break;
        if (!end)
            end = head + len;
        if (scp_line_parse((const char *)at, (size_t)(end - at), &line) || line.kind == SCP_FILE)
            return false;
    }
    return n;
}

/* Is that the start of a matrix, vector or posterior as text? */
static bool is_bracket(const uint8_t *at, size_t left)
{
    size_t i = 0;

    while (i < left && is_blank(at[i]))
        i++;
    if (left - i > 5 && !memcmp(at + i, "rows=", 5))
        return at[i + 5] >= '0' && at[i + 5] <= '9';
    if (i + 1 >= left || at[i] != '[' || !is_blank(at[i + 1]))
        return false;
    for (i++; i < left && is_blank(at[i]);)
        i++;
    return i < left && (memchr("0123456789-.", at[i], 12) != NULL);
}

static enum claim kaldi_probe(const struct probed_file *file)
{
    const uint8_t *head = file->head, *object;
    size_t left = 0;

    if (file->len >= 4 && (!memcmp(head, "RIFF", 4) || !memcmp(head, "RIFX", 4)))
        return CLAIM_STRONG; /* audio that an scp file may name */
    object = behind_key(head, file->len, &left);
    if (!object)
        return file->len && (known_file(file->name) || ends_in(file->name, ".scp") ||
                             ends_in(file->name, ".ark"))
                   ? CLAIM_STRONG
                   : CLAIM_NONE;
    if (left >= 2 && object[0] == 0 && object[1] == 'B')
        return CLAIM_STRONG;
    if (left >= 4 && (!memcmp(object, "RIFF", 4) || !memcmp(object, "RIFX", 4)))
        return CLAIM_STRONG;
    if (known_file(file->name) || ends_in(file->name, ".scp") || ends_in(file->name, ".ark"))
        return CLAIM_STRONG;
    if (memchr(head, 0, file->len))
        return CLAIM_NONE;
    return is_script(head, file->len, file->whole) || is_bracket(object, left) ? CLAIM_STRONG
                                                                               : CLAIM_NONE;
}

/* ---- what a dataset does ---- */

/* All tables are ready: what they have in common. */
static int set_finish(struct dataset *ds)
{
    struct kaldi_set *set = ds->own;

    set->keys = set->join ? kaldi_join_index(set->join) : &set->column[0].table->index;
    for (unsigned i = 0; i < set->n_columns; i++) {
        struct kaldi_column *c = &set->column[i];
        const struct kaldi_totals *t = &c->table->totals;

        c->real = c->table->type == KALDI_DOUBLE || t->any_double ? DTYPE_F8 : DTYPE_F4;
        c->varies = t->varies[0];
        c->tail = t->dim[0];
        c->is_mono = c->table->type == KALDI_WAVE && (c->is_cut || (!c->varies && c->tail == 1));
        if (c->table->notes.len && !ds->note.set)
            diag_set(&ds->note, 0, "%.*s", (int)min_u64(c->table->notes.len - 1, 1000),
                     c->table->notes.data);
    }
    ds->samples = set->keys->rows;
    return kaldi_fields_finish(ds);
}

static int set_prepare(struct dataset *ds, struct diag *d)
{
    struct kaldi_set *set = ds->own;
    int r = 1;

    for (unsigned i = 0; i < set->n_columns && r == 1; i++)
        r = kaldi_table_prepare(set->column[i].table, d);
    if (r == 1 && set->join)
        r = kaldi_join_step(set->join, d);
    if (r != 1)
        return r;
    r = set_finish(ds);
    return r < 0 ? r : 1;
}

static void set_progress(const struct dataset *ds, uint64_t *ret_done, uint64_t *ret_total)
{
    const struct kaldi_set *set = kaldi_set_of(ds);

    *ret_done = *ret_total = 0;
    for (unsigned i = 0; i < set->n_columns; i++) {
        *ret_done += atomic_load_explicit(&set->column[i].table->seen, memory_order_relaxed);
        *ret_total += set->column[i].table->blob->size;
    }
}

static size_t set_key(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_ROOM])
{
    return key_index_key(kaldi_set_of(ds)->keys, sample, ret);
}

/* A name that was cut: the sample whose name it is. */
struct cut_name {
    const struct dataset *ds;
    const char *name;
    size_t len;
};

static bool has_name(void *ctx, uint64_t row)
{
    const struct cut_name *want = ctx;
    char name[KEY_NAME_ROOM];

    return dataset_name(want->ds, row, false, name) == want->len &&
           !memcmp(name, want->name, want->len);
}

static bool set_find(const struct dataset *ds, const char *name, size_t len, uint64_t *ret)
{
    const struct key_index *keys = kaldi_set_of(ds)->keys;
    struct cut_name want = {ds, name, len};
    uint8_t key[KEY_NAME_ROOM];
    char again[KEY_NAME_ROOM];
    size_t key_len;
    uint64_t hash;

    if (len > KEY_NAME_MAX)
        return false;
    if (key_name_is_cut(name, len, &hash))
        return key_index_find_hash(keys, hash, has_name, &want, ret);
    return key_of_name(name, len, key, &key_len) && key_name(key, key_len, false, again) == len &&
           key_index_find(keys, key, key_len, ret);
}

static void set_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                       struct text *t)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    const struct kaldi_field *of = only ? only->own : NULL;

    for (unsigned i = 0; i < set->n_columns; i++) {
        struct kaldi_cell cell;

        if ((of && of->column != i) || kaldi_cell(set, i, sample, &cell, NULL) < 0)
            continue;
        text_add(t, "%s%s:%llu+%llu", t->len ? "," : "", blob_name(cell.row.blob),
                 (unsigned long long)cell.row.object.start,
                 (unsigned long long)cell.row.object.len);
        if (cell.row.is_cut)
            text_add(t, "[%llu:%llu]", (unsigned long long)cell.row.first[0],
                     (unsigned long long)cell.row.first[0] + cell.row.n[0] - 1);
    }
}

static void set_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    AUTO_TEXT struct text notes = {0};
    uint64_t bad = 0, left_out = 0;

    text_add(t, "%s\"tables\": {", indent);
    for (unsigned i = 0; i < set->n_columns; i++) {
        const struct kaldi_table *table = set->column[i].table;

        text_add(t, "%s\"%s\": \"%s\"", i ? ", " : "", table->name, kaldi_types[table->type].name);
        bad += table->totals.bad;
        left_out += table->totals.left_out;
        if (table->notes.len)
            text_add_bytes(&notes, table->notes.data, table->notes.len);
    }
    text_add(t, "},\n%s\"unreadable\": %llu,\n%s\"left_out\": %llu,\n", indent,
             (unsigned long long)bad, indent, (unsigned long long)left_out);
    if (set->join)
        kaldi_join_describe(set->join, indent, t);
    if (!notes.len)
        return;
    notes.data[notes.len - 1] = '\0'; /* the last line's end */
    text_add(t, "%s\"note\": ", indent);
    text_add_json(t, notes.data);
    text_add(t, ",\n");
}

/* Decode every array of every cell. */
static int check_cell(const struct kaldi_set *set, unsigned column, uint64_t sample,
                      uint8_t *buffer, size_t room, struct diag *d)
{
    const struct kaldi_column *c = &set->column[column];
    const struct kaldi_type_info *info = &kaldi_types[c->table->type];
    struct kaldi_cell cell;
    int r = kaldi_cell(set, column, sample, &cell, d);

    for (unsigned i = 0; i < info->n_arrays && r == 0; i++) {
        enum dtype dtype = info->array[i].real ? c->real : info->array[i].dtype;
        uint64_t dim[2], bytes;

        kaldi_cell_form(&cell, i, dim);
        bytes = dim[0] * dim[1] * dtype_info(dtype)->bytes;
        for (uint64_t at = 0; at < bytes && r == 0; at += room)
            r = kaldi_cell_array(set, &cell, i, dtype, at, (size_t)min_u64(room, bytes - at),
                                 buffer, d);
    }
    return r;
}

static int set_check(const struct dataset *ds, void (*report)(void *ctx, const char *text),
                     void *ctx, struct diag *d)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    const size_t room = 1 << 20;
    AUTO_FREE uint8_t *buffer = malloc(room);

    (void)d;
    if (!buffer)
        return -ENOMEM;
    for (uint64_t sample = 0; sample < ds->samples; sample++) {
        for (unsigned i = 0; i < set->n_columns; i++) {
            struct diag reason = DIAG_INIT;
            int r = check_cell(set, i, sample, buffer, room, &reason);

            if (r == -ENOMEM)
                return r;
            if (r < 0)
                report(ctx, diag_text(&reason, r));
        }
    }
    return 0;
}

static void set_free(struct dataset *ds)
{
    struct kaldi_set *set = ds->own;

    ds->n_blobs = 0; /* they are the tables' and ours */
    if (!set)
        return;
    kaldi_join_free(set->join);
    for (unsigned i = 0; i < set->n_columns; i++)
        kaldi_table_free(set->column[i].table);
    for (size_t i = 0; i < set->n_material; i++)
        blob_free(set->material[i]);
    free(set->material);
    free(set->column);
    free(set->field);
    free(set);
}

static const struct dataset_ops kaldi_ops = {
    .prepare = set_prepare,
    .progress = set_progress,
    .check = set_check,
    .describe = set_describe,
    .locate = set_locate,
    .key = set_key,
    .find = set_find,
    .free = set_free,
    .checks_reads = true,
};

/* ---- making datasets ---- */

/* The files of a folder, while datasets are made of them. */
struct folder_files {
    struct source_file *file;
    size_t n;
    const struct format_setup *setup;
    struct finds *finds;
    bool is_directory;     /* a data directory */
    struct blob *segments; /* of it; owned */
};

static void folder_files_release(struct folder_files *files)
{
    blob_free(files->segments);
}

/* A dataset of tables, which it takes over. */
static int make_dataset(struct folder_files *files, const char *name, struct kaldi_table **tables,
                        unsigned n, struct blob **material, size_t n_material)
{
    extern const struct format format_kaldi;
    AUTO_DATASET struct dataset *ds = calloc(1, sizeof(*ds));
    struct kaldi_set *set = calloc(1, sizeof(*set));
    int r = 0;

    if (ds)
        ds->own = set;
    if (set)
        set->column = calloc(n, sizeof(*set->column));
    if (!ds || !set || !set->column) {
        free(ds ? NULL : set);
        for (unsigned i = 0; i < n; i++)
            kaldi_table_free(tables[i]);
        return -ENOMEM;
    }
    ds->format = &format_kaldi;
    ds->ops = &kaldi_ops;
    ds->memo = set->memo = files->setup->memo;
    set->material = material;
    set->n_material = n_material;
    for (; set->n_columns < n; set->n_columns++)
        set->column[set->n_columns] = (struct kaldi_column){
            .table = tables[set->n_columns],
            .join = -1,
            .is_alone = !strcmp(tables[set->n_columns]->name, ALONE),
        };
    ds->blob = calloc(n + n_material, sizeof(*ds->blob));
    if (!ds->blob)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        ds->blob[ds->n_blobs++] = set->column[i].table->blob;
    for (size_t i = 0; i < n_material; i++)
        ds->blob[ds->n_blobs++] = material[i];
    if (n > 1 || files->segments)
        r = kaldi_join_new(set, files->setup->keep, TAKE_PTR(files->segments), &set->join);
    if (r == 0)
        r = kaldi_fields_init(ds);
    if (r == 0)
        r = dataset_add_folders(ds);
    if (r == -E2BIG)
        return files->finds->error(files->finds, name, "want fewer tables in one data directory");
    if (r < 0)
        return r;
    atomic_store(&ds->state, DATASET_PREPARING);
    return files->finds->dataset(files->finds, name, TAKE_PTR(ds));
}

static enum kaldi_table_kind kind_of(const struct source_file *file)
{
    const struct known_file *known = known_file(file->name);
    uint8_t head[FORMAT_HEAD];
    size_t len = (size_t)min_u64(sizeof(head), file->blob->size);

    if (known)
        return ends_in(known->name, ".scp") ? KALDI_SCRIPT : KALDI_ARCHIVE;
    if (ends_in(file->name, ".scp"))
        return KALDI_SCRIPT;
    if (ends_in(file->name, ".ark") || blob_pread(file->blob, head, len, 0) < 0)
        return KALDI_ARCHIVE;
    return !memchr(head, 0, len) && is_script(head, len, len == file->blob->size) ? KALDI_SCRIPT
                                                                                  : KALDI_ARCHIVE;
}

/* The name of a field: of the file, without what says that it is an scp file. */
static void field_name(const struct source_file *file, char ret[static FIELD_NAME_ROOM])
{
    size_t len = strlen(file->name);

    if (ends_in(file->name, ".scp") || ends_in(file->name, ".ark"))
        len -= 4;
    snprintf(ret, FIELD_NAME_ROOM, "%.*s", (int)min_u64(len, NAME_MOST), file->name);
}

/* Open the table of a file. *ret NULL: it cannot be used, and that was told. */
static int open_table(struct folder_files *files, struct source_file *file, const char *name,
                      struct kaldi_table **ret)
{
    const struct known_file *known = files->is_directory ? known_file(file->name) : NULL;
    struct kaldi_table_setup setup = {
        .name = name,
        .folder = file->folder,
        .kind = kind_of(file),
        .type = known && known->type ? known->type : files->setup->options.kaldi_type,
        .format = files->setup,
    };
    struct diag d = DIAG_INIT;
    int r = kaldi_table_new(TAKE_PTR(file->blob), &setup, ret, &d);

    if (r == 0)
        return 0;
    *ret = NULL;
    return r == -ENOMEM ? r : files->finds->error(files->finds, file->file_name, diag_text(&d, r));
}

/* ---- archives that scp files of the folder name ---- */

static bool same_file(const struct blob *a, const struct blob *b)
{
    AUTO_FREE char *x = NULL, *y = NULL;

    return blob_identity(a, &x) == 0 && blob_identity(b, &y) == 0 && !strcmp(x, y);
}

/* The archive of the folder that a line names, if it is one; else NULL. */
static struct source_file *named_archive(struct folder_files *files, const struct scp_line *line,
                                         const char *folder)
{
    AUTO_FREE char *path = strndup(line->path, line->path_len);
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path;
    AUTO_BLOB struct blob *blob = NULL;

    for (size_t i = 0; path && i < files->n; i++) {
        struct source_file *file = &files->file[i];

        if (!file->blob || strcmp(file->file_name, name) != 0)
            continue;
        if (opener_file(files->setup->opener, folder, path, &blob, NULL) == 0 &&
            same_file(blob, file->blob))
            return file;
        return NULL;
    }
    return NULL;
}

/* Take the archives that the scp file names out of the folder's files. */
static int take_material(struct folder_files *files, const struct kaldi_table *script,
                         struct blob ***material, size_t *n)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    AUTO_FREE char *last = NULL;
    uint64_t at = 0;

    kaldi_in_init(&in, script->blob);
    while (at < in.size && at < SCAN_MOST) {
        size_t have = 0, len;
        const uint8_t *text = kaldi_in_at(&in, at, 4096, &have), *end;
        struct source_file *file;
        struct scp_line line;

        if (!text)
            return in.error == -ENOMEM ? -ENOMEM : 0;
        end = memchr(text, '\n', have);
        len = end ? (size_t)(end - text) : have;
        at += len + 1;
        if (scp_line_parse((const char *)text, len, &line) || line.kind == SCP_COMMAND ||
            (last && strlen(last) == line.path_len && !memcmp(last, line.path, line.path_len)))
            continue;
        free(last);
        last = strndup(line.path, line.path_len);
        file = named_archive(files, &line, script->folder);
        if (!file)
            continue;
        if (array_room(material, *n, sizeof(**material)) < 0)
            return -ENOMEM;
        (*material)[(*n)++] = TAKE_PTR(file->blob);
    }
    return 0;
}

/* ---- folders ---- */

static bool is_audio(const struct source_file *file)
{
    uint8_t head[4];

    return file->blob->size >= 4 && blob_pread(file->blob, head, 4, 0) == 0 &&
           (!memcmp(head, "RIFF", 4) || !memcmp(head, "RIFX", 4));
}

/* Two known files make a data directory; one is a table on its own. */
static bool is_directory(const struct folder_files *files)
{
    unsigned n = 0;

    for (size_t i = 0; i < files->n; i++)
        n += known_file(files->file[i].name) != NULL;
    return n > 1;
}

static int open_directory(struct folder_files *files)
{
    AUTO_FREE struct kaldi_table **tables = calloc(files->n, sizeof(struct kaldi_table *));
    struct blob **material = NULL;
    size_t n_material = 0;
    unsigned n = 0;
    int r = tables ? 0 : -ENOMEM;

    for (size_t i = 0; i < files->n && r == 0; i++) {
        struct source_file *file = &files->file[i];
        const struct known_file *known = known_file(file->name);
        char name[FIELD_NAME_ROOM];

        if (!file->blob || !known)
            continue;
        if (known->use != A_FIELD) {
            struct blob *blob = TAKE_PTR(file->blob);

            if (known->use == SEGMENTS && !files->segments)
                files->segments = blob;
            else
                blob_free(blob);
            continue;
        }
        field_name(file, name);
        r = open_table(files, file, name, &tables[n]);
        n += tables[n] != NULL;
    }
    for (unsigned i = 0; i < n && r == 0; i++)
        if (tables[i]->kind == KALDI_SCRIPT)
            r = take_material(files, tables[i], &material, &n_material);
    if (r == 0 && n)
        return make_dataset(files, JOINED, tables, n, material, n_material);
    for (unsigned i = 0; i < n; i++)
        kaldi_table_free(tables[i]);
    for (size_t i = 0; i < n_material; i++)
        blob_free(material[i]);
    free(material);
    return r;
}

/* A dataset of one table; name: of the dataset. */
static int open_alone(struct folder_files *files, struct source_file *file)
{
    struct kaldi_table *table = NULL;
    struct blob **material = NULL;
    size_t n_material = 0;
    int r = open_table(files, file, ALONE, &table);

    if (r < 0 || !table)
        return r;
    if (table->kind == KALDI_SCRIPT)
        r = take_material(files, table, &material, &n_material);
    if (r == 0)
        return make_dataset(files, file->name, &table, 1, material, n_material);
    kaldi_table_free(table);
    for (size_t i = 0; i < n_material; i++)
        blob_free(material[i]);
    free(material);
    return r;
}

static int open_kind(struct folder_files *files, enum kaldi_table_kind kind)
{
    int r = 0;

    for (size_t i = 0; i < files->n && r == 0; i++) {
        struct source_file *file = &files->file[i];

        if (file->blob && !is_audio(file) && kind_of(file) == kind)
            r = open_alone(files, file);
    }
    return r;
}

static int kaldi_open_folder(struct source_file *sources, size_t n,
                             const struct format_setup *setup, struct finds *finds)
{
    AUTO(folder_files_release)
    struct folder_files files = {.file = sources, .n = n, .setup = setup, .finds = finds};
    int r = 0;

    files.is_directory = is_directory(&files);
    if (files.is_directory)
        r = open_directory(&files);
    if (r == 0)
        r = open_kind(&files, KALDI_SCRIPT); /* archives that they name are not tables */
    return r < 0 ? r : open_kind(&files, KALDI_ARCHIVE);
}

static void kaldi_example(const struct dataset *ds, struct text *t)
{
    const struct field *f = &ds->field[0];
    char name[KEY_NAME_ROOM] = "<key>";

    if (dataset_state(ds) == DATASET_READY && ds->samples)
        dataset_name(ds, 0, false, name);
    if (f->role == FIELD_RAGGED || f->role == FIELD_DECODED)
        text_add(t,
                 "  x = np.load(root + '/batches/batch=32,seed=7/epoch=0/npy/000000.%s.npy')\n"
                 "  lengths = np.load(root + "
                 "'/batches/batch=32,seed=7/epoch=0/npy/000000.%s_len.npy')\n"
                 "  one = np.load(root + '/samples/npy/%s.%s.npy')\n",
                 f->name, f->name, name, f->name);
    else
        text_add(t,
                 "  batch = np.load(root + '/batches/batch=32,seed=7/epoch=0/npz/000000.npz')\n"
                 "  one = np.load(root + '/samples/npz/%s.npz')\n",
                 name);
    text_add(t, "\n"
                "  # Kaldi: scp:<root>/batches/batch=32,seed=7/epoch=0/ark/000000.*scp\n");
}

const struct format format_kaldi = {
    .name = "kaldi",
    .probe = kaldi_probe,
    .open_folder = kaldi_open_folder,
    .start = "a key and an object (Kaldi archive) or a key and where it is (scp)",
    .example = kaldi_example,
};
