#include "format/kaldi/table/table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/kaldi/table/pass.h"
#include "format/kaldi/table/scp.h"

#define VERSION     1
#define FIRST_LINES 100 /* of an scp file; one of them must lead to an object */

static int find_type_of_script(struct kaldi_table *table, struct diag *d);

/* As in Kaldi, a file is no archive if its first object cannot be read. */
static int check_first(const struct kaldi_table *table, struct diag *d)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct kaldi_object object;
    uint8_t key[KEY_MAX];
    uint64_t at = 0;
    size_t len = 0;
    bool is_plain;
    int r;

    kaldi_in_init(&in, table->blob);
    r = kaldi_next_key(&in, &at, 0, key, &len, &is_plain, d);
    if (r == 0)
        return kaldi_bad(&in, 0, d, "want a key and an object, found the end of the file");
    return r < 0 ? r : kaldi_measure(&in, at, table->type, &object, d);
}

int kaldi_table_new(struct blob *blob, const struct kaldi_table_setup *setup,
                    struct kaldi_table **ret, struct diag *d)
{
    struct kaldi_table *table = calloc(1, sizeof(*table));
    int r = 0;

    if (!table) {
        blob_free(blob);
        return -ENOMEM;
    }
    table->blob = blob;
    table->name = strdup(setup->name);
    table->folder = strdup(setup->folder);
    table->kind = setup->kind;
    table->type = setup->type;
    table->keep = setup->format->keep;
    table->opener = setup->format->opener;
    table->asked = (enum kaldi_type)setup->format->options.kaldi_type;
    table->permissive = setup->format->options.kaldi_permissive;
    table->sorted = setup->format->options.kaldi_sorted;
    if (!table->name || !table->folder)
        r = -ENOMEM;
    if (r == 0 && table->kind == KALDI_SCRIPT)
        r = find_type_of_script(table, d);
    else if (r == 0 && table->type == KALDI_UNKNOWN)
        r = kaldi_sniff_archive(blob, table->asked, &table->type, d);
    if (r == 0 && table->kind == KALDI_ARCHIVE)
        r = check_first(table, d);
    if (r < 0) {
        kaldi_table_free(table);
        return r;
    }
    *ret = table;
    return 0;
}

static void free_files(struct kaldi_table *table)
{
    for (size_t i = 1; i < table->n_files; i++) {
        free(table->file[i].path);
        blob_free(table->file[i].blob);
    }
    free(table->file);
    table->file = NULL;
    table->n_files = 0;
}

void kaldi_table_free(struct kaldi_table *table)
{
    if (!table)
        return;
    kaldi_pass_free(table->pass);
    key_index_builder_free(table->builder);
    kept_index_release(&table->kept);
    free_files(table);
    text_release(&table->notes);
    blob_free(table->blob);
    free(table->name);
    free(table->folder);
    free(table);
}

/* ---- the type ---- */

/* Guess the type of a command's output before it runs, by its text and the name of the table's
 * file. */
static enum kaldi_type guess_output(const struct kaldi_table *table, const struct scp_line *line)
{
    static const char *const audio[] = {"wav", "sph", "flac", "sox", "ffmpeg", "mp3", "ogg"};
    const char *slash = strrchr(blob_name(table->blob), '/');
    const char *name = slash ? slash + 1 : blob_name(table->blob);

    for (size_t i = 0; i < ARRAY_LEN(audio); i++)
        if (strstr(name, audio[i]) ||
            memmem(line->path, line->path_len, audio[i], strlen(audio[i])))
            return KALDI_WAVE;
    return KALDI_MATRIX;
}

/* Measure the object that a line names as that type. */
static int measure_named(const struct blob *blob, const struct scp_line *line, enum kaldi_type type,
                         struct diag *d)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct kaldi_object object;

    kaldi_in_init(&in, blob);
    return kaldi_measure(&in, line->kind == SCP_OFFSET ? line->offset : 0, type, &object, d);
}

/* Find out the type, if it is unknown, from the object that a line names. 0; 1: that would take
 * running a command. */
