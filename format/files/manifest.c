/* The datasets of the manifests of a collection. The index of each has a row for each line of its
 * usage: which member the picture is, and the numbers of its labels in the order in which their
 * names were found. Labels are numbered by their sorted names over the whole manifest, so that all
 * its datasets number them in one way. */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/bytes.h"
#include "format/files/claim/names.h"
#include "format/files/manifest_parts.h"
#include "format/picture/kind.h"

#define STEP   1024 /* lines of a step of preparing */
#define USAGES 32   /* of a manifest */

static void drop_set(struct manifest_set *set)
{
    if (--set->users)
        return;
    files_source_release(&set->source);
    free(set);
}

/* ---- the pass ---- */

/* As MindSpore: a file of another kind is dropped. Of a remote its name counts. */
static bool files_manifest_is_picture(const struct manifest_file *file, size_t member)
{
    const struct members *m = file->set->source.members;
    size_t len = (size_t)min_u64(members_size(m, member), PICTURE_KIND_HEAD);
    uint8_t head[PICTURE_KIND_HEAD];
    enum picture_kind kind;
    int r;

    if (file->set->source.blob->ops->fetch)
        return true;
    r = len ? blob_read(READ_WAITS, file->set->source.blob, head, len, m->member[member].place,
                        NULL)
            : 0;
    if (r < 0)
        return true; /* its readers get the error */
    kind = picture_kind_of(head, len);
    return kind == PICTURE_JPEG || kind == PICTURE_PNG || kind == PICTURE_GIF ||
           kind == PICTURE_BMP;
}

static int files_manifest_take_labels(struct manifest_file *file, const struct manifest_line *line,
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
        file->number[MANIFEST_FIXED + i] = number;
    }
    return 0;
}

/* The key: the path of the picture below the root, without its extension; of one that is not there,
 * the source. */
static size_t files_manifest_make_key(const struct manifest_file *file,
                                      const struct manifest_line *line, size_t member,
                                      char ret[static KEY_MAX])
{
    const struct manifest_set *set = file->set;
    AUTO_TEXT struct text path = {0};
    size_t root = strlen(set->source.root), len;

    if (member < set->source.members->n) {
        const char *folder = members_folder_of(set->source.members, member);

        folder += root + (root && folder[root]);
        text_add(&path, "%s%s%s", folder, *folder ? "/" : "",
                 members_name(set->source.members, member));
    } else {
        text_add(&path, "%s", line->source);
    }
    if (path.failed)
        return 0;
    len = path.len < KEY_MAX ? path.len : KEY_MAX;
    memcpy(ret, path.data, len);
    return path_stem(ret, len);
}

static int files_manifest_add_row(struct manifest_file *file, const struct manifest_line *line,
                                  const char *what, struct diag *d)
{
    const struct members *m = file->set->source.members;
    size_t member =
        manifest_find(m, file->set->source.root, members_folder_of(m, file->table), line->source);
    char key[KEY_MAX];
    size_t len;
    int r;

    /* All lines number labels, those of other usages too. */
    r = files_manifest_take_labels(file, line, what, d);
    if (r < 0 || strcasecmp(line->usage, file->usage) != 0)
        return r;
    if (member < m->n && !files_manifest_is_picture(file, member)) {
        file->dropped++;
        return 0;
    }
    file->number[MANIFEST_MEMBER] = member < m->n ? member + 1 : 0;
    file->number[MANIFEST_LABELS] = line->n;
    if (MANIFEST_FIXED + line->n > file->columns) {
        file->columns = (unsigned)(MANIFEST_FIXED + line->n);
        r = index_builder_columns(file->base.prepared.builder, file->columns);
        if (r < 0)
            return r;
    }
    len = files_manifest_make_key(file, line, member, key);
    return len ? index_add(file->base.prepared.builder, key, len, file->number) : -ENOMEM;
}

/* One line further. 1: the rows are complete. */
static int files_manifest_next_line(struct manifest_file *file, struct diag *d)
{
    AUTO_MANIFEST_LINE struct manifest_line line = {0};
    struct row_bytes bytes;
    char what[512];
    int r = row_walk_next(&file->walk, &bytes, d);

    if (r <= 0)
        return r < 0 ? r : 1;
    if (file->walk.line != file->line + 1)
        return diag_set(d, -EBADMSG,
                        "%s, line %" PRIu64 ": expected a JSON object, got an empty line",
                        file->walk.name, file->line + 1);
    file->line = file->walk.line;
    snprintf(what, sizeof(what), "%s, line %" PRIu64, file->walk.name, file->walk.line);
    r = manifest_line_parse(&line, bytes.bytes, bytes.len, what, d);
    return r < 0 ? r : files_manifest_add_row(file, &line, what, d);
}

