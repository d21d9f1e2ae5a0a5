/* The pass over a table of metadata, and its index. The index has numbers, and of texts where their
 * row is: it is parsed again when a text is read. Names of files are looked up once, in the pass.
 */
#include "format/files/metadata.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/files/claim/names.h"

#define STEP 1024 /* rows of a step of preparing */

/* ---- cells ---- */

/* "file_name" and "<name>_file_name" have names of files. */
static bool names_files(const char *name, size_t len)
{
    static const char word[] = "file_name";
    size_t n = sizeof(word) - 1;

    return len >= n && !memcmp(name + len - n, word, n) && (len == n || name[len - n - 1] == '_');
}

/* Is it a relative path that stays in its folder, and no URL? */
static bool is_below(const char *path, size_t len)
{
    if (!len || *path == '/' || memchr(path, '\0', len) || memmem(path, len, "://", 3))
        return false;
    for (const char *p = path; p < path + len;) {
        const char *slash = memchr(p, '/', (size_t)(path + len - p));
        size_t n = (size_t)((slash ? slash : path + len) - p);

        if (n == 2 && !memcmp(p, "..", 2))
            return false;
        p += n + 1;
    }
    return true;
}

/* The member that a table calls by that path. */
static enum metadata_tag files_metadata_find_file(const struct metadata_file *file,
                                                  const char *path, size_t len, uint64_t *ret)
{
    AUTO_TEXT struct text full = {0};
    char *base;
    size_t i;

    if (!is_below(path, len))
        return METADATA_REFUSED;
    while (len > 2 && !memcmp(path, "./", 2)) {
        path += 2;
        len -= 2;
    }
    text_add(&full, "%s%s", file->source.root, *file->source.root ? "/" : "");
    text_add_bytes(&full, path, len);
    if (full.failed)
        return METADATA_HOLE;
    base = strrchr(full.data, '/');
    base = base ? base + 1 : full.data;
    i = members_lookup(file->source.members, full.data,
                       base > full.data ? (size_t)(base - full.data) - 1 : 0, base);
    *ret = i;
    return i < file->source.members->n ? METADATA_FILE : METADATA_MISSING;
}

static int set_cell(struct metadata_file *file, const struct row_cell *cell, unsigned column)
{
    struct learned_column *learned = &file->cells.column[column];
    uint64_t *number = &file->number[METADATA_FIXED + 2 * column], tag = METADATA_HOLE;

    if (cell->kind == CELL_NONE)
        return 0;
    if (learned->number[METADATA_NAMES]) {
        tag = cell->is_string ? files_metadata_find_file(file, cell->text, cell->len, &number[1])
                              : METADATA_REFUSED;
        if (tag == METADATA_HOLE)
            return -ENOMEM;
    } else if (cell->kind == CELL_INTEGER) {
        tag = METADATA_INTEGER;
        memcpy(&number[1], &cell->integer, 8);
    } else if (cell->kind == CELL_REAL) {
        tag = METADATA_REAL;
        memcpy(&number[1], &cell->real, 8);
    } else {
        tag = METADATA_TEXT;
    }
    number[0] = tag | (uint64_t)cell->len << METADATA_TAG_BITS;
    learned->number[METADATA_COUNT]++;
    learned->number[METADATA_SEEN] |= UINT64_C(1) << tag;
    return 0;
}

static int files_metadata_find_column(struct metadata_file *file, const char *name, size_t len,
                                      unsigned *ret)
{
    int r = column_table_add(&file->cells, name, len, ret);

    if (r == 0)
        file->cells.column[*ret].number[METADATA_NAMES] = names_files(name, len);
    return r;
}

/* The key of a row: the name of its file, without the extension; its number if it has none. */
static size_t files_metadata_make_key(const struct metadata_file *file, const struct row *row,
                                      uint64_t number, char ret[static KEY_MAX])
{
    const struct row_cell *named = NULL;
    size_t len;

    for (size_t i = 0; i < row->n; i++) {
        const struct row_cell *cell = &row->cell[i];
        const char *name = cell->name ? cell->name : file->cells.column[i].name;

        if (!cell->len || !cell->is_string || !names_files(name, strlen(name)))
            continue;
        if (!named || !strcmp(name, "file_name"))
            named = cell;
    }
    if (!named)
        return (size_t)snprintf(ret, KEY_MAX, "%" PRIu64, number);
    len = named->len < KEY_MAX ? named->len : KEY_MAX;
    memcpy(ret, named->text, len);
    return path_stem(ret, len);
}

