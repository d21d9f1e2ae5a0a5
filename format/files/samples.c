/* The index of a collection has a row for each sample: its key, its first member, and the values of
 * members that are numbers. All else is in the table of members: the sample's other members follow
 * the first, sizes and places are there, and the class is the folder. So a million samples take a
 * few bytes each beside their names. */
#include "format/files/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define FILES_KEPT 4096 /* files, at least, of a collection without values whose index is kept */

#define STEP    8192     /* samples of a step of preparing, */
#define STEP_NS 10000000 /* and its duration if files are read */

/* ---- samples ---- */

void samples_read(const struct samples_file *file, const struct index *index, uint64_t row,
                  struct sample_files *ret)
{
    const char *name;

    ret->first = (size_t)index_number(index, row, SAMPLES_FIRST);
    ret->n = (size_t)index_number(index, row + 1, SAMPLES_FIRST) - ret->first;
    if (!ret->n) /* of a forged index; it may be behind the last member */
        return;
    name = members_name(file->base.source->members, ret->first);
    ret->stem = ret->n > 1 ? name_stem(name) : name_stem_alone(name);
}

size_t samples_ext(const struct samples_file *file, const struct sample_files *sample,
                   size_t member, char ret[static EXT_MOST + 1])
{
    size_t n = name_ext(members_name(file->base.source->members, member), sample->stem, ret);
    const char *bare = files_media[file->media].bare;

    if (n || !bare)
        return n;
    n = strlen(bare);
    memcpy(ret, bare, n + 1);
    return n;
}

bool samples_find(const struct samples_file *file, const struct sample_files *sample, size_t end,
                  const char *ext, size_t len, size_t *ret)
{
    char other[EXT_MOST + 1];

    for (size_t i = sample->first; i < end; i++)
        if (samples_ext(file, sample, i, other) == len && !memcmp(other, ext, len)) {
            *ret = i;
            return true;
        }
    return false;
}

/* ---- what a row shows ---- */

static int samples_member(const void *p, uint64_t row, unsigned column, size_t *ret, struct diag *d)
{
    const struct samples_file *file = p;
    const struct learned_column *ext = files_ext_of(&file->base, column);
    struct sample_files sample;

    (void)d;
    samples_read(file, files_index(&file->base), row, &sample);
    return samples_find(file, &sample, sample.first + sample.n, ext->name, ext->len, ret);
}

static bool samples_has(const void *p, uint64_t row, unsigned column)
{
    const struct samples_file *file = p;
    size_t member;

    return column >= file->base.n_members || samples_member(p, row, column, &member, NULL);
}

/* Values of a sample that could not be read when the index was made. */
static int samples_fault(const void *p, uint64_t row, struct diag *d)
{
    const struct samples_file *file = p;
    const struct index *index = files_index(&file->base);
    int fault = (int)index_number(index, row, SAMPLES_FAULT);
    AUTO_FREE char *name = NULL;

    if (!fault)
        return 0;
    name = files_source_name(file->base.source, (size_t)index_number(index, row, SAMPLES_FIRST));
    return diag_set(d, -fault,
                    "%s: a value of the sample could not be read when it was mounted: %s",
                    name ? name : "a sample", strerror(fault));
}

static uint32_t samples_label(const void *p, uint64_t row, uint64_t i)
{
    const struct samples_file *file = p;
    const struct members *m = file->base.source->members;
    size_t first = (size_t)index_number(files_index(&file->base), row, SAMPLES_FIRST);

    (void)i; /* it has one */
    return first < m->n ? file->class_of[m->member[first].folder] : 0;
}

static bool samples_class_name(const void *p, int64_t number, struct text *t)
{
    const struct samples_file *file = p;

    if (file->layout != LAYOUT_CLASSES || number < 0 || number >= file->n_classes)
        return false;
    text_add(t, "%s", file->class_name[number]);
    return true;
}

static void samples_note(const void *p, struct text *t)
{
    const struct samples_file *file = p;
    const struct column_table *exts = &file->base.exts;

    text_add(t, "%s", file->values_note);
    if (exts->left_out)
        text_add(
            t, "%" PRIu64 " files ignored, whose extensions are beyond the first %u, '.%s' first\n",
            exts->left_out, exts->n, exts->first_out);
    for (uint32_t i = 0; i < file->n_classes; i++)
        if (!file->class_n[i])
            text_add(t, "class %s (label %" PRIu32 ") has no %s\n", file->class_name[i], i,
                     files_media[file->media].one);
}

