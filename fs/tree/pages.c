#include "fs/tree/pages.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "format/core/encoder.h"
#include "format/mix/mix.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/mix_order.h"
#include "fs/tree/class_page.h"
#include "fs/tree/tree.h"

#define SHAPE_AXES 8 /* axes shown to people */

bool page_shows(const struct field *f)
{
    return field_is_in(f, IN_PAGES) && !f->numbering && !f->base_field;
}

void page_dtype(const struct field *f, struct text *t)
{
    text_add(t, "%s", dtype_info(f->dtype)->name);
    if (f->dtype == DTYPE_TEXT && f->width)
        text_add(t, "%llu", (unsigned long long)f->width);
    if (f->stored_as)
        text_add(t, " (the bits of %s)", f->stored_as);
}

void page_shape(const struct field *f, struct text *t)
{
    if (!f->ndim)
        text_add(t, "scalar");
    if (f->ndim > SHAPE_AXES) {
        text_add(t, "%u dimensions", f->ndim);
        return;
    }
    for (unsigned i = 0; i < f->ndim; i++) {
        text_add(t, i ? " x " : "");
        text_add(t,
                 f->dim[i] != DIM_VARIES ? "%llu"
                 : f->ndim == 1          ? "length varies"
                                         : "varies",
                 (unsigned long long)f->dim[i]);
    }
}

static void pages_add_field(const struct field *f, const char *indent, bool last, struct text *t)
{
    char descr[DTYPE_DESCR_SIZE];

    if (f->dtype == DTYPE_TEXT && !f->width) /* as wide as the longest of its file */
        snprintf(descr, sizeof(descr), "|S");
    else
        dtype_descr(f->dtype, f->width, false, descr);
    text_add(t, "%s  {", indent);
    json_add_text(t, NULL, "name", f->name);
    json_add_text(t, NULL, "dtype", dtype_info(f->dtype)->name);
    json_add_text(t, NULL, "descr", descr);
    json_open(t, NULL, "shape", "[");
    for (unsigned i = 0; i < f->ndim; i++)
        json_add(t, NULL, NULL, f->dim[i] == DIM_VARIES ? "null" : "%llu",
                 (unsigned long long)f->dim[i]);
    json_close(t, NULL, "]");
    if (f->stored_as)
        json_add_text(t, NULL, "stored_as", f->stored_as);
    json_add(t, NULL, "derived", "%s", page_shows(f) && !f->derived ? "false" : "true");
    text_add(t, "}%s\n", last ? "" : ",");
}

static void add_encodings(const struct dataset *ds, enum scope scope, struct text *t)
{
    for (unsigned i = 0; i < ds->n_folders; i++)
        if (ds->folder[i].n_kinds[scope])
            json_add_text(t, NULL, NULL, ds->folder[i].name);
}

/* The versions of the orders that plans have, by the names of docs/spec/order.md. A mix has its
 * own. */
static void add_orders(const struct dataset *ds, const char *indent, struct text *t)
{
    static const struct order_ops *const orders[] = {&order_permutation, &order_draw,
                                                     &order_classes};
    static const struct order_ops *const of_mix = &order_mix;
    const struct order_ops *const *order = mix_dataset_is(ds) ? &of_mix : orders;
    size_t n = mix_dataset_is(ds) ? 1 : ARRAY_LEN(orders);

    json_add_number(t, indent, "order_version", ORDER_VERSION);
    json_open(t, indent, "orders", "{");
    for (size_t i = 0; i < n; i++)
        json_add_number(t, NULL, order[i]->name, order[i]->version);
    json_add_number(t, NULL, "length batches", LENGTH_BATCHES_VERSION);
    json_close(t, indent, "}");
}

/* Only what is known without reading: the page is the same in all mounts. */
static void add_class_counts(const struct dataset *ds, const char *indent, struct text *t)
{
    AUTO_CLASS_COUNTS struct class_counts counts = {0};
    const struct field *f = class_counts_field(ds);

    if (f && class_counts_are_known(ds, f) && class_counts_init(&counts, ds, f, NULL) == 0)
        class_page_json(ds, &counts, indent, t);
}

void page_lines(const char *lines, struct text *t)
{
    text_add(t, "[");
    for (; *lines; lines += *lines == '\n') {
        size_t len = strcspn(lines, "\n");

        json_add_bytes(t, lines, len);
        lines += len;
    }
    text_add(t, "]");
}

