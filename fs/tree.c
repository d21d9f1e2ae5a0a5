/* Inode numbers.
 *
 *   1 ..             the fixed nodes, in the order of the array
 *   2^62 .. 2^63-1   spans: power-of-two ranges, each aligned to its size, each for the samples of
 *                    one dataset, or for one plan of it (or, where a plan has very many batches,
 *                    for a run of its epochs)
 *
 * Within a span:     [ epoch | slot | folder : 4 | file : 6 ]
 *
 * slot is the sample, or 1 + the batch; slot 0 of a plan is for its folders. A span stands at a
 * hash of what it is for, so that the same file has the same number in every mount; where two
 * would overlap the later one moves on to the next free place. */
#include "fs/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "cache/unpack.h"

#define FILE_BITS   6
#define FOLDER_BITS 4
#define LOW_BITS    (FILE_BITS + FOLDER_BITS)
#define SPAN_BASE   (UINT64_C(1) << 62)
#define EPOCH_BITS  16 /* at most; fewer where the slots take the room */
#define SPAN_BITS   52 /* what epochs may widen a span to */

/* In slot 0 of a plan, besides <enc>/ with file 0: */
#define SELF_FOLDER 15
enum { SELF_EPOCH = 1, SELF_PLAN, SELF_LINK };
_Static_assert(ENCODERS_MAX <= SELF_FOLDER + 1, "folder numbers");
_Static_assert(KINDS_MAX <= 1 << FILE_BITS, "file numbers");

struct fixed {
    enum node_kind kind;
    char *name; /* owned */
    uint32_t parent;
    uint32_t first_child, n_children; /* children are neighbours */
    const struct catalog_item *item;
    const struct folder *folder;
    uint64_t number;
    char *text; /* NODE_PAGE; owned */
    size_t text_len;
};

struct span {
    uint64_t base;
    unsigned bits;       /* of its size */
    unsigned epoch_bits; /* of the epoch's place in it */
    unsigned slot_bits;
    const struct catalog_item *item;
    struct plan_entry *plan; /* NULL: samples */
    uint64_t epoch_high;     /* epoch >> epoch_bits */
};

/* The plans of one dataset, in the order of their opening. */
struct item_plans {
    struct plan_entry **entry;
    size_t n;
};

struct tree {
    /* Constant once made: */
    const struct catalog *catalog;
    struct fixed *fixed;
    size_t n_fixed;
    uint64_t *sample_base; /* [catalog->n] */

    pthread_rwlock_t lock;
    /* Guarded by lock: */
    struct span *span; /* sorted by base */
    size_t n_spans;
    struct item_plans *plans; /* [catalog->n] */
    size_t n_epochs;          /* in all plans' lists */
};

const char *const live_names[N_LIVES] = {[LIVE_METRICS] = "metrics", [LIVE_STATUS] = "status.json"};

/* ---- spans ---- */