static void samples_describe(const void *p, const char *indent, struct text *t)
{
    const struct samples_file *file = p;
    bool has_classes = file->layout == LAYOUT_CLASSES;

    text_add(t, "%s\"layout\": \"%s\",\n", indent, has_classes ? "class folders" : "one folder");
    files_describe_source(file->base.source, indent, t);
    if (has_classes)
        files_describe_classes(file->class_name, file->n_classes, indent, t);
}

/* ---- classes ---- */

/* Number the folders of the root: the classes in byte order, folders without a sample included. */
static int samples_find_classes(struct samples_file *file)
{
    const struct members *m = file->base.source->members;
    size_t root = strlen(file->base.source->root);

    file->class_of = calloc(m->n_folders + 1, sizeof(*file->class_of));
    file->class_name = calloc(m->n_folders + 1, sizeof(*file->class_name));
    file->class_n = calloc(m->n_folders + 1, sizeof(*file->class_n));
    if (!file->class_of || !file->class_name || !file->class_n)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++) {
        const char *path = members_folder(m, i);

        if (is_class_folder(file->media, path, file->base.source->root))
            file->class_name[file->n_classes++] = path + root + (root > 0);
        if (file->n_classes)
            file->class_of[i] = file->n_classes - 1;
    }
    return 0;
}

static void samples_count_classes(struct samples_file *file)
{
    for (uint64_t row = 0; row < files_index(&file->base)->rows; row++)
        file->class_n[samples_label(file, row, 0)]++;
}

/* ---- columns ---- */

/* The class is `label`. Members that would be have another name: <key>.label.cls its extension in
 * full, <key>.label is `label_file`. In tar a member label.cls is where the class would be. */
static void samples_add_labels(struct files_file *file)
{
    unsigned other;

    for (unsigned i = 0; i < file->n_members; i++) {
        struct member_column *shows = &file->shows[i];

        if (strcmp(shows->name, "label") != 0)
            continue;
        if (file->column[i].shown == RECORD_NUMBERS)
            memcpy(shows->name, shows->ext, sizeof(shows->name)); /* longer by ".cls" */
        else if (file->column[i].shown == RECORD_BYTES)
            snprintf(shows->name, sizeof(shows->name), "label_file");
    }
    files_add_labels(file, 1, 1,
                     column_table_find(&file->exts, "label.cls", strlen("label.cls"), &other)
                         ? RECORD_NOT_TAR
                         : 0);
}

/* What the columns are is known: from the pass, or from a kept index. */
static int samples_ready(void *impl, struct diag *d)
{
    struct samples_file *file = impl;
    int r = files_make_columns(&file->base, 2);

    (void)d;
    if (r < 0 || file->layout != LAYOUT_CLASSES)
        return r;
    samples_add_labels(&file->base);
    samples_count_classes(file);
    return 0;
}

/* ---- the index ---- */

static int samples_identity(void *impl, struct text *ret)
{
    const struct samples_file *file = impl;

    text_add(ret, " %d %s", (int)file->layout, file->base.source->root);
    if (file->media != FILES_PICTURES)
        text_add(ret, " %s", files_media[file->media].word);
    return 0;
}

/* A kept index is hostile. Its firsts do not fall, and end with the last member. */
static int samples_load(void *impl, const struct index *index)
{
    struct samples_file *file = impl;
    const struct members *m = file->base.source->members;
    size_t used;
    int r = index_number(index, index->rows, SAMPLES_FIRST) == m->n
                ? column_table_read(&file->base.exts, index->about, index->about_len, &used)
                : -EBADMSG;

    if (r == 0 && !values_are_good(file, index))
        r = -EBADMSG;
    if (r == 0) {
        file->values_note = strndup((const char *)index->about + used, index->about_len - used);
        r = file->values_note ? 0 : -ENOMEM;
    }
    if (r < 0) {
        column_table_release(&file->base.exts);
        file->base.exts = (struct column_table){0};
    }
    return r;
}

