/* Names to nodes and back, and listings. fs/tree/span.c has the inode numbers, fs/tree/build.c the
 * fixed nodes, fs/tree/plans.c the opened plans. */
#include "fs/tree/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/search.h"
#include "fs/tree/parts.h"

/* Inode numbers of snapshots of live texts are below the spans and far above the fixed nodes. */
#define LOOK_BASE_BIT  61
#define SNAPSHOT_BASE  (UINT64_C(1) << LOOK_BASE_BIT)
#define SNAPSHOT_SHIFT 32

/* ---- nodes from numbers ---- */

static void node_of_fixed(const struct tree *tree, size_t i, struct node *ret)
{
    const struct fixed *f = &tree->fixed[i];

    *ret = (struct node){
        .type = f->type,
        .ino = TREE_ROOT + i,
        .fixed = f,
        .item = f->item,
        .folder = f->folder,
        .number = f->number,
    };
}

/* Check what an inode number means against what exists. */
static int node_of_span(const struct span *s, uint64_t ino, struct node *ret)
{
    enum scope scope = s->plan ? plan_scope(s->plan) : SCOPE_SAMPLES;
    const struct dataset *ds = s->item->ds;
    struct span_place place;
    struct node node;

    span_place_of(s, ino, &place);
    node = (struct node){.ino = ino, .item = s->item, .plan = s->plan, .epoch = place.epoch};
    if (s->plan && !place.slot && place.folder == span_self_folder(s->item)) {
        node.type = place.file == SELF_EPOCH  ? NODE_EPOCH
                    : place.file == SELF_PLAN ? NODE_PLAN
                                              : NODE_PLAN_LINK;
        if (place.file < SELF_EPOCH || place.file > SELF_LINK)
            return -ESTALE;
        *ret = node;
        return 0;
    }
    if (place.folder >= ds->n_folders)
        return -ESTALE;
    node.folder = &ds->folder[place.folder];
    if (s->plan && !place.slot) {
        if (place.file)
            return -ESTALE;
        node.type = NODE_BATCH_FOLDER;
        *ret = node;
        return 0;
    }
    if (place.file >= node.folder->n_kinds[scope])
        return -ESTALE;
    node.type = s->plan ? NODE_BATCH : NODE_SAMPLE;
    node.file = &node.folder->files[scope][place.file];
    node.number = s->plan ? place.slot - 1 : place.slot;
    if (node.number >= node_units(&node) || node_is_hole(&node))
        return -ESTALE;
    *ret = node;
    return 0;
}

uint64_t tree_snapshot_ino(const struct node *live, unsigned snapshot)
{
    return SNAPSHOT_BASE + ((uint64_t)snapshot << SNAPSHOT_SHIFT) + live->ino;
}

/* The node of a snapshot of a live text. 0 or -ESTALE. */
static int node_of_snapshot(struct tree *tree, uint64_t v, struct node *ret)
{
    uint64_t ino = v & ((UINT64_C(1) << SNAPSHOT_SHIFT) - 1), snapshot = v >> SNAPSHOT_SHIFT;

    if (ino - TREE_ROOT >= tree->n_fixed || snapshot >= TREE_SNAPSHOTS)
        return -ESTALE;
    if (tree->fixed[ino - TREE_ROOT].type != NODE_LIVE)
        return -ESTALE;
    node_of_fixed(tree, ino - TREE_ROOT, ret);
    ret->snapshot = (unsigned)snapshot;
    return 0;
}

int tree_node(struct tree *tree, uint64_t ino, struct node *ret)
{
    struct span span;
    int r;

    if (ino >> LOOK_BASE_BIT == 1)
        return node_of_snapshot(tree, ino - SNAPSHOT_BASE, ret);
    if (ino - TREE_ROOT < tree->n_fixed) {
        node_of_fixed(tree, ino - TREE_ROOT, ret);
        return 0;
    }
    lock_take(&tree->lock);
    r = spans_of_ino(&tree->spans, ino, &span);
    lock_drop(&tree->lock);
    return r < 0 ? r : node_of_span(&span, ino, ret);
}

/* ---- lookups ---- */

/* In nodes, plans are const; the tree itself may open their epochs. */
static struct plan_entry *opened_plan(const struct node *node)
{
    return (struct plan_entry *)(uintptr_t)node->plan;
}

static void plan_node(const struct plan_entry *entry, struct node *ret)
{
    *ret = (struct node){.type = NODE_PLAN, .ino = entry->ino, .item = entry->item, .plan = entry};
}