static int type_of_line(struct kaldi_table *table, const struct scp_line *line, struct diag *d)
{
    AUTO_FREE char *path = strndup(line->path, line->path_len);
    AUTO_BLOB struct blob *blob = NULL;
    enum kaldi_type type = table->type;
    struct opener_run *run = NULL;
    int r;

    if (!path)
        return -ENOMEM;
    if (line->kind == SCP_COMMAND && !table->opener->runs_commands)
        return opener_start(table->opener, path, &run,
                            d); /* its message says how to allow commands */
    if (line->kind == SCP_COMMAND)
        return 1;
    r = opener_file(table->opener, table->folder, path, &blob, d);
    if (r == 0 && type == KALDI_UNKNOWN)
        r = kaldi_sniff_object(blob, line->kind == SCP_OFFSET ? line->offset : 0, table->asked,
                               &type, d);
    if (r == 0)
        r = measure_named(blob, line, type, d);
    if (r == 0)
        table->type = type;
    return r;
}

/* The first line that leads to an object decides; if none does, d keeps the first reason. */
static int find_type_of_script(struct kaldi_table *table, struct diag *d)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    enum kaldi_type guess = KALDI_UNKNOWN;
    uint64_t at = 0;
    int r = -ENODATA;

    kaldi_in_init(&in, table->blob);
    for (unsigned i = 0; i < FIRST_LINES && at < in.size; i++) {
        size_t have = 0, len;
        const uint8_t *text = kaldi_in_at(&in, at, 65536, &have), *end;
        struct diag reason = DIAG_INIT;
        struct scp_line line;
        const char *wrong;

        if (!text)
            return kaldi_bad(&in, at, d, "cannot be read");
        if (i == 0 && have >= 2 && text[0] == 0 && text[1] == 'B')
            return kaldi_bad(&in, 0, d, "want lines of text, found a binary object");
        end = memchr(text, '\n', have);
        len = end ? (size_t)(end - text) : have;
        at += len + 1;
        wrong = scp_line_parse((const char *)text, len, &line);
        if (wrong) {
            diag_set(d, -EBADMSG, "%s:%u: %s", blob_name(table->blob), i + 1, wrong);
            if (line.ends_table)
                break;
            continue;
        }
        r = type_of_line(table, &line, &reason);
        if (blob_says_nothing(r))
            return diag_set(d, r, "%s", diag_text(&reason, r));
        if (r == 0)
            break;
        if (r == 1) { /* the next line may name a file */
            if (!guess)
                guess = table->asked ? table->asked : guess_output(table, &line);
            continue;
        }
        diag_set(d, r, "%s:%u: %s", blob_name(table->blob), i + 1, diag_text(&reason, r));
    }
    if (guess) {
        table->type = table->type ? table->type : guess;
        r = 0;
    }
    return r == 0 ? r : -EBADMSG;
}

/* ---- what is kept besides the rows ---- */

static void put_u64(struct text *t, uint64_t v)
{
    uint8_t bytes[8];

    store_le64(bytes, v);
    text_add_bytes(t, (const char *)bytes, sizeof(bytes));
}

static void put_string(struct text *t, const char *s, size_t len)
{
    put_u64(t, len);
    text_add_bytes(t, s, len);
}

struct get {
    const uint8_t *at;
    size_t left;
    bool failed;
};

static uint64_t get_u64(struct get *g)
{
    uint64_t v;

    if (g->left < 8) {
        g->failed = true;
        return 0;
    }
    v = load_le64(g->at);
    g->at += 8;
    g->left -= 8;
    return v;
}

/* A string in place; "" if there is none. */
static const char *get_string(struct get *g, size_t *ret_len)
{
    const char *s = (const char *)g->at + 8;
    uint64_t len = get_u64(g);

    if (len > g->left) {
        g->failed = true;
        len = 0;
    }
    *ret_len = (size_t)len;
    g->at += len;
    g->left -= (size_t)len;
    return g->failed ? "" : s;
}

static void put_totals(struct text *t, const struct kaldi_totals *totals)
{
    put_u64(t, totals->any_double | totals->varies[0] << 1 | totals->varies[1] << 2 |
                   totals->ends_early << 3);
    put_u64(t, totals->dim[0]);
    put_u64(t, totals->dim[1]);
    put_u64(t, totals->bad);
    put_u64(t, totals->left_out);
    put_u64(t, totals->hash);
}

static void get_totals(struct get *g, struct kaldi_totals *ret)
{
    uint64_t flags = get_u64(g);

    *ret = (struct kaldi_totals){
        .any_double = flags & 1, .varies = {flags & 2, flags & 4}, .ends_early = flags & 8};
    ret->dim[0] = get_u64(g);
    ret->dim[1] = get_u64(g);
    ret->bad = get_u64(g);
    ret->left_out = get_u64(g);
    ret->hash = get_u64(g);
}