static int samples_begin(void *impl)
{
    struct samples_file *file = impl;
    int r;

    file->walk = (struct sample_walk){.m = file->base.source->members,
                                      .end = file->base.source->members->n,
                                      .by_class = file->layout == LAYOUT_CLASSES,
                                      .media = file->media};
    r = sample_keys_init(&file->keys, &file->walk, file->base.source->root);
    return r < 0 ? r : values_pass_new(file, &file->values);
}

static int samples_add_row(struct samples_file *file, const struct sample_files *sample,
                           struct diag *d)
{
    char key[KEY_MAX];
    uint64_t *number;
    int r = values_pass_sample(file->values, sample, &file->walk, &number, d);

    if (r < 0)
        return r;
    number[SAMPLES_FIRST] = sample->first;
    return index_add(file->base.base.prepared.builder, key, sample_key(&file->keys, sample, key),
                     number);
}

static int samples_step(void *impl, struct diag *d)
{
    struct samples_file *file = impl;
    int64_t until = monotonic_ns() + STEP_NS;
    struct sample_files sample;
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0; i++) {
        struct sample_walk before = file->walk;

        if (!next_sample(&file->walk, &sample)) {
            file->base.base.prepared.end[SAMPLES_FIRST] = file->base.source->members->n;
            return 1;
        }
        r = samples_add_row(file, &sample, d);
        if (r < 0)
            file->walk = before;
        if (values_pass_has_read(file->values) && monotonic_ns() > until)
            break;
    }
    if (file->base.source->members->n)
        atomic_store(&file->base.base.prepared.seen,
                     file->base.source->members->member[file->walk.at].place);
    return r;
}

/* Besides the rows: the extensions, and the note. */
static int samples_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct samples_file *file = impl;
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
    for (unsigned i = 0; i < file->base.exts.n; i++) {
        uint64_t *number = file->base.exts.column[i].number;

        if (number[MEMBER_FORM] == MEMBER_AS_ARRAY && !number[MEMBER_VALUE])
            number[MEMBER_FORM] = MEMBER_AS_BYTES; /* none could be read */
    }
    column_table_settle(&file->base.exts);
    column_table_write(&file->base.exts, ret);
    text_add_bytes(ret, file->values_note, strlen(file->values_note));
    return 0;
}

static void samples_file_release(void *p)
{
    struct samples_file *file = p;

    sample_keys_release(&file->keys);
    values_pass_free(file->values);
    free(file->values_note);
    free(file->class_of);
    free(file->class_name);
    free(file->class_n);
    files_file_release(&file->base);
}

static const struct files_ops samples_ops = {
    .file = {.size = sizeof(struct samples_file),
             .index = {.version = "files 2",
                       .identity = samples_identity,
                       .load = samples_load,
                       .begin = samples_begin,
                       .step = samples_step,
                       .about = samples_about,
                       .ready = samples_ready},
             .shape = {.columns = SAMPLES_FIXED,
                       .rising = 1u << SAMPLES_FIRST,
                       .has_keys = true,
                       .learns = true},
             .release = samples_file_release},
    .has = samples_has,
    .member = samples_member,
    .fault = samples_fault,
    .label = samples_label,
    .class_name = samples_class_name,
    .note = samples_note,
    .describe = samples_describe,
};

/* Names are all that the index of a few files is made of, if none is a value: to make it takes less
 * than to look whether it was kept. There may be very many such folders. */
static bool samples_is_cheap(const struct members *m)
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

int files_open_samples(struct files_source *source, const struct files_claim *claim,
                       const char *name, const struct format_setup *setup, struct finds *finds)
{
    struct samples_file *file;
    int r = files_file_new(&samples_ops, source, setup, &file);

    if (r < 0)
        return r;
    file->layout = claim->layout;
    file->media = claim->media;
    file->base.base.prepared.is_cheap = samples_is_cheap(source->members);
    r = file->layout == LAYOUT_CLASSES ? samples_find_classes(file) : 0;
    if (r < 0) {
        record_file_drop(&file->base.base);
        return r;
    }
    return files_add_dataset(&file->base, name, setup, finds);
}