static void pages_add_notes(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct missing_parts *missing = &ds->missing;
    AUTO_TEXT struct text notes = {0};

    notes_show(&ds->notes, &notes);
    text_add(t, "%s\"notes\": ", indent);
    page_lines(notes.data ? notes.data : "", t);
    text_add(t, ",\n%s\"missing\": [", indent);
    for (size_t i = 0; i < missing_parts_kept(missing); i++) {
        text_add(t, "%s\n%s  {", i ? "," : "", indent);
        json_add_text(t, NULL, "name", missing->part[i].name);
        json_add_text(t, NULL, "reason", missing->part[i].reason);
        text_add(t, "}");
    }
    if (missing->n)
        text_add(t, "\n%s", indent);
    text_add(t, "],\n");
    if (missing->n > MISSING_PARTS_MAX)
        json_add_number(t, indent, "missing_unlisted", missing->n - MISSING_PARTS_MAX);
}

void page_dataset_members(const struct dataset *ds, const char *indent, struct text *t)
{
    size_t described;

    json_add_text(t, indent, "format", ds->format->name);
    json_add_number(t, indent, "samples", ds->samples);
    text_add(t, "%s\"fields\": [\n", indent);
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_is_in(&ds->field[i], IN_PAGES)) /* index and key come last, and are */
            pages_add_field(&ds->field[i], indent, i + 1 == ds->n_fields, t);
    text_add(t, "%s],\n", indent);
    if (ds->label_is_chosen)
        json_add_text(t, indent, "label", ds->label);
    pages_add_notes(ds, indent, t);
    described = t->len;
    if (ds->ops && ds->ops->describe)
        ds->ops->describe(ds, indent, t);
    if (ds->class_names) /* `classes` may be those of the field `label` */
        text_add(t, "%s\"%sclasses\": [%s],\n", indent,
                 t->data && strstr(t->data + described, "\"classes\": ") ? "label_" : "",
                 ds->class_names);
    augment_describe(ds, indent, t);
    json_open(t, indent, "encodings", "[");
    add_encodings(ds, SCOPE_SAMPLES, t);
    json_close(t, indent, "]");
    add_orders(ds, indent, t);
    if (ds->revision)
        json_add_text(t, indent, "revision", ds->revision);
    if (ds->commit)
        json_add_text(t, indent, "commit", ds->commit);
    text_add(t, "%s\"sources\": [\n", indent);
    for (unsigned i = 0; i < ds->n_blobs; i++) {
        text_add(t, "%s  {", indent);
        json_add_text(t, NULL, "file", blob_name(ds->blob[i]));
        text_add(t, ", \"bytes\": %llu}%s\n", (unsigned long long)ds->blob[i]->size,
                 i + 1 < ds->n_blobs ? "," : "");
    }
    text_add(t, "%s]\n", indent);
}

char *page_item(const struct catalog_item *item)
{
    AUTO_TEXT struct text t = {0};
    char *ret;

    if (item->error) {
        text_add(&t, "%s\n", item->error);
    } else {
        text_add(&t, "{\n");
        json_add_text(&t, "  ", "dataset", item->name);
        if (dataset_state(item->ds) == DATASET_FAILED) {
            text_add(&t, "  \"error\": ");
            text_add_json(&t, item->ds->reason.text);
            text_add(&t, "\n");
        } else {
            add_class_counts(item->ds, "  ", &t);
            page_dataset_members(item->ds, "  ", &t);
        }
        text_add(&t, "}\n");
    }
    return text_finish(&t, &ret, NULL) < 0 ? NULL : ret;
}

/* Add one line about a dataset. */
static void list_fields(const char *path, const struct dataset *ds, struct text *t)
{
    const char *joint = ":";
    size_t fields;

    if (dataset_state(ds) == DATASET_FAILED) {
        text_add(t, "  %s/  cannot be used: %s\n", path, ds->reason.text);
        return;
    }
    if (dataset_state(ds) != DATASET_READY) {
        text_add(t, "  %s/  %s; its samples were still being counted when this was written\n", path,
                 ds->format->name);
        return;
    }
    text_add(t, "  %s/  %llu samples", path, (unsigned long long)ds->samples);
    fields = t->len;
    for (unsigned k = 0; k < ds->n_fields; k++) {
        if (!page_shows(&ds->field[k]))
            continue;
        text_add(t, "%s %s (", joint, ds->field[k].name);
        page_dtype(&ds->field[k], t);
        text_add(t, ", ");
        page_shape(&ds->field[k], t);
        text_add(t, ")");
        joint = ",";
    }
    if (t->data)
        text_plain(t->data + fields, "");
    text_add(t, "\n");
}

static void list_items(const struct catalog *catalog, struct text *t)
{
    char path[TREE_NAME_SIZE * 4];
    bool any = false;

    text_add(t, "Datasets\n\n");
    for (size_t i = 0; i < catalog->n; i++) {
        const struct dataset *ds = catalog->item[i].ds;

        if (!ds || catalog->item[i].is_hidden || ds->unlisted)
            continue;
        item_path(&catalog->item[i], path, sizeof(path));
        text_plain(path, "");
        list_fields(path, ds, t);
    }
    for (size_t i = 0; i < catalog->n; i++) {
        if (!catalog->item[i].error || catalog->item[i].is_hidden)
            continue;
        if (!any)
            text_add(t, "\nFiles that could not be used; the reason is in <name>/ERROR.txt\n\n");
        any = true;
        item_path(&catalog->item[i], path, sizeof(path));
        text_plain(path, "");
        text_add(t, "  %s\n", path);
    }
}

