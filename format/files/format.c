/* Folders of files as datasets: what the core asks of each. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/files/file.h"
#include "format/files/manifest.h"
#include "format/files/metadata.h"

static const struct learned_column *files_ext_of(const struct files_file *file, unsigned column)
{
    return &file->exts.column[file->shows[column].field];
}

/* The member of a sample that a column shows; false: it has none. */
static bool files_find_member(const struct files_file *file, uint64_t row, unsigned column,
                              size_t *ret)
{
    const struct learned_column *want = files_ext_of(file, column);
    struct sample_files sample;
    char ext[EXT_MOST + 1];

    files_sample(file, row, &sample);
    for (size_t i = sample.first; i < sample.first + sample.n; i++) {
        if (files_ext(file, &sample, i, ext) == want->len && !memcmp(ext, want->name, want->len)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool files_has(const void *p, uint64_t row, unsigned column)
{
    const struct files_file *file = p;
    size_t member;

    return column >= file->label || files_find_member(file, row, column, &member);
}

static size_t files_label_text(const struct files_file *file, uint64_t row, char ret[static 16])
{
    return (size_t)snprintf(ret, 16, "%" PRIu32, files_class(file, row));
}

static bool is_value(const struct files_file *file, unsigned column)
{
    return file->shows[column].shown == MEMBER_AS_INTEGER ||
           file->shows[column].shown == MEMBER_AS_ARRAY;
}

/* Values of a sample that could not be read when the index was made. */
static int files_check_fault(const struct files_file *file, uint64_t row, unsigned column,
                             struct diag *d)
{
    int fault = (int)index_number(&file->base.prepared.index, row, FILES_FAULT);
    struct sample_files sample;
    const struct members *m = file->source.members;
    const char *folder;

    if (!fault || !is_value(file, column))
        return 0;
    files_sample(file, row, &sample);
    folder = members_folder_of(m, sample.first);
    return diag_set(d, -fault,
                    "%s%s%s: a value of the sample could not be read when it was mounted: %s",
                    folder, *folder ? "/" : "", members_name(m, sample.first), strerror(fault));
}

static int files_dims(const void *p, uint64_t row, unsigned column,
                      uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct files_file *file = p;
    size_t member;
    char text[16];

    if (column == file->label)
        return 0;
    if (column > file->label)
        ret[0] = files_label_text(file, row, text);
    else if (is_value(file, column)) {
        int r = files_check_fault(file, row, column, d);

        if (r == 0 && file->shows[column].shown == MEMBER_AS_ARRAY)
            member_array_dims(&file->base.prepared.index, row, files_ext_of(file, column)->number,
                              ret);
        return r;
    } else
        ret[0] = files_find_member(file, row, column, &member)
                     ? members_size(file->source.members, member)
                     : 0;
    return 0;
}

static bool files_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct files_file *file = p;
    uint64_t head = 0;
    size_t member;

    if (column >= file->label || file->shows[column].shown == MEMBER_AS_INTEGER ||
        files_check_fault(file, row, column, NULL) < 0 ||
        !files_find_member(file, row, column, &member))
        return false;
    if (file->shows[column].shown == MEMBER_AS_ARRAY)
        head =
            member_array_head(&file->base.prepared.index, row, files_ext_of(file, column)->number);
    files_source_extent(&file->source, member, ret);
    ret->off += head;
    ret->len -= head;
    return ret->len > 0;
}

static void files_locate(const void *p, const struct extent *e, struct text *t)
{
    files_source_locate(&((const struct files_file *)p)->source, e, t);
}

static bool files_path(const void *p, uint64_t row, unsigned column, char *ret, size_t size)
{
    const struct files_file *file = p;
    size_t member;

    return column < file->label && files_find_member(file, row, column, &member) &&
           files_source_path(&file->source, member, ret, size);
}

static int read_label(const struct files_file *file, uint64_t row, unsigned column, uint64_t off,
                      size_t len, uint8_t *dst)
{
    char label[16];

    if (column == file->label)
        store_le64((uint8_t *)label, files_class(file, row));
    else
        files_label_text(file, row, label);
    memcpy(dst, label + off, len);
    return 0;
}

static int files_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct files_file *file = p;
    const struct index *index = &file->base.prepared.index;
    struct extent e;
    int r;

    if (column >= file->label)
        return read_label(file, row, column, off, len, dst);
    r = files_check_fault(file, row, column, d);
    if (r < 0)
        return r;
    if (file->shows[column].shown == MEMBER_AS_INTEGER) {
        member_integer_read(index, row, files_ext_of(file, column)->number, off, len, dst);
        return 0;
    }
    if (!files_extent(file, row, column, &e))
        return -EIO;
    if (file->shows[column].shown == MEMBER_AS_ARRAY)
        return member_array_read(rc, &e, index, row, files_ext_of(file, column)->number, off, len,
                                 dst, d);
    return blob_read(rc, e.blob, dst, len, e.off + off, d);
}

static void files_note(const void *p, struct text *t)
{
    const struct files_file *file = p;

    files_source_note(&file->source, t);
    text_add(t, "%s", file->values_note);
    if (file->exts.left_out)
        text_add(
            t, "%" PRIu64 " files ignored, whose extensions are beyond the first %u, '.%s' first\n",
            file->exts.left_out, file->exts.n, file->exts.first_out);
    for (uint32_t i = 0; i < file->n_classes; i++)
        if (!file->class_n[i])
            text_add(t, "class %s (label %" PRIu32 ") has no %s\n", file->class_name[i], i,
                     files_kinds[file->kind].one);
}

static void files_describe(struct record_file *const *files, unsigned n, const char *indent,
                           struct text *t)
{
    const struct files_file *file = (const struct files_file *)files[0];

    (void)n; /* it is one */
    text_add(t, "%s\"layout\": \"%s\",\n", indent,
             file->layout == LAYOUT_CLASSES ? "class folders" : "one folder");
    files_source_describe(&file->source, indent, t);
    if (file->layout != LAYOUT_CLASSES)
        return;
    text_add(t, "%s\"classes\": [", indent);
    for (uint32_t i = 0; i < file->n_classes; i++) {
        text_add(t, "%s", i ? ", " : "");
        text_add_json(t, file->class_name[i]);
    }
    text_add(t, "],\n");
}

/* ---- layouts ---- */

static bool files_class_name(const void *p, int64_t number, struct text *t)
{
    const struct files_file *file = p;

    if (file->layout != LAYOUT_CLASSES || number < 0 || number >= file->n_classes)
        return false;
    text_add(t, "%s", file->class_name[number]);
    return true;
}

static const struct record_format by_names = {
    .class_name = files_class_name,
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
};

static const struct record_format by_table = {
    .format = &format_files,
    .has = metadata_has,
    .dims = metadata_dims,
    .extent = metadata_extent,
    .extents_are_copies = true,
    .locate = metadata_locate,
    .path = metadata_path,
    .read = metadata_read,
    .note = metadata_note,
    .describe = metadata_describe,
};

static const struct record_format by_manifest = {
    .format = &format_files,
    .has = manifest_has,
    .dims = manifest_dims,
    .extent = manifest_extent,
    .extents_are_copies = true,
    .locate = manifest_locate,
    .path = manifest_path,
    .read = manifest_read,
    .note = manifest_note,
    .describe = manifest_describe,
};

/* Names decide, and many files together. */
static enum claim files_probe(const struct probed_file *file)
{
    (void)file;
    return CLAIM_NONE;
}

static int open_collection(struct collection *c, struct blob *blob, const struct members *members,
                           const struct format_setup *setup, struct finds *finds)
{
    enum files_layout layout = ((const struct files_claim *)c->impl)->layout;
    const struct record_format *rf = layout == LAYOUT_TABLE ? &by_table : &by_names;
    struct diag d = DIAG_INIT;
    struct dataset *ds;
    struct record_file *file;
    int r;

    if (layout == LAYOUT_MANIFEST)
        return manifest_open_collection(&by_manifest, c, blob, members, setup, finds);
    r = layout == LAYOUT_TABLE ? metadata_open(c, blob, members, setup, &file, &d)
                               : files_open(c, blob, members, setup, &file);
    if (r < 0)
        return r == -ENOMEM ? r : finds->error(finds, c->name, diag_text(&d, r));
    r = record_set_new(rf, &file, 1, setup, &ds);
    record_file_drop(file);
    return r < 0 ? r : finds->dataset(finds, c->name, ds);
}

const struct format format_files = {
    .name = "files",
    .probe = files_probe,
    .claim_names = files_claim_names,
    .open_collection = open_collection,
    .free_claim = files_free_claim,
    .title = "folders of pictures, sounds or texts",
    .example = "  import os\n"
               "  for name in sorted(os.listdir(root + '/samples/raw')):\n"
               "      with open(root + '/samples/raw/' + name, 'rb') as file:\n"
               "          data = file.read()    # or PIL.Image.open(file), wave.open(file)\n",
};
