#include "fs/tree/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"
#include "base/memo.h"
#include "base/read_context.h"

#define NOTES           1024
#define NEAR_SAMPLES    64         /* samples whose sizes are quickly summed up */
#define LIST_SAMPLES    65536      /* samples of a shuffled batch that is remembered as a list */
#define LISTS_BYTES     (8u << 20) /* of all such lists */
#define PREVIEW_SAMPLES 100
#define PREVIEW_SIDE    1024 /* pixels, about */
#define ATTRIBUTE_MAX   65536

/* A number that takes a pass over a file to compute, such as a CRC, as far as it is known. */
struct note {
    uint64_t ino;
    unsigned slot;
    struct layout_sum sum;
};

struct view {
    char *mountpoint;
    struct memo *lists; /* samples of shuffled batches */
    struct lock lock;
    /* Guarded by lock: a later note replaces an earlier one with the same hash. ino 0: empty. */
    struct note note[NOTES];
};

int view_new(const char *mountpoint, struct view **ret)
{
    struct view *view = calloc(1, sizeof(*view));

    if (view)
        view->mountpoint = strdup(mountpoint);
    if (!view || !view->mountpoint || memo_new(LISTS_BYTES, &view->lists) < 0) {
        if (view)
            free(view->mountpoint);
        free(view);
        return -ENOMEM;
    }
    lock_init(&view->lock);
    *ret = view;
    return 0;
}

void view_free(struct view *view)
{
    if (!view)
        return;
    memo_free(view->lists);
    free(view->mountpoint);
    lock_release(&view->lock);
    free(view);
}

/* ---- which samples ---- */

/* The samples of a file of any kind. */
struct view_selection {
    struct selection sel;
    char *file; /* of sel; owned */
    const struct node *node;
    struct memo *lists;
    struct memo_thing *list; /* uint64_t [sel.count], made when first needed; NULL: none */
    bool has_order;
    struct order order; /* made when first needed */
};

/* Make the keys of the epoch when the first sample is needed; most sizes need none. */
static void make_order(struct view_selection *v)
{
    const struct plan_entry *entry = v->node->plan;

    if (v->has_order || !entry->plan.seeded)
        return;
    schedule_order(&entry->schedule, v->node->epoch, &v->order);
    v->has_order = true;
}

static int make_list(void *ctx, void **ret, size_t *ret_size)
{
    struct view_selection *v = ctx;
    size_t n = (size_t)v->sel.count;
    uint64_t *list = malloc(n * sizeof(*list));

    if (!list)
        return -ENOMEM;
    make_order(v);
    schedule_samples(&v->node->plan->schedule, &v->order, v->node->number, 0, n, list);
    *ret = list;
    *ret_size = n * sizeof(*list);
    return 0;
}

/* The list of a shuffled batch; NULL: it is too long, or there is no memory. */
static const uint64_t *samples_list(struct view_selection *v)
{
    const uint64_t *id = v->sel.id;
    const struct memo_key key = {{id[0], id[1], id[2]}};

    if (!v->list && v->node->plan->plan.seeded && v->sel.count <= LIST_SAMPLES)
        if (v->lists && memo_get(v->lists, &key, &(struct memo_maker){.make = make_list, .ctx = v},
                                 &v->list) < 0)
            v->lists = NULL; /* do not try again */
    return v->list ? memo_bytes(v->list) : NULL;
}

static void batch_samples(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    /* A selection belongs to one thread, and its maker may change it. */
    struct view_selection *v = (struct view_selection *)(uintptr_t)sel;
    const struct plan_entry *entry = v->node->plan;
    const uint64_t *list = n ? samples_list(v) : NULL;

    if (list) {
        memcpy(ret, list + first, n * sizeof(*ret));
        return;
    }
    make_order(v);
    schedule_samples(&entry->schedule, &v->order, v->node->number, first, n, ret);
}