/* ---- the index ---- */

static int manifest_identity(void *impl, struct text *ret)
{
    const struct manifest_file *file = impl;

    text_add(ret, " %zu %s %s", file->table, file->usage, file->set->source.root);
    return 0;
}

static int manifest_begin(void *impl)
{
    struct manifest_file *file = impl;
    const struct member *table = &file->set->source.members->member[file->table];

    file->walk = (struct row_walk){.blob = file->set->source.blob,
                                   .kind = TABLE_JSONL,
                                   .at = table[0].place,
                                   .end = table[1].place,
                                   .name = file->name};
    file->columns = MANIFEST_FIXED;
    file->number = calloc(MANIFEST_FIXED + MANIFEST_LABELS_MAX, sizeof(*file->number));
    return file->number ? 0 : -ENOMEM;
}

static int manifest_step(void *impl, struct diag *d)
{
    struct manifest_file *file = impl;
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0; i++)
        r = files_manifest_next_line(file, d);
    atomic_store(&file->base.prepared.seen,
                 file->walk.at - file->set->source.members->member[file->table].place);
    return r == 1 && blob_verify(file->set->source.blob, d) < 0 ? -ESTALE : r;
}

/* Besides the rows: u64 lines that were dropped, and the names of labels. */
static int manifest_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct manifest_file *file = impl;
    uint8_t dropped[8];

    (void)index;
    (void)d;
    row_walk_release(&file->walk);
    column_table_settle(&file->names);
    store_le64(dropped, file->dropped);
    text_add_bytes(ret, (const char *)dropped, sizeof(dropped));
    column_table_write(&file->names, ret);
    return 0;
}

/* A kept index is hostile: all its pictures and labels are there. */
static bool files_manifest_row_is_good(const struct manifest_file *file, const struct index *index,
                                       uint64_t row)
{
    uint64_t n = index_number(index, row, MANIFEST_LABELS);

    if (index_number(index, row, MANIFEST_MEMBER) > file->set->source.members->n ||
        n > index->shape.columns - MANIFEST_FIXED)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (index_number(index, row, MANIFEST_FIXED + i) >= file->names.n)
            return false;
    return true;
}

static int manifest_take(void *impl, const struct index *index)
{
    struct manifest_file *file = impl;
    const uint8_t *about = index->about;
    size_t used;
    int r;

    if (index->about_len < 8)
        return -EBADMSG;
    r = column_table_read(&file->names, about + 8, index->about_len - 8, &used);
    for (uint64_t row = 0; row < index->rows && r == 0; row++)
        r = files_manifest_row_is_good(file, index, row) ? 0 : -EBADMSG;
    if (r < 0) {
        column_table_release(&file->names);
        file->names = (struct column_table){.most = MANIFEST_NAMES_MAX};
        return r;
    }
    file->dropped = load_le64(about);
    return 0;
}

static int manifest_ready(void *impl, struct diag *d)
{
    struct manifest_file *file = impl;
    int r = manifest_make_columns(file);

    if (r == 0 && !file->exts.n && file->missing)
        r = diag_set(d, -EBADMSG,
                     "%s, usage %s: expected a line whose file is in SOURCE, got none in %" PRIu64,
                     file->name, file->usage, file->missing);
    return r;
}

static void manifest_release(void *p)
{
    struct manifest_file *file = p;

    row_walk_release(&file->walk);
    column_table_release(&file->names);
    column_table_release(&file->exts);
    free(file->number);
    free(file->label);
    free(file->sorted);
    free(file->shows);
    free(file->column);
    free(file->name);
    drop_set(file->set);
    file->base.blob = NULL; /* the set's */
}

static const struct record_file_ops files_manifest_ops = {
    .size = sizeof(struct manifest_file),
    .index = {.version = "files manifest 1",
              .identity = manifest_identity,
              .take = manifest_take,
              .begin = manifest_begin,
              .step = manifest_step,
              .about = manifest_about,
              .ready = manifest_ready},
    .shape = {.columns = MANIFEST_FIXED, .has_keys = true, .learns = true},
    .release = manifest_release,
};

