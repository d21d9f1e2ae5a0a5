/* The index of a collection has a row for each sample: its key, and its first member. All else is
 * in the table of members: the sample's other members follow the first, sizes and places are
 * there, and the class is the folder. So a million samples take a few bytes each beside their
 * names. */
#include "format/files/file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "format/encode/encode.h"

#define STEP 8192 /* samples of a step of preparing */

enum { COUNT }; /* numbers of a column: the samples that have it */

void files_share(void *file)
{
    ((struct files_file *)file)->users++;
}

void files_drop(void *p)
{
    struct files_file *file = p;

    if (--file->users)
        return;
    prepared_release(&file->prepared);
    sample_keys_release(&file->keys);
    for (unsigned i = 0; file->columns && i < file->exts.n; i++) {
        if (file->columns[i].ext != file->columns[i].name)
            free((char *)(uintptr_t)file->columns[i].ext);
        free((char *)(uintptr_t)file->columns[i].name);
    }
    free(file->columns);
    column_table_release(&file->exts);
    free(file->class_of);
    free(file->class_name);
    free(file->class_n);
    free(file->aside);
    free(file->unread);
    free(file->root);
    blob_free(file->blob);
    free(file);
}

/* ---- samples ---- */

void files_sample(const struct files_file *file, uint64_t row, struct sample_files *ret)
{
    const struct index *index = &file->prepared.index;
    const char *name;

    ret->first = (size_t)index_number(index, row, 0);
    ret->n = (size_t)index_number(index, row + 1, 0) - ret->first;
    name = members_name(file->members, ret->first);
    ret->stem = ret->n > 1 ? name_stem(name) : name_stem_last(name);
}

size_t files_ext(const struct files_file *file, const struct sample_files *sample, size_t member,
                 char ret[static EXT_MOST + 1])
{
    const char *name = members_name(file->members, member);
    size_t len = strlen(name), n;

    if (len <= sample->stem + 1)
        return 0;
    n = len - sample->stem - 1;
    if (n > EXT_MOST)
        return 0;
    for (size_t i = 0; i <= n; i++)
        ret[i] = (char)tolower((unsigned char)name[sample->stem + 1 + i]);
    return n;
}

uint32_t files_class(const struct files_file *file, uint64_t row)
{
    size_t first = (size_t)index_number(&file->prepared.index, row, 0);

    return file->class_of[file->members->member[first].folder];
}

/* ---- classes ---- */

/* Number the folders of the root: the classes in byte order, folders without pictures included. */
static int find_classes(struct files_file *file)
{
    const struct members *m = file->members;
    size_t root = strlen(file->root);

    file->class_of = calloc(m->n_folders + 1, sizeof(*file->class_of));
    file->class_name = calloc(m->n_folders + 1, sizeof(*file->class_name));
    file->class_n = calloc(m->n_folders + 1, sizeof(*file->class_n));
    if (!file->class_of || !file->class_name || !file->class_n)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++) {
        const char *path = members_folder(m, i);

        if (is_class_folder(path, file->root))
            file->class_name[file->n_classes++] = path + root + (root > 0);
        if (file->n_classes)
            file->class_of[i] = file->n_classes - 1;
    }
    return 0;
}

static void count_classes(struct files_file *file)
{
    for (uint64_t row = 0; row < file->prepared.index.rows; row++)
        file->class_n[files_class(file, row)]++;
}

/* ---- columns ---- */

static int add_column(struct files_file *file, unsigned i)
{
    const struct learned_column *ext = &file->exts.column[i];
    struct record_column *column = &file->columns[i];
    char name[RECORD_NAME_MAX + 1];

    record_name(ext->name, ext->len, RECORD_NAME_MAX, name);
    column->name = strdup(name);
    if (!column->name)
        return -ENOMEM;
    column->shown = RECORD_BYTES;
    record_name(ext->name, ext->len, EXT_SIZE - 1, name);
    column->ext = strcmp(name, column->name) != 0 ? strdup(name) : column->name;
    column->unnamed = true;
    column->has_holes = ext->number[COUNT] != file->prepared.index.rows;
    if (!column->ext)
        return -ENOMEM;
    if (!strcmp(name, "txt")) { /* as the other files, and as lines */
        file->text = i;
        file->columns[file->exts.n] = *column;
        file->columns[file->exts.n].shown = RECORD_TEXT;
        file->columns[file->exts.n].without = RECORD_NOT_TAR | RECORD_NOT_ARRAYS;
        file->label = file->exts.n + 1;
    }
    return 0;
}

