/* What the datasets of a manifest show: the bytes of pictures, a field for each extension, and
 * their labels. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/encode/encode.h"
#include "format/files/manifest_parts.h"

/* ---- columns ---- */

static int files_shown_compare_names(const void *a, const void *b, void *table)
{
    const struct learned_column *column = ((const struct column_table *)table)->column;

    return strcmp(column[*(const uint32_t *)a].name, column[*(const uint32_t *)b].name);
}

static int number_labels(struct manifest_file *file)
{
    uint32_t n = file->names.n;

    file->label = calloc(n + 1, sizeof(*file->label));
    file->sorted = calloc(n + 1, sizeof(*file->sorted));
    if (!file->label || !file->sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        file->sorted[i] = i;
    qsort_r(file->sorted, n, sizeof(*file->sorted), files_shown_compare_names, &file->names);
    for (uint32_t i = 0; i < n; i++)
        file->label[file->sorted[i]] = i;
    return 0;
}

static bool find_picture(const struct manifest_file *file, uint64_t row, size_t *ret)
{
    uint64_t member = index_number(&file->base.prepared.index, row, MANIFEST_MEMBER);

    *ret = (size_t)member - 1;
    return member > 0;
}

/* The extension of a picture's name, in lower case. */
static size_t files_shown_ext_of(const struct manifest_file *file, size_t member,
                                 char ret[static EXT_MOST + 1])
{
    const char *name = members_name(file->set->source.members, member);

    return name_ext(name, name_stem_last(name), ret);
}

/* Extensions, and the least and the most labels of a row. */
static int look_at_rows(struct manifest_file *file, uint64_t *ret_least, uint64_t *ret_most)
{
    const struct index *index = &file->base.prepared.index;
    int r = 0;

    *ret_least = UINT64_MAX;
    *ret_most = 0;
    for (uint64_t row = 0; row < index->rows && r == 0; row++) {
        uint64_t n = index_number(index, row, MANIFEST_LABELS);
        char ext[EXT_MOST + 1];
        unsigned column;
        size_t member;

        *ret_least = min_u64(*ret_least, n);
        *ret_most = max_u64(*ret_most, n);
        file->missing += !find_picture(file, row, &member);
        if (member == SIZE_MAX)
            continue;
        r = column_table_add(&file->exts, ext, files_shown_ext_of(file, member, ext), &column);
        if (r == 0)
            file->exts.column[column].number[0]++;
        r = r == -E2BIG ? 0 : r;
    }
    column_table_settle(&file->exts);
    return r;
}

static void files_shown_add_pictures(struct manifest_file *file, unsigned i)
{
    const struct learned_column *ext = &file->exts.column[i];
    struct manifest_column *shows = &file->shows[i];

    record_name(ext->name, ext->len, RECORD_NAME_MAX, shows->name);
    record_name(ext->name, ext->len, EXT_SIZE - 1, shows->ext);
    file->column[file->base.n_columns++] = (struct record_column){
        .name = shows->name,
        .shown = RECORD_BYTES,
        .ext = shows->ext,
        .unnamed = true,
        .has_holes = ext->number[0] + file->missing != file->base.prepared.index.rows,
    };
}

/* One label is a number, and several, or none, an array. */
static void files_shown_add_labels(struct manifest_file *file, uint64_t least, uint64_t most)
{
    bool is_array = least != 1 || most != 1;

    file->column[file->base.n_columns++] =
        (struct record_column){.name = "label",
                               .shown = RECORD_NUMBERS,
                               .dtype = DTYPE_I8,
                               .ndim = is_array,
                               .dim = {least == most ? least : DIM_VARIES},
                               .without = RECORD_NOT_TAR};
    if (!is_array)
        file->column[file->base.n_columns++] =
            (struct record_column){.name = "label",
                                   .shown = RECORD_BYTES,
                                   .ext = "cls",
                                   .without = RECORD_NOT_ARRAYS | RECORD_NOT_RAW};
}

int manifest_make_columns(struct manifest_file *file)
{
    uint64_t least, most;
    int r = number_labels(file);

    if (r == 0)
        r = look_at_rows(file, &least, &most);
    if (r < 0)
        return r;
    file->column = calloc(file->exts.n + 2, sizeof(*file->column));
    file->shows = calloc(file->exts.n + 1, sizeof(*file->shows));
    if (!file->column || !file->shows)
        return -ENOMEM;
    file->base.column = file->column;
    for (unsigned i = 0; i < file->exts.n; i++)
        files_shown_add_pictures(file, i);
    if (most)
        files_shown_add_labels(file, least, most);
    return 0;
}

/* ---- contents ---- */

/* A row whose file is not there has all fields of pictures, so that its loss is seen. */
bool manifest_has(const void *p, uint64_t row, unsigned column)
{
    const struct manifest_file *file = p;
    const struct learned_column *want;
    char ext[EXT_MOST + 1];
    size_t member;

    if (column >= file->exts.n || !find_picture(file, row, &member))
        return true;
    want = &file->exts.column[column];
    return files_shown_ext_of(file, member, ext) == want->len &&
           !memcmp(ext, want->name, want->len);
}

static uint32_t files_shown_label_of(const struct manifest_file *file, uint64_t row, uint64_t i)
{
    return file
        ->label[index_number(&file->base.prepared.index, row, (unsigned)(MANIFEST_FIXED + i))];
}

static size_t files_shown_label_text(const struct manifest_file *file, uint64_t row,
                                     char ret[static 16])
{
    return (size_t)snprintf(ret, 16, "%" PRIu32, files_shown_label_of(file, row, 0));
}

int manifest_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                  struct diag *d)
{
    const struct manifest_file *file = p;
    uint8_t key[KEY_MAX];
    size_t member;
    char text[16];

    if (column > file->exts.n)
        ret[0] = files_shown_label_text(file, row, text);
    else if (column == file->exts.n)
        ret[0] = index_number(&file->base.prepared.index, row, MANIFEST_LABELS);
    else if (find_picture(file, row, &member))
        ret[0] = members_size(file->set->source.members, member);
    else
        return diag_set(d, -EBADMSG,
                        "%s: sample %" PRIu64
                        " (%.*s): expected a file of SOURCE, got none of that "
                        "path or the end of it",
                        file->name, row, (int)index_key(&file->base.prepared.index, row, key),
                        (const char *)key);
    return 0;
}