static void epoch_node(const struct span *span, const struct plan_entry *entry, uint64_t epoch,
                       struct node *ret)
{
    const struct span_place self = {
        .epoch = epoch, .folder = span_self_folder(entry->item), .file = SELF_EPOCH};

    *ret = (struct node){
        .type = NODE_EPOCH,
        .ino = span_ino(span, &self),
        .item = entry->item,
        .plan = entry,
        .epoch = epoch,
    };
}

static int lookup_plan(struct tree *tree, const struct node *parent, const char *name, uid_t user,
                       struct node *ret, uint64_t *ret_changed, struct diag *d)
{
    struct plan_entry *entry;
    struct plan plan;
    bool is_new;
    char meant[PLAN_NAME_SIZE];
    struct diag reason = DIAG_INIT;
    int r = plan_parse(name, strlen(name), ',', &plan, &reason);

    if (r < 0 && plan_guess(name, meant))
        return diag_set(d, -ENOENT, "%s; is it '%s'?", reason.text, meant);
    if (r < 0)
        return diag_set(d, -ENOENT, "%s", reason.text);
    r = tree_open_plan(tree, parent->item, &plan, user, &entry, &is_new, d);
    if (r < 0)
        return r == -EINVAL ? -ENOENT : r;
    if (is_new)
        *ret_changed = parent->ino;
    plan_node(entry, ret);
    if (strcmp(name, entry->name) != 0) {
        ret->type = NODE_PLAN_LINK;
        ret->ino += SELF_LINK - SELF_PLAN;
    }
    return 0;
}

static int lookup_epoch(struct tree *tree, const struct node *parent, const char *name, uid_t user,
                        struct node *ret, uint64_t *ret_changed, struct diag *d)
{
    struct plan_entry *entry = opened_plan(parent);
    const char *digits = name + strlen("epoch=");
    uint64_t epoch = 0;
    struct span span;
    bool is_new;
    int r;

    if (strncmp(name, "epoch=", 6) != 0 ||
        number_parse(digits, strlen(digits), UINT64_MAX, &epoch) != strlen(digits) || !*digits) {
        diag_set(d, -ENOENT, "expected epoch=<a number from 0 to 2^64-1>, got '%s'", name);
        return -ENOENT;
    }
    r = tree_open_epoch(tree, entry, epoch, user, &span, &is_new, d);
    if (r < 0)
        return r;
    if (is_new)
        *ret_changed = parent->ino;
    epoch_node(&span, entry, epoch, ret);
    return 0;
}

/* <enc>/ number i of an epoch, or of a plan without a seed. */
static int batch_folder(struct tree *tree, const struct node *parent, unsigned i, struct node *ret)
{
    const struct span wanted = span_of_plan(opened_plan(parent), parent->epoch);
    const struct span_place place = {.epoch = parent->epoch, .folder = i};
    struct span span;
    int r;

    lock_take(&tree->lock);
    r = spans_find(&tree->spans, &wanted, &span);
    lock_drop(&tree->lock);
    if (r < 0)
        return r;
    *ret = (struct node){
        .type = NODE_BATCH_FOLDER,
        .ino = span_ino(&span, &place),
        .item = parent->item,
        .plan = parent->plan,
        .epoch = parent->epoch,
        .folder = &parent->item->ds->folder[i],
    };
    return 0;
}

static int lookup_batch_folder(struct tree *tree, const struct node *parent, const char *name,
                               struct node *ret)
{
    const struct dataset *ds = parent->item->ds;

    for (unsigned i = 0; i < ds->n_folders; i++)
        if (ds->folder[i].n_kinds[plan_scope(parent->plan)] && !strcmp(name, ds->folder[i].name))
            return batch_folder(tree, parent, i, ret);
    return -ENOENT;
}

static unsigned batch_digits(const struct plan_entry *entry)
{
    uint64_t batches = entry->schedule.batches;
    unsigned digits = decimal_digits(batches ? batches - 1 : 0);

    return digits < 6 ? 6 : digits;
}

static const struct file_kind *tree_find_kind(const struct folder *folder, enum scope scope,
                                              const char *suffix)
{
    for (unsigned i = 0; i < folder->n_kinds[scope]; i++)
        if (!strcmp(folder->files[scope][i].suffix, suffix))
            return &folder->files[scope][i];
    return NULL;
}

static uint64_t sample_base(const struct tree *tree, const struct catalog_item *item)
{
    return tree->sample_base[item - tree->catalog->item];
}

