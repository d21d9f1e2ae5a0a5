/* The index of a collection has a row for each sample: its key, its first member, and the values of
 * members that are numbers. All else is in the table of members: the sample's other members follow
 * the first, sizes and places are there, and the class is the folder. So a million samples take a
 * few bytes each beside their names. */
#include "format/files/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "format/encode/encode.h"
#include "format/files/values.h"

#define FILES_KEPT 4096 /* files, at least, of a collection without values whose index is kept */

#define STEP    8192     /* samples of a step of preparing, */
#define STEP_NS 10000000 /* and its duration if files are read */

/* ---- samples ---- */

void files_sample_in(const struct files_file *file, const struct index *index, uint64_t row,
                     struct sample_files *ret)
{
    const char *name;

    ret->first = (size_t)index_number(index, row, FILES_FIRST);
    ret->n = (size_t)index_number(index, row + 1, FILES_FIRST) - ret->first;
    name = members_name(file->source.members, ret->first);
    ret->stem = ret->n > 1 ? name_stem(name) : name_stem_alone(name);
}

void files_sample(const struct files_file *file, uint64_t row, struct sample_files *ret)
{
    files_sample_in(file, &file->base.prepared.index, row, ret);
}

size_t files_ext(const struct files_file *file, const struct sample_files *sample, size_t member,
                 char ret[static EXT_MOST + 1])
{
    size_t n = name_ext(members_name(file->source.members, member), sample->stem, ret);
    const char *bare = files_kinds[file->kind].bare;

    if (n || !bare)
        return n;
    n = strlen(bare);
    memcpy(ret, bare, n + 1);
    return n;
}

uint32_t files_class(const struct files_file *file, uint64_t row)
{
    size_t first = (size_t)index_number(&file->base.prepared.index, row, FILES_FIRST);

    return file->class_of[file->source.members->member[first].folder];
}

/* ---- classes ---- */

/* Number the folders of the root: the classes in byte order, folders without a sample included. */
static int find_classes(struct files_file *file)
{
    const struct members *m = file->source.members;
    size_t root = strlen(file->source.root);

    file->class_of = calloc(m->n_folders + 1, sizeof(*file->class_of));
    file->class_name = calloc(m->n_folders + 1, sizeof(*file->class_name));
    file->class_n = calloc(m->n_folders + 1, sizeof(*file->class_n));
    if (!file->class_of || !file->class_name || !file->class_n)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++) {
        const char *path = members_folder(m, i);

        if (is_class_folder(file->kind, path, file->source.root))
            file->class_name[file->n_classes++] = path + root + (root > 0);
        if (file->n_classes)
            file->class_of[i] = file->n_classes - 1;
    }
    return 0;
}

static void count_classes(struct files_file *file)
{
    for (uint64_t row = 0; row < file->base.prepared.index.rows; row++)
        file->class_n[files_class(file, row)]++;
}

/* ---- columns ---- */

static bool files_is_complete(const void *ctx, unsigned field)
{
    const struct files_file *file = ctx;

    return file->exts.column[field].number[MEMBER_ROWS] == file->base.prepared.index.rows;
}

/* The class is `label`. Members that would be have another name: <key>.label.cls its extension in
 * full, <key>.label is `label_file`. In tar a member label.cls is where the class would be. */
static void files_add_labels(struct files_file *file)
{
    unsigned in_tar = 0, other;

    for (unsigned i = 0; i < file->label; i++) {
        struct member_column *shows = &file->shows[i];

        if (strcmp(shows->name, "label") != 0)
            continue;
        if (file->column[i].shown == RECORD_NUMBERS)
            memcpy(shows->name, shows->ext, sizeof(shows->name)); /* longer by ".cls" */
        else if (file->column[i].shown == RECORD_BYTES)
            snprintf(shows->name, sizeof(shows->name), "label_file");
    }
    if (column_table_find(&file->exts, "label.cls", strlen("label.cls"), &other))
        in_tar = RECORD_NOT_TAR;
    file->column[file->base.n_columns++] = (struct record_column){
        .name = "label", .shown = RECORD_NUMBERS, .dtype = DTYPE_I8, .without = RECORD_NOT_TAR};
    file->column[file->base.n_columns++] =
        (struct record_column){.name = "label",
                               .shown = RECORD_BYTES,
                               .ext = "cls",
                               .without = RECORD_NOT_ARRAYS | RECORD_NOT_RAW | in_tar};
}

/* What the columns are is known: from the pass, or from a kept index. */
static int files_ready(void *impl, struct diag *d)
{
    struct files_file *file = impl;
    int r = member_columns_make(&file->exts, 2, files_is_complete, file, &file->shows,
                                &file->column, &file->base.n_columns);

    (void)d;
    file->base.column = file->column;
    file->label = file->base.n_columns;
    if (r < 0 || file->layout != LAYOUT_CLASSES)
        return r;
    files_add_labels(file);
    count_classes(file);
    return 0;
}

/* ---- the index ---- */

static int files_identity(void *impl, struct text *ret)
{
    const struct files_file *file = impl;

    text_add(ret, " %d %s", (int)file->layout, file->source.root);
    if (file->kind != FILES_PICTURES)
        text_add(ret, " %s", files_kinds[file->kind].word);
    return 0;
}

static bool firsts_are_good(const struct files_file *file, const struct index *index)
{
    uint64_t before = 0;

    if (index_number(index, index->rows, FILES_FIRST) != file->source.members->n)
        return false;
    for (uint64_t row = 1; row <= index->rows; row++) {
        uint64_t first = index_number(index, row, FILES_FIRST);

        if (first <= before)
            return false;
        before = first;
    }
    return !index->rows || !index_number(index, 0, FILES_FIRST);
}