/* ---- rows ---- */

/* The names of the columns of CSV. */
static int take_names(struct metadata_file *file, const char *what, struct diag *d)
{
    const struct row *row = &file->row;

    if (row->n > METADATA_COLUMNS_MAX)
        return diag_set(d, -EBADMSG, "%s: expected at most %u columns, got %zu", what,
                        METADATA_COLUMNS_MAX, row->n);
    for (size_t i = 0; i < row->n; i++) {
        unsigned column;
        int r = files_metadata_find_column(file, row->cell[i].text, row->cell[i].len, &column);

        if (r == -ENOMEM)
            return r;
        if (r < 0 || column != i)
            return diag_set(d, -EBADMSG, "%s: column %zu: expected a name that no other has", what,
                            i + 1);
    }
    return 0;
}

static int files_metadata_add_row(struct metadata_file *file, const struct row_bytes *bytes,
                                  const char *what, struct diag *d)
{
    const struct row *row = &file->row;
    char key[KEY_MAX];
    size_t len;
    int r = 0;

    if (file->kind == TABLE_CSV && row->n != file->cells.n)
        return diag_set(d, -EBADMSG, "%s: expected %u fields, as the first line has, got %zu", what,
                        file->cells.n, row->n);
    memset(file->number, 0, (METADATA_FIXED + 2 * METADATA_COLUMNS_MAX) * sizeof(*file->number));
    file->number[METADATA_AT] = bytes->at;
    file->number[METADATA_LEN] = bytes->len;
    for (size_t i = 0; i < row->n && r == 0; i++) {
        const struct row_cell *cell = &row->cell[i];
        unsigned column = (unsigned)i;

        if (cell->name)
            r = files_metadata_find_column(file, cell->name, strlen(cell->name), &column);
        if (r == 0)
            r = set_cell(file, cell, column);
        if (r == -E2BIG)
            r = 0; /* the table has counted it */
    }
    if (r == 0)
        r = index_builder_columns(file->base.prepared.builder, METADATA_FIXED + 2 * file->cells.n);
    if (r < 0)
        return r;
    len = files_metadata_make_key(file, row, bytes->at, key);
    return index_add(file->base.prepared.builder, key, len, file->number);
}

/* One row further. 1: the rows are complete. */
static int next_row(struct metadata_file *file, struct diag *d)
{
    struct row_bytes bytes;
    char what[512];
    int r = row_walk_next(&file->walk, &bytes, d);

    if (r <= 0)
        return r < 0 ? r : 1;
    snprintf(what, sizeof(what), "%s, line %" PRIu64, file->walk.name, file->walk.line);
    r = row_parse(&file->row, file->kind, bytes.bytes, bytes.len, what, d);
    if (r < 0)
        return r;
    return file->kind == TABLE_CSV && !file->cells.n
               ? take_names(file, what, d)
               : files_metadata_add_row(file, &bytes, what, d);
}

/* ---- the index ---- */

static int metadata_identity(void *impl, struct text *ret)
{
    const struct metadata_file *file = impl;

    text_add(ret, " %d %s", (int)file->kind, file->source.root);
    return 0;
}

/* A kept index is hostile: its numbers are checked where they are used. */
static int metadata_take(void *impl, const struct index *index)
{
    struct metadata_file *file = impl;
    size_t used;
    int r = column_table_read(&file->cells, index->about, index->about_len, &used);

    if (r == 0 && index->shape.columns < METADATA_FIXED + 2 * file->cells.n) {
        column_table_release(&file->cells);
        file->cells = (struct column_table){.most = METADATA_COLUMNS_MAX};
        r = -EBADMSG;
    }
    return r;
}

