#include "fs/tree/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/extents.h"

#define NEAR_SAMPLES  64 /* samples whose sizes are quickly summed up */
#define ATTRIBUTE_MAX 65536

static const struct blob *view_source_of(const struct node *node)
{
    return node->item->ds->blob[node->number];
}

/* Does the size of the file take reading its samples? */
static bool view_size_reads(const struct node *node)
{
    return (node->type == NODE_BATCH || node->type == NODE_SAMPLE) &&
           (node->file->encoder->reads || (node->file->field && node->file->field->form_reads));
}

bool view_size_is_near(const struct node *node)
{
    struct schedule_batch batch;
    uint64_t first;
    bool is_near;

    if (view_size_reads(node))
        return false;
    if (node->type != NODE_BATCH || !node->item->ds->ops || !node->item->ds->ops->prepare)
        return true;
    if (node_batch(node, &batch) < 0)
        return false;
    is_near =
        batch.count <= NEAR_SAMPLES ||
        (!node->item->ds->ops->walks && schedule_in_order(&node->plan->schedule, &batch, &first));
    schedule_batch_release(&batch);
    return is_near;
}

int view_size(struct read_context *rc, struct open_files *files, const struct node *node,
              uint64_t *ret, struct diag *d)
{
    AUTO_OPEN_FILE struct open_file f = {0};
    struct open_file *kept;
    size_t len;
    int r;

    if (node->type == NODE_PAGE) {
        tree_page(node, &len);
        *ret = len;
        return 0;
    }
    if (node->type == NODE_SOURCE) {
        *ret = view_source_of(node)->size;
        return 0;
    }
    if (open_files_size(files, node, ret))
        return 0;
    if (view_size_reads(node)) { /* so that the first READ does not read them again */
        r = open_files_take(rc, files, node, &kept, d);
        if (r < 0)
            return r;
        *ret = kept->layout.size;
        open_files_give(kept, 0);
        return 0;
    }
    r = open_file_init(rc, &f, files, node, d);
    if (r == 0)
        *ret = f.layout.size;
    return r;
}

int view_is_mixed(struct read_context *rc, struct open_files *files, const struct node *node,
                  struct diag *d)
{
    uint64_t size;
    int r;

    if (node->type != NODE_BATCH || !file_kind_is_mixed(node->item->ds, node->file))
        return 0;
    r = view_size(rc, files, node, &size, d);
    return r == -EDOM ? 1 : r == -EINTR ? r : 0;
}

uint64_t view_samples(struct open_files *files, const struct node *node, uint64_t first, uint64_t n,
                      uint64_t *ret)
{
    AUTO_FILE_SAMPLES struct file_samples v = {0};

    if (open_files_samples(files, node, &v) < 0 || first >= v.sel.count)
        return 0;
    n = min_u64(n, v.sel.count - first);
    selection_samples(&v.sel, first, (size_t)n, ret);
    return n;
}

static size_t clip(uint64_t size, uint64_t off, size_t len)
{
    return off < size ? (size_t)min_u64(len, size - off) : 0;
}

static int view_read_page(const struct node *node, uint64_t off, size_t len, uint8_t *dst,
                          size_t *ret_len)
{
    size_t size;
    const char *text = tree_page(node, &size);

    *ret_len = clip(size, off, len);
    if (*ret_len)
        memcpy(dst, text + off, *ret_len);
    return 0;
}

static int view_read_source(struct read_context *rc, const struct node *node, uint64_t off,
                            size_t len, uint8_t *dst, size_t *ret_len, struct diag *d)
{
    const struct blob *blob = view_source_of(node);

    *ret_len = clip(blob->size, off, len);
    return blob_read(rc, blob, dst, *ret_len, off, d);
}

int view_check_sources(const struct node *node, struct diag *d)
{
    const struct dataset *ds = node->item->ds;
    bool one = node->type == NODE_SOURCE;

    if (!one && ds->ops && ds->ops->checks_reads)
        return 0;
    for (unsigned i = one ? (unsigned)node->number : 0; i < ds->n_blobs; i++) {
        int r = blob_verify(ds->blob[i], d);

        if (r < 0)
            return r;
        if (one)
            break;
    }
    return 0;
}

int view_check_labels(const struct node *node, struct diag *d)
{
    return node->plan ? plan_labels_check(&node->plan->labels, &node->plan->plan, d) : 0;
}

static int lend_rendered(struct read_context *rc, struct open_files *files, const struct node *node,
                         uint64_t off, size_t len, uint8_t *dst, struct view_loan *ret,
                         struct diag *d)
{
    const uint8_t *whole;
    struct open_file *f;
    int r = open_files_take(rc, files, node, &f, d);

