/* What a kept index has besides its rows, in this order: type, totals, notes, the reasons of bad
 * rows, and the files that an scp file names, with their identities. Numbers are 8 bytes,
 * little-endian; a count precedes each string and list.
 *
 * The bytes come from a disk: the code uses no length that exceeds them. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"

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

static struct kaldi_totals get_totals(struct get *g)
{
    uint64_t v[6];

    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        v[i] = get_u64(g);
    return (struct kaldi_totals){.any_double = v[0] & 1,
                                 .varies = {v[0] & 2, v[0] & 4},
                                 .ends_early = v[0] & 8,
                                 .dim = {v[1], v[2]},
                                 .bad = v[3],
                                 .left_out = v[4],
                                 .hash = v[5]};
}

/* Encode the totals, the notes, the files with their identities, and the faults. */
int kaldi_make_about(struct kaldi_table *table, struct text *ret)
{
    const struct kaldi_pass *pass = table->pass;
    AUTO_TEXT struct text files = {0};

    put_u64(&files, table->n_files - kaldi_own_files(table));
    for (size_t i = kaldi_own_files(table); i < table->n_files; i++) {
        AUTO_FREE char *identity = table->file[i].blob ? NULL : strdup("");
        int r = identity ? 0 : blob_identity(table->file[i].blob, &identity);

        if (r < 0)
            return r;
        put_string(&files, table->file[i].path, strlen(table->file[i].path));
        put_string(&files, identity, strlen(identity));
    }
    table->totals.hash = files.len ? key_hash(files.data, files.len) : 0;
    put_u64(ret, table->type);
    put_totals(ret, &table->totals);
    put_string(ret, table->notes.data ? table->notes.data : "", table->notes.len);
    put_u64(ret, pass->n_faults);
    for (size_t i = 0; i < pass->n_faults; i++) {
        put_u64(ret, pass->fault[i].row);
        put_string(ret, pass->fault[i].text, strlen(pass->fault[i].text));
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
static int kaldi_table_about_open_named(const struct kaldi_table *table, const char *path,
                                        struct blob **ret)
{
    size_t len = strlen(path);
    struct diag d = DIAG_INIT;

    if (kaldi_is_command(path, len)) {
        AUTO_FREE char *command = strndup(path, len - 1);

        return command ? opener_kept(table->opener, command, ret) : -ENOMEM;
    }
    return opener_file(table->opener, table->folder, path, ret, &d);
}

int kaldi_add_own_files(struct kaldi_table *table, size_t n)
{
    size_t n_own = kaldi_own_files(table);

    if (array_begin(&table->file, n_own + n, sizeof(*table->file)) < 0)
        return -ENOMEM;
    table->file[0].blob = table->base.blob;
    for (size_t i = 1; i < n_own; i++)
        table->file[i].blob = table->part[i]->base.blob;
    table->n_files = n_own;
    return 0;
}

/* Decode the files; fails unless they are the same as when the index was made. */
static int get_files(struct kaldi_table *table, struct get *g)
{
    uint64_t n = get_u64(g);
    int r = n < g->left / 16 + 1 ? kaldi_add_own_files(table, (size_t)n) : -EBADMSG;

    for (uint64_t i = 0; i < n && r == 0; i++) {
        size_t path_len, known_len;
        const char *path_at = get_string(g, &path_len), *known = get_string(g, &known_len);
        AUTO_FREE char *path = strndup(path_at, path_len), *identity = NULL;
        AUTO_BLOB struct blob *blob = NULL;
        bool is_output = path && kaldi_is_command(path, strlen(path));

        r = g->failed ? -EBADMSG
            : !path   ? -ENOMEM
                      : kaldi_table_about_open_named(table, path, &blob);
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

/* Decode what is kept. Rows are not checked here: every use checks its numbers, since a kept index
 * may be damaged. */
int kaldi_take_about(struct kaldi_table *table, const struct index *index)
{
    struct get g = {index->about, index->about_len, false};
    size_t len;
    const char *notes;
    int r;

    if (get_u64(&g) != table->type)
        return -EBADMSG;
    table->totals = get_totals(&g);
    notes = get_string(&g, &len);
    if (g.failed || !skip_faults(&g))
        return -EBADMSG;
    r = get_files(table, &g);
    if (r == 0 && len)
        text_add_bytes(&table->notes, notes, len);
    return r == 0 && table->notes.failed ? -ENOMEM : r;
}

int kaldi_table_fault(const struct kaldi_table *table, uint64_t row, struct diag *d)
{
    struct get g = {table->base.prepared.index.about, table->base.prepared.index.about_len, false};
    uint64_t n;
    size_t len;

    get_u64(&g);
    get_totals(&g);
    get_string(&g, &len);
    n = get_u64(&g);
    for (uint64_t i = 0; i < n && !g.failed; i++) {
        uint64_t at = get_u64(&g);
        const char *text = get_string(&g, &len);

        if (at == row && !g.failed)
            return diag_set(d, -EBADMSG, "%.*s", (int)min_u64(len, 1000), text);
    }
    return diag_set(d, -EBADMSG, "%s: row %llu cannot be read; `epochfs info --check` says why",
                    blob_name(table->base.blob), (unsigned long long)row + 1);
}