/* Encode the totals, the notes, the files with their identities, and the faults. */
static int make_about(struct kaldi_table *table, struct text *ret)
{
    const struct kaldi_fault *fault = NULL;
    size_t n_faults = kaldi_pass_faults(table->pass, &fault);
    AUTO_TEXT struct text files = {0};

    put_u64(&files, table->n_files - 1);
    for (size_t i = 1; i < table->n_files; i++) {
        AUTO_FREE char *identity = NULL;
        int r = blob_identity(table->file[i].blob, &identity);

        if (r < 0)
            return r;
        put_string(&files, table->file[i].path, strlen(table->file[i].path));
        put_string(&files, identity, strlen(identity));
    }
    table->totals.hash = files.len ? key_hash(files.data, files.len) : 0;
    put_u64(ret, table->type);
    put_totals(ret, &table->totals);
    put_string(ret, table->notes.data ? table->notes.data : "", table->notes.len);
    put_u64(ret, n_faults);
    for (size_t i = 0; i < n_faults; i++) {
        put_u64(ret, fault[i].row);
        put_string(ret, fault[i].text, strlen(fault[i].text));
    }
    text_add_bytes(ret, files.data, files.len);
    return files.failed || ret->failed ? -ENOMEM : 0;
}

static bool skip_faults(struct get *g)
{
    uint64_t n = get_u64(g);
    size_t len;

    for (uint64_t i = 0; i < n && !g->failed; i++) {
        get_u64(g);
        get_string(g, &len);
    }
    return !g->failed;
}

/* Open a file that an scp file names, or the earlier output of a command. */
static int open_named(const struct kaldi_table *table, const char *path, struct blob **ret)
{
    size_t len = strlen(path);
    struct diag d = DIAG_INIT;

    if (kaldi_is_command(path, len)) {
        AUTO_FREE char *command = strndup(path, len - 1);

        return command ? opener_kept(table->opener, command, ret) : -ENOMEM;
    }
    return opener_file(table->opener, table->folder, path, ret, &d);
}

static int add_own_file(struct kaldi_table *table, size_t n)
{
    /* A power of two, as array_capacity() makes it. */
    size_t capacity = 2;

    while (capacity <= n)
        capacity *= 2;
    table->file = calloc(capacity, sizeof(*table->file));
    if (!table->file)
        return -ENOMEM;
    table->file[0].blob = table->blob;
    table->n_files = 1;
    return 0;
}

/* Decode the files; fails unless they are the same as when the index was made. */
static int get_files(struct kaldi_table *table, struct get *g)
{
    uint64_t n = get_u64(g);
    int r = n < g->left / 16 + 1 ? add_own_file(table, (size_t)n) : -EBADMSG;

    for (uint64_t i = 0; i < n && r == 0; i++) {
        size_t path_len, known_len;
        const char *path_at = get_string(g, &path_len), *known = get_string(g, &known_len);
        AUTO_FREE char *path = strndup(path_at, path_len), *identity = NULL;
        AUTO_BLOB struct blob *blob = NULL;
        bool is_output = path && kaldi_is_command(path, strlen(path));

        r = g->failed ? -EBADMSG : !path ? -ENOMEM : open_named(table, path, &blob);
        if (r == 0)
            r = blob_identity(blob, &identity);
        if (r == 0 && (strlen(identity) != known_len || memcmp(identity, known, known_len) != 0))
            r = -ESTALE;
        if (r == 0)
            table->file[table->n_files++] = (struct kaldi_file){
                .is_output = is_output, .path = TAKE_PTR(path), .blob = TAKE_PTR(blob)};
    }
    return r;
}

/* ---- preparing ---- */

static int index_identity(const struct kaldi_table *table, char **ret)
{
    AUTO_FREE char *identity = NULL;
    int r = blob_identity(table->blob, &identity);

    if (r < 0)
        return r;
    return asprintf(ret, "kaldi %d %s type=%d kind=%d options=%d folder=%s", VERSION, identity,
                    table->type, table->kind,
                    table->permissive | table->sorted << 1 | table->opener->runs_commands << 2 |
                        table->opener->reads_outside << 3,
                    table->folder) < 0
               ? -ENOMEM
               : 0;
}

/* Decode what is kept. Rows are not checked here: every use checks its numbers, since a kept index
 * may be damaged. */
static int take_about(struct kaldi_table *table, const struct key_index *index)
{
    struct get g = {index->about, index->about_len, false};
    size_t len;
    const char *notes;
    int r;

    if (index->columns != KALDI_COLUMNS || get_u64(&g) != table->type)
        return -EBADMSG;
    get_totals(&g, &table->totals);
    notes = get_string(&g, &len);
    if (g.failed || !skip_faults(&g))
        return -EBADMSG;
    r = get_files(table, &g);
    if (r == 0 && len)
        text_add_bytes(&table->notes, notes, len);
    return r == 0 && table->notes.failed ? -ENOMEM : r;
}