/* The file of that column and number in an <enc>/ folder. */
static void file_node(const struct tree *tree, const struct node *parent,
                      const struct file_kind *file, uint64_t number, struct node *ret)
{
    const struct dataset *ds = parent->item->ds;
    bool samples = parent->type == NODE_SAMPLE_FOLDER;
    enum scope scope = node_scope(parent);
    unsigned column = (unsigned)(file - parent->folder->files[scope]);
    const struct span samples_span = {.base = samples ? sample_base(tree, parent->item) : 0,
                                      .item = parent->item};
    const struct span_place folder = {.folder = (unsigned)(parent->folder - ds->folder)};

    *ret = *parent;
    ret->fixed = NULL;
    ret->file = file;
    ret->number = number;
    ret->type = samples ? NODE_SAMPLE : NODE_BATCH;
    /* Slot 0 of a plan is for its folders; the number of <enc>/ has the right epoch. */
    ret->ino = samples
                   ? span_file_ino(parent->item, span_ino(&samples_span, &folder), number, column)
                   : span_file_ino(parent->item, parent->ino, number + 1, column);
}

static int lookup_sample(struct tree *tree, const struct node *parent, const char *name,
                         struct node *ret)
{
    const struct folder *folder = parent->folder;
    const struct file_kind *best = NULL;
    size_t len = strlen(name), best_len = 0;
    uint64_t sample = 0;
    struct node found;

    /* Keys may have dots, and one suffix may be the end of another. */
    for (unsigned i = 0; i < folder->n_kinds[SCOPE_SAMPLES]; i++) {
        const struct file_kind *file = &folder->files[SCOPE_SAMPLES][i];
        size_t n = strlen(file->suffix);

        if (n < len && n > best_len && !memcmp(name + len - n, file->suffix, n)) {
            best = file;
            best_len = n;
        }
    }
    if (!best || !dataset_find(parent->item->ds, name, len - best_len, &sample))
        return -ENOENT;
    file_node(tree, parent, best, sample, &found);
    if (node_is_hole(&found))
        return -ENOENT;
    *ret = found;
    return 0;
}

static int lookup_batch(struct tree *tree, const struct node *parent, const char *name,
                        struct node *ret)
{
    const char *dot = strchr(name, '.');
    const struct file_kind *file =
        dot ? tree_find_kind(parent->folder, node_scope(parent), dot) : NULL;
    uint64_t batch = 0;
    int r;

    if (!file ||
        !padded_number_parse(name, (size_t)(dot - name), batch_digits(parent->plan), &batch))
        return -ENOENT;
    r = schedule_has(&parent->plan->schedule, parent->epoch, batch);
    if (r == 0)
        file_node(tree, parent, file, batch, ret);
    return r;
}

static int lookup_fixed(struct tree *tree, const struct node *parent, const char *name,
                        struct node *ret)
{
    const struct fixed *f = parent->fixed, *child = tree->fixed + f->first_child;
    size_t number = SEARCH(f->n_children, i, strcmp(child[i].name, name) < 0); /* they are sorted */

    if (number == f->n_children || strcmp(child[number].name, name) != 0)
        return -ENOENT;
    node_of_fixed(tree, f->first_child + number, ret);
    return 0;
}

static int item_opened(const struct tree *tree, const struct catalog_item *item)
{
    return atomic_load_explicit(&tree->opened[item - tree->catalog->item], memory_order_acquire);
}

/* Is it the folder of samples of an encoding that shows none of the dataset's fields, or the
 * preview of a dataset that turned out to have no pictures? */
static bool is_empty(const struct tree *tree, const struct node *node)
{
    if (node->type == NODE_SAMPLE_FOLDER)
        return !node->folder->n_kinds[SCOPE_SAMPLES];
    return node->type == NODE_PREVIEW && node->fixed->is_late && item_opened(tree, node->item) &&
           (dataset_state(node->item->ds) != DATASET_READY || !node->item->ds->samples ||
            !tree_preview(node->item->ds));
}

uint64_t tree_grows(const struct tree *tree, const struct catalog_item *item)
{
    const struct fixed *page = &tree->fixed[tree->page_of[item - tree->catalog->item]];
    const struct fixed *above = &tree->fixed[page->parent];

    for (uint32_t i = above->first_child; i < above->first_child + above->n_children; i++)
        if (tree->fixed[i].type == NODE_PREVIEW && tree->fixed[i].is_late)
            return TREE_ROOT + page->parent;
    return 0;
}