bool manifest_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct manifest_file *file = p;
    size_t member;

    if (column >= file->exts.n || !find_picture(file, row, &member))
        return false;
    return files_source_extent(&file->set->source, member, ret);
}

int manifest_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                  uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct manifest_file *file = p;
    struct extent e;
    char text[16];

    if (column > file->exts.n) {
        files_shown_label_text(file, row, text);
        memcpy(dst, text + off, len);
        return 0;
    }
    for (size_t done = 0; column == file->exts.n && done < len;) {
        uint64_t at = off + done;
        size_t n = (size_t)min_u64(8 - at % 8, len - done);
        uint8_t number[8];

        store_le64(number, files_shown_label_of(file, row, at / 8));
        memcpy(dst + done, number + at % 8, n);
        done += n;
    }
    if (column == file->exts.n)
        return 0;
    return manifest_extent(file, row, column, &e) ? blob_read(rc, e.blob, dst, len, e.off + off, d)
                                                  : -EIO;
}

bool manifest_path(const void *p, uint64_t row, unsigned column, char *ret, size_t size)
{
    const struct manifest_file *file = p;
    size_t member;

    return column < file->exts.n && find_picture(file, row, &member) &&
           files_source_path(&file->set->source, member, ret, size);
}

void manifest_locate(const void *p, const struct extent *e, struct text *t)
{
    files_source_locate(&((const struct manifest_file *)p)->set->source, e, t);
}

void manifest_note(const void *p, struct text *t)
{
    const struct manifest_file *file = p;

    files_source_note(&file->set->source, t);
    if (file->dropped)
        text_add(t, "%s, %s: %" PRIu64 " dropped that are no JPEG, PNG, GIF or BMP\n", file->name,
                 file->usage, file->dropped);
    if (file->missing)
        text_add(t, "%s, %s: %" PRIu64 " files that are not in SOURCE\n", file->name, file->usage,
                 file->missing);
}

void manifest_describe(struct record_file *const *files, unsigned n, const char *indent,
                       struct text *t)
{
    const struct manifest_file *file = (const struct manifest_file *)files[0];

    (void)n; /* it is one */
    files_source_describe(&file->set->source, indent, t);
    text_add(t, "%s\"layout\": \"manifest\",\n%s\"manifest\": ", indent, indent);
    text_add_json(t, members_name(file->set->source.members, file->table));
    text_add(t, ",\n%s\"usage\": ", indent);
    text_add_json(t, file->usage);
    text_add(t, ",\n%s\"dropped\": %" PRIu64 ",\n%s\"rows_without_file\": %" PRIu64 ",\n", indent,
             file->dropped, indent, file->missing);
    text_add(t, "%s\"classes\": [", indent);
    for (uint32_t i = 0; i < file->names.n; i++) {
        text_add(t, "%s", i ? ", " : "");
        text_add_json(t, file->names.column[file->sorted[i]].name);
    }
    text_add(t, "],\n");
}