/* A kept index is hostile: each sample has a member, and all are in the table. */
static int files_take(void *impl, const struct index *index)
{
    struct files_file *file = impl;
    size_t used;
    int r = firsts_are_good(file, index)
                ? column_table_read(&file->exts, index->about, index->about_len, &used)
                : -EBADMSG;

    if (r == 0 && !values_are_good(file, index))
        r = -EBADMSG;
    if (r == 0) {
        file->values_note = strndup((const char *)index->about + used, index->about_len - used);
        r = file->values_note ? 0 : -ENOMEM;
    }
    if (r < 0) {
        column_table_release(&file->exts);
        file->exts = (struct column_table){0};
    }
    return r;
}

static int files_begin(void *impl)
{
    struct files_file *file = impl;
    int r;

    file->walk = (struct sample_walk){.m = file->source.members,
                                      .end = file->source.members->n,
                                      .by_class = file->layout == LAYOUT_CLASSES,
                                      .kind = file->kind};
    r = sample_keys_init(&file->keys, &file->walk, file->source.root);
    return r < 0 ? r : values_pass_new(file, &file->values);
}

static int files_add_row(struct files_file *file, const struct sample_files *sample, struct diag *d)
{
    char key[KEY_MAX];
    uint64_t *number;
    int r = values_pass_sample(file->values, sample, &file->walk, &number, d);

    if (r < 0)
        return r;
    number[FILES_FIRST] = sample->first;
    return index_add(file->base.prepared.builder, key, sample_key(&file->keys, sample, key),
                     number);
}

static int files_step(void *impl, struct diag *d)
{
    struct files_file *file = impl;
    int64_t until = monotonic_ns() + STEP_NS;
    struct sample_files sample;
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0; i++) {
        struct sample_walk before = file->walk;

        if (!next_sample(&file->walk, &sample)) {
            file->base.prepared.end[FILES_FIRST] = file->source.members->n;
            return 1;
        }
        r = files_add_row(file, &sample, d);
        if (r < 0)
            file->walk = before;
        if (values_pass_has_read(file->values) && monotonic_ns() > until)
            break;
    }
    if (file->source.members->n)
        atomic_store(&file->base.prepared.seen, file->source.members->member[file->walk.at].place);
    return r;
}

/* Besides the rows: the extensions, and the note. */
static int files_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct files_file *file = impl;
    AUTO_TEXT struct text note = {0};
    int r;

    (void)index;
    (void)d;
    values_pass_notes(file->values, &note);
    values_pass_free(TAKE_PTR(file->values));
    r = text_finish(&note, &file->values_note, NULL);
    if (r < 0)
        return r;
    sample_keys_release(&file->keys);
    for (unsigned i = 0; i < file->exts.n; i++) {
        uint64_t *number = file->exts.column[i].number;

        if (number[MEMBER_FORM] == MEMBER_AS_ARRAY && !number[MEMBER_VALUE])
            number[MEMBER_FORM] = MEMBER_AS_BYTES; /* none could be read */
    }
    column_table_settle(&file->exts);
    column_table_write(&file->exts, ret);
    text_add_bytes(ret, file->values_note, strlen(file->values_note));
    return 0;
}

static void files_release(void *p)
{
    struct files_file *file = p;

    sample_keys_release(&file->keys);
    values_pass_free(file->values);
    free(file->values_note);
    free(file->shows);
    free(file->column);
    column_table_release(&file->exts);
    free(file->class_of);
    free(file->class_name);
    free(file->class_n);
    files_source_release(&file->source);
    file->base.blob = NULL; /* the source's */
}

static const struct record_file_ops files_ops = {
    .size = sizeof(struct files_file),
    .index = {.version = "files 2",
              .identity = files_identity,
              .take = files_take,
              .begin = files_begin,
              .step = files_step,
              .about = files_about,
              .ready = files_ready},
    .shape = {.columns = FILES_FIXED,
              .rising = 1u << FILES_FIRST,
              .has_keys = true,
              .learns = true},
    .release = files_release,
};

/* Names are all that the index of a few files is made of, if none is a value: to make it takes less
 * than to look whether it was kept. There may be very many such folders. */
static bool is_cheap(const struct members *m)
{
    if (m->n >= FILES_KEPT)
        return false;
    for (size_t i = 0; i < m->n; i++) {
        const char *name = members_name(m, i);
        char ext[EXT_MOST + 1];
        size_t n = name_ext(name, name_stem_alone(name), ext);
        enum member_shown shown = member_shown_of(ext, n);

        if (shown == MEMBER_AS_INTEGER || shown == MEMBER_AS_ARRAY)
            return false;
    }
    return true;
}

int files_open(struct collection *c, struct blob *blob, const struct members *members,
               const struct format_setup *setup, struct record_file **ret)
{
    struct files_file *file;
    int r = record_file_new(&files_ops, blob, setup, &file);

    if (r < 0) {
        blob_free(blob);
        return r;
    }
    file->layout = ((const struct files_claim *)c->impl)->layout;
    file->kind = ((const struct files_claim *)c->impl)->kind;
    file->base.prepared.is_cheap = is_cheap(members);
    r = files_source_take(&file->source, c, blob, members);
    if (r == 0 && file->layout == LAYOUT_CLASSES)
        r = find_classes(file);
    if (r < 0)
        record_file_drop(&file->base);
    else
        *ret = &file->base;
    return r;
}
