/* The index of a collection has a row for each sample: its key, and the values of members that are
 * numbers. All else is known from the claim, and from the table of members: which files a sample
 * has, their sizes and places, its class, and what tables say. So a million samples take a few
 * bytes each, next to their names. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/search.h"
#include "format/annotations/boxes.h"
#include "format/files/file.h"
#include "format/picture/magic.h"

#define FILES_KEPT 4096 /* files, at least, of a collection without values whose index is kept */

#define STEP    8192     /* samples of a step of preparing, */
#define STEP_NS 10000000 /* and its duration if files are read */

/* ---- samples ---- */

unsigned samples_fixed(const struct files_file *file)
{
    return SAMPLES_FIXED + file->claim->pictures_only;
}

uint64_t samples_row(const struct files_file *file, uint64_t row)
{
    return file->claim->pictures_only ? index_number(files_index(file), row, SAMPLES_ROW) : row;
}

size_t samples_ext(const struct files_file *file, const struct sample_files *sample, size_t member,
                   char ret[static EXT_MOST + 1])
{
    const struct files_claim *claim = file->claim;
    unsigned role = claim->role ? claim->role[member] : 0;
    size_t n = name_ext(members_name(file->source->members, member), sample->stem, ret);
    const char *bare = files_media[claim->media].bare;

    if (role)
        return (size_t)snprintf(ret, EXT_MOST + 1, "%s", claim->role_name[role - 1]);
    if (n || !bare)
        return n;
    n = strlen(bare);
    memcpy(ret, bare, n + 1);
    return n;
}

bool samples_find(const struct files_file *file, const struct sample_files *sample, size_t end,
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

/* A name that is not there has all fields of its column, so that its loss is seen. */
const char *samples_lost(const struct files_file *file, uint64_t row, unsigned column)
{
    const struct files_claim *claim = file->claim;
    const struct learned_column *ext = files_ext(file, column);
    uint64_t sample = samples_row(file, row);
    size_t at;

    if (!claim->n_lost)
        return NULL;
    at = search_last_up_to(&claim->lost->sample, sizeof(*claim->lost), claim->n_lost, sample);
    for (; at < claim->n_lost && claim->lost[at].sample == sample; at--)
        if (files_lost_has(&claim->lost[at], ext->name))
            return claim->lost[at].why;
    return NULL;
}

int64_t samples_label(const struct files_file *file, uint64_t row)
{
    const uint32_t *sample = file->view->sample;
    size_t first;

    row = samples_row(file, row);
    if (file->view->label)
        return file->view->label[row];
    first = file->claim->first[sample ? sample[row] : row];
    return file->class_of[file->source->members->member[first].folder];
}

/* ---- classes ---- */

/* The class of each folder, for that is the same for all of its files. */
static int samples_find_classes(struct files_file *file)
{
    const struct members *m = file->source->members;

    file->class_of = calloc(m->n_folders + 1, sizeof(*file->class_of));
    file->class_n = calloc(file->claim->n_classes + 1, sizeof(*file->class_n));
    if (!file->class_of || !file->class_n)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++)
        if (members_is_below(members_folder(m, i), file->claim->top))
            file->class_of[i] = (uint32_t)claim_class_of(file->claim, members_folder(m, i));
    return 0;
}

static void samples_count_classes(struct files_file *file)
{
    for (uint64_t row = 0; row < files_index(file)->rows && file->class_n; row++)
        file->class_n[samples_label(file, row)]++;
}

/* ---- columns ---- */

/* The class is `label`. Members that would be have another name: <key>.label.cls its extension in
 * full, <key>.label is `label_file`. In tar a member label.cls is where the class would be. */
