/* The datasets of the manifests of a collection, one for each usage, called <name>.<usage>. The
 * index of each has a row for each line of its usage: which member the picture is, and the numbers
 * of its labels in the order in which their names were found. Labels are numbered by their sorted
 * names over the whole manifest, so that all its datasets number them in one way. */
#include "format/files/manifest.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/bytes.h"
#include "format/files/file.h"
#include "format/files/lookup.h"
#include "format/picture/kind.h"

#define MANIFEST_NAMES_MAX 60000 /* of labels */
#define USAGES             32    /* of a manifest */
#define USAGE_MAX          64    /* bytes of the name of a usage */

/* Columns of the index; the numbers of labels follow. */
enum {
    MANIFEST_MEMBER, /* 1 + the number of the picture; 0: there is no such file */
    MANIFEST_LABELS, /* how many */
    MANIFEST_FIXED,
};

struct manifest_file {
    struct files_file base; /* missing: lines whose file is not there */
    char usage[USAGE_MAX];

    uint64_t line;    /* the last one, while the index is made */
    unsigned columns; /* of the index, so far */

    struct column_table names; /* labels, as they were found */
    uint64_t dropped;          /* lines whose file is no picture */

    /* Once it is prepared: */
    uint32_t *label;         /* [names.n] numbers of the names */
    const char **class_name; /* [names.n] the name of each number */
};

/* ---- the pass ---- */

/* As MindSpore: a file of another format is dropped. Of a remote its name counts. */
static bool manifest_is_picture(const struct files_source *source, size_t member)
{
    size_t len = (size_t)min_u64(members_size(source->members, member), PICTURE_KIND_HEAD);
    uint64_t at = source->members->member[member].place;
    uint8_t head[PICTURE_KIND_HEAD];
    enum picture_kind picture;

    if (source->blob->ops->fetch)
        return true;
    if (len && blob_read(READ_WAITS, source->blob, head, len, at, NULL) < 0)
        return true; /* its readers get the error */
    picture = picture_kind_of(head, len);
    return picture == PICTURE_JPEG || picture == PICTURE_PNG || picture == PICTURE_GIF ||
           picture == PICTURE_BMP;
}

static int manifest_add_labels(struct manifest_file *file, const struct manifest_line *line,
                               const char *what, struct diag *d)
{
    for (size_t i = 0; i < line->n; i++) {
        unsigned number;
        int r = column_table_add(&file->names, line->label[i], strlen(line->label[i]), &number);

        if (r == -E2BIG)
            return diag_set(d, -EBADMSG, "%s: expected at most %u labels, of at most %u bytes",
                            what, MANIFEST_NAMES_MAX, COLUMN_KEY_MAX);
        if (r < 0)
            return r;
        file->base.number[MANIFEST_FIXED + i] = number;
    }
    return 0;
}

/* The key: the path of the picture below the root, without its extension; of one that is not there,
 * the source. */
static size_t manifest_make_key(const struct manifest_file *file, const struct manifest_line *line,
                                size_t member, char ret[static KEY_MAX])
{
    const struct files_source *source = file->base.source;
    size_t root = strlen(source->root), len;
    AUTO_FREE char *full = NULL;
    const char *path = line->source;

    if (member < source->members->n) {
        full = files_source_name(source, member);
        if (!full)
            return 0;
        path = full + root + (root > 0);
    }
    len = strnlen(path, KEY_MAX);
    memcpy(ret, path, len);
    return path_stem(ret, len);
}