    if (r < 0)
        return r;
    ret->len = clip(f->layout.size, off, len);
    if (rc)
        rc->checks_late = true; /* view_lend() does */
    if (f->layout.is_whole)
        r = layout_lend(rc, &f->layout, &whole, d);
    else
        r = layout_read(rc, &f->layout, off, ret->len, dst, d);
    if (rc)
        rc->checks_late = false;
    if (r == 0)
        r = view_check_labels(node, d);
    if (r == 0 && f->layout.is_whole && ret->len) {
        ret->bytes = whole + off;
        ret->file = f;
    } else {
        open_files_give(f, r == 0 ? ret->len : 0);
    }
    return r;
}

void view_give_back(const struct view_loan *loan)
{
    if (loan->file)
        open_files_give(loan->file, loan->len);
}

int view_lend(struct read_context *rc, struct open_files *files, const struct node *node,
              uint64_t off, size_t len, uint8_t *dst, struct view_loan *ret, struct diag *d)
{
    struct diag first = DIAG_INIT;
    int r, changed;

    *ret = (struct view_loan){.bytes = dst};
    if (node->type == NODE_PAGE)
        return view_read_page(node, off, len, dst, &ret->len);
    if (node->type == NODE_SOURCE)
        r = view_read_source(rc, node, off, len, dst, &ret->len, &first);
    else
        r = lend_rendered(rc, files, node, off, len, dst, ret, &first);
    /* A read that failed because the source has changed is reported as -ESTALE. */
    changed = view_check_sources(node, d);
    if (changed == 0)
        changed = blob_verify_used(rc, d);
    if (changed < 0) {
        view_give_back(ret);
        ret->file = NULL;
        return changed;
    }
    if (r == -EAGAIN) /* nothing has failed: the caller reads again */
        return r;
    return r < 0 && first.set ? diag_set(d, r, "%s", first.text) : r;
}

int view_read(struct read_context *rc, struct open_files *files, const struct node *node,
              uint64_t off, size_t len, uint8_t *dst, size_t *ret_len, struct diag *d)
{
    struct view_loan loan;
    int r = view_lend(rc, files, node, off, len, dst, &loan, d);

    if (r < 0)
        return r;
    if (loan.file)
        memcpy(dst, loan.bytes, loan.len);
    view_give_back(&loan);
    *ret_len = loan.len;
    return 0;
}

/* Is it a file of all samples in their stored order that is a file of the source? */
static bool is_copy_of_all(const struct node *node, struct extent *ret)
{
    const struct schedule *s = &node->plan->schedule;
    const struct dataset *ds = node->item->ds;
    struct schedule_batch batch;
    uint64_t first;

    if (!ds->samples || !node->file->field || s->elements != ds->samples || schedule_has_order(s) ||
        node_batch(node, &batch) < 0)
        return false;
    return batch.count == ds->samples && schedule_in_order(s, &batch, &first) && !first &&
           dataset_copy_of_all(ds, node->file->field, ret);
}

/* The bytes of a source that are all of the node's file. False: it is made of others. */
static bool is_copy(const struct node *node, struct extent *ret)
{
    if (node->type == NODE_SOURCE)
        *ret = (struct extent){view_source_of(node), 0, view_source_of(node)->size};
    return node->type == NODE_SOURCE || (node->type == NODE_BATCH && is_copy_of_all(node, ret)) ||
           (node->type == NODE_SAMPLE && file_kind_is_stored(node->file) &&
            dataset_copy(node->item->ds, node->number, node->file->field, ret));
}

int view_open_file(const struct node *node, int *ret_fd, struct diag *d)
{
    struct extent e;

    return is_copy(node, &e) ? blob_open_file(e.blob, e.off, e.len, ret_fd, d) : -EOPNOTSUPP;
}

int view_verify_file(const struct node *node, struct diag *d)
{
    AUTO_CLOSE int fd = -1;
    struct extent e;

    if (!is_copy(node, &e))
        return -EOPNOTSUPP;
    /* What is staged is costly to open, and of one version. */
    return e.blob->ops->fetch ? blob_verify(e.blob, d)
                              : blob_open_file(e.blob, e.off, e.len, &fd, d);
}

/* ---- attributes ---- */