static void one_node_sample(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    (void)first;
    for (size_t i = 0; i < n; i++)
        ret[i] = ((const struct view_selection *)sel)->node->number;
}

static void first_samples(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    (void)sel;
    for (size_t i = 0; i < n; i++)
        ret[i] = first + i;
}

/* How many of the first samples make a sheet that fits a screen. */
static uint64_t preview_count(const struct dataset *ds)
{
    const struct field *f = tree_preview(ds);
    uint64_t side = max_u64(f->dim[0], f->dim[1]);
    uint64_t cells = max_u64(PREVIEW_SIDE / side, 1);

    return min_u64(min_u64(ds->samples, PREVIEW_SAMPLES), cells * cells);
}

static void batch_selection(struct selection *sel, const struct node *node)
{
    const struct plan_entry *entry = node->plan;
    const struct schedule *s = &entry->schedule;

    *sel = (struct selection){
        .count = schedule_count(s, node->number),
        .id = {entry->ino, node->epoch, node->number},
        .samples = batch_samples,
    };
    sel->in_order = sel->count && schedule_in_order(s, node->number, &sel->first);
}

static void selection_release(struct view_selection *v)
{
    memo_let_go(v->list);
    free(v->file);
}
#define AUTO_SELECTION AUTO(selection_release)

/* Make the path of the file, for contents that name it: "/mnt/train/batches/batch=2/ark/000000". */
static int name_file(struct view_selection *v, const struct view *view)
{
    char path[NODE_PATH_SIZE], name[KEY_NAME_SIZE];
    int n;

    node_folder_path(v->node, path, sizeof(path));
    node_name(v->node, name);
    n = asprintf(&v->file, "%s/%s/%s", view->mountpoint, path, name);
    if (n < 0)
        v->file = NULL;
    v->sel.file = v->file;
    return n < 0 ? -ENOMEM : 0;
}

static int selection_init(struct read_context *rc, struct view_selection *v,
                          const struct view *view, const struct node *node, struct diag *reason)
{
    v->node = node;
    v->lists = view->lists;
    v->has_order = false;
    if (node->kind == NODE_SAMPLE)
        v->sel = (struct selection){
            .count = 1,
            .single = true,
            .in_order = true,
            .first = node->number,
            .id = {0, node->number, 1},
            .samples = one_node_sample,
        };
    else if (node->kind == NODE_PREVIEW)
        v->sel = (struct selection){
            .count = preview_count(node->item->ds),
            .in_order = true,
            .samples = first_samples,
        };
    else
        batch_selection(&v->sel, node);
    v->sel.rc = rc;
    v->sel.reason = reason;
    return node->file && node->file->field && node->file->field->names_file ? name_file(v, view)
                                                                            : 0;
}

/* ---- what is in the file ---- */

struct view_host {
    struct layout_host host;
    struct view *view;
    uint64_t ino;
};

static struct note *note_place(struct view *view, uint64_t ino, unsigned slot)
{
    uint64_t h = (ino ^ slot * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);

    return &view->note[(h >> 32) % NOTES];
}

static bool host_recall(const struct layout_host *host, unsigned slot, struct layout_sum *ret)
{
    const struct view_host *h = (const struct view_host *)host;
    const struct note *note = note_place(h->view, h->ino, slot);
    LOCK_SCOPE(&h->view->lock);

    if (note->ino != h->ino || note->slot != slot)
        return false;
    *ret = note->sum;
    return true;
}

/* Of two concurrent requests for a file, the other may be further. */
static void host_remember(const struct layout_host *host, unsigned slot,
                          const struct layout_sum *sum)
{
    const struct view_host *h = (const struct view_host *)host;
    struct note *note = note_place(h->view, h->ino, slot);
    LOCK_SCOPE(&h->view->lock);

    if (note->ino != h->ino || note->slot != slot || note->sum.done < sum->done)
        *note = (struct note){.ino = h->ino, .slot = slot, .sum = *sum};
}