static int manifest_index_line(struct manifest_file *file, const struct manifest_line *line,
                               const char *what, struct diag *d)
{
    const struct files_source *source = file->base.source;
    size_t member =
        manifest_find(source->members, source->root,
                      members_folder_of(source->members, file->base.table), line->source);
    struct index_builder *builder = file->base.base.prepared.builder;
    char key[KEY_MAX];
    size_t len;
    int r;

    /* All lines number labels, those of other usages too. */
    r = manifest_add_labels(file, line, what, d);
    if (r < 0 || strcasecmp(line->usage, file->usage) != 0)
        return r;
    if (member < source->members->n && !manifest_is_picture(source, member)) {
        file->dropped++;
        return 0;
    }
    file->base.number[MANIFEST_MEMBER] = member < source->members->n ? member + 1 : 0;
    file->base.number[MANIFEST_LABELS] = line->n;
    if (MANIFEST_FIXED + line->n > file->columns) {
        file->columns = (unsigned)(MANIFEST_FIXED + line->n);
        r = index_builder_columns(builder, file->columns);
        if (r < 0)
            return r;
    }
    len = manifest_make_key(file, line, member, key);
    return len ? index_add(builder, key, len, file->base.number) : -ENOMEM;
}

static int manifest_add_row(void *p, const struct row_bytes *row, const char *what, struct diag *d)
{
    struct manifest_file *file = p;
    const struct row_walk *walk = &file->base.walk;
    AUTO_MANIFEST_LINE struct manifest_line line = {0};
    int r;

    if (walk->line != file->line + 1)
        return diag_set(d, -EBADMSG,
                        "%s, line %" PRIu64 ": expected a JSON object, got an empty line",
                        walk->name, file->line + 1);
    file->line = walk->line;
    r = manifest_line_parse(&line, row->bytes, row->len, what, d);
    return r < 0 ? r : manifest_index_line(file, &line, what, d);
}

/* ---- the index ---- */

static int manifest_identity(void *impl, struct text *ret)
{
    const struct manifest_file *file = impl;

    text_add(ret, " %zu %s %s", file->base.table, file->usage, file->base.source->root);
    return 0;
}

static int manifest_begin(void *impl)
{
    struct manifest_file *file = impl;

    file->columns = MANIFEST_FIXED;
    return files_table_begin(&file->base, TABLE_JSONL, MANIFEST_FIXED + MANIFEST_LABELS_MAX);
}

static int manifest_step(void *impl, struct diag *d)
{
    return files_table_step(impl, manifest_add_row, d);
}

/* Besides the rows: u64 lines that were dropped, and the names of labels. */
static int manifest_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct manifest_file *file = impl;
    uint8_t dropped[8];

    (void)index;
    (void)d;
    row_walk_release(&file->base.walk);
    column_table_settle(&file->names);
    store_le64(dropped, file->dropped);
    text_add_bytes(ret, (const char *)dropped, sizeof(dropped));
    column_table_write(&file->names, ret);
    return 0;
}

/* A kept index is hostile: its numbers are checked where they are used. */
static int manifest_load(void *impl, const struct index *index)
{
    struct manifest_file *file = impl;
    size_t used;

    if (index->about_len < 8)
        return -EBADMSG;
    file->dropped = load_le64(index->about);
    return column_table_read(&file->names, index->about + 8, index->about_len - 8, &used);
}

static void manifest_release(void *p)
{
    struct manifest_file *file = p;

    column_table_release(&file->names);
    free(file->label);
    free(file->class_name);
    files_file_release(&file->base);
}

/* ---- columns ---- */