uint64_t tree_batches(const struct tree *tree, const struct catalog_item *item)
{
    const struct fixed *page = &tree->fixed[tree->page_of[item - tree->catalog->item]];
    const struct fixed *above = &tree->fixed[page->parent];

    for (uint32_t i = above->first_child; i < above->first_child + above->n_children; i++)
        if (tree->fixed[i].type == NODE_BATCHES)
            return TREE_ROOT + i;
    return 0;
}

bool tree_item_is_open(const struct tree *tree, const struct catalog_item *item)
{
    return item_opened(tree, item) != 0;
}

bool tree_is_open(const struct tree *tree, const struct node *node)
{
    bool waits = node->type == NODE_PAGE || (node->type == NODE_PREVIEW && node->fixed->is_late);

    return !waits || !node->item || item_opened(tree, node->item);
}

/* Are the names in a folder known? 0: yes, -EAGAIN: not yet, or -EIO with the reason in d. */
static int names_known(const struct tree *tree, const struct node *folder, struct diag *d)
{
    bool late = folder->type == NODE_SAMPLES && folder->item->ds->late_folders;
    int opened;

    if (folder->type != NODE_SAMPLE_FOLDER && folder->type != NODE_BATCHES && !late)
        return 0;
    opened = item_opened(tree, folder->item);
    if (opened != 1)
        return opened ? opened : -EAGAIN;
    return dataset_state(folder->item->ds) == DATASET_FAILED
               ? diag_set(d, folder->item->ds->failed == -ESTALE ? -ESTALE : -EIO, "%s",
                          folder->item->ds->reason.text)
               : 0;
}

int tree_lookup(struct tree *tree, const struct node *parent, const char *name, uid_t user,
                struct node *ret, uint64_t *ret_changed, struct diag *d)
{
    struct node found;
    uint64_t changed = 0;
    int r = names_known(tree, parent, d);

    /* The page of batches/ exists before the dataset is ready. */
    if (parent->type == NODE_BATCHES && lookup_fixed(tree, parent, name, ret) == 0)
        r = 1;
    if (r < 0)
        return r;
    if (r == 1) {
        if (ret_changed)
            *ret_changed = 0;
        return 0;
    }
    switch (parent->type) {
    case NODE_FOLDER:
    case NODE_DATASET:
    case NODE_SOURCES:
    case NODE_SAMPLES:
        r = lookup_fixed(tree, parent, name, &found);
        if (r == 0 && is_empty(tree, &found))
            r = -ENOENT;
        if (r == 0 && !tree_is_open(tree, &found))
            r = -EAGAIN;
        if (r == 0)
            *ret = found;
        break;
    case NODE_BATCHES:
        r = lookup_plan(tree, parent, name, user, ret, &changed, d);
        break;
    case NODE_SAMPLE_FOLDER:
        r = lookup_sample(tree, parent, name, ret);
        break;
    case NODE_PLAN:
        r = parent->plan->plan.seeded ? lookup_epoch(tree, parent, name, user, ret, &changed, d)
                                      : lookup_batch_folder(tree, parent, name, ret);
        break;
    case NODE_EPOCH:
        r = lookup_batch_folder(tree, parent, name, ret);
        break;
    case NODE_BATCH_FOLDER:
        r = lookup_batch(tree, parent, name, ret);
        break;
    default:
        r = -ENOTDIR;
        break;
    }
    if (r == 0 && ret_changed)
        *ret_changed = changed;
    return r;
}

/* ---- listings ---- */

static int list_fixed(const struct tree *tree, const struct node *parent, uint64_t index,
                      struct node *ret, char ret_name[static TREE_NAME_SIZE])
{
    if (index >= parent->fixed->n_children)
        return -ENOENT;
    node_of_fixed(tree, parent->fixed->first_child + index, ret);
    snprintf(ret_name, TREE_NAME_SIZE, "%s", ret->fixed->name);
    if (ret->type == NODE_PREVIEW && !tree_is_open(tree, ret))
        return 1;
    return is_empty(tree, ret) ||
           (ret->type == NODE_DATASET && ret->item->ds && ret->item->ds->unlisted);
}

static int tree_list_plans(struct tree *tree, const struct node *parent, uint64_t index,
                           struct node *ret, char ret_name[static TREE_NAME_SIZE])
{
    const struct item_plans *plans = &tree->plans[parent->item - tree->catalog->item];
    int r = -ENOENT;

    lock_take(&tree->lock);
    if (index < plans->n) {
        plan_node(plans->entry[index], ret);
        snprintf(ret_name, TREE_NAME_SIZE, "%s", ret->plan->name);
        r = 0;
    }
    lock_drop(&tree->lock);
    return r;
}