static void samples_add_labels(struct files_file *file)
{
    unsigned other;
    bool has_class = column_table_find(&file->exts, "label.cls", strlen("label.cls"), &other);

    for (unsigned i = 0; i < file->n_members; i++) {
        struct member_column *shows = &file->shows[i];

        if (strcmp(shows->name, "label") != 0)
            continue;
        if (file->column[i].shown == RECORD_NUMBERS)
            memcpy(shows->name, shows->ext, sizeof(shows->name)); /* longer by ".cls" */
        else if (file->column[i].shown == RECORD_BYTES)
            snprintf(shows->name, sizeof(shows->name), "label_file");
    }
    file->n_labels = 2;
    file->column[file->base.n_columns++] = (struct record_column){
        .name = "label", .shown = RECORD_NUMBERS, .dtype = DTYPE_I8, .without = RECORD_NOT_TAR};
    file->column[file->base.n_columns++] = (struct record_column){
        .name = "label",
        .shown = RECORD_BYTES,
        .ext = "cls",
        .without = RECORD_NOT_ARRAYS | RECORD_NOT_RAW | (has_class ? RECORD_NOT_TAR : 0)};
}

static bool samples_is_complete(const void *ctx, unsigned field)
{
    const struct files_file *file = ctx;

    return file->exts.column[field].number[MEMBER_ROWS] == files_index(file)->rows;
}

/* Which members are targets of pairs: those with a role. */
static void samples_find_targets(struct files_file *file)
{
    for (unsigned i = 0; i < file->n_members; i++)
        for (unsigned role = 0; role < file->claim->n_roles; role++)
            if (!strcmp(files_ext(file, i)->name, file->claim->role_name[role]))
                file->column[i].is_target = file->column[i].shown == RECORD_BYTES;
}

/* What the columns are is known: from the pass, or from a kept index. */
static int samples_ready(void *impl, struct diag *d)
{
    struct files_file *file = impl;
    int r = member_columns_make(&file->exts, 2 + cells_count(file), samples_is_complete, file,
                                &file->shows, &file->column, &file->base.n_columns);

    (void)d;
    if (r < 0)
        return r;
    file->base.column = file->column;
    file->n_members = file->base.n_columns;
    samples_find_targets(file);
    if (file->class_of || file->view->label) {
        samples_add_labels(file);
        samples_count_classes(file);
    }
    cells_add_columns(file);
    return 0;
}

/* ---- the index ---- */

/* What the keys and the columns depend on, besides the members. */
static int samples_identity(void *impl, struct text *ret)
{
    const struct files_file *file = impl;
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
    if (claim->keys.n)
        text_add(ret, " %" PRIx64, key_hash(claim->keys.column->bytes, claim->keys.column->len));
    if (view_reads_boxes(claim, view))
        text_add(ret, " %s %u %s", claim->boxes->name, claim->boxes_role, claim->boxes_ext);
    return 0;
}

/* Are the rows of a kept index those of the view? */
static bool samples_has_rows(const struct files_file *file, const struct index *index)
{
    if (!file->claim->pictures_only)
        return index->rows == file->view->n;
    if (index->rows > file->view->n || index->shape.columns <= SAMPLES_ROW)
        return false;
    for (uint64_t row = 0; row < index->rows; row++)
        if (index_number(index, row, SAMPLES_ROW) >= file->view->n)
            return false;
    return true;
}

static void samples_keep(void *impl, struct kept *k)
{
    struct files_file *file = impl;

    column_table_keep(k, &file->exts);
    kept_text(k, &file->values_note);
    if (file->claim && view_reads_boxes(file->claim, file->view))
        boxes_keep(k, file);
}

/* A kept index is hostile. */
static int samples_load(void *impl, const struct index *index)
{
    const struct files_file *file = impl;

    return samples_has_rows(file, index) && values_are_good(file, index) ? 0 : -EBADMSG;
}

static int samples_begin(void *impl)
{
    struct files_file *file = impl;
    int r = sample_keys_init(&file->keys, file->source->members, file->claim, file->view);

    return r < 0 ? r : values_pass_new(file, &file->values);
}