/* Load the index that an earlier mount kept. 1: loaded; 0: there is none, it is damaged, or a file
 * that it names has changed; -errno: unknown. */
static int take_kept(struct kaldi_table *table, const char *identity)
{
    int r;

    if (index_store_load(table->keep, "tables", identity, &table->kept) < 0)
        return 0;
    r = key_index_open(table->kept.bytes, table->kept.size, &table->index);
    if (r == 0)
        r = take_about(table, &table->index);
    if (r == 0)
        return 1;
    free_files(table);
    table->totals = (struct kaldi_totals){0};
    kept_index_release(&table->kept);
    if (r == -EREMOTEIO || r == -EINTR)
        return r;
    index_store_remove(table->keep, "tables", identity);
    return 0;
}

static int begin(struct kaldi_table *table)
{
    AUTO_FREE char *identity = NULL;
    int r = index_identity(table, &identity);

    if (r == 0)
        r = take_kept(table, identity);
    if (r)
        return r;
    r = add_own_file(table, 0);
    if (r == 0)
        r = kaldi_pass_new(table, &table->pass);
    return r < 0 ? r : key_index_builder_new(KALDI_COLUMNS, &table->builder);
}

struct renames {
    struct kaldi_table *table;
    unsigned reported;
};

static void tell_renamed(void *ctx, uint64_t row, uint64_t first)
{
    struct renames *renames = ctx;

    if (renames->reported++ < 10)
        text_add(&renames->table->notes,
                 "%s: row %llu has the key of row %llu; it is shown with ~ and a number after "
                 "its key\n",
                 blob_name(renames->table->blob), (unsigned long long)row + 1,
                 (unsigned long long)first + 1);
    else if (renames->reported == 11)
        text_add(&renames->table->notes, "and more keys that occur twice\n");
}

static int check_files(const struct kaldi_table *table)
{
    int r = 0;

    for (size_t i = 0; i < table->n_files && r == 0; i++)
        r = blob_check(table->file[i].blob);
    return r;
}

/* If the index cannot be kept, that is no error: the next mount makes it again. */
static int keep_index(struct kaldi_table *table, const struct iovec *pieces)
{
    AUTO_FREE char *identity = NULL;
    struct diag reason = DIAG_INIT;
    struct key_index kept;
    int r = index_identity(table, &identity);

    if (r < 0)
        return r;
    r = index_store_save(table->keep, "tables", identity, blob_source(table->blob), pieces,
                         KEY_INDEX_PIECES, &table->kept, &reason);
    if (r < 0) {
        text_add(&table->notes,
                 "%s: the index cannot be kept, so the next mount makes it again: %s\n",
                 blob_name(table->blob), diag_text(&reason, r));
        return 0;
    }
    if (key_index_open(table->kept.bytes, table->kept.size, &kept) == 0) {
        table->index = kept;
        key_index_builder_free(table->builder);
        table->builder = NULL;
    }
    return 0;
}

static int finish(struct kaldi_table *table)
{
    struct renames renames = {.table = table};
    struct iovec pieces[KEY_INDEX_PIECES];
    AUTO_TEXT struct text about = {0};
    int r = check_files(table);

    if (r == 0)
        r = key_index_finish(table->builder, tell_renamed, &renames, &table->index);
    if (r == 0)
        r = make_about(table, &about);
    if (r == 0)
        r = key_index_bytes(table->builder, about.data, about.len, &table->index, pieces);
    kaldi_pass_free(table->pass);
    table->pass = NULL;
    if (r == 0 && table->notes.failed)
        r = -ENOMEM;
    return r < 0 || table->may_differ ? r : keep_index(table, pieces);
}

static int step(struct kaldi_table *table, struct diag *d)
{
    int r = table->pass || table->is_ready ? 0 : begin(table);

    if (r == 0)
        r = kaldi_pass_step(table->pass, d);
    if (r == 1 && table->pass) {
        r = finish(table);
        r = r < 0 ? r : 1;
    }
    if (r == 1) {
        atomic_store_explicit(&table->seen, table->blob->size, memory_order_relaxed);
        table->is_ready = true;
    }
    return r;
}