static uint64_t hash_text(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t span_hash(const struct catalog_item *item, const char *plan, uint64_t epoch_high)
{
    uint64_t h = hash_text(UINT64_C(0xcbf29ce484222325), item->folder);

    h = hash_text(h * 31 + 1, item->name);
    h = hash_text(h * 31 + 2, plan);
    return hash_mix(h ^ hash_mix(epoch_high));
}

/* The index of the first span that ends above ino. */
static size_t span_index(const struct tree *tree, uint64_t ino)
{
    size_t low = 0, high = tree->n_spans;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct span *s = &tree->span[middle];

        if (s->base + (UINT64_C(1) << s->bits) <= ino)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool span_is_same(const struct span *a, const struct span *b)
{
    const char *a_name = a->plan ? a->plan->name : "", *b_name = b->plan ? b->plan->name : "";

    return a->item == b->item && a->epoch_high == b->epoch_high && !strcmp(a_name, b_name);
}

/* Find the span like want, or, with insert, put it in; want->base is its hash. 0 and *ret, or
 * -ENOENT, -ENFILE, -ENOMEM. lock held (for writing with insert). */
static int span_place(struct tree *tree, const struct span *want, bool insert, struct span *ret)
{
    unsigned slots_bits = 62 - want->bits;
    uint64_t slots = UINT64_C(1) << slots_bits, at = want->base & (slots - 1);

    for (uint64_t tries = 0; tries < slots; tries++, at = (at + 1) & (slots - 1)) {
        uint64_t base = SPAN_BASE + (at << want->bits);
        size_t i = span_index(tree, base);
        bool is_free =
            i == tree->n_spans || tree->span[i].base >= base + (UINT64_C(1) << want->bits);

        if (!is_free && span_is_same(&tree->span[i], want)) {
            *ret = tree->span[i];
            return 0;
        }
        if (!is_free)
            continue;
        if (!insert)
            return -ENOENT;
        if (tree->n_spans >= PLANS_MAX + tree->catalog->n)
            return -ENFILE;
        if (!(tree->n_spans & (tree->n_spans + 1))) {
            struct span *grown = realloc(tree->span, (tree->n_spans * 2 + 2) * sizeof(*grown));

            if (!grown)
                return -ENOMEM;
            tree->span = grown;
        }
        memmove(&tree->span[i + 1], &tree->span[i], (tree->n_spans - i) * sizeof(*want));
        tree->span[i] = *want;
        tree->span[i].base = base;
        tree->n_spans++;
        *ret = tree->span[i];
        return 0;
    }
    return -ENFILE;
}

static struct span samples_span(const struct catalog_item *item)
{
    unsigned slot_bits = bit_width(item->ds->samples);

    return (struct span){
        .base = span_hash(item, "", 0),
        .bits = slot_bits + LOW_BITS,
        .slot_bits = slot_bits,
        .item = item,
    };
}

static struct span plan_span(struct plan_entry *entry, uint64_t epoch)
{
    unsigned slot_bits = bit_width(entry->schedule.batches);
    unsigned room = slot_bits + LOW_BITS < SPAN_BITS ? SPAN_BITS - slot_bits - LOW_BITS : 0;
    unsigned epoch_bits = !entry->plan.seeded ? 0 : room < EPOCH_BITS ? room : EPOCH_BITS;
    uint64_t epoch_high = epoch >> epoch_bits;

    return (struct span){
        .base = span_hash(entry->item, entry->name, epoch_high),
        .bits = epoch_bits + slot_bits + LOW_BITS,
        .epoch_bits = epoch_bits,
        .slot_bits = slot_bits,
        .item = entry->item,
        .plan = entry,
        .epoch_high = epoch_high,
    };
}

static uint64_t span_ino(const struct span *s, uint64_t epoch, uint64_t slot, unsigned folder,
                         unsigned file)
{
    uint64_t epoch_low = epoch & ((UINT64_C(1) << s->epoch_bits) - 1);

    return s->base + ((((epoch_low << s->slot_bits) | slot) << LOW_BITS) |
                      (uint64_t)folder << FILE_BITS | file);
}

/* The span of an epoch that was opened before. lock held. */
static int epoch_span_locked(struct tree *tree, struct plan_entry *entry, uint64_t epoch,
                             struct span *ret)
{
    struct span want = plan_span(entry, epoch);

    return span_place(tree, &want, false, ret);
}

/* ---- nodes from numbers ---- */

static void node_of_fixed(const struct tree *tree, size_t i, struct node *ret)
{
    const struct fixed *f = &tree->fixed[i];

    *ret = (struct node){
        .kind = f->kind,
        .ino = TREE_ROOT + i,
        .fixed = f,
        .item = f->item,
        .folder = f->folder,
        .number = f->number,
    };
}

/* Check what an inode number says against what there is. */
static int node_of_span(const struct span *s, uint64_t ino, struct node *ret)
{
    uint64_t local = ino - s->base;
    unsigned file = local & ((1u << FILE_BITS) - 1);
    unsigned folder = (unsigned)(local >> FILE_BITS) & ((1u << FOLDER_BITS) - 1);
    uint64_t slot = (local >> LOW_BITS) & ((UINT64_C(1) << s->slot_bits) - 1);
    uint64_t epoch_low = local >> LOW_BITS >> s->slot_bits;
    enum scope scope = s->plan ? SCOPE_BATCHES : SCOPE_SAMPLES;
    const struct dataset *ds = s->item->ds;

    *ret = (struct node){.ino = ino, .item = s->item, .plan = s->plan};
    ret->epoch = (s->epoch_high << s->epoch_bits) | epoch_low;
    if (s->plan && !slot && folder == SELF_FOLDER) {
        ret->kind = file == SELF_EPOCH  ? NODE_EPOCH
                    : file == SELF_PLAN ? NODE_PLAN
                                        : NODE_PLAN_LINK;
        return file >= SELF_EPOCH && file <= SELF_LINK ? 0 : -ESTALE;
    }
    if (folder >= ds->n_folders)
        return -ESTALE;
    ret->folder = &ds->folder[folder];
    if (s->plan && !slot) {
        ret->kind = NODE_BATCH_FOLDER;
        return file == 0 ? 0 : -ESTALE;
    }
    if (file >= ret->folder->n_kinds[scope])
        return -ESTALE;
    ret->kind = s->plan ? NODE_BATCH : NODE_SAMPLE;
    ret->file = &ret->folder->kind[scope][file];
    ret->number = s->plan ? slot - 1 : slot;
    return ret->number < (s->plan ? s->plan->schedule.batches : ds->samples) ? 0 : -ESTALE;
}

int tree_node(struct tree *tree, uint64_t ino, struct node *ret)
{
    struct span span;
    bool found;
    size_t i;

    if (ino - TREE_ROOT < tree->n_fixed) {
        node_of_fixed(tree, ino - TREE_ROOT, ret);
        return 0;
    }
    pthread_rwlock_rdlock(&tree->lock);
    i = span_index(tree, ino);
    found = i < tree->n_spans && tree->span[i].base <= ino;
    if (found)
        span = tree->span[i];
    pthread_rwlock_unlock(&tree->lock);
    return found ? node_of_span(&span, ino, ret) : -ESTALE;
}

/* ---- plans ---- */

static void plan_entry_init(struct plan_entry *ret, const struct catalog_item *item,
                            const struct plan *plan)
{
    uint64_t start, length;

    *ret = (struct plan_entry){.item = item, .plan = *plan};
    plan_name(plan, ret->name);
    plan_share(plan->part, plan->parts, item->ds->samples, &start, &length);
    schedule_init(&ret->schedule, &ret->plan, start, length);
}

/* Make entry the next plan of its dataset and give it a span. */
static int plan_add_locked(struct tree *tree, struct plan_entry *entry)
{
    struct item_plans *plans = &tree->plans[entry->item - tree->catalog->item];
    struct span want = plan_span(entry, 0), span;
    int r;

    if (!(plans->n & (plans->n + 1))) {
        struct plan_entry **grown =
            realloc(plans->entry, (plans->n * 2 + 2) * sizeof(struct plan_entry *));

        if (!grown)
            return -ENOMEM;
        plans->entry = grown;
    }
    r = span_place(tree, &want, true, &span);
    if (r < 0)
        return r;
    entry->ino = span_ino(&span, 0, 0, SELF_FOLDER, SELF_PLAN);
    plans->entry[plans->n++] = entry;
    return 0;
}

/* Open the plan, or find it opened. *ret_new: it was not known before. */
static int plan_open(struct tree *tree, const struct catalog_item *item, const struct plan *plan,
                     struct plan_entry **ret, bool *ret_new)
{
    AUTO_FREE struct plan_entry *entry = calloc(1, sizeof(*entry));
    struct span want, span;
    int r;

    if (!entry)
        return -ENOMEM;
    plan_entry_init(entry, item, plan);
    want = plan_span(entry, 0);
    pthread_rwlock_wrlock(&tree->lock);
    r = span_place(tree, &want, false, &span);
    *ret_new = r == -ENOENT;
    if (*ret_new)
        r = plan_add_locked(tree, entry);
    pthread_rwlock_unlock(&tree->lock);
    if (r < 0)
        return r;
    *ret = *ret_new ? TAKE_PTR(entry) : span.plan;
    return 0;
}

static bool epoch_is_listed(const struct plan_entry *entry, uint64_t epoch)
{
    if (epoch < entry->listed_epochs)
        return true;
    for (size_t i = 0; i < entry->n_epochs; i++)
        if (entry->epoch[i] == epoch)
            return true;
    return false;
}

/* Open an epoch: give it a span and remember it for listings. */
static int epoch_open(struct tree *tree, struct plan_entry *entry, uint64_t epoch,
                      struct span *ret_span, bool *ret_new)
{
    struct span want = plan_span(entry, epoch);
    int r;

    *ret_new = false;
    pthread_rwlock_wrlock(&tree->lock);
    r = span_place(tree, &want, true, ret_span);
    if (r == 0 && tree->n_epochs < PLANS_MAX && !epoch_is_listed(entry, epoch)) {
        uint64_t *grown = entry->epoch;

        if (!(entry->n_epochs & (entry->n_epochs + 1)))
            grown = realloc(entry->epoch, (entry->n_epochs * 2 + 2) * sizeof(*grown));
        if (grown) { /* else it is opened, but not listed */
            entry->epoch = grown;
            entry->epoch[entry->n_epochs++] = epoch;
            tree->n_epochs++;
            *ret_new = true;
        }
    }
    pthread_rwlock_unlock(&tree->lock);
    return r;
}

/* ---- lookups ---- */

static const struct plan_entry *plan_of(const struct node *node)
{
    return node->plan;
}

static void plan_node(const struct plan_entry *entry, struct node *ret)
{
    *ret = (struct node){.kind = NODE_PLAN, .ino = entry->ino, .item = entry->item, .plan = entry};
}

static int lookup_plan(struct tree *tree, const struct node *parent, const char *name,
                       struct node *ret, uint64_t *ret_changed, struct diag *d)
{
    struct plan_entry *entry;
    struct plan plan;
    bool is_new;
    int r = plan_parse(name, strlen(name), ',', &plan, d);

    if (r < 0)
        return -ENOENT;
    r = plan_open(tree, parent->item, &plan, &entry, &is_new);
    if (r < 0)
        return r;
    if (is_new)
        *ret_changed = parent->ino;
    plan_node(entry, ret);
    if (strcmp(name, entry->name) != 0) {
        ret->kind = NODE_PLAN_LINK;
        ret->ino += SELF_LINK - SELF_PLAN;
    }
    return 0;
}

static int lookup_epoch(struct tree *tree, const struct node *parent, const char *name,
                        struct node *ret, uint64_t *ret_changed, struct diag *d)
{
    struct plan_entry *entry = (struct plan_entry *)plan_of(parent);
    const char *digits = name + strlen("epoch=");
    uint64_t epoch = 0;
    struct span span;
    bool is_new;
    int r;

    if (strncmp(name, "epoch=", 6) != 0 ||
        number_parse(digits, strlen(digits), UINT64_MAX, &epoch) != strlen(digits) || !*digits) {
        diag_set(d, -ENOENT, "want epoch=<a number from 0 to 2^64-1>, found '%s'", name);
        return -ENOENT;
    }
    r = epoch_open(tree, entry, epoch, &span, &is_new);
    if (r < 0)
        return r;
    if (is_new)
        *ret_changed = parent->ino;
    *ret = (struct node){
        .kind = NODE_EPOCH,
        .ino = span_ino(&span, epoch, 0, SELF_FOLDER, SELF_EPOCH),
        .item = parent->item,
        .plan = entry,
        .epoch = epoch,
    };
    return 0;
}

/* <enc>/ number i of an epoch, or of a plan without a seed. */
static int batch_folder(struct tree *tree, const struct node *parent, unsigned i, struct node *ret)
{
    struct span span;
    int r;

    pthread_rwlock_rdlock(&tree->lock);
    r = epoch_span_locked(tree, (struct plan_entry *)plan_of(parent), parent->epoch, &span);
    pthread_rwlock_unlock(&tree->lock);
    if (r < 0)
        return r;
    *ret = (struct node){
        .kind = NODE_BATCH_FOLDER,
        .ino = span_ino(&span, parent->epoch, 0, i, 0),
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
        if (ds->folder[i].n_kinds[SCOPE_BATCHES] && !strcmp(name, ds->folder[i].encoder->name))
            return batch_folder(tree, parent, i, ret);
    return -ENOENT;
}

static unsigned batch_digits(const struct plan_entry *entry)
{
    uint64_t batches = entry->schedule.batches;
    unsigned digits = decimal_digits(batches ? batches - 1 : 0);

    return digits < 6 ? 6 : digits;
}

static const struct file_kind *find_kind(const struct folder *folder, enum scope scope,
                                         const char *suffix)
{
    for (unsigned i = 0; i < folder->n_kinds[scope]; i++)
        if (!strcmp(folder->kind[scope][i].suffix, suffix))
            return &folder->kind[scope][i];
    return NULL;
}

/* The file of that kind and number in an <enc>/ folder. */
static void file_node(const struct tree *tree, const struct node *parent,
                      const struct file_kind *file, uint64_t number, struct node *ret)
{
    const struct dataset *ds = parent->item->ds;
    bool samples = parent->kind == NODE_SAMPLE_FOLDER;
    unsigned kind =
        (unsigned)(file - parent->folder->kind[samples ? SCOPE_SAMPLES : SCOPE_BATCHES]);
    unsigned folder = (unsigned)(parent->folder - ds->folder);

    *ret = *parent;
    ret->fixed = NULL;
    ret->file = file;
    ret->number = number;
    if (samples) {
        ret->kind = NODE_SAMPLE;
        ret->ino = tree->sample_base[parent->item - tree->catalog->item] +
                   (number << LOW_BITS | (uint64_t)folder << FILE_BITS | kind);
    } else {
        /* The folder's own number has slot 0 and the right epoch and folder. */
        ret->kind = NODE_BATCH;
        ret->ino = parent->ino + ((number + 1) << LOW_BITS) + kind;
    }
}

static int lookup_sample(struct tree *tree, const struct node *parent, const char *name,
                         struct node *ret)
{
    const char *dot = strchr(name, '.');
    const struct file_kind *file = dot ? find_kind(parent->folder, SCOPE_SAMPLES, dot) : NULL;
    uint64_t sample = 0;

    if (!file || !dataset_find(parent->item->ds, name, (size_t)(dot - name), &sample))
        return -ENOENT;
    file_node(tree, parent, file, sample, ret);
    return 0;
}

static int lookup_batch(struct tree *tree, const struct node *parent, const char *name,
                        struct node *ret)
{
    const char *dot = strchr(name, '.');
    const struct file_kind *file = dot ? find_kind(parent->folder, SCOPE_BATCHES, dot) : NULL;
    uint64_t batch = 0;

    if (!file ||
        !padded_number_parse(name, (size_t)(dot - name), batch_digits(parent->plan), &batch) ||
        batch >= parent->plan->schedule.batches)
        return -ENOENT;
    file_node(tree, parent, file, batch, ret);
    return 0;
}

static int lookup_fixed(struct tree *tree, const struct node *parent, const char *name,
                        struct node *ret)
{
    const struct fixed *f = parent->fixed;
    size_t low = f->first_child, high = low + f->n_children;

    while (low < high) { /* children are sorted */
        size_t middle = low + (high - low) / 2;
        int order = strcmp(tree->fixed[middle].name, name);

        if (!order) {
            node_of_fixed(tree, middle, ret);
            return 0;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -ENOENT;
}

int tree_lookup(struct tree *tree, const struct node *parent, const char *name, struct node *ret,
                uint64_t *ret_changed, struct diag *d)
{
    uint64_t changed = 0;
    int r;

    switch (parent->kind) {
    case NODE_FOLDER:
    case NODE_DATASET:
    case NODE_SOURCES:
    case NODE_SAMPLES:
        r = lookup_fixed(tree, parent, name, ret);
        break;
    case NODE_BATCHES:
        r = lookup_plan(tree, parent, name, ret, &changed, d);
        break;
    case NODE_SAMPLE_FOLDER:
        r = lookup_sample(tree, parent, name, ret);
        break;
    case NODE_PLAN:
        r = parent->plan->plan.seeded ? lookup_epoch(tree, parent, name, ret, &changed, d)
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
    if (ret_changed)
        *ret_changed = changed;
    return r;
}

/* ---- listings ---- */

static int list_plans(struct tree *tree, const struct node *parent, uint64_t index,
                      struct node *ret, char ret_name[static TREE_NAME_ROOM])
{
    const struct item_plans *plans = &tree->plans[parent->item - tree->catalog->item];
    int r = -ENOENT;

    pthread_rwlock_rdlock(&tree->lock);
    if (index < plans->n) {
        plan_node(plans->entry[index], ret);
        snprintf(ret_name, TREE_NAME_ROOM, "%s", ret->plan->name);
        r = 0;
    }
    pthread_rwlock_unlock(&tree->lock);
    return r;
}

static int list_epochs(struct tree *tree, const struct node *parent, uint64_t index,
                       struct node *ret, char ret_name[static TREE_NAME_ROOM])
{
    const struct plan_entry *entry = parent->plan;
    bool found = true, is_new;
    struct span span;
    uint64_t epoch = index;
    int r;

    pthread_rwlock_rdlock(&tree->lock);
    if (index >= entry->listed_epochs) {
        found = index - entry->listed_epochs < entry->n_epochs;
        epoch = found ? entry->epoch[index - entry->listed_epochs] : 0;
    }
    pthread_rwlock_unlock(&tree->lock);
    if (!found)
        return -ENOENT;
    r = epoch_open(tree, (struct plan_entry *)plan_of(parent), epoch, &span, &is_new);
    if (r < 0)
        return r;
    snprintf(ret_name, TREE_NAME_ROOM, "epoch=%llu", (unsigned long long)epoch);
    *ret = (struct node){
        .kind = NODE_EPOCH,
        .ino = span_ino(&span, epoch, 0, SELF_FOLDER, SELF_EPOCH),
        .item = parent->item,
        .plan = entry,
        .epoch = epoch,
    };
    return 0;
}

static int list_batch_folders(struct tree *tree, const struct node *parent, uint64_t index,
                              struct node *ret, char ret_name[static TREE_NAME_ROOM])
{
    const struct dataset *ds = parent->item->ds;

    for (unsigned i = 0; i < ds->n_folders; i++) {
        if (!ds->folder[i].n_kinds[SCOPE_BATCHES] || index-- > 0)
            continue;
        snprintf(ret_name, TREE_NAME_ROOM, "%s", ds->folder[i].encoder->name);
        return batch_folder(tree, parent, i, ret);
    }
    return -ENOENT;
}

static int list_files(struct tree *tree, const struct node *parent, uint64_t index,
                      struct node *ret, char ret_name[static TREE_NAME_ROOM])
{
    enum scope scope = parent->kind == NODE_SAMPLE_FOLDER ? SCOPE_SAMPLES : SCOPE_BATCHES;
    unsigned kinds = parent->folder->n_kinds[scope];
    uint64_t n =
        scope == SCOPE_SAMPLES ? parent->item->ds->samples : parent->plan->schedule.batches;
    char number[KEY_ROOM];

    if (index / kinds >= n)
        return -ENOENT;
    file_node(tree, parent, &parent->folder->kind[scope][index % kinds], index / kinds, ret);
    node_number_name(ret, number);
    snprintf(ret_name, TREE_NAME_ROOM, "%s%s", number, ret->file->suffix);
    return 0;
}

int tree_list(struct tree *tree, const struct node *parent, uint64_t index, struct node *ret,
              char ret_name[static TREE_NAME_ROOM])
{
    switch (parent->kind) {
    case NODE_FOLDER:
    case NODE_DATASET:
    case NODE_SOURCES:
    case NODE_SAMPLES:
        if (index >= parent->fixed->n_children)
            return -ENOENT;
        node_of_fixed(tree, parent->fixed->first_child + index, ret);
        snprintf(ret_name, TREE_NAME_ROOM, "%s", ret->fixed->name);
        return 0;
    case NODE_BATCHES:
        return list_plans(tree, parent, index, ret, ret_name);
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

void node_number_name(const struct node *node, char ret[static KEY_ROOM])
{
    if (node->kind == NODE_SAMPLE)
        dataset_key(node->item->ds, node->number, ret);
    else
        snprintf(ret, KEY_ROOM, "%0*llu", (int)batch_digits(node->plan),
                 (unsigned long long)node->number);
}

const char *tree_page(const struct node *node, size_t *ret_len)
{
    *ret_len = node->fixed->text_len;
    return node->fixed->text;
}

void item_path(const struct catalog_item *item, char *ret, size_t room)
{
    snprintf(ret, room, "%s%s%s", item->folder, *item->folder ? "/" : "", item->name);
}

/* ---- making a tree ---- */

/* Nodes are made level by level, so that the children of a folder are neighbours; a folder's
 * children are collected by add_children() when its turn comes. */
struct builder {
    struct tree *tree;
    size_t room;
    const char *folder; /* path of the folder whose children are made */
    char *(*page)(const struct catalog_item *item);
    char *readme;
};

/* name and text are taken over. */
static int add_fixed(struct builder *b, struct fixed node, const char *name)
{
    struct tree *tree = b->tree;

    if (tree->n_fixed == b->room) {
        size_t room = b->room * 2 + 16;
        struct fixed *grown = realloc(tree->fixed, room * sizeof(*grown));

        if (!grown) {
            free(node.text);
            return -ENOMEM;
        }
        tree->fixed = grown;
        b->room = room;
    }
    node.name = strdup(name);
    node.text_len = node.text ? strlen(node.text) : 0;
    tree->fixed[tree->n_fixed++] = node;
    return node.name ? 0 : -ENOMEM;
}

static int add_page(struct builder *b, const struct catalog_item *item, char *text,
                    const char *name)
{
    return text ? add_fixed(b, (struct fixed){.kind = NODE_PAGE, .item = item, .text = text}, name)
                : -ENOMEM;
}

static int add_dataset_children(struct builder *b, const struct catalog_item *item)
{
    static const struct {
        enum node_kind kind;
        const char *name;
    } parts[] = {{NODE_BATCHES, "batches"}, {NODE_SAMPLES, "samples"}, {NODE_SOURCES, "source"}};
    bool has_pictures = false;
    int r;

    if (item->error)
        return add_page(b, item, b->page(item), "ERROR.txt");
    r = add_page(b, item, b->page(item), "dataset.json");
    for (unsigned i = 0; i < item->ds->n_fields; i++)
        has_pictures = has_pictures || field_is_picture(&item->ds->field[i]);
    if (r == 0 && has_pictures && item->ds->samples)
        r = add_fixed(b, (struct fixed){.kind = NODE_PREVIEW, .item = item}, "preview.png");
    for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++)
        r = add_fixed(b, (struct fixed){.kind = parts[i].kind, .item = item}, parts[i].name);
    return r;
}

static int add_sample_folders(struct builder *b, const struct catalog_item *item)
{
    int r = 0;

    for (unsigned i = 0; i < item->ds->n_folders && r == 0; i++)
        if (item->ds->folder[i].n_kinds[SCOPE_SAMPLES])
            r = add_fixed(b,
                          (struct fixed){.kind = NODE_SAMPLE_FOLDER,
                                         .item = item,
                                         .folder = &item->ds->folder[i]},
                          item->ds->folder[i].encoder->name);
    return r;
}

static int add_sources(struct builder *b, const struct catalog_item *item)
{
    int r = 0;

    for (unsigned i = 0; i < item->ds->n_blobs && r == 0; i++) {
        const char *name = blob_name(item->ds->blob[i]), *slash = strrchr(name, '/');
        AUTO_FREE char *base = strdup(slash ? slash + 1 : name);

        if (!base)
            return -ENOMEM;
        base[unpacked_name_len(base)] = '\0';
        r = add_fixed(b, (struct fixed){.kind = NODE_SOURCE, .item = item, .number = i}, base);
    }
    return r;
}

/* The first component of path below folder, NULL where path is not below it. */
static const char *component_below(const char *path, const char *folder, size_t *ret_len)
{
    size_t len = strlen(folder);

    if (len && (strncmp(path, folder, len) != 0 || path[len] != '/'))
        return NULL;
    path += len ? len + 1 : 0;
    *ret_len = strcspn(path, "/");
    return *ret_len ? path : NULL;
}

static int add_source_folder(struct builder *b)
{
    const struct catalog *catalog = b->tree->catalog;
    const char *last = NULL;
    size_t last_len = 0;
    int r = 0;

    for (size_t i = 0; i < catalog->n && r == 0; i++) {
        const struct catalog_item *item = &catalog->item[i];
        size_t len = 0;
        const char *name = component_below(item->folder, b->folder, &len);

        if (!strcmp(item->folder, b->folder)) {
            r = add_fixed(b, (struct fixed){.kind = NODE_DATASET, .item = item}, item->name);
        } else if (name && !(last && len == last_len && !memcmp(name, last, len))) {
            AUTO_FREE char *copy = strndup(name, len);

            r = copy ? add_fixed(b, (struct fixed){.kind = NODE_FOLDER}, copy) : -ENOMEM;
            last = name;
            last_len = len;
        }
    }
    return r;
}

static int add_live(struct builder *b)
{
    int r = 0;

    for (unsigned i = 0; i < N_LIVES && r == 0; i++)
        r = add_fixed(b, (struct fixed){.kind = NODE_LIVE, .number = i}, live_names[i]);
    return r;
}

static int compare_fixed(const void *a, const void *b)
{
    return strcmp(((const struct fixed *)a)->name, ((const struct fixed *)b)->name);
}

/* The path of a folder of the source, from the names above it. */
static int folder_path(const struct tree *tree, size_t i, char **ret)
{
    AUTO_FREE char *above = NULL;
    int r;

    if (i == 0) {
        *ret = strdup("");
        return *ret ? 0 : -ENOMEM;
    }
    r = folder_path(tree, tree->fixed[i].parent, &above);
    if (r < 0)
        return r;
    return asprintf(ret, "%s%s%s", above, *above ? "/" : "", tree->fixed[i].name) < 0 ? -ENOMEM : 0;
}

static int add_folder_children(struct builder *b, size_t i)
{
    AUTO_FREE char *path = NULL;
    int r;

    if (i > 0 && b->tree->fixed[i].parent == 0 && !strcmp(b->tree->fixed[i].name, ".epochfs"))
        return add_live(b);
    r = folder_path(b->tree, i, &path);
    if (r < 0)
        return r;
    b->folder = path;
    if (i == 0) {
        r = add_fixed(b, (struct fixed){.kind = NODE_FOLDER}, ".epochfs");
        if (r == 0)
            r = add_page(b, NULL, TAKE_PTR(b->readme), "README.txt");
    }
    return r < 0 ? r : add_source_folder(b);
}

static int add_children(struct builder *b, size_t i)
{
    struct tree *tree = b->tree;
    const struct catalog_item *item = tree->fixed[i].item;
    size_t first = tree->n_fixed;
    int r = 0;

    switch (tree->fixed[i].kind) {
    case NODE_FOLDER:
        r = add_folder_children(b, i);
        break;
    case NODE_DATASET:
        r = add_dataset_children(b, item);
        break;
    case NODE_SAMPLES:
        r = add_sample_folders(b, item);
        break;
    case NODE_SOURCES:
        r = add_sources(b, item);
        break;
    default:
        return 0;
    }
    if (r < 0)
        return r;
    tree->fixed[i].first_child = (uint32_t)first;
    tree->fixed[i].n_children = (uint32_t)(tree->n_fixed - first);
    if (tree->n_fixed > first)
        qsort(&tree->fixed[first], tree->n_fixed - first, sizeof(struct fixed), compare_fixed);
    for (size_t child = first; child < tree->n_fixed; child++)
        tree->fixed[child].parent = (uint32_t)i;
    return 0;
}

static int open_listed_plans(struct tree *tree, const struct catalog_item *item,
                             const struct tree_options *options)
{
    for (size_t i = 0; i < options->n_plans; i++) {
        struct plan_entry *entry;
        bool is_new;
        int r = plan_open(tree, item, &options->plan[i], &entry, &is_new);

        if (r < 0)
            return r;
        if (entry->plan.seeded)
            entry->listed_epochs = options->epochs;
    }
    return 0;
}

static int open_items(struct tree *tree, const struct tree_options *options)
{
    for (size_t i = 0; i < tree->catalog->n; i++) {
        const struct catalog_item *item = &tree->catalog->item[i];
        struct span want, span;
        int r;

        if (!item->ds)
            continue;
        want = samples_span(item);
        r = span_place(tree, &want, true, &span);
        if (r == 0)
            r = open_listed_plans(tree, item, options);
        if (r < 0)
            return r;
        tree->sample_base[i] = span.base;
    }
    return 0;
}

static void tree_scope_end(struct tree **tree)
{
    tree_free(*tree);
}

int tree_new(const struct catalog *catalog, const struct tree_options *options, char *readme,
             char *(*page)(const struct catalog_item *item), struct tree **ret)
{
    AUTO(tree_scope_end) struct tree *tree = calloc(1, sizeof(*tree));
    AUTO_FREE char *readme_owned = readme;
    struct builder b = {.page = page};
    int r;

    if (!tree || pthread_rwlock_init(&tree->lock, NULL) != 0) {
        free(TAKE_PTR(tree));
        return -ENOMEM;
    }
    b.tree = tree;
    b.readme = TAKE_PTR(readme_owned);
    tree->catalog = catalog;
    tree->sample_base = calloc(catalog->n ? catalog->n : 1, sizeof(*tree->sample_base));
    tree->plans = calloc(catalog->n ? catalog->n : 1, sizeof(*tree->plans));
    r = tree->sample_base && tree->plans ? add_fixed(&b, (struct fixed){.kind = NODE_FOLDER}, "")
                                         : -ENOMEM;
    for (size_t i = 0; i < tree->n_fixed && r == 0; i++)
        r = add_children(&b, i);
    free(b.readme);
    if (r == 0)
        r = open_items(tree, options);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(tree);
    return 0;
}

void tree_free(struct tree *tree)
{
    if (!tree)
        return;
    for (size_t i = 0; i < tree->n_fixed; i++) {
        free(tree->fixed[i].name);
        free(tree->fixed[i].text);
    }
    for (size_t i = 0; tree->plans && i < tree->catalog->n; i++) {
        for (size_t k = 0; k < tree->plans[i].n; k++) {
            free(tree->plans[i].entry[k]->epoch);
            free(tree->plans[i].entry[k]);
        }
        free(tree->plans[i].entry);
    }
    free(tree->plans);
    free(tree->fixed);
    free(tree->sample_base);
    free(tree->span);
    pthread_rwlock_destroy(&tree->lock);
    free(tree);
}
