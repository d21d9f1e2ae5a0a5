/* What a table of metadata shows: the files that it names, a field for each extension as other
 * collections have them, and its other columns as numbers or text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/files/claim/names.h"
#include "format/files/metadata.h"

/* ---- cells ---- */

static enum metadata_tag tag_of(const struct metadata_file *file, uint64_t row, unsigned cell)
{
    return (enum metadata_tag)(
        index_number(&file->base.prepared.index, row, METADATA_FIXED + 2 * cell) &
        ((1u << METADATA_TAG_BITS) - 1));
}

static uint64_t files_shown_value_of(const struct metadata_file *file, uint64_t row, unsigned cell)
{
    return index_number(&file->base.prepared.index, row, METADATA_FIXED + 2 * cell + 1);
}

/* The member of a cell; false: it names none. */
static bool member_of(const struct metadata_file *file, uint64_t row, unsigned cell, size_t *ret)
{
    uint64_t member = files_shown_value_of(file, row, cell);

    if (tag_of(file, row, cell) != METADATA_FILE || member >= file->source.members->n)
        return false;
    *ret = (size_t)member;
    return true;
}

/* The name of the field of a file: "<name>.<extension>" of <name>_file_name, or the extension. */
static size_t files_shown_field_name(const struct metadata_file *file, unsigned cell, size_t member,
                                     char ret[static 2 * EXT_MOST])
{
    const struct learned_column *column = &file->cells.column[cell];
    const char *name = members_name(file->source.members, member);
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

/* Number the fields of files, and count what the table lacks. */
static int files_shown_find_fields(struct metadata_file *file)
{
    AUTO_FREE uint8_t *named = calloc(file->source.members->n + 1, 1);
    char name[2 * EXT_MOST];
    int r = named ? 0 : -ENOMEM;

    for (unsigned cell = 0; cell < file->cells.n; cell++) {
        if (!file->cells.column[cell].number[METADATA_NAMES])
            continue;
        for (uint64_t row = 0; row < file->base.prepared.index.rows && r == 0; row++) {
            enum metadata_tag tag = tag_of(file, row, cell);
            unsigned column;
            size_t member;

            file->missing += tag == METADATA_MISSING;
            file->refused += tag == METADATA_REFUSED;
            if (!member_of(file, row, cell, &member))
                continue;
            named[member] = 1;
            r = column_table_add(&file->exts, name,
                                 files_shown_field_name(file, cell, member, name), &column);
            if (r == 0) {
                file->exts.column[column].number[0]++;
                file->exts.column[column].number[1] = cell;
            }
            r = r == -E2BIG ? 0 : r;
        }
    }
    for (size_t i = 0; i < file->source.members->n && r == 0; i++)
        file->unnamed += i != file->table && !named[i];
    column_table_settle(&file->exts);
    return r;
}

static void add_files(struct metadata_file *file, const struct learned_column *ext)
{
    struct metadata_column *shows = &file->shows[file->base.n_columns];

    shows->cell = (unsigned)ext->number[1];
    shows->ext = ext;
    record_name(ext->name, ext->len, RECORD_NAME_MAX, shows->name);
    record_name(ext->name, ext->len, EXT_SIZE - 1, shows->shown_ext);
    file->columns[file->base.n_columns++] =
        (struct record_column){.name = shows->name,
                               .shown = RECORD_BYTES,
                               .ext = shows->shown_ext,
                               .unnamed = true,
                               .has_holes = ext->number[0] != file->base.prepared.index.rows};
}

static void add_cells(struct metadata_file *file, unsigned cell)
{
    const struct learned_column *column = &file->cells.column[cell];
    struct metadata_column *shows = &file->shows[file->base.n_columns];
    uint64_t seen = column->number[METADATA_SEEN];
    bool is_number =
        seen && !(seen & ~(UINT64_C(1) << METADATA_INTEGER | UINT64_C(1) << METADATA_REAL));

    shows->cell = cell;
    record_name(column->name, column->len, RECORD_NAME_MAX, shows->name);
    file->columns[file->base.n_columns++] = (struct record_column){
        .name = shows->name,
        .shown = is_number ? RECORD_NUMBERS : RECORD_TEXT,
        .dtype = seen & (1u << METADATA_REAL) ? DTYPE_F8 : DTYPE_I8,
        .has_holes = column->number[METADATA_COUNT] != file->base.prepared.index.rows};
}

int metadata_make_columns(struct metadata_file *file, struct diag *d)
{
    int r = files_shown_find_fields(file);

    if (r < 0)
        return r;
    if (!file->exts.n && (file->missing || file->refused))
        return diag_set(d, -EBADMSG,
                        "%s: expected a row whose file exists, got none in %" PRIu64 " rows",
                        file->name, file->base.prepared.index.rows);
    if (!file->exts.n)
        return diag_set(d, -EBADMSG,
                        "%s: expected a column file_name, or <name>_file_name, that names files "
                        "next to it; got none in %" PRIu64 " rows",
                        file->name, file->base.prepared.index.rows);
    file->columns = calloc(file->exts.n + file->cells.n, sizeof(*file->columns));
    file->shows = calloc(file->exts.n + file->cells.n, sizeof(*file->shows));
    if (!file->columns || !file->shows)
        return -ENOMEM;
    file->base.column = file->columns;
    for (unsigned i = 0; i < file->exts.n; i++)
        add_files(file, &file->exts.column[i]);
    for (unsigned i = 0; i < file->cells.n; i++)
        if (!file->cells.column[i].number[METADATA_NAMES])
            add_cells(file, i);
    return 0;
}

/* ---- contents ---- */

/* A row whose file is not there has all fields of that column, so that its loss is seen. */
bool metadata_has(const void *p, uint64_t row, unsigned column)
{
    const struct metadata_file *file = p;
    const struct metadata_column *shows = &file->shows[column];
    char name[2 * EXT_MOST];
    size_t member;

    if (!shows->ext || !member_of(file, row, shows->cell, &member))
        return tag_of(file, row, shows->cell) != METADATA_HOLE;
    return files_shown_field_name(file, shows->cell, member, name) == shows->ext->len &&
           !memcmp(name, shows->ext->name, shows->ext->len);
}

static int say_missing(const struct metadata_file *file, uint64_t row, unsigned cell,
                       struct diag *d)
{
    bool refused = tag_of(file, row, cell) == METADATA_REFUSED;
    uint8_t key[KEY_MAX];
    size_t len = index_key(&file->base.prepared.index, row, key);

    return diag_set(d, -EBADMSG, "%s: row %" PRIu64 " (%.*s): %s: %s", file->name, row, (int)len,
                    (const char *)key, file->cells.column[cell].name,
                    refused ? "expected a path below the folder of the table"
                            : "there is no such file");
}

int metadata_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                  struct diag *d)
{
    const struct metadata_file *file = p;
    const struct metadata_column *shows = &file->shows[column];
    uint64_t len;
    size_t member;

    if (file->columns[column].shown == RECORD_NUMBERS)
        return 0;
    if (shows->ext) {
        if (!member_of(file, row, shows->cell, &member))
            return say_missing(file, row, shows->cell, d);
        ret[0] = members_size(file->source.members, member);
        return 0;
    }
    len = index_number(&file->base.prepared.index, row, METADATA_FIXED + 2 * shows->cell) >>
          METADATA_TAG_BITS;
    if (len > METADATA_TEXT_MAX)
        return diag_set(d, -EBADMSG, "%s: row %" PRIu64 ": the kept index is wrong", file->name,
                        row);
    ret[0] = len;
    return 0;
}

