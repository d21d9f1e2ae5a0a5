/* What a row of a collection shows: the bytes of members, values that members have, the class, and
 * what tables and annotations say. */
#include "format/files/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* ---- the bytes of a collection ---- */

void files_source_drop(struct files_source *source)
{
    if (--source->users)
        return;
    free(source->root);
    files_free_claim(source->claim);
    claim_boxes_free(source->boxes);
    free(source->unread);
    blob_free(source->blob);
    free(source);
}

/* Takes over blob, and what c and its claim have, also on error. 0 or -ENOMEM. */
static int files_source_new(struct collection *c, struct blob *blob, const struct members *members,
                            struct files_source **ret)
{
    struct files_source *source = malloc(sizeof(*source));

    if (!source) {
        blob_free(blob);
        return -ENOMEM;
    }
    *source = (struct files_source){.blob = blob,
                                    .members = members,
                                    .root = strdup(c->root),
                                    .claim = TAKE_PTR(c->impl),
                                    .n_unread = c->n_unread,
                                    .unread = TAKE_PTR(c->unread),
                                    .users = 1};
    if (!source->root) {
        files_source_drop(source);
        return -ENOMEM;
    }
    *ret = source;
    return 0;
}

/* ---- members ---- */

static void files_sample(const struct files_file *file, uint64_t row, struct sample_files *ret)
{
    claim_sample(file->source->members, file->claim, file->view, samples_row(file, row), ret);
}

/* The member that a row has in a column. 1; 0: it has none; or -EBADMSG with the reason in d: it is
 * lost. */
static int files_member(const struct files_file *file, uint64_t row, unsigned column, size_t *ret,
                        struct diag *d)
{
    const struct learned_column *ext = files_ext(file, column);
    struct sample_files sample;
    uint8_t key[KEY_MAX];
    const char *lost;

    files_sample(file, row, &sample);
    if (samples_find(file, &sample, sample.first + sample.n, ext->name, ext->len, ret))
        return 1;
    lost = samples_lost(file, row, column);
    return lost ? diag_set(d, -EBADMSG, "%s: row %" PRIu64 " (%.*s): %s", file->claim->table,
                           samples_row(file, row), (int)index_key(files_index(file), row, key),
                           (const char *)key, lost)
                : 0;
}

static bool files_has(const void *p, uint64_t row, unsigned column)
{
    const struct files_file *file = p;
    size_t member;

    if (column >= file->n_members + file->n_labels)
        return cells_has(file, row, column);
    return column >= file->n_members || files_member(file, row, column, &member, NULL) != 0;
}

static bool files_is_value(const struct files_file *file, unsigned column)
{
    return file->shows[column].shown == MEMBER_AS_INTEGER ||
           file->shows[column].shown == MEMBER_AS_ARRAY;
}

/* Is the column a value that could not be read when the index was made? 0, or -errno. */
static int files_fault(const struct files_file *file, uint64_t row, unsigned column, struct diag *d)
{
    int fault =
        files_is_value(file, column) ? (int)index_number(files_index(file), row, SAMPLES_FAULT) : 0;
    AUTO_FREE char *name = NULL;
    struct sample_files sample;

    if (!fault)
        return 0;
    files_sample(file, row, &sample);
    name = member_path(file->source->members, sample.first);
    return diag_set(d, -fault,
                    "%s: a value of the sample could not be read when it was mounted: %s",
                    name ? name : "a sample", strerror(fault));
}

/* ---- contents ---- */

#define LABEL_TEXT 24
static size_t files_label_text(const struct files_file *file, uint64_t row,
                               char ret[static LABEL_TEXT])
{
    return (size_t)snprintf(ret, LABEL_TEXT, "%" PRId64, samples_label(file, row));
}

static bool files_is_cell(const struct files_file *file, unsigned column)
{
    return column >= file->n_members + file->n_labels;
}

static int files_dims(const void *p, uint64_t row, unsigned column,
                      uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct files_file *file = p;
    char text[LABEL_TEXT];
    size_t member;
    int r;

    if (files_is_cell(file, column)) {
        cells_dims(file, row, column, ret);
        return 0;
    }
    if (column >= file->n_members) { /* a number has no axis */
        ret[0] = files_label_text(file, row, text);
        return 0;
    }
    if (files_is_value(file, column)) {
        r = files_fault(file, row, column, d);
        if (r == 0 && file->shows[column].shown == MEMBER_AS_ARRAY)
            member_array_dims(files_index(file), row, files_ext(file, column)->number, ret);
        return r;
    }
    r = files_member(file, row, column, &member, d);
    ret[0] = r > 0 ? members_size(file->source->members, member) : 0;
    return r < 0 ? r : 0;
}