/* As MindSpore: a file of another format is dropped. The name counts where the bytes are remote. */
static bool samples_is_picture(const struct files_source *source, size_t member)
{
    size_t len = (size_t)min_u64(members_size(source->members, member), PICTURE_MAGIC_SIZE);
    uint64_t at = source->members->member[member].place;
    uint8_t head[PICTURE_MAGIC_SIZE];
    enum picture_format picture;

    if (source->blob->ops->fetch)
        return true;
    if (len && blob_read(READ_WAITS, source->blob, head, len, at, NULL) < 0)
        return true; /* its readers get the error */
    picture = picture_format_of(head, len);
    return picture == PICTURE_JPEG || picture == PICTURE_PNG || picture == PICTURE_GIF ||
           picture == PICTURE_BMP;
}

static int samples_add_row(struct files_file *file, const struct sample_files *sample,
                           struct diag *d)
{
    char key[KEY_MAX];
    uint64_t *number;
    int r;

    if (file->claim->pictures_only && sample->n && !samples_is_picture(file->source, sample->first))
        return 0;
    r = values_pass_sample(file->values, file->row, sample, &number, d);
    if (r < 0)
        return r;
    if (file->claim->pictures_only)
        number[SAMPLES_ROW] = file->row;
    return index_add(file->base.prepared.builder, key,
                     sample_key(&file->keys, file->row, sample, key), number);
}

static int samples_step(void *impl, struct diag *d)
{
    struct files_file *file = impl;
    int64_t until = monotonic_ns() + STEP_NS;
    struct sample_files sample;

    if (!file->has_boxes && view_reads_boxes(file->claim, file->view))
        return boxes_step(file, until, d);
    for (unsigned i = 0; i < STEP; i++) {
        int r;

        if (file->row == file->view->n)
            return 1;
        claim_sample(file->source->members, file->claim, file->view, file->row, &sample);
        r = samples_add_row(file, &sample, d);
        if (r < 0)
            return r;
        file->row++;
        atomic_store(&file->base.prepared.seen, file->source->members->member[sample.first].place);
        if (values_pass_has_read(file->values) && monotonic_ns() > until)
            break;
    }
    return 0;
}

static int samples_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct files_file *file = impl;
    AUTO_TEXT struct text note = {0};
    int r;

    (void)index;
    (void)ret;
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
    return 0;
}

static void samples_file_release(void *p)
{
    struct files_file *file = p;

    sample_keys_release(&file->keys);
    values_pass_free(file->values);
    free(file->class_of);
    free(file->class_n);
    free(file->shows);
    free(file->column);
    files_source_drop(file->source);
    file->base.blob = NULL; /* the source's */
}

static const struct record_file_ops samples_ops = {
    .size = sizeof(struct files_file),
    .index = {.version = "files 4",
              .identity = samples_identity,
              .keep = samples_keep,
              .load = samples_load,
              .begin = samples_begin,
              .step = samples_step,
              .about = samples_about,
              .ready = samples_ready},
    .shape = {.columns = SAMPLES_FIXED, .has_keys = true, .learns = true},
    .release = samples_file_release,
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
    struct files_file *file;
    struct record_file *base;
    struct dataset *ds;
    int r = record_file_new(&samples_ops, source->blob, setup, &file);

    if (r < 0)
        return r;
    base = &file->base;
    file->source = source;
    source->users++;
    file->claim = source->claim;
    file->view = view;
    base->prepared.is_cheap =
        !view_reads_boxes(file->claim, view) && samples_is_cheap(source->members);
    if (source->claim->layout == LAYOUT_CLASSES && !view->label)
        r = samples_find_classes(file);
    if (r == 0)
        r = record_set_new(&files_records, &base, 1, setup, &ds);
    if (r == 0)
        ds->rule = file->claim->rule;
    record_file_drop(base);
    return r < 0 ? r : finds->dataset(finds, view->name ? view->name : name, ds);
}

int files_open_samples(struct files_source *source, const char *name,
                       const struct format_setup *setup, struct finds *finds)
{
    int r = 0;

    for (size_t i = 0; i < source->claim->n_views && r == 0; i++)
        r = samples_open_view(source, &source->claim->view[i], name, setup, finds);
    return r;
}