const char *const attribute_names[N_ATTRIBUTES] = {
    [ATTRIBUTE_DTYPE] = "user.epochfs.dtype",   [ATTRIBUTE_INDEX] = "user.epochfs.index",
    [ATTRIBUTE_KEY] = "user.epochfs.key",       [ATTRIBUTE_SHAPE] = "user.epochfs.shape",
    [ATTRIBUTE_SOURCE] = "user.epochfs.source",
};

/* The kernel accepts no attribute above 64 KiB. */
static bool indexes_fit(const struct node *node)
{
    const struct dataset *ds = node->item->ds;
    struct schedule_batch batch = {.count = 1};
    uint64_t count, each = decimal_digits(ds->samples ? ds->samples - 1 : 0) + 1;

    if (node->type == NODE_BATCH && node_batch(node, &batch) < 0)
        return false;
    count = batch.count;
    schedule_batch_release(&batch);
    return count <= ATTRIBUTE_MAX / each;
}

bool view_has_attribute(const struct node *node, enum attribute attribute)
{
    if (node->type != NODE_SAMPLE && node->type != NODE_BATCH)
        return false;
    switch (attribute) {
    case ATTRIBUTE_INDEX:
        return indexes_fit(node);
    case ATTRIBUTE_DTYPE:
    case ATTRIBUTE_SHAPE:
        return node->file->encoder->shows != SHOWS_CONTAINER;
    default:
        return true;
    }
}

static void add_indexes(const struct dataset *ds, const struct file_samples *v, struct text *t)
{
    for (uint64_t i = 0; i < v->sel.count; i++) {
        uint64_t sample;

        selection_samples(&v->sel, i, 1, &sample);
        text_add(t, "%s%llu", i ? "," : "", (unsigned long long)dataset_number(ds, sample));
    }
}

/* Add the key of a sample, or the number of a batch. */
static void view_add_key(const struct node *node, struct text *t)
{
    char name[KEY_NAME_SIZE];
    uint8_t key[KEY_SIZE];

    if (node->type == NODE_SAMPLE) {
        size_t len = dataset_key(node->item->ds, node->number, key);

        text_add_bytes(t, (const char *)key, len);
        return;
    }
    node_name(node, name);
    text_add(t, "%s", name);
}

/* Add where the bytes are: "file:offset+length" for a sample, the files for a batch. */
static void view_add_sources(const struct node *node, struct text *t)
{
    const struct dataset *ds = node->item->ds;
    const struct field *only = node->file->field;

    if (node->type == NODE_SAMPLE) {
        dataset_locate(ds, node->number, only, t);
        return;
    }
    if (only && only->base_field)
        only = only->base_field;
    for (unsigned i = 0; i < ds->n_blobs; i++)
        if (!only || !only->blob || only->blob == ds->blob[i])
            text_add(t, "%s%s", t->len ? "," : "", blob_name(ds->blob[i]));
}

/* The form of the array in a file: as shown, or as stored. */
static int array_form(const struct node *node, const struct selection *sel, struct form *ret)
{
    const struct field *f = node->file->field;
    uint64_t bytes;

    if (node->file->encoder->shows != SHOWS_STORED)
        return field_form(node->item->ds, f, sel, ret, &bytes);
    field_stored_form(f, sel, ret);
    return 0;
}

int view_attribute(struct read_context *rc, struct open_files *files, const struct node *node,
                   enum attribute attribute, struct text *ret)
{
    const struct field *f = node->file ? node->file->field : NULL;
    AUTO_FILE_SAMPLES struct file_samples v = {0};
    struct form form;
    char name[KEY_NAME_SIZE > DTYPE_DESCR_SIZE ? KEY_NAME_SIZE : DTYPE_DESCR_SIZE];
    int r = 0;

    if (!view_has_attribute(node, attribute))
        return -ENODATA;
    r = open_files_samples(files, node, &v);
    v.sel.rc = rc;
    if (r == 0 && (attribute == ATTRIBUTE_DTYPE || attribute == ATTRIBUTE_SHAPE))
        r = array_form(node, &v.sel, &form);
    if (r < 0)
        return r;
    switch (attribute) {
    case ATTRIBUTE_KEY:
        view_add_key(node, ret);
        return 0;
    case ATTRIBUTE_INDEX:
        add_indexes(node->item->ds, &v, ret);
        return 0;
    case ATTRIBUTE_DTYPE:
        dtype_descr(form.dtype, form.width,
                    node->file->encoder->shows == SHOWS_STORED && f->stored_big_endian, name);
        text_add(ret, "%s", name);
        return 0;
    case ATTRIBUTE_SHAPE:
        form_shape_text(&form, ret);
        return 0;
    default:
        view_add_sources(node, ret);
        return 0;
    }
}