static bool files_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct files_file *file = p;
    uint64_t head = 0;
    size_t member;

    if (column >= file->n_members || file->shows[column].shown == MEMBER_AS_INTEGER ||
        files_fault(file, row, column, NULL) < 0 ||
        files_member(file, row, column, &member, NULL) <= 0)
        return false;
    if (file->shows[column].shown == MEMBER_AS_ARRAY)
        head = member_array_head(files_index(file), row, files_ext(file, column)->number);
    *ret = (struct extent){file->source->blob, file->source->members->member[member].place + head,
                           members_size(file->source->members, member) - head};
    return ret->len > 0;
}

static void files_locate(const void *p, const struct extent *e, struct text *t)
{
    members_locate(((const struct files_file *)p)->source->members, e->off, e->len, t);
}

static bool files_path(const void *p, uint64_t row, unsigned column, char *ret, size_t size)
{
    const struct files_file *file = p;
    size_t member;

    return column < file->n_members && files_member(file, row, column, &member, NULL) > 0 &&
           members_path(file->source->members, member, ret, size) == 0;
}

static void files_read_label(const struct files_file *file, uint64_t row, unsigned column,
                             uint64_t off, size_t len, uint8_t *dst)
{
    char text[LABEL_TEXT];
    uint8_t number[8];

    if (column > file->n_members)
        files_label_text(file, row, text);
    else
        store_le64(number, (uint64_t)samples_label(file, row));
    memcpy(dst, (column > file->n_members ? (uint8_t *)text : number) + off, len);
}

static int files_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct files_file *file = p;
    const struct index *index = files_index(file);
    const uint64_t *number;
    struct extent e;
    size_t member;
    int r;

    if (files_is_cell(file, column))
        return cells_read(rc, file, row, column, off, len, dst, d);
    if (column >= file->n_members) {
        files_read_label(file, row, column, off, len, dst);
        return 0;
    }
    r = files_fault(file, row, column, d);
    if (r < 0)
        return r;
    number = files_ext(file, column)->number;
    if (file->shows[column].shown == MEMBER_AS_INTEGER) {
        member_integer_read(index, row, number, off, len, dst);
        return 0;
    }
    if (!files_extent(file, row, column, &e)) {
        r = files_member(file, row, column, &member, d);
        return r < 0 ? r : -EIO;
    }
    if (file->shows[column].shown == MEMBER_AS_ARRAY)
        return member_array_read(rc, &e, index, row, number, off, len, dst, d);
    return blob_read(rc, e.blob, dst, len, e.off + off, d);
}

/* ---- for people ---- */

/* The names of the classes, and how many there are. */
static char *const *files_classes(const struct files_file *file, size_t *ret)
{
    *ret = file->view->label ? file->view->n_classes : file->claim->n_classes;
    return file->view->label ? file->view->class_name : file->claim->class_name;
}

static bool files_class_name(const void *p, int64_t number, struct text *t)
{
    size_t n;
    char *const *name = files_classes(p, &n);

    if (number < 0 || (uint64_t)number >= n)
        return false;
    text_add(t, "%s", name[number]);
    return true;
}

static bool files_class_size(const void *p, uint64_t number, uint64_t *ret)
{
    const struct files_file *file = p;

    if (!file->class_n || cells_count(file) || number >= file->claim->n_classes)
        return false; /* of cells, one may be called `label` */
    *ret = file->class_n[number];
    return true;
}

/* Samples of the view that the index does not have. */
static uint64_t files_dropped(const struct files_file *file)
{
    return file->view->n - files_index(file)->rows;
}