static int list_epochs(struct tree *tree, const struct node *parent, uint64_t index,
                       struct node *ret, char ret_name[static TREE_NAME_SIZE])
{
    const struct plan_entry *entry = parent->plan;
    bool found = true, is_new;
    struct span span;
    uint64_t epoch = index;
    int r;

    lock_take(&tree->lock);
    if (index >= entry->listed_epochs) {
        found = index - entry->listed_epochs < entry->n_epochs;
        epoch = found ? entry->epoch[index - entry->listed_epochs] : 0;
    }
    lock_drop(&tree->lock);
    if (!found)
        return -ENOENT;
    r = tree_open_epoch(tree, opened_plan(parent), epoch, TREE_OWNER, &span, &is_new, NULL);
    if (r < 0)
        return r;
    snprintf(ret_name, TREE_NAME_SIZE, "epoch=%llu", (unsigned long long)epoch);
    epoch_node(&span, entry, epoch, ret);
    return 0;
}

static int list_batch_folders(struct tree *tree, const struct node *parent, uint64_t index,
                              struct node *ret, char ret_name[static TREE_NAME_SIZE])
{
    const struct dataset *ds = parent->item->ds;

    for (unsigned i = 0; i < ds->n_folders; i++) {
        if (!ds->folder[i].n_kinds[plan_scope(parent->plan)] || index-- > 0)
            continue;
        snprintf(ret_name, TREE_NAME_SIZE, "%s", ds->folder[i].name);
        return batch_folder(tree, parent, i, ret);
    }
    return -ENOENT;
}

static int list_files(struct tree *tree, const struct node *parent, uint64_t index,
                      struct node *ret, char ret_name[static TREE_NAME_SIZE])
{
    enum scope scope = node_scope(parent);
    unsigned kinds = parent->folder->n_kinds[scope];
    uint64_t n = parent->item->ds->samples;
    char stem[KEY_NAME_SIZE];

    if (scope != SCOPE_SAMPLES && !schedule_batches(&parent->plan->schedule, parent->epoch, &n)) {
        const struct batch_cuts *cuts = parent->plan->schedule.cuts;

        cuts->ops->ask(cuts, parent->epoch);
        return -EAGAIN;
    }
    if (index / kinds >= n)
        return -ENOENT;
    file_node(tree, parent, &parent->folder->files[scope][index % kinds], index / kinds, ret);
    if (node_is_hole(ret))
        return 1;
    node_name(ret, stem);
    snprintf(ret_name, TREE_NAME_SIZE, "%s%s", stem, ret->file->suffix);
    return 0;
}

int tree_list(struct tree *tree, const struct node *parent, uint64_t index, struct node *ret,
              char ret_name[static TREE_NAME_SIZE])
{
    int r = names_known(tree, parent, NULL);

    if (parent->type == NODE_BATCHES && index < parent->fixed->n_children)
        return list_fixed(tree, parent, index, ret, ret_name);
    /* No plan is open before the dataset is ready: nothing to list yet. */
    if (r < 0)
        return r == -EAGAIN && parent->type == NODE_BATCHES ? -ENOENT : r;
    switch (parent->type) {
    case NODE_FOLDER:
    case NODE_DATASET:
    case NODE_SOURCES:
    case NODE_SAMPLES:
        return list_fixed(tree, parent, index, ret, ret_name);
    case NODE_BATCHES:
        return tree_list_plans(tree, parent, index - parent->fixed->n_children, ret, ret_name);
    case NODE_PLAN:
        return parent->plan->plan.seeded ? list_epochs(tree, parent, index, ret, ret_name)
                                         : list_batch_folders(tree, parent, index, ret, ret_name);
    case NODE_EPOCH:
        return list_batch_folders(tree, parent, index, ret, ret_name);
    case NODE_SAMPLE_FOLDER:
    case NODE_BATCH_FOLDER:
        return list_files(tree, parent, index, ret, ret_name);
    default:
        return -ENOTDIR;
    }
}

void node_name(const struct node *node, char ret[static KEY_NAME_SIZE])
{
    if (node->type == NODE_SAMPLE)
        dataset_name(node->item->ds, node->number, false, ret);
    else
        snprintf(ret, KEY_NAME_SIZE, "%0*llu", (int)batch_digits(node->plan),
                 (unsigned long long)node->number);
}

const char *tree_page(const struct node *node, size_t *ret_len)
{
    *ret_len = node->fixed->text_len;
    return node->fixed->text;
}