static uint64_t example_rank(const struct catalog_item *item)
{
    bool known = dataset_state(item->ds) == DATASET_READY && item->ds->field[0].item_bytes;

    return known ? item->ds->samples : 0;
}

/* The dataset for the examples: the largest with samples that are not empty. NULL: none that all
 * users may know of. */
static const struct catalog_item *example_item(const struct catalog *catalog)
{
    const struct catalog_item *best = NULL;

    for (size_t i = 0; i < catalog->n; i++)
        if (catalog->item[i].ds && !catalog->item[i].is_hidden &&
            (!best || example_rank(&catalog->item[i]) > example_rank(best)))
            best = &catalog->item[i];
    return best;
}

/* Quoted for a shell or for Python, to be pasted safely: the source chooses the names. */
static void add_for_shell(const char *s, struct text *t)
{
    text_add(t, "'");
    for (; *s; s++) {
        if (*s == '\'')
            text_add(t, "'\\'");
        text_add_bytes(t, s, 1);
    }
    text_add(t, "'");
}

static void add_for_python(const char *s, struct text *t)
{
    text_add(t, "'");
    for (; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f) {
            text_add(t, "\\x%02x", *s);
            continue;
        }
        if (*s == '\'' || *s == '\\')
            text_add(t, "\\");
        text_add_bytes(t, s, 1);
    }
    text_add(t, "'");
}

/* The encoding of the examples: npy if samples have it. */
static const char *example_folder(const struct dataset *ds)
{
    const char *first = NULL;

    if (ds->late_folders && dataset_state(ds) != DATASET_READY)
        return ds->folder[0].name;
    for (unsigned i = 0; i < ds->n_folders; i++) {
        const struct folder *folder = &ds->folder[i];

        if (!folder->n_kinds[SCOPE_SAMPLES])
            continue;
        if (!strcmp(folder->name, "npy"))
            return folder->name;
        first = first ? first : folder->name;
    }
    return first ? first : ds->folder[0].name;
}

static void add_examples(const struct catalog *catalog, const char *mountpoint, struct text *t)
{
    const struct catalog_item *item = example_item(catalog);
    const char *encoder = item ? example_folder(item->ds) : NULL;
    const struct format *format = item ? item->ds->format : NULL;
    AUTO_TEXT struct text shell = {0}, python = {0}, where = {0};
    char path[TREE_NAME_SIZE * 4], whole[TREE_NAME_SIZE * 4 + PATH_MAX];

    if (!item)
        return;
    item_path(item, path, sizeof(path));
    snprintf(whole, sizeof(whole), "%s/%s", mountpoint, path);
    add_for_shell(whole, &shell);
    add_for_python(whole, &python);
    add_for_shell(mountpoint, &where);
    if (shell.failed || python.failed || where.failed) {
        t->failed = true;
        return;
    }
    text_add(t,
             "\nRead it\n\n"
             "  cd %s\n"
             "  ls                                        # what there is\n"
             "  cat dataset.json                          # fields, types, shapes\n"
             "  ls samples/%s | head                     # a file for each sample and field\n"
             "  ls batches/batch=128,seed=7/epoch=0/npz   # a file for each batch, shuffled\n\n",
             shell.data, encoder);
    text_add(t,
             "  import numpy as np                        # Python\n"
             "  root = %s\n",
             python.data);
    if (format->add_example)
        format->add_example(item->ds, t);
    else
        text_add(t, "%s", format->example);
    text_add(t,
             "\nA batch is named by its plan. Any plan and any epoch opens; `ls` shows those that\n"
             "were opened before:\n\n");
    plan_help(t);
    text_add(t,
             "\nThe same path holds the same bytes on every machine.\n"
             "Why a plan does not open: epochfs status %s\n"
             "Unmount: epochfs umount %s\n",
             where.data, where.data);
}

char *page_readme(const struct catalog *catalog, const char *source, const char *mountpoint)
{
    AUTO_TEXT struct text t = {0};
    char *ret;

    text_add(&t,
             "This is %s, mounted by epochfs: samples and shuffled batches as files.\n"
             "Nothing here can be written; everything is made when it is read.\n\n",
             source);
    list_items(catalog, &t);
    add_examples(catalog, mountpoint, &t);
    return text_finish(&t, &ret, NULL) < 0 ? NULL : ret;
}
