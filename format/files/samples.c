/* The index of a collection has a row for each sample: its key, and the values of members that are
 * numbers. All else is known from the claim, and from the table of members: which files a sample
 * has, their sizes and places, its class, and what tables say. So a million samples take a few
 * bytes each beside their names. */
#include "format/files/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/annotations/boxes.h"

#define FILES_KEPT 4096 /* files, at least, of a collection without values whose index is kept */

#define STEP    8192     /* samples of a step of preparing, */
#define STEP_NS 10000000 /* and its duration if files are read */

/* ---- samples ---- */

void samples_read(const struct samples_file *file, uint64_t row, struct sample_files *ret)
{
    claim_sample(file->base.source->members, file->claim, file->view, row, ret);
}

size_t samples_ext(const struct samples_file *file, const struct sample_files *sample,
                   size_t member, char ret[static EXT_MOST + 1])
{
    const struct files_claim *claim = file->claim;
    unsigned role = claim->role ? claim->role[member] : 0;
    size_t n = name_ext(members_name(file->base.source->members, member), sample->stem, ret);
    const char *bare = files_media[claim->media].bare;

    if (role)
        return (size_t)snprintf(ret, EXT_MOST + 1, "%s", claim->role_name[role - 1]);
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
    samples_read(file, row, &sample);
    return samples_find(file, &sample, sample.first + sample.n, ext->name, ext->len, ret);
}

static bool samples_has(const void *p, uint64_t row, unsigned column)
{
    const struct samples_file *file = p;
    size_t member;

    if (column >= file->base.n_members + file->base.n_labels)
        return cells_has(file, row, column);
    return column >= file->base.n_members || samples_member(p, row, column, &member, NULL);
}

/* Values of a sample that could not be read when the index was made. */
static int samples_fault(const void *p, uint64_t row, struct diag *d)
{
    const struct samples_file *file = p;
    int fault = (int)index_number(files_index(&file->base), row, SAMPLES_FAULT);
    AUTO_FREE char *name = NULL;
    struct sample_files sample;

    if (!fault)
        return 0;
    samples_read(file, row, &sample);
    name = files_source_name(file->base.source, sample.first);
    return diag_set(d, -fault,
                    "%s: a value of the sample could not be read when it was mounted: %s",
                    name ? name : "a sample", strerror(fault));
}

static int64_t samples_label(const void *p, uint64_t row, uint64_t i)
{
    const struct samples_file *file = p;
    struct sample_files sample;

    (void)i; /* it has one */
    if (file->view->label)
        return file->view->label[row];
    samples_read(file, row, &sample);
    return file->class_of[file->base.source->members->member[sample.first].folder];
}

/* The names of the classes, and how many there are. */
static char *const *samples_classes(const struct samples_file *file, size_t *ret)
{
    *ret = file->view->label ? file->view->n_classes : file->claim->n_classes;
    return file->view->label ? file->view->class_name : file->claim->class_name;
}

static bool samples_class_name(const void *p, int64_t number, struct text *t)
{
    size_t n;
    char *const *name = samples_classes(p, &n);

    if (number < 0 || (uint64_t)number >= n)
        return false;
    text_add(t, "%s", name[number]);
    return true;
}

static void samples_note(const void *p, struct text *t)
{
    const struct samples_file *file = p;
    const struct column_table *exts = &file->base.exts;

    text_add(t, "%s", file->values_note);
    if (file->claim->notes)
        text_add(t, "%s", file->claim->notes);
    if (file->boxes_note)
        text_add(t, "%s", file->boxes_note);
    if (exts->left_out)
        text_add(
            t, "%" PRIu64 " files ignored, whose extensions are beyond the first %u, '.%s' first\n",
            exts->left_out, exts->n, exts->first_out);
    for (size_t i = 0; file->class_n && i < file->claim->n_classes; i++)
        if (!file->class_n[i])
            text_add(t, "class %s (label %zu) has no %s\n", file->claim->class_name[i], i,
                     files_media[file->claim->media].one);
}

/* Members of dataset.json, a line each. */
static void samples_add_lines(const char *lines, const char *indent, struct text *t)
{
    while (lines && *lines) {
        int len = (int)strcspn(lines, "\n");

        text_add(t, "%s%.*s\n", indent, len, lines);
        lines += len + (lines[len] == '\n');
    }
}

static void samples_describe(const void *p, const char *indent, struct text *t)
{
    const struct samples_file *file = p;
    size_t n;
    char *const *name = samples_classes(file, &n);

    text_add(t, "%s\"layout\": \"%s\",\n", indent,
             file->claim->layout == LAYOUT_CLASSES ? "class folders" : "one folder");
    text_add(t, "%s\"rule\": ", indent);
    text_add_json(t, file->claim->rule);
    text_add(t, ",\n");
    files_describe_source(file->base.source, indent, t);
    if (n)
        files_describe_classes((const char *const *)name, (uint32_t)n, indent, t);
    samples_add_lines(file->claim->about, indent, t);
    samples_add_lines(file->boxes_about, indent, t);
}

/* ---- classes ---- */

/* The class of each folder, for that is the same for all of its files. */
static int samples_find_classes(struct samples_file *file)
{
    const struct members *m = file->base.source->members;
    size_t top = strlen(file->claim->top);

    file->class_of = calloc(m->n_folders + 1, sizeof(*file->class_of));
    file->class_n = calloc(file->claim->n_classes + 1, sizeof(*file->class_n));
    if (!file->class_of || !file->class_n)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++) {
        const char *path = members_folder(m, i);

        if (!members_is_below(path, file->claim->top) || strlen(path) == top)
            continue;
        path += top + (top > 0);
        file->class_of[i] =
            (uint32_t)class_name_find(file->claim->class_name, sizeof(char *),
                                      file->claim->n_classes, path, strcspn(path, "/"));
    }
    return 0;
}