static int metadata_begin(void *impl)
{
    struct metadata_file *file = impl;
    const struct member *table = &file->source.members->member[file->table];

    file->walk = (struct row_walk){.blob = file->source.blob,
                                   .kind = file->kind,
                                   .at = table[0].place,
                                   .end = table[1].place,
                                   .name = file->name};
    file->number = calloc(METADATA_FIXED + 2 * METADATA_COLUMNS_MAX, sizeof(*file->number));
    return file->number ? 0 : -ENOMEM;
}

static int refuse_table(const struct metadata_file *file, struct diag *d)
{
    if (file->other)
        return diag_set(d, -EBADMSG, "%s: expected one table of metadata, got %s and %s",
                        blob_name(file->source.blob),
                        members_name(file->source.members, file->table), file->other);
    if (file->is_parquet)
        return diag_set(
            d, -EBADMSG,
            "%s: expected metadata.jsonl or metadata.csv, got a table of Parquet, which "
            "epochfs does not read",
            file->walk.name);
    return 0;
}

static int metadata_step(void *impl, struct diag *d)
{
    struct metadata_file *file = impl;
    int r = refuse_table(file, d);

    for (unsigned i = 0; i < STEP && r == 0; i++)
        r = next_row(file, d);
    atomic_store(&file->base.prepared.seen,
                 file->walk.at - file->source.members->member[file->table].place);
    if (r == 1)
        file->base.prepared.end[METADATA_AT] = file->walk.end;
    return r == 1 && blob_verify(file->source.blob, d) < 0 ? -ESTALE : r;
}

static int metadata_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct metadata_file *file = impl;

    (void)index;
    (void)d;
    row_walk_release(&file->walk);
    row_release(&file->row);
    column_table_settle(&file->cells);
    column_table_write(&file->cells, ret);
    return 0;
}

static int metadata_ready(void *impl, struct diag *d)
{
    return metadata_make_columns(impl, d);
}

static void metadata_release(void *p)
{
    struct metadata_file *file = p;

    row_walk_release(&file->walk);
    row_release(&file->row);
    column_table_release(&file->cells);
    column_table_release(&file->exts);
    free(file->number);
    free(file->columns);
    free(file->shows);
    free(file->name);
    files_source_release(&file->source);
    file->base.blob = NULL; /* the source's */
}

static const struct record_file_ops files_metadata_ops = {
    .size = sizeof(struct metadata_file),
    .index = {.version = "files table 1",
              .identity = metadata_identity,
              .take = metadata_take,
              .begin = metadata_begin,
              .step = metadata_step,
              .about = metadata_about,
              .ready = metadata_ready},
    .shape = {.columns = METADATA_FIXED,
              .rising = 1u << METADATA_AT,
              .has_keys = true,
              .learns = true},
    .release = metadata_release,
};

/* ---- opening ---- */

int metadata_open(struct collection *c, struct blob *blob, const struct members *members,
                  const struct format_setup *setup, struct record_file **ret, struct diag *d)
{
    struct files_claim *claim = c->impl;
    struct metadata_file *file;
    int r = record_file_new(&files_metadata_ops, blob, setup, &file);

    if (r < 0) {
        blob_free(blob);
        return r;
    }
    file->cells.most = METADATA_COLUMNS_MAX;
    file->kind = strstr(claim->table, ".csv") ? TABLE_CSV : TABLE_JSONL;
    file->is_parquet = strstr(claim->table, ".parquet") != NULL;
    file->other = claim->other;
    file->table = members_lookup(members, c->root, strlen(c->root), claim->table);
    r = files_source_take(&file->source, c, blob, members);
    if (r == 0 && file->table == members->n)
        r = diag_set(d, -ENOENT, "%s: it is not there", claim->table);
    file->name = r == 0 ? files_source_name(&file->source, file->table) : NULL;
    if (r == 0 && !file->name)
        r = -ENOMEM;
    if (r < 0) {
        record_file_drop(&file->base);
        return r;
    }
    file->base.prepared.size = members_size(members, file->table);
    *ret = &file->base;
    return 0;
}