/* What the columns are is known: from the pass, or from a kept index. */
static int make_columns(struct files_file *file)
{
    int r = 0;

    file->columns = calloc(file->exts.n + 3, sizeof(*file->columns));
    if (!file->columns)
        return -ENOMEM;
    file->label = file->exts.n;
    for (unsigned i = 0; i < file->exts.n && r == 0; i++)
        r = add_column(file, i);
    file->n_columns = file->label;
    if (r < 0 || file->layout != LAYOUT_CLASSES)
        return r;
    file->columns[file->n_columns++] = (struct record_column){
        .name = "label", .shown = RECORD_NUMBERS, .dtype = DTYPE_I8, .without = RECORD_NOT_TAR};
    file->columns[file->n_columns++] =
        (struct record_column){.name = "label",
                               .shown = RECORD_BYTES,
                               .ext = "cls",
                               .without = RECORD_NOT_ARRAYS | RECORD_NOT_RAW};
    count_classes(file);
    return 0;
}

/* ---- the index ---- */

static int file_identity(void *impl, struct text *ret)
{
    const struct files_file *file = impl;

    text_add(ret, "files 1 %d %s", (int)file->layout, file->root);
    return prepared_add_identity(ret, file->blob);
}

/* A kept index is hostile: each sample has a member, and all are in the table. */
static int file_take(void *impl, const struct index *index)
{
    struct files_file *file = impl;
    uint64_t before = 0;
    size_t used;

    if (index_number(index, index->rows, 0) != file->members->n)
        return -EBADMSG;
    for (uint64_t row = 1; row <= index->rows; row++) {
        uint64_t first = index_number(index, row, 0);

        if (first <= before)
            return -EBADMSG;
        before = first;
    }
    if (index->rows && index_number(index, 0, 0))
        return -EBADMSG;
    return column_table_read(&file->exts, index->about, index->about_len, &used);
}

static int file_begin(void *impl)
{
    struct files_file *file = impl;

    file->walk = (struct sample_walk){
        .m = file->members, .end = file->members->n, .by_class = file->layout == LAYOUT_CLASSES};
    return sample_keys_init(&file->keys, &file->walk, file->root);
}

static int add_row(struct files_file *file, const struct sample_files *sample)
{
    char ext[EXT_MOST + 1], key[KEY_MAX];
    uint64_t number = sample->first;
    size_t len = sample_key(&file->keys, sample, key);
    int r = 0;

    for (size_t i = 0; i < sample->n && r == 0; i++) {
        size_t n = files_ext(file, sample, sample->first + i, ext);
        unsigned column;

        r = column_table_add(&file->exts, ext, n, &column);
        if (r == 0)
            file->exts.column[column].number[COUNT]++;
        if (r == -E2BIG)
            r = 0;
    }
    return r < 0 ? r : index_add(file->prepared.builder, key, len, &number);
}

static int file_step(void *impl, struct diag *d)
{
    struct files_file *file = impl;
    struct sample_files sample;
    int r = 0;

    (void)d;
    for (unsigned i = 0; i < STEP && r == 0; i++) {
        if (!next_sample(&file->walk, &sample)) {
            file->prepared.end[0] = file->members->n;
            return 1;
        }
        r = add_row(file, &sample);
    }
    if (file->members->n)
        atomic_store(&file->prepared.seen, file->members->member[file->walk.at].place);
    return r;
}

static int file_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct files_file *file = impl;

    (void)index;
    (void)d;
    sample_keys_release(&file->keys);
    column_table_settle(&file->exts);
    column_table_write(&file->exts, ret);
    return 0;
}

static const struct prepared_ops index_ops = {.identity = file_identity,
                                              .take = file_take,
                                              .begin = file_begin,
                                              .step = file_step,
                                              .about = file_about};

int files_prepare(void *p, struct diag *d)
{
    struct files_file *file = p;
    int r = prepared_step(&file->prepared, d);

    if (r != 1 || file->columns)
        return r;
    r = make_columns(file);
    return r < 0 ? r : 1;
}

int files_open(struct collection *c, struct blob *blob, const struct members *members,
               const struct format_setup *setup, struct shard *ret)
{
    struct files_file *file = calloc(1, sizeof(*file));
    struct files_claim *claim = c->impl;
    int r;

    if (!file) {
        blob_free(blob);
        return -ENOMEM;
    }
    *file = (struct files_file){.blob = blob,
                                .members = members,
                                .layout = claim->layout,
                                .aside = TAKE_PTR(claim->aside),
                                .n_unread = c->n_unread,
                                .unread = TAKE_PTR(c->unread),
                                .root = strdup(c->root),
                                .users = 1};
    file->prepared = (struct prepared){
        .ops = &index_ops,
        .impl = file,
        .keep = setup->keep,
        .kind = "rows",
        .name = blob_name(blob),
        .source = blob_source(blob),
        .size = blob->size,
        .shape = {.columns = 1, .rising = 1, .has_keys = true},
    };
    r = !file->root ? -ENOMEM : file->layout == LAYOUT_CLASSES ? find_classes(file) : 0;
    if (r < 0) {
        files_drop(file);
        return r;
    }
    *ret = (struct shard){file, blob, &file->prepared};
    return 0;
}