static void files_note(const void *p, struct text *t)
{
    const struct files_file *file = p;
    const struct files_source *source = file->source;
    const struct column_table *exts = &file->exts;

    if (*source->claim->aside)
        text_add(t, "ignored: %s%s\n", source->claim->aside,
                 strstr(source->claim->rule, "epochfs.json")
                     ? ""
                     : "; an epochfs.json can use them (epochfs info --layout)");
    if (source->n_unread)
        text_add(t, "%zu ignored, because %s be read: %s\n", source->n_unread,
                 source->n_unread > 1 ? "they cannot" : "it cannot", source->unread);
    text_add(t, "%s%s%s", file->values_note, file->claim->notes ? file->claim->notes : "",
             file->boxes_note ? file->boxes_note : "");
    if (files_dropped(file))
        text_add(t, "%" PRIu64 " dropped that are no JPEG, PNG, GIF or BMP\n", files_dropped(file));
    if (exts->left_out)
        text_add(
            t, "%" PRIu64 " files ignored, whose extensions are beyond the first %u, '.%s' first\n",
            exts->left_out, exts->n, exts->first_out);
    for (size_t i = 0; file->class_n && i < file->claim->n_classes; i++)
        if (!file->class_n[i])
            text_add(t, "class %s (label %zu) has no %s\n", file->claim->class_name[i], i,
                     files_media[file->claim->media].one);
}

/* Members of dataset.json, a line each, without those that are in `but`. Next to the classes of a
 * label, those of boxes are box_classes. */
static void files_add_lines(const char *lines, const char *but, bool has_label, const char *indent,
                            struct text *t)
{
    while (lines && *lines) {
        bool is_of_boxes = has_label && !strncmp(lines, "\"classes\"", 9);
        int len = (int)strcspn(lines, "\n");
        AUTO_FREE char *name = strndup(lines, strcspn(lines, ":") + 1);

        t->failed = t->failed || !name;
        if (name && !strstr(but, name))
            text_add(t, "%s%s%.*s\n", indent, is_of_boxes ? "\"box_" : "", len - is_of_boxes,
                     lines + is_of_boxes);
        lines += len + (lines[len] == '\n');
    }
}

static void files_describe(struct record_file *const *files, unsigned n_files, const char *indent,
                           struct text *t)
{
    const struct files_file *file = (const struct files_file *)files[0];
    const struct files_claim *claim = file->claim;
    const char *const boxes = file->boxes_about ? file->boxes_about : "";
    const char *other = ""; /* where COCO and files have boxes, of the other ones */
    size_t n;
    char *const *name = files_classes(file, &n);

    if (!strncmp(boxes, "\"box_format\":", 13))
        other = "\"box_format\": \"classes\":";
    else if (claim->boxes && !view_reads_boxes(claim, file->view))
        other = "\"class_names\":";
    (void)n_files; /* it is one */
    json_add_text(t, indent, "layout",
                  claim->table_word                 ? claim->table_word
                  : claim->layout == LAYOUT_CLASSES ? "class folders"
                                                    : "one folder");
    json_add_text(t, indent, "rule", claim->rule);
    if (*claim->aside)
        json_add_text(t, indent, "left_aside", claim->aside);
    if (claim->pictures_only)
        json_add_number(t, indent, "dropped", files_dropped(file));
    if (n)
        json_add_texts(t, indent, "classes", name, sizeof(*name), n);
    files_add_lines(claim->about, other, n > 0, indent, t);
    files_add_lines(boxes, "", n > 0, indent, t);
}

/* ---- the format ---- */

const struct record_format files_records = {
    .format = &format_files,
    .has = files_has,
    .dims = files_dims,
    .extent = files_extent,
    .extents_are_copies = true,
    .locate = files_locate,
    .path = files_path,
    .read = files_read,
    .note = files_note,
    .describe = files_describe,
    .class_name = files_class_name,
    .class_size = files_class_size,
};

/* Names decide, and many files together. */
static enum claim files_probe(const struct probed_file *file)
{
    (void)file;
    return CLAIM_NONE;
}

static int files_open_collection(struct collection *c, struct blob *blob,
                                 const struct members *members, const struct format_setup *setup,
                                 struct finds *finds)
{
    struct files_source *source;
    int r = files_source_new(c, blob, members, &source);

    if (r < 0)
        return r;
    r = files_open_samples(source, c->name, setup, finds);
    files_source_drop(source);
    return r;
}

const struct format format_files = {
    .name = "files",
    .probe = files_probe,
    .claim_names = files_claim_names,
    .open_collection = files_open_collection,
    .free_claim = files_free_claim,
    .title = "folders of pictures, sounds or texts",
    .example = "  import os\n"
               "  for name in sorted(os.listdir(root + '/samples/raw')):\n"
               "      with open(root + '/samples/raw/' + name, 'rb') as file:\n"
               "          data = file.read()    # or PIL.Image.open(file), wave.open(file)\n",
};