static void samples_count_classes(struct samples_file *file)
{
    for (uint64_t row = 0; row < files_index(&file->base)->rows && file->class_n; row++)
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
    int r = files_make_columns(&file->base, 2 + cells_count(file));

    (void)d;
    if (r < 0)
        return r;
    if (file->class_of || file->view->label) {
        samples_add_labels(&file->base);
        samples_count_classes(file);
    }
    cells_add_columns(file);
    return 0;
}

/* ---- the index ---- */

/* What the keys and the columns depend on, besides the members. */
static int samples_identity(void *impl, struct text *ret)
{
    const struct samples_file *file = impl;
    const struct files_claim *claim = file->claim;
    const struct files_view *view = file->view;

    text_add(ret, " %d %s", (int)claim->layout, claim->top);
    if (claim->media != FILES_PICTURES)
        text_add(ret, " %s", files_media[claim->media].word);
    text_add(ret, " %" PRIx64,
             key_hash(claim->first, (claim->n_samples + 1) * sizeof(*claim->first)));
    if (view->sample)
        text_add(ret, " %" PRIx64, key_hash(view->sample, view->n * sizeof(*view->sample)));
    if (claim->role)
        text_add(ret, " %" PRIx64, key_hash(claim->role, claim->first[claim->n_samples]));
    for (unsigned i = 0; i < claim->n_roles; i++)
        text_add(ret, " %s", claim->role_name[i]);
    if (claim->boxes)
        text_add(ret, " %s %u %s", claim->boxes->name, claim->boxes_role, claim->boxes_ext);
    return 0;
}

/* A kept index is hostile. */
static int samples_load(void *impl, const struct index *index)
{
    struct samples_file *file = impl;
    size_t used;
    int r = index->rows == file->view->n
                ? column_table_read(&file->base.exts, index->about, index->about_len, &used)
                : -EBADMSG;

    if (r == 0 && !values_are_good(file, index))
        r = -EBADMSG;
    if (r == 0 && file->claim->boxes) {
        size_t more;

        r = boxes_load(file, index->about + used, index->about_len - used, &more);
        used += r == 0 ? more : 0;
    }
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
    int r = sample_keys_init(&file->keys, file->base.source->members, file->claim, file->view);

    return r < 0 ? r : values_pass_new(file, &file->values);
}

static int samples_add_row(struct samples_file *file, const struct sample_files *sample,
                           struct diag *d)
{
    char key[KEY_MAX];
    uint64_t *number;
    int r = values_pass_sample(file->values, file->row, sample, &number, d);

    return r < 0 ? r
                 : index_add(file->base.base.prepared.builder, key,
                             sample_key(&file->keys, sample, key), number);
}

static int samples_step(void *impl, struct diag *d)
{
    struct samples_file *file = impl;
    int64_t until = monotonic_ns() + STEP_NS;
    struct sample_files sample;

    if (file->claim->boxes && !file->has_boxes) {
        return boxes_step(file, until, d);
    }
    for (unsigned i = 0; i < STEP; i++) {
        int r;

        if (file->row == file->view->n)
            return 1;
        samples_read(file, file->row, &sample);
        r = samples_add_row(file, &sample, d);
        if (r < 0)
            return r;
        file->row++;
        atomic_store(&file->base.base.prepared.seen,
                     file->base.source->members->member[sample.first].place);
        if (values_pass_has_read(file->values) && monotonic_ns() > until)
            break;
    }
    return 0;
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
    if (file->claim->boxes)
        boxes_write(file, ret);
    text_add_bytes(ret, file->values_note, strlen(file->values_note));
    return 0;
}

static void samples_file_release(void *p)
{
    struct samples_file *file = p;

    sample_keys_release(&file->keys);
    values_pass_free(file->values);
    value_columns_release(&file->boxes);
    free(file->boxes_about);
    free(file->boxes_note);
    free(file->values_note);
    free(file->class_of);
    free(file->class_n);
    files_file_release(&file->base);
}

static const struct files_ops samples_ops = {
    .file = {.size = sizeof(struct samples_file),
             .index = {.version = "files 3",
                       .identity = samples_identity,
                       .load = samples_load,
                       .begin = samples_begin,
                       .step = samples_step,
                       .about = samples_about,
                       .ready = samples_ready},
             .shape = {.columns = SAMPLES_FIXED, .has_keys = true, .learns = true},
             .release = samples_file_release},
    .has = samples_has,
    .member = samples_member,
    .fault = samples_fault,
    .label = samples_label,
    .cell_dims = cells_dims,
    .cell_read = cells_read,
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

static int samples_open_view(struct files_source *source, const struct files_view *view,
                             const char *name, const struct format_setup *setup,
                             struct finds *finds)
{
    struct samples_file *file;
    int r = files_file_new(&samples_ops, source, setup, &file);

    if (r < 0)
        return r;
    file->claim = source->claim;
    file->view = view;
    file->base.base.prepared.is_cheap = !file->claim->boxes && samples_is_cheap(source->members);
    r = source->claim->layout == LAYOUT_CLASSES && !view->label ? samples_find_classes(file) : 0;
    if (r < 0) {
        record_file_drop(&file->base.base);
        return r;
    }
    return files_add_dataset(&file->base, view->name ? view->name : name, setup, finds);
}

int files_open_samples(struct files_source *source, const char *name,
                       const struct format_setup *setup, struct finds *finds)
{
    int r = 0;

    for (size_t i = 0; i < source->claim->n_views && r == 0; i++)
        r = samples_open_view(source, &source->claim->view[i], name, setup, finds);
    return r;
}