static int manifest_compare_names(const void *a, const void *b)
{
    const struct learned_column *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int manifest_number_labels(struct manifest_file *file)
{
    uint32_t n = file->names.n;
    AUTO_FREE const struct learned_column **sorted = calloc(n + 1, sizeof(*sorted));

    file->label = calloc(n + 1, sizeof(*file->label));
    file->class_name = calloc(n + 1, sizeof(*file->class_name));
    if (!sorted || !file->label || !file->class_name)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = &file->names.column[i];
    qsort(sorted, n, sizeof(*sorted), manifest_compare_names);
    for (uint32_t i = 0; i < n; i++) {
        file->label[sorted[i] - file->names.column] = i;
        file->class_name[i] = sorted[i]->name;
    }
    return 0;
}

/* The picture of a row; false: it is not there. */
static bool manifest_find_picture(const struct manifest_file *file, uint64_t row, size_t *ret)
{
    uint64_t member = index_number(files_index(&file->base), row, MANIFEST_MEMBER);

    *ret = (size_t)member - 1;
    return member > 0 && member <= file->base.source->members->n;
}

/* The extension of a picture's name, in lower case. */
static size_t manifest_ext(const struct manifest_file *file, size_t member,
                           char ret[static EXT_MOST + 1])
{
    const char *name = members_name(file->base.source->members, member);

    return name_ext(name, name_stem_last(name), ret);
}

static uint64_t manifest_labels(const void *p, uint64_t row)
{
    const struct index *index = files_index(p);

    return min_u64(index_number(index, row, MANIFEST_LABELS),
                   index->shape.columns - MANIFEST_FIXED);
}

/* Extensions, and the least and the most labels of a row. */
static int manifest_scan_rows(struct manifest_file *file, uint64_t *ret_least, uint64_t *ret_most)
{
    struct column_table *exts = &file->base.exts;
    int r = 0;

    *ret_least = UINT64_MAX;
    *ret_most = 0;
    for (uint64_t row = 0; row < files_index(&file->base)->rows && r == 0; row++) {
        uint64_t n = manifest_labels(file, row);
        char ext[EXT_MOST + 1];
        unsigned column;
        size_t member;

        *ret_least = min_u64(*ret_least, n);
        *ret_most = max_u64(*ret_most, n);
        if (!manifest_find_picture(file, row, &member)) {
            file->base.missing++;
            continue;
        }
        r = column_table_add(exts, ext, manifest_ext(file, member, ext), &column);
        if (r == 0)
            exts->column[column].number[MEMBER_ROWS]++;
        r = r == -E2BIG ? 0 : r;
    }
    for (unsigned i = 0; i < exts->n; i++) /* which have all fields: see manifest_has() */
        exts->column[i].number[MEMBER_ROWS] += file->base.missing;
    column_table_settle(exts);
    return r;
}

static int manifest_ready(void *impl, struct diag *d)
{
    struct manifest_file *file = impl;
    uint64_t least, most;
    int r = manifest_number_labels(file);

    if (r == 0)
        r = manifest_scan_rows(file, &least, &most);
    if (r == 0)
        r = files_make_columns(&file->base, 2);
    if (r < 0)
        return r;
    if (!file->base.exts.n && file->base.missing)
        return diag_set(
            d, -EBADMSG,
            "%s, usage %s: expected a line whose file is in SOURCE, got none in %" PRIu64,
            file->base.name, file->usage, file->base.missing);
    if (most)
        files_add_labels(&file->base, least, most, 0);
    return 0;
}

/* ---- contents ---- */

/* A row whose file is not there has all fields of pictures, so that its loss is seen. */
static bool manifest_has(const void *p, uint64_t row, unsigned column)
{
    const struct manifest_file *file = p;
    const struct learned_column *shown;
    char ext[EXT_MOST + 1];
    size_t member;

    if (column >= file->base.n_members || !manifest_find_picture(file, row, &member))
        return true;
    shown = files_ext_of(&file->base, column);
    return manifest_ext(file, member, ext) == shown->len && !memcmp(ext, shown->name, shown->len);
}

static int manifest_member(const void *p, uint64_t row, unsigned column, size_t *ret,
                           struct diag *d)
{
    const struct manifest_file *file = p;
    uint8_t key[KEY_MAX];

    (void)column;
    if (manifest_find_picture(file, row, ret))
        return 1;
    return diag_set(d, -EBADMSG,
                    "%s: sample %" PRIu64 " (%.*s): expected a file of SOURCE, got none of that "
                    "path or the end of it",
                    file->base.name, row, (int)index_key(files_index(&file->base), row, key),
                    (const char *)key);
}

static int64_t manifest_label(const void *p, uint64_t row, uint64_t i)
{
    const struct manifest_file *file = p;
    uint64_t name = index_number(files_index(&file->base), row, (unsigned)(MANIFEST_FIXED + i));

    return name < file->names.n ? file->label[name] : 0; /* a forged index has any number */
}

/* ---- for people ---- */

static void manifest_note(const void *p, struct text *t)
{
    const struct manifest_file *file = p;
    const char *name = file->base.name;

    if (file->dropped)
        text_add(t, "%s, %s: %" PRIu64 " dropped that are no JPEG, PNG, GIF or BMP\n", name,
                 file->usage, file->dropped);
    if (file->base.missing)
        text_add(t, "%s, %s: %" PRIu64 " files that are not in SOURCE\n", name, file->usage,
                 file->base.missing);
}

static void manifest_describe(const void *p, const char *indent, struct text *t)
{
    const struct manifest_file *file = p;
    const struct files_source *source = file->base.source;

    files_describe_source(source, indent, t);
    text_add(t, "%s\"layout\": \"manifest\",\n%s\"manifest\": ", indent, indent);
    text_add_json(t, members_name(source->members, file->base.table));
    text_add(t, ",\n%s\"usage\": ", indent);
    text_add_json(t, file->usage);
    text_add(t, ",\n%s\"dropped\": %" PRIu64 ",\n%s\"rows_without_file\": %" PRIu64 ",\n", indent,
             file->dropped, indent, file->base.missing);
    files_describe_classes(file->class_name, file->names.n, indent, t);
}

/* ---- opening ---- */

static const struct files_ops manifest_ops = {
    .file = {.size = sizeof(struct manifest_file),
             .index = {.version = "files manifest 1",
                       .identity = manifest_identity,
                       .load = manifest_load,
                       .begin = manifest_begin,
                       .step = manifest_step,
                       .about = manifest_about,
                       .ready = manifest_ready},
             .shape = {.columns = MANIFEST_FIXED, .has_keys = true, .learns = true},
             .release = manifest_release},
    .has = manifest_has,
    .member = manifest_member,
    .labels = manifest_labels,
    .label = manifest_label,
    .note = manifest_note,
    .describe = manifest_describe,
};

struct usages {
    char name[USAGES][USAGE_MAX];
    unsigned n;
};

static const char *manifest_add_usage(struct usages *usages, const char *usage, size_t len)
{
    char name[USAGE_MAX];

    if (len >= USAGE_MAX)
        return "expected a usage of at most 63 bytes, got a longer one";
    for (size_t i = 0; i < len; i++)
        name[i] = (char)tolower((unsigned char)usage[i]);
    name[len] = '\0';
    for (unsigned i = 0; i < usages->n; i++)
        if (!strcmp(usages->name[i], name))
            return NULL;
    if (usages->n == USAGES)
        return "expected at most 32 usages, got more";
    memcpy(usages->name[usages->n++], name, len + 1);
    return NULL;
}

/* The text of the usage where the bytes of a line say it: the word is there once, and nothing is
 * escaped. NULL: the line has to be parsed. */
static const char *manifest_plain_usage(const struct row_bytes *line, size_t *ret_len)
{
    static const char word[] = "\"usage\"";
    const char *end = line->bytes + line->len, *at, *quote;

    at = memmem(line->bytes, line->len, word, strlen(word));
    if (!at || memchr(line->bytes, '\\', line->len))
        return NULL;
    at += strlen(word);
    if (memmem(at, (size_t)(end - at), word, strlen(word)))
        return NULL;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (at == end || *at++ != ':')
        return NULL;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (at == end || *at++ != '"')
        return NULL;
    quote = memchr(at, '"', (size_t)(end - at));
    *ret_len = quote ? (size_t)(quote - at) : 0;
    return *ret_len ? at : NULL;
}

/* Take the usage of a line; the pass says what is wrong with one that has none. 0; -ENOMEM; or
 * -EBADMSG with why in *ret_wrong. */
static int manifest_read_usage(struct usages *usages, const struct row_bytes *line,
                               const char **ret_wrong)
{
    AUTO_MANIFEST_LINE struct manifest_line parsed = {0};
    size_t len;
    const char *usage = manifest_plain_usage(line, &len);
    int r = 0;

    *ret_wrong = NULL;
    if (!usage) {
        r = manifest_line_parse(&parsed, line->bytes, line->len, "", NULL);
        if (r < 0)
            return r == -ENOMEM ? r : 0;
        usage = parsed.usage;
        len = strlen(usage);
    }
    *ret_wrong = manifest_add_usage(usages, usage, len);
    return *ret_wrong ? -EBADMSG : 0;
}

static int manifest_find_usages(const struct files_source *source, size_t table, struct usages *ret,
                                struct diag *d)
{
    const struct member *m = &source->members->member[table];
    AUTO_FREE char *name = files_source_name(source, table);
    AUTO(row_walk_release)
    struct row_walk walk = {.blob = source->blob,
                            .format = TABLE_JSONL,
                            .at = m[0].place,
                            .end = m[1].place,
                            .name = name};
    struct row_bytes line;
    int r;

    if (!name)
        return -ENOMEM;
    while ((r = row_walk_next(&walk, &line, d)) == 1) {
        const char *wrong;

        r = manifest_read_usage(ret, &line, &wrong);
        if (r < 0)
            return wrong ? diag_set(d, r, "%s, line %" PRIu64 ": %s", walk.name, walk.line, wrong)
                         : r;
    }
    return r < 0 || ret->n
               ? r
               : diag_set(d, -EBADMSG,
                          "%s: expected lines that are JSON objects with 'source' and 'usage', got "
                          "none; if it is no manifest of pictures, give it another name",
                          walk.name);
}

/* A dataset of one usage. */
static int manifest_open_usage(struct files_source *source, size_t table, const char *usage,
                               const struct format_setup *setup, struct finds *finds)
{
    const char *manifest = members_name(source->members, table);
    AUTO_TEXT struct text name = {0};
    struct manifest_file *file;
    int r = files_file_new(&manifest_ops, source, setup, &file);

    if (r < 0)
        return r;
    file->names.most = MANIFEST_NAMES_MAX;
    snprintf(file->usage, sizeof(file->usage), "%s", usage);
    text_add(&name, "%.*s.%s", (int)path_stem(manifest, strlen(manifest)), manifest, usage);
    for (char *p = name.data; p && *p; p++)
        *p = *p == '/' ? '_' : *p;
    if (name.failed || files_table_open(&file->base, table) < 0) {
        record_file_drop(&file->base.base);
        return -ENOMEM;
    }
    return files_add_dataset(&file->base, name.data, setup, finds);
}

static int manifest_open(struct files_source *source, size_t table,
                         const struct format_setup *setup, struct finds *finds)
{
    struct diag d = DIAG_INIT;
    struct usages usages = {.n = 0};
    int r = manifest_find_usages(source, table, &usages, &d);

    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return finds->error(finds, members_name(source->members, table), diag_text(&d, r));
    for (unsigned i = 0; i < usages.n && r == 0; i++)
        r = manifest_open_usage(source, table, usages.name[i], setup, finds);
    return r;
}

int files_open_manifests(struct files_source *source, const char *name,
                         const struct format_setup *setup, struct finds *finds)
{
    const struct files_claim *claim = source->claim;
    int r = 0;

    (void)name; /* each has its own */
    for (size_t i = 0; i < claim->n_manifests && r == 0; i++) {
        size_t table = files_source_find(source, claim->manifest[i]);

        r = table < source->members->n
                ? manifest_open(source, table, setup, finds)
                : finds->error(finds, path_base(claim->manifest[i]), "it is not there");
    }
    return r;
}
