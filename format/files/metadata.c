/* A collection whose samples are the rows of a table, metadata.jsonl or metadata.csv, as Hugging
 * Face has them. The table is a member of the collection like the files that it names. The index
 * has numbers, and of texts where their row is: it is parsed again when a text is read. Names of
 * files are looked up once, in the pass. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "format/files/file.h"
#include "format/files/lookup.h"

/* Columns of the index: two of each row, then two for each column of the table: what the cell is
 * (enum metadata_tag, and the bytes of its text shifted by METADATA_TAG_BITS), and its value. */
enum { METADATA_AT, METADATA_LEN, METADATA_FIXED };
#define METADATA_TAG_BITS 3

enum metadata_tag {
    METADATA_HOLE,
    METADATA_INTEGER,
    METADATA_REAL,
    METADATA_TEXT,
    METADATA_FILE,    /* value: its member */
    METADATA_MISSING, /* no such file */
    METADATA_REFUSED, /* no name of a file below the table's folder */
};

#define METADATA_COLUMNS_MAX 500 /* of a table */
#define METADATA_NUMBERS     (METADATA_FIXED + 2 * METADATA_COLUMNS_MAX)
#define METADATA_TEXT_MAX    (16 * ROW_MOST)

/* Numbers of a column of the table. */
enum {
    METADATA_COUNT, /* rows that have it */
    METADATA_SEEN,  /* 1 << enum metadata_tag of each cell */
};

struct metadata_file {
    struct files_file base; /* exts: names of columns that have files; MEMBER_OWN is the cell */
    enum table_format format;
    struct row row;            /* while the index is made */
    struct column_table cells; /* columns of the table */
    uint64_t refused, unnamed; /* cells that name no file below the table; files without a row */
};

/* ---- cells ---- */

/* "file_name" and "<name>_file_name" have names of files. */
static bool metadata_names_files(const char *name, size_t len)
{
    static const char word[] = "file_name";
    size_t n = sizeof(word) - 1;

    return len >= n && !memcmp(name + len - n, word, n) && (len == n || name[len - n - 1] == '_');
}

/* The member that a table calls by that path; METADATA_HOLE: no memory. */
static enum metadata_tag metadata_find_file(const struct metadata_file *file, const char *path,
                                            size_t len, uint64_t *ret)
{
    const struct files_source *source = file->base.source;
    AUTO_FREE char *copy = NULL;

    if (!lookup_is_below(path, len))
        return METADATA_REFUSED;
    copy = strndup(path, len);
    if (!copy)
        return METADATA_HOLE;
    *ret = lookup_path(source->members, source->root, copy);
    return *ret < source->members->n ? METADATA_FILE : METADATA_MISSING;
}