bool metadata_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct metadata_file *file = p;
    const struct metadata_column *shows = &file->shows[column];
    size_t member;

    if (!shows->ext || !member_of(file, row, shows->cell, &member))
        return false;
    return files_source_extent(&file->source, member, ret);
}

/* The text of a cell, from its row. */
static int files_shown_read_text(struct read_context *rc, const struct metadata_file *file,
                                 uint64_t row, unsigned cell, uint64_t off, size_t len,
                                 uint8_t *dst, struct diag *d)
{
    const struct member *table = &file->source.members->member[file->table];
    uint64_t at = index_number(&file->base.prepared.index, row, METADATA_AT);
    uint64_t bytes = index_number(&file->base.prepared.index, row, METADATA_LEN);
    const struct learned_column *column = &file->cells.column[cell];
    const char *name = file->name;
    AUTO_FREE char *text = NULL;
    AUTO_ROW struct row parsed = {0};
    char what[512];
    int r;

    if (at < table[0].place || bytes > ROW_MOST || at > table[1].place ||
        bytes > table[1].place - at)
        return diag_set(d, -EBADMSG, "%s: row %" PRIu64 ": the kept index is wrong", name, row);
    text = malloc(bytes + 1);
    if (!text)
        return -ENOMEM;
    r = blob_read(rc, file->source.blob, text, (size_t)bytes, at, d);
    snprintf(what, sizeof(what), "%s, row %" PRIu64, name, row);
    if (r == 0)
        r = row_parse(&parsed, file->kind, text, (size_t)bytes, what, d);
    for (size_t i = 0; i < parsed.n && r == 0; i++) {
        const struct row_cell *c = &parsed.cell[i];

        if (c->name ? strcmp(c->name, column->name) != 0 : i != cell)
            continue;
        if (off > c->len || len > c->len - off)
            break;
        memcpy(dst, c->text + off, len);
        return 0;
    }
    return r < 0 ? r
                 : diag_set(d, -ESTALE, "%s: row %" PRIu64 ": %s is not what it was", name, row,
                            column->name);
}