int kaldi_table_prepare(struct kaldi_table *table, struct diag *d)
{
    int r;

    if (table->is_ready)
        return 1;
    r = table->failed ? table->failed : step(table, &table->reason);
    if (r == -EREMOTEIO || r == -EINTR) {
        diag_set(d, r, "%s", diag_text(&table->reason, r));
        table->reason.set = false;
        return r;
    }
    if (r < 0) {
        table->failed = r;
        if (r == -ESTALE)
            table->reason.set = false; /* faults found in a file that changes say little */
        diag_set(&table->reason, r, "%s: cannot be indexed: %s", blob_name(table->blob),
                 r == -ESTALE ? "the file was changed meanwhile; mount again" : strerror(-r));
        return diag_set(d, r, "%s", table->reason.text);
    }
    return r;
}

/* ---- rows ---- */

/* Are the samples of a wave in its file? */
static bool wave_fits(const struct kaldi_row *row)
{
    const struct kaldi_object *o = &row->object;
    uint64_t bytes;

    return o->store == KALDI_BAD ||
           (o->dim[1] <= UINT16_MAX && row->first[1] <= o->len &&
            checked_mul(o->dim[0], o->dim[1] * 2, &bytes) && bytes <= o->len - row->first[1]);
}

void kaldi_table_row(const struct kaldi_table *table, uint64_t row, struct kaldi_row *ret)
{
    uint64_t number[KEY_INDEX_COLUMNS];
    struct kaldi_object *o = &ret->object;

    key_index_row(&table->index, row, number);
    *ret = (struct kaldi_row){
        .is_whole = number[COLUMN_WHAT] & WHAT_WHOLE,
        .is_plain = number[COLUMN_WHAT] & WHAT_PLAIN,
        .is_open = number[COLUMN_WHAT] & WHAT_OPEN,
        .is_cut = number[COLUMN_WHAT] & WHAT_CUT,
        .first = {number[COLUMN_FIRST], number[COLUMN_FIRST + 1]},
        .n = {number[COLUMN_N], number[COLUMN_N + 1]},
        .object = {.type = table->type,
                   .store = (enum kaldi_store)(number[COLUMN_WHAT] & WHAT_STORE),
                   .start = number[COLUMN_START],
                   .dim = {number[COLUMN_DIM], number[COLUMN_DIM + 1], number[COLUMN_DIM + 2]}},
    };
    o->len = number[COLUMN_LEN] +
             kaldi_len_estimate(o->store < N_KALDI_STORES ? o->store : KALDI_BAD, o->dim);
    if (number[COLUMN_FILE] < table->n_files && o->store < N_KALDI_STORES) {
        ret->blob = table->file[number[COLUMN_FILE]].blob;
        ret->is_output = table->file[number[COLUMN_FILE]].is_output;
    }
    /* A damaged index may contain any numbers. */
    if (!ret->blob || o->start > ret->blob->size || o->len > ret->blob->size - o->start)
        o->store = KALDI_BAD;
    if (o->type == KALDI_WAVE && !wave_fits(ret))
        o->store = KALDI_BAD;
    if (!ret->is_cut) {
        ret->n[0] = o->dim[0];
        ret->n[1] = o->dim[1];
    } else if (ret->first[0] > o->dim[0] || ret->n[0] > o->dim[0] - ret->first[0] ||
               ret->first[1] > o->dim[1] || ret->n[1] > o->dim[1] - ret->first[1]) {
        o->store = KALDI_BAD;
    }
}

int kaldi_table_fault(const struct kaldi_table *table, uint64_t row, struct diag *d)
{
    struct get g = {table->index.about, table->index.about_len, false};
    struct kaldi_totals totals;
    uint64_t n;
    size_t len;

    get_u64(&g);
    get_totals(&g, &totals);
    get_string(&g, &len);
    n = get_u64(&g);
    for (uint64_t i = 0; i < n && !g.failed; i++) {
        uint64_t at = get_u64(&g);
        const char *text = get_string(&g, &len);

        if (at == row && !g.failed)
            return diag_set(d, -EBADMSG, "%.*s", (int)min_u64(len, 1000), text);
    }
    return diag_set(d, -EBADMSG, "%s: row %llu cannot be read; `epochfs info --check` says why",
                    blob_name(table->blob), (unsigned long long)row + 1);
}

int kaldi_table_identity(const struct kaldi_table *table, char **ret)
{
    AUTO_FREE char *identity = NULL;
    int r = index_identity(table, &identity);

    if (r < 0)
        return r;
    return asprintf(ret, "%s files=%llx", identity, (unsigned long long)table->totals.hash) < 0
               ? -ENOMEM
               : 0;
}