static void host_init(struct view_host *h, struct view *view, const struct node *node)
{
    *h = (struct view_host){
        .host = {host_recall, host_remember},
        .view = view,
        .ino = node->ino,
    };
}

static int add_parts(struct layout *l, const struct node *node)
{
    extern const struct encoder encoder_png;

    if (node->kind == NODE_PREVIEW)
        return encoder_png.layout(
            l, &(struct file_kind){.encoder = &encoder_png, .field = tree_preview(node->item->ds)});
    return node->file->encoder->layout(l, node->file);
}

static const struct blob *source_of(const struct node *node)
{
    return node->item->ds->blob[node->number];
}

bool view_size_is_near(const struct node *node)
{
    struct selection sel;

    if (node->kind != NODE_BATCH || !node->item->ds->ops || !node->item->ds->ops->prepare)
        return true;
    batch_selection(&sel, node);
    return (sel.in_order && !node->item->ds->ops->walks) || sel.count <= NEAR_SAMPLES;
}

int view_size(struct read_context *rc, struct view *view, const struct node *node, uint64_t *ret,
              struct diag *d)
{
    AUTO_LAYOUT struct layout l = {0};
    AUTO_SELECTION struct view_selection v = {.list = NULL, .file = NULL};
    size_t len;
    int r;

    if (node->kind == NODE_PAGE) {
        tree_page(node, &len);
        *ret = len;
        return 0;
    }
    if (node->kind == NODE_SOURCE) {
        *ret = source_of(node)->size;
        return 0;
    }
    r = selection_init(rc, &v, view, node, d);
    layout_init(&l, node->item->ds, &v.sel, NULL);
    if (r == 0)
        r = add_parts(&l, node);
    if (r == 0)
        *ret = l.size;
    return r;
}

int view_is_mixed(struct read_context *rc, struct view *view, const struct node *node,
                  struct diag *d)
{
    uint64_t size;
    int r;

    if (node->kind != NODE_BATCH || !file_kind_is_mixed(node->item->ds, node->file))
        return 0;
    r = view_size(rc, view, node, &size, d);
    return r == -EDOM ? 1 : r == -EINTR ? r : 0;
}

uint64_t view_samples(struct view *view, const struct node *node, uint64_t first, uint64_t n,
                      uint64_t *ret)
{
    AUTO_SELECTION struct view_selection v = {.list = NULL, .file = NULL};

    if (selection_init(READ_WAITS, &v, view, node, NULL) < 0 || first >= v.sel.count)
        return 0;
    n = min_u64(n, v.sel.count - first);
    v.sel.samples(&v.sel, first, (size_t)n, ret);
    return n;
}

static int read_page(const struct node *node, uint64_t off, size_t len, uint8_t *dst,
                     size_t *ret_len)
{
    size_t size;
    const char *text = tree_page(node, &size);

    *ret_len = off < size ? (size_t)min_u64(len, size - off) : 0;
    if (*ret_len)
        memcpy(dst, text + off, *ret_len);
    return 0;
}

static int read_source(struct read_context *rc, const struct node *node, uint64_t off, size_t len,
                       uint8_t *dst, size_t *ret_len, struct diag *d)
{
    const struct blob *blob = source_of(node);

    *ret_len = off < blob->size ? (size_t)min_u64(len, blob->size - off) : 0;
    return blob_read(rc, blob, dst, *ret_len, off, d);
}