int metadata_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                  uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct metadata_file *file = p;
    const struct metadata_column *shows = &file->shows[column];
    uint8_t number[8];
    struct extent e;

    if (shows->ext) {
        if (metadata_extent(file, row, column, &e))
            return blob_read(rc, e.blob, dst, len, e.off + off, d);
        return say_missing(file, row, shows->cell, d);
    }
    if (file->columns[column].shown == RECORD_TEXT)
        return files_shown_read_text(rc, file, row, shows->cell, off, len, dst, d);
    store_le64(number, files_shown_value_of(file, row, shows->cell));
    if (file->columns[column].dtype == DTYPE_F8 &&
        tag_of(file, row, shows->cell) == METADATA_INTEGER) {
        double real = (double)(int64_t)load_le64(number);
        uint64_t bits;

        memcpy(&bits, &real, sizeof(bits));
        store_le64(number, bits);
    }
    memcpy(dst, number + off, len);
    return 0;
}

bool metadata_path(const void *p, uint64_t row, unsigned column, char *ret, size_t size)
{
    const struct metadata_file *file = p;
    const struct metadata_column *shows = &file->shows[column];
    size_t member;

    return shows->ext && member_of(file, row, shows->cell, &member) &&
           files_source_path(&file->source, member, ret, size);
}

void metadata_locate(const void *p, const struct extent *e, struct text *t)
{
    files_source_locate(&((const struct metadata_file *)p)->source, e, t);
}

/* ---- for people ---- */

void metadata_note(const void *p, struct text *t)
{
    const struct metadata_file *file = p;
    const char *name = file->name;

    files_source_note(&file->source, t);
    if (file->missing)
        text_add(t, "%s names %" PRIu64 " files that are not there\n", name, file->missing);
    if (file->refused)
        text_add(t, "%s names %" PRIu64 " files that are not below its folder: refused\n", name,
                 file->refused);
    if (file->unnamed)
        text_add(t, "%" PRIu64 " files are in no row of %s\n", file->unnamed, name);
    if (file->cells.left_out)
        text_add(t, "%s has more than %u columns: others are ignored, the first is '%s'\n", name,
                 METADATA_COLUMNS_MAX, file->cells.first_out);
}

void metadata_describe(struct record_file *const *files, unsigned n, const char *indent,
                       struct text *t)
{
    const struct metadata_file *file = (const struct metadata_file *)files[0];

    (void)n; /* it is one */
    text_add(t, "%s\"layout\": \"metadata\",\n%s\"table\": ", indent, indent);
    text_add_json(t, members_name(file->source.members, file->table));
    text_add(t,
             ",\n%s\"rows_without_file\": %" PRIu64 ",\n%s\"rows_refused\": %" PRIu64
             ",\n%s\"files_without_row\": %" PRIu64 ",\n",
             indent, file->missing, indent, file->refused, indent, file->unnamed);
    files_source_describe(&file->source, indent, t);
}