static int metadata_set_cell(struct metadata_file *file, const struct row_cell *cell,
                             unsigned column)
{
    struct learned_column *learned = &file->cells.column[column];
    uint64_t *number = &file->base.number[METADATA_FIXED + 2 * column], tag = METADATA_HOLE;

    if (cell->type == CELL_NONE)
        return 0;
    if (metadata_names_files(learned->name, learned->len)) {
        tag = cell->is_string ? metadata_find_file(file, cell->text, cell->len, &number[1])
                              : METADATA_REFUSED;
        if (tag == METADATA_HOLE)
            return -ENOMEM;
    } else if (cell->type == CELL_INTEGER) {
        tag = METADATA_INTEGER;
        number[1] = (uint64_t)cell->integer;
    } else if (cell->type == CELL_REAL) {
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

/* The key of a row: the name of its file, without the extension; its number if it has none. */
static size_t metadata_make_key(const struct metadata_file *file, const struct row *row,
                                uint64_t number, char ret[static KEY_MAX])
{
    const struct row_cell *named = NULL;
    size_t len;

    for (size_t i = 0; i < row->n; i++) {
        const struct row_cell *cell = &row->cell[i];
        const char *name = cell->name ? cell->name : file->cells.column[i].name;

        if (!cell->len || !cell->is_string || !metadata_names_files(name, strlen(name)))
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
static int metadata_read_names(struct metadata_file *file, const char *what, struct diag *d)
{
    const struct row *row = &file->row;

    if (row->n > METADATA_COLUMNS_MAX)
        return diag_set(d, -EBADMSG, "%s: expected at most %u columns, got %zu", what,
                        METADATA_COLUMNS_MAX, row->n);
    for (size_t i = 0; i < row->n; i++) {
        unsigned column;
        int r = column_table_add(&file->cells, row->cell[i].text, row->cell[i].len, &column);

        if (r == -ENOMEM)
            return r;
        if (r < 0 || column != i)
            return diag_set(d, -EBADMSG, "%s: column %zu: expected a name that no other has", what,
                            i + 1);
    }
    return 0;
}

static int metadata_index_row(struct metadata_file *file, const struct row_bytes *bytes,
                              const char *what, struct diag *d)
{
    const struct row *row = &file->row;
    char key[KEY_MAX];
    size_t len;
    int r = 0;

    if (file->format == TABLE_CSV && row->n != file->cells.n)
        return diag_set(d, -EBADMSG, "%s: expected %u fields, as the first line has, got %zu", what,
                        file->cells.n, row->n);
    memset(file->base.number, 0, METADATA_NUMBERS * sizeof(*file->base.number));
    file->base.number[METADATA_AT] = bytes->at;
    file->base.number[METADATA_LEN] = bytes->len;
    for (size_t i = 0; i < row->n && r == 0; i++) {
        const struct row_cell *cell = &row->cell[i];
        unsigned column = (unsigned)i;

        if (cell->name)
            r = column_table_add(&file->cells, cell->name, strlen(cell->name), &column);
        if (r == 0)
            r = metadata_set_cell(file, cell, column);
        if (r == -E2BIG)
            r = 0; /* the table has counted it */
    }
    if (r == 0)
        r = index_builder_columns(file->base.base.prepared.builder,
                                  METADATA_FIXED + 2 * file->cells.n);
    if (r < 0)
        return r;
    len = metadata_make_key(file, row, bytes->at, key);
    return index_add(file->base.base.prepared.builder, key, len, file->base.number);
}

static int metadata_add_row(void *p, const struct row_bytes *bytes, const char *what,
                            struct diag *d)
{
    struct metadata_file *file = p;
    int r = row_parse(&file->row, file->format, bytes->bytes, bytes->len, what, d);

    if (r < 0)
        return r;
    return file->format == TABLE_CSV && !file->cells.n ? metadata_read_names(file, what, d)
                                                       : metadata_index_row(file, bytes, what, d);
}

/* ---- the index ---- */

static int metadata_identity(void *impl, struct text *ret)
{
    const struct metadata_file *file = impl;

    text_add(ret, " %d %s", (int)file->format, file->base.source->root);
    return 0;
}

/* A kept index is hostile: its numbers are checked where they are used. */
static int metadata_load(void *impl, const struct index *index)
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

    return files_table_begin(&file->base, file->format, METADATA_NUMBERS);
}

static int metadata_step(void *impl, struct diag *d)
{
    struct metadata_file *file = impl;
    int r = files_table_step(&file->base, metadata_add_row, d);

    if (r == 1)
        file->base.base.prepared.end[METADATA_AT] = file->base.walk.end;
    return r;
}

static int metadata_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct metadata_file *file = impl;

    (void)index;
    (void)d;
    row_walk_release(&file->base.walk);
    row_release(&file->row);
    column_table_settle(&file->cells);
    column_table_write(&file->cells, ret);
    return 0;
}

static void metadata_release(void *p)
{
    struct metadata_file *file = p;

    row_release(&file->row);
    column_table_release(&file->cells);
    files_file_release(&file->base);
}

/* ---- what a row shows ---- */

struct metadata_cell {
    enum metadata_tag tag;
    uint64_t len, value; /* bytes of its text; see enum metadata_tag */
};

static struct metadata_cell metadata_read_cell(const struct metadata_file *file, uint64_t row,
                                               unsigned cell)
{
    const struct index *index = files_index(&file->base);
    uint64_t word = index_number(index, row, METADATA_FIXED + 2 * cell);
    struct metadata_cell c = {word & ((1u << METADATA_TAG_BITS) - 1), word >> METADATA_TAG_BITS,
                              index_number(index, row, METADATA_FIXED + 2 * cell + 1)};

    if (c.tag == METADATA_FILE && c.value >= file->base.source->members->n)
        c.tag = METADATA_MISSING;
    return c;
}

/* The name of the field of a file: "<name>.<extension>" of <name>_file_name, or the extension. */
static size_t metadata_field_name(const struct metadata_file *file, unsigned cell, size_t member,
                                  char ret[static 2 * EXT_MOST])
{
    const struct learned_column *column = &file->cells.column[cell];
    const char *name = members_name(file->base.source->members, member);
    size_t n = column->len - strlen("file_name"), stem = name_stem_last(name), len;
    char ext[EXT_MOST + 1];

    n -= n > 0; /* "_" */
    if (n > EXT_MOST - 2)
        n = EXT_MOST - 2;
    memcpy(ret, column->name, n);
    if (n)
        ret[n++] = '.';
    len = stem ? name_ext(name, stem, ext) : 0;
    if (!len) {
        memcpy(ext, "bin", 3);
        len = 3;
    }
    memcpy(ret + n, ext, len);
    return n + len;
}

/* ---- columns ---- */

/* A file that a cell names is in its field, which is new if no file before it is. */
static int metadata_add_file(struct metadata_file *file, unsigned cell, size_t member)
{
    struct column_table *exts = &file->base.exts;
    char name[2 * EXT_MOST];
    unsigned i;
    int r = column_table_add(exts, name, metadata_field_name(file, cell, member, name), &i);

    if (r < 0)
        return r == -E2BIG ? 0 : r;
    exts->column[i].number[MEMBER_ROWS]++;
    exts->column[i].number[MEMBER_OWN] = cell;
    return 0;
}

/* Number the fields of files, and count what the table lacks. */
static int metadata_find_fields(struct metadata_file *file)
{
    const struct members *m = file->base.source->members;
    AUTO_FREE uint8_t *named = calloc(m->n + 1, 1);
    int r = named ? 0 : -ENOMEM;

    for (unsigned cell = 0; cell < file->cells.n; cell++) {
        if (!metadata_names_files(file->cells.column[cell].name, file->cells.column[cell].len))
            continue;
        for (uint64_t row = 0; row < files_index(&file->base)->rows && r == 0; row++) {
            const struct metadata_cell c = metadata_read_cell(file, row, cell);

            file->base.missing += c.tag == METADATA_MISSING;
            file->refused += c.tag == METADATA_REFUSED;
            if (c.tag != METADATA_FILE)
                continue;
            named[c.value] = 1;
            r = metadata_add_file(file, cell, (size_t)c.value);
        }
    }
    for (size_t i = 0; i < m->n && r == 0; i++)
        file->unnamed += i != file->base.table && !named[i];
    column_table_settle(&file->base.exts);
    return r;
}

static void metadata_add_cells(struct metadata_file *file, unsigned cell)
{
    const struct learned_column *column = &file->cells.column[cell];
    struct record_file *base = &file->base.base;
    struct member_column *shows = &file->base.shows[base->n_columns];
    uint64_t seen = column->number[METADATA_SEEN];
    bool is_number =
        seen && !(seen & ~(UINT64_C(1) << METADATA_INTEGER | UINT64_C(1) << METADATA_REAL));

    shows->field = cell;
    record_name(column->name, column->len, RECORD_NAME_MAX, shows->name);
    file->base.column[base->n_columns++] = (struct record_column){
        .name = shows->name,
        .shown = is_number ? RECORD_NUMBERS : RECORD_TEXT,
        .dtype = seen & (1u << METADATA_REAL) ? DTYPE_F8 : DTYPE_I8,
        .has_holes = column->number[METADATA_COUNT] != base->prepared.index.rows};
}

static int metadata_ready(void *impl, struct diag *d)
{
    struct metadata_file *file = impl;
    uint64_t rows = files_index(&file->base)->rows;
    int r = metadata_find_fields(file);

    if (r < 0)
        return r;
    if (!file->base.exts.n && (file->base.missing || file->refused))
        return diag_set(d, -EBADMSG,
                        "%s: expected a row whose file exists, got none in %" PRIu64 " rows",
                        file->base.name, rows);
    if (!file->base.exts.n)
        return diag_set(d, -EBADMSG,
                        "%s: expected a column file_name, or <name>_file_name, that names files "
                        "next to it; got none in %" PRIu64 " rows",
                        file->base.name, rows);
    r = files_make_columns(&file->base, file->cells.n);
    for (unsigned i = 0; i < file->cells.n && r == 0; i++)
        if (!metadata_names_files(file->cells.column[i].name, file->cells.column[i].len))
            metadata_add_cells(file, i);
    return r;
}

/* ---- contents ---- */

/* The number of the cell that a column shows. */
static unsigned metadata_cell_of(const struct metadata_file *file, unsigned column)
{
    return column < file->base.n_members
               ? (unsigned)files_ext_of(&file->base, column)->number[MEMBER_OWN]
               : file->base.shows[column].field;
}

/* A row whose file is not there has all fields of that column, so that its loss is seen. */
static bool metadata_has(const void *p, uint64_t row, unsigned column)
{
    const struct metadata_file *file = p;
    unsigned cell = metadata_cell_of(file, column);
    const struct metadata_cell c = metadata_read_cell(file, row, cell);
    const struct learned_column *ext;
    char name[2 * EXT_MOST];

    if (column >= file->base.n_members || c.tag != METADATA_FILE)
        return c.tag != METADATA_HOLE;
    ext = files_ext_of(&file->base, column);
    return metadata_field_name(file, cell, (size_t)c.value, name) == ext->len &&
           !memcmp(name, ext->name, ext->len);
}

static int metadata_member(const void *p, uint64_t row, unsigned column, size_t *ret,
                           struct diag *d)
{
    const struct metadata_file *file = p;
    unsigned cell = metadata_cell_of(file, column);
    const struct metadata_cell c = metadata_read_cell(file, row, cell);
    uint8_t key[KEY_MAX];
    size_t len;

    if (c.tag == METADATA_FILE) {
        *ret = (size_t)c.value;
        return 1;
    }
    len = index_key(files_index(&file->base), row, key);
    return diag_set(d, -EBADMSG, "%s: row %" PRIu64 " (%.*s): %s: %s", file->base.name, row,
                    (int)len, (const char *)key, file->cells.column[cell].name,
                    c.tag == METADATA_REFUSED ? "expected a path below the folder of the table"
                                              : "there is no such file");
}

static int metadata_dims(const void *p, uint64_t row, unsigned column,
                         uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct metadata_file *file = p;

    if (file->base.column[column].shown == RECORD_NUMBERS)
        return 0;
    (void)d;
    ret[0] = min_u64(metadata_read_cell(file, row, metadata_cell_of(file, column)).len,
                     METADATA_TEXT_MAX);
    return 0;
}

/* The text of a cell, from its row. */
static int metadata_read_text(struct read_context *rc, const struct metadata_file *file,
                              uint64_t row, unsigned cell, uint64_t off, size_t len, uint8_t *dst,
                              struct diag *d)
{
    const struct index *index = files_index(&file->base);
    size_t bytes = (size_t)min_u64(index_number(index, row, METADATA_LEN), ROW_MOST);
    const char *column = file->cells.column[cell].name;
    AUTO_FREE char *text = malloc(bytes + 1);
    AUTO_ROW struct row parsed = {0};
    char what[512];
    int r;

    if (!text)
        return -ENOMEM;
    snprintf(what, sizeof(what), "%s, row %" PRIu64, file->base.name, row);
    r = blob_read(rc, file->base.source->blob, text, bytes, index_number(index, row, METADATA_AT),
                  d);
    if (r == 0)
        r = row_parse(&parsed, file->format, text, bytes, what, d);
    if (r < 0)
        return r;
    for (size_t i = 0; i < parsed.n; i++) {
        const struct row_cell *c = &parsed.cell[i];

        if ((c->name ? strcmp(c->name, column) != 0 : i != cell) || off > c->len ||
            len > c->len - off)
            continue;
        memcpy(dst, c->text + off, len);
        return 0;
    }
    return diag_set(d, -ESTALE, "%s: %s is not what it was", what, column);
}

static int metadata_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                         uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct metadata_file *file = p;
    unsigned cell = metadata_cell_of(file, column);
    struct metadata_cell c = metadata_read_cell(file, row, cell);
    uint8_t number[8];

    if (file->base.column[column].shown == RECORD_TEXT)
        return metadata_read_text(rc, file, row, cell, off, len, dst, d);
    if (file->base.column[column].dtype == DTYPE_F8 && c.tag == METADATA_INTEGER) {
        double real = (double)(int64_t)c.value;

        memcpy(&c.value, &real, sizeof(c.value));
    }
    store_le64(number, c.value);
    memcpy(dst, number + off, len);
    return 0;
}

/* ---- for people ---- */

static void metadata_note(const void *p, struct text *t)
{
    const struct metadata_file *file = p;
    const char *name = file->base.name;

    if (file->base.missing)
        text_add(t, "%s names %" PRIu64 " files that are not there\n", name, file->base.missing);
    if (file->refused)
        text_add(t, "%s names %" PRIu64 " files that are not below its folder: refused\n", name,
                 file->refused);
    if (file->unnamed)
        text_add(t, "%" PRIu64 " files are in no row of %s\n", file->unnamed, name);
    if (file->cells.left_out)
        text_add(t, "%s has more than %u columns: others are ignored, the first is '%s'\n", name,
                 METADATA_COLUMNS_MAX, file->cells.first_out);
}

static void metadata_describe(const void *p, const char *indent, struct text *t)
{
    const struct metadata_file *file = p;

    text_add(t, "%s\"layout\": \"metadata\",\n%s\"table\": ", indent, indent);
    text_add_json(t, members_name(file->base.source->members, file->base.table));
    text_add(t,
             ",\n%s\"rows_without_file\": %" PRIu64 ",\n%s\"rows_refused\": %" PRIu64
             ",\n%s\"files_without_row\": %" PRIu64 ",\n",
             indent, file->base.missing, indent, file->refused, indent, file->unnamed);
    files_describe_source(file->base.source, indent, t);
}

/* ---- opening ---- */

static const struct files_ops metadata_ops = {
    .file = {.size = sizeof(struct metadata_file),
             .index = {.version = "files table 2",
                       .identity = metadata_identity,
                       .load = metadata_load,
                       .begin = metadata_begin,
                       .step = metadata_step,
                       .about = metadata_about,
                       .ready = metadata_ready},
             .shape = {.columns = METADATA_FIXED,
                       .rising = 1u << METADATA_AT,
                       .has_keys = true,
                       .learns = true},
             .release = metadata_release},
    .has = metadata_has,
    .member = metadata_member,
    .cell_dims = metadata_dims,
    .cell_read = metadata_read,
    .note = metadata_note,
    .describe = metadata_describe,
};

/* Why a table is not read. false: it is. */
static bool metadata_is_refused(const struct files_source *source, const struct files_claim *claim,
                                struct diag *d)
{
    if (members_lookup(source->members, source->root, strlen(source->root), claim->table) ==
        source->members->n)
        diag_set(d, -ENOENT, "%s: it is not there", claim->table);
    else if (claim->other)
        diag_set(d, -EBADMSG, "%s: expected one table of metadata, got %s and %s",
                 blob_name(source->blob), claim->table, claim->other);
    else if (strstr(claim->table, ".parquet"))
        diag_set(d, -EBADMSG,
                 "%s%s%s: expected metadata.jsonl or metadata.csv, got a table of Parquet, which "
                 "epochfs does not read",
                 source->root, *source->root ? "/" : "", claim->table);
    return d->set;
}

int files_open_metadata(struct files_source *source, const char *name,
                        const struct format_setup *setup, struct finds *finds)
{
    const struct files_claim *claim = source->claim;
    struct metadata_file *file;
    struct diag d = DIAG_INIT;
    int r;

    if (metadata_is_refused(source, claim, &d))
        return finds->error(finds, name, d.text);
    r = files_file_new(&metadata_ops, source, setup, &file);
    if (r < 0)
        return r;
    file->cells.most = METADATA_COLUMNS_MAX;
    file->format = strstr(claim->table, ".csv") ? TABLE_CSV : TABLE_JSONL;
    r = files_table_open(&file->base, members_lookup(source->members, source->root,
                                                     strlen(source->root), claim->table));
    if (r < 0) {
        record_file_drop(&file->base.base);
        return r;
    }
    return files_add_dataset(&file->base, name, setup, finds);
}
