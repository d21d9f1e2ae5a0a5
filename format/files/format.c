/* Folders of files as datasets: what the core asks of each. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/encode/encode.h"
#include "format/files/file.h"
#include "format/files/rows.h"

static const struct record_column *files_columns(const void *p, unsigned *ret_n)
{
    const struct files_file *file = p;

    *ret_n = file->n_columns;
    return file->columns;
}

/* The member of a sample that a column shows; false: it has none. */
static bool find_member(const struct files_file *file, uint64_t row, unsigned column, size_t *ret)
{
    const struct learned_column *want =
        &file->exts.column[column < file->exts.n ? column : file->text];
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

    return column >= file->label || find_member(file, row, column, &member);
}

static size_t label_text(const struct files_file *file, uint64_t row, char ret[static 16])
{
    return (size_t)snprintf(ret, 16, "%" PRIu32, files_class(file, row));
}

static int files_dims(const void *p, uint64_t row, unsigned column,
                      uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct files_file *file = p;
    size_t member;
    char text[16];

    (void)d;
    if (column == file->label)
        return 0;
    if (column > file->label)
        ret[0] = label_text(file, row, text);
    else
        ret[0] = find_member(file, row, column, &member) ? members_size(file->members, member) : 0;
    return 0;
}

static bool files_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct files_file *file = p;
    size_t member;

    if (column >= file->label || !find_member(file, row, column, &member))
        return false;
    *ret = (struct extent){file->blob, file->members->member[member].place,
                           members_size(file->members, member)};
    return ret->len > 0;
}

static void files_locate(const void *p, const struct extent *e, struct text *t)
{
    members_locate(((const struct files_file *)p)->members, e->off, e->len, t);
}

static int files_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct files_file *file = p;
    struct extent e;
    char label[16];

    if (column == file->label) {
        store_le64((uint8_t *)label, files_class(file, row));
        memcpy(dst, label + off, len);
        return 0;
    }
    if (column > file->label) {
        label_text(file, row, label);
        memcpy(dst, label + off, len);
        return 0;
    }
    return files_extent(file, row, column, &e) ? blob_read(rc, e.blob, dst, len, e.off + off, d)
                                               : -EIO;
}

static void files_note(const void *p, struct text *t)
{
    const struct files_file *file = p;

    if (*file->aside)
        text_add(t, "left aside: %s\n", file->aside);
    if (file->n_unread)
        text_add(t, "%zu left out, for %s be read: %s\n", file->n_unread,
                 file->n_unread > 1 ? "they cannot" : "it cannot", file->unread);
    for (uint32_t i = 0; i < file->n_classes; i++)
        if (!file->class_n[i])
            text_add(t, "class %s (label %" PRIu32 ") has no picture\n", file->class_name[i], i);
}

static void files_describe(const void *p, const char *indent, struct text *t)
{
    const struct files_file *file = p;

    text_add(t, "%s\"layout\": \"%s\",\n", indent,
             file->layout == LAYOUT_CLASSES ? "class folders" : "one folder");
    if (*file->aside) {
        text_add(t, "%s\"left_aside\": ", indent);
        text_add_json(t, file->aside);
        text_add(t, ",\n");
    }
    if (file->layout != LAYOUT_CLASSES)
        return;
    text_add(t, "%s\"classes\": [", indent);
    for (uint32_t i = 0; i < file->n_classes; i++) {
        text_add(t, "%s", i ? ", " : "");
        text_add_json(t, file->class_name[i]);
    }
    text_add(t, "],\n");
}

static const struct record_format records = {
    .format = &format_files,
    .file = {.prepare = files_prepare, .drop = files_drop},
    .share = files_share,
    .add_folders = dataset_add_folders,
    .columns = files_columns,
    .has = files_has,
    .dims = files_dims,
    .extent = files_extent,
    .extents_are_copies = true,
    .locate = files_locate,
    .read = files_read,
    .note = files_note,
    .describe = files_describe,
};

/* Names decide, and many files together. */
static enum claim probe(const struct probed_file *file)
{
    (void)file;
    return CLAIM_NONE;
}

static int open_collection(struct collection *c, struct blob *blob, const struct members *members,
                           const struct format_setup *setup, struct dataset **ret, struct diag *d)
{
    const struct files_claim *claim = c->impl;
    struct shard shard;
    int r;

    if (claim->layout == LAYOUT_TABLE)
        return rows_open_collection(c, blob, members, setup, ret, d);
    r = files_open(c, blob, members, setup, &shard);
    if (r < 0)
        return r;
    r = record_set_new(&records, &shard, 1, setup, ret);
    files_drop(shard.file);
    return r;
}

static void example(const struct dataset *ds, struct text *t)
{
    (void)ds;
    text_add(t, "  import os\n  from PIL import Image\n"
                "  for name in sorted(os.listdir(root + '/samples/raw')):\n"
                "      picture = Image.open(root + '/samples/raw/' + name)\n");
}

const struct format format_files = {
    .name = "files",
    .probe = probe,
    .claim_names = files_claim_names,
    .open_collection = open_collection,
    .free_claim = files_free_claim,
    .title = "folders of pictures",
    .example = example,
};