/* ---- opening ---- */

struct usages {
    char name[USAGES][USAGE_MAX];
    unsigned n;
};

static const char *add_usage(struct usages *usages, const char *usage, size_t len)
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
static const char *find_plain(const struct row_bytes *line, size_t *ret_len)
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
static int take_usage(struct usages *usages, const struct row_bytes *line, const char **ret_wrong)
{
    AUTO_MANIFEST_LINE struct manifest_line parsed = {0};
    size_t len;
    const char *usage = find_plain(line, &len);
    int r = 0;

    *ret_wrong = NULL;
    if (!usage) {
        r = manifest_line_parse(&parsed, line->bytes, line->len, "", NULL);
        if (r < 0)
            return r == -ENOMEM ? r : 0;
        usage = parsed.usage;
        len = strlen(usage);
    }
    *ret_wrong = add_usage(usages, usage, len);
    return *ret_wrong ? -EBADMSG : 0;
}

static int find_usages(const struct manifest_set *set, size_t table, struct usages *ret,
                       struct diag *d)
{
    const struct member *m = &set->source.members->member[table];
    AUTO_FREE char *name = files_source_name(&set->source, table);
    AUTO(row_walk_release)
    struct row_walk walk = {.blob = set->source.blob,
                            .kind = TABLE_JSONL,
                            .at = m[0].place,
                            .end = m[1].place,
                            .name = name};
    struct row_bytes line;
    int r;

    if (!name)
        return -ENOMEM;
    while ((r = row_walk_next(&walk, &line, d)) == 1) {
        const char *wrong;

        r = take_usage(ret, &line, &wrong);
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
static int open_usage(const struct record_format *rf, struct manifest_set *set, size_t table,
                      const char *usage, const struct format_setup *setup, struct finds *finds)
{
    const char *manifest = members_name(set->source.members, table);
    AUTO_TEXT struct text name = {0};
    struct manifest_file *file;
    struct record_file *base;
    struct dataset *ds;
    int r = record_file_new(&files_manifest_ops, set->source.blob, setup, &file);

    if (r < 0)
        return r;
    base = &file->base;
    file->set = set;
    file->table = table;
    file->names.most = MANIFEST_NAMES_MAX;
    set->users++;
    snprintf(file->usage, sizeof(file->usage), "%s", usage);
    base->prepared.size = members_size(set->source.members, table);
    text_add(&name, "%.*s.%s", (int)path_stem(manifest, strlen(manifest)), manifest, usage);
    for (char *p = name.data; p && *p; p++)
        *p = *p == '/' ? '_' : *p;
    file->name = files_source_name(&set->source, table);
    r = name.failed || !file->name ? -ENOMEM : record_set_new(rf, &base, 1, setup, &ds);
    record_file_drop(base);
    return r < 0 ? r : finds->dataset(finds, name.data, ds);
}

static int open_manifest(const struct record_format *rf, struct manifest_set *set, size_t table,
                         const struct format_setup *setup, struct finds *finds)
{
    struct diag d = DIAG_INIT;
    struct usages usages = {.n = 0};
    int r = find_usages(set, table, &usages, &d);

    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return finds->error(finds, members_name(set->source.members, table), diag_text(&d, r));
    for (unsigned i = 0; i < usages.n && r == 0; i++)
        r = open_usage(rf, set, table, usages.name[i], setup, finds);
    return r;
}

static size_t find_path(const struct members *m, const char *path)
{
    const char *base = path_base(path);

    return members_lookup(m, path, (size_t)(base - path) - (base > path), base);
}

int manifest_open_collection(const struct record_format *rf, struct collection *c,
                             struct blob *blob, const struct members *members,
                             const struct format_setup *setup, struct finds *finds)
{
    struct manifest_set *set = calloc(1, sizeof(*set));
    const struct files_claim *claim = c->impl;
    int r;

    if (!set) {
        blob_free(blob);
        return -ENOMEM;
    }
    set->users = 1;
    r = files_source_take(&set->source, c, blob, members);
    for (size_t i = 0; i < claim->n_manifests && r == 0; i++) {
        size_t table = find_path(members, claim->manifest[i]);

        r = table < members->n
                ? open_manifest(rf, set, table, setup, finds)
                : finds->error(finds, path_base(claim->manifest[i]), "it is not there");
    }
    drop_set(set);
    return r;
}