/* Bytes are good only if no source has changed since it was opened. */
static int check_sources(const struct node *node, struct diag *d)
{
    const struct dataset *ds = node->item->ds;
    bool one = node->kind == NODE_SOURCE;

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

static int read_rendered(struct read_context *rc, struct view *view, const struct node *node,
                         uint64_t off, size_t len, uint8_t *dst, size_t *ret_len, struct diag *d)
{
    AUTO_LAYOUT struct layout l = {0};
    AUTO_SELECTION struct view_selection v = {.list = NULL, .file = NULL};
    struct view_host host;
    int r;

    r = selection_init(rc, &v, view, node, d);
    host_init(&host, view, node);
    layout_init(&l, node->item->ds, &v.sel, &host.host);
    if (r == 0)
        r = add_parts(&l, node);
    if (r < 0)
        return r;
    *ret_len = off < l.size ? (size_t)min_u64(len, l.size - off) : 0;
    return layout_read(rc, &l, off, *ret_len, dst, d);
}

int view_read(struct read_context *rc, struct view *view, const struct node *node, uint64_t off,
              size_t len, uint8_t *dst, size_t *ret_len, struct diag *d)
{
    struct diag first = DIAG_INIT;
    int r, changed;

    if (node->kind == NODE_PAGE)
        return read_page(node, off, len, dst, ret_len);
    if (node->kind == NODE_SOURCE)
        r = read_source(rc, node, off, len, dst, ret_len, &first);
    else
        r = read_rendered(rc, view, node, off, len, dst, ret_len, &first);
    /* A read that failed because the source has changed is reported as -ESTALE. */
    changed = check_sources(node, d);
    if (changed < 0)
        return changed;
    if (r == -EAGAIN) /* nothing has failed: the caller reads again */
        return r;
    return r < 0 && first.set ? diag_set(d, r, "%s", first.text) : r;
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
    uint64_t count =
        node->kind == NODE_BATCH ? schedule_count(&node->plan->schedule, node->number) : 1;
    uint64_t each = decimal_digits(ds->samples ? ds->samples - 1 : 0) + 1;

    return count <= ATTRIBUTE_MAX / each;
}

bool view_has_attribute(const struct node *node, enum attribute attribute)
{
    if (node->kind != NODE_SAMPLE && node->kind != NODE_BATCH)
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

static void add_indexes(const struct view_selection *v, struct text *t)
{
    for (uint64_t i = 0; i < v->sel.count; i++) {
        uint64_t sample;

        v->sel.samples(&v->sel, i, 1, &sample);
        text_add(t, "%s%llu", i ? "," : "", (unsigned long long)sample);
    }
}

/* Add the key of a sample, or the number of a batch. */
static void add_key(const struct node *node, struct text *t)
{
    char name[KEY_NAME_SIZE];
    uint8_t key[KEY_SIZE];

    if (node->kind == NODE_SAMPLE) {
        size_t len = dataset_key(node->item->ds, node->number, key);

        text_add_bytes(t, (const char *)key, len);
        return;
    }
    node_name(node, name);
    text_add(t, "%s", name);
}

/* Add where the bytes are: "file:offset+length" for a sample, the files for a batch. */
static void add_sources(const struct node *node, struct text *t)
{
    const struct dataset *ds = node->item->ds;
    const struct field *only = node->file->field;

    if (node->kind == NODE_SAMPLE) {
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

int view_attribute(struct read_context *rc, struct view *view, const struct node *node,
                   enum attribute attribute, struct text *ret)
{
    const struct field *f = node->file ? node->file->field : NULL;
    AUTO_SELECTION struct view_selection v = {.list = NULL, .file = NULL};
    struct form form;
    char name[KEY_NAME_SIZE > DTYPE_DESCR_SIZE ? KEY_NAME_SIZE : DTYPE_DESCR_SIZE];
    int r = 0;

    if (!view_has_attribute(node, attribute))
        return -ENODATA;
    r = selection_init(rc, &v, view, node, NULL);
    if (r == 0 && (attribute == ATTRIBUTE_DTYPE || attribute == ATTRIBUTE_SHAPE))
        r = array_form(node, &v.sel, &form);
    if (r < 0)
        return r;
    switch (attribute) {
    case ATTRIBUTE_KEY:
        add_key(node, ret);
        return 0;
    case ATTRIBUTE_INDEX:
        add_indexes(&v, ret);
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
        add_sources(node, ret);
        return 0;
    }
}
