/* Making the fixed part of the tree from the catalog. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "base/search.h"
#include "cache/pack/unpack.h"
#include "fs/tree/parts.h"

/* Nodes are made level by level, so that the children of a folder are neighbours; add_children()
 * collects a folder's children when its turn comes. */
struct builder {
    struct tree *tree;
    size_t capacity;
    const char *folder; /* path of the folder whose children are being made */
    char *readme;
};

static const char *const live_names[N_LIVES] = {
    [LIVE_HISTORY] = "history.json", [LIVE_METRICS] = "metrics", [LIVE_STATUS] = "status.json"};

/* Takes over name and node.text. */
static int add_fixed(struct builder *b, struct fixed node, const char *name)
{
    struct tree *tree = b->tree;

    if (tree->n_fixed == b->capacity) {
        size_t capacity = b->capacity * 2 + 16;
        struct fixed *grown = realloc(tree->fixed, capacity * sizeof(*grown));

        if (!grown) {
            free(node.text);
            return -ENOMEM;
        }
        tree->fixed = grown;
        b->capacity = capacity;
    }
    node.name = strdup(name);
    node.text_len = node.text ? strlen(node.text) : 0;
    tree->fixed[tree->n_fixed++] = node;
    return node.name ? 0 : -ENOMEM;
}

/* Add the page of an item; tree_open_item() writes it. */
static int add_page(struct builder *b, const struct catalog_item *item, const char *name)
{
    return add_fixed(b, (struct fixed){.type = NODE_PAGE, .item = item}, name);
}

static const struct field *find_pictures(const struct dataset *ds)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_is_in(&ds->field[i], IN_PICTURES | IN_PREVIEW))
            return &ds->field[i];
    return NULL;
}

const struct field *tree_preview(const struct dataset *ds)
{
    /* Fields of a dataset that could not be prepared have no sizes. */
    const struct field *f = dataset_state(ds) == DATASET_READY ? find_pictures(ds) : NULL;

    return f && max_u64(f->dim[0], f->dim[1]) <= PREVIEW_MOST ? f : NULL;
}

static int add_dataset_children(struct builder *b, const struct catalog_item *item)
{
    static const struct {
        enum node_type type;
        const char *name;
    } parts[] = {{NODE_BATCHES, "batches"}, {NODE_SAMPLES, "samples"}, {NODE_SOURCES, "source"}};
    bool is_late;
    int r;

    if (item->error)
        return add_page(b, item, "ERROR.txt");
    /* Fields that are prepared have no sizes yet. */
    is_late = dataset_state(item->ds) == DATASET_PREPARING &&
              (item->ds->late_folders || find_pictures(item->ds));
    r = add_page(b, item, "dataset.json");
    if (r == 0 && (is_late || (tree_preview(item->ds) && item->ds->samples)))
        r = add_fixed(b, (struct fixed){.type = NODE_PREVIEW, .item = item, .is_late = is_late},
                      "preview.png");
    for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++)
        r = add_fixed(b, (struct fixed){.type = parts[i].type, .item = item}, parts[i].name);
    return r;
}

/* Add README.txt of batches/: what to type where no plan was opened yet. The text is the same
 * everywhere. It exists, or not, for the whole life of the mount: listings only grow. */
static int add_plans_page(struct builder *b)
{
    AUTO_TEXT struct text t = {0};
    struct fixed page = {.type = NODE_PAGE};

    if (b->tree->options.n_plans)
        return 0;
    text_add(&t,
             "Open a plan by its name, and it is listed here from then on. For example\n\n"
             "    ls 'batch=128/npz'                   128 samples per file, in stored order\n"
             "    ls 'batch=128,seed=7/epoch=0/npz'    shuffled, differently in every epoch=<E>\n\n"
             "A plan is\n\n");
    plan_syntax(&t, "    ", 80);
    text_add(&t,
             "\nREADME.txt at the top of the mount says what these do. A mount with -o plan=PLAN "
             "(with\n+ in place of each comma) lists that plan here instead of this file.\n");
    if (text_finish(&t, &page.text, NULL) < 0)
        return -ENOMEM;
    return add_fixed(b, page, "README.txt");
}

static int add_sample_folders(struct builder *b, const struct catalog_item *item)
{
    int r = 0;

    for (unsigned i = 0; i < item->ds->n_folders && r == 0; i++)
        if (item->ds->folder[i].n_kinds[SCOPE_SAMPLES] || item->ds->late_folders)
            r = add_fixed(b,
                          (struct fixed){.type = NODE_SAMPLE_FOLDER,
                                         .item = item,
                                         .folder = &item->ds->folder[i]},
                          item->ds->folder[i].name);
    return r;
}

/* The name of a source file in source/: its own, or `<name>~<k>` if files of a list share it. */
static char *source_file_name(const struct dataset *ds, unsigned number)
{
    const char *path = blob_name(ds->blob[number]), *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t len = unpacked_name_len(name);
    unsigned same = 1;
    char *ret;

    for (unsigned i = 0; i < number; i++) {
        const char *other = blob_name(ds->blob[i]), *other_slash = strrchr(other, '/');

        other = other_slash ? other_slash + 1 : other;
        same += unpacked_name_len(other) == len && !memcmp(other, name, len);
    }
    if (same == 1)
        return strndup(name, len);
    return asprintf(&ret, "%.*s~%u", (int)len, name, same) < 0 ? NULL : ret;
}

static int tree_build_add_sources(struct builder *b, const struct catalog_item *item)
{
    int r = 0;

    for (unsigned i = 0; i < item->ds->n_blobs && r == 0; i++) {
        AUTO_FREE char *name = source_file_name(item->ds, i);

        r = name
                ? add_fixed(b, (struct fixed){.type = NODE_SOURCE, .item = item, .number = i}, name)
                : -ENOMEM;
    }
    return r;
}

/* The first component of path below folder; NULL: path is not below it. */
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
            r = add_fixed(b, (struct fixed){.type = NODE_DATASET, .item = item}, item->name);
        } else if (name && !(last && len == last_len && !memcmp(name, last, len))) {
            AUTO_FREE char *copy = strndup(name, len);

            r = copy ? add_fixed(b, (struct fixed){.type = NODE_FOLDER}, copy) : -ENOMEM;
            last = name;
            last_len = len;
        }
    }
    return r;
}

/* Is an item in the folder of that path, or below it? Items are sorted by folder. */
static bool has_items_in(const struct catalog *catalog, const char *path, const char *end)
{
    size_t len = strlen(path) + strlen(end), first;
    char wanted[PATH_MAX];

    snprintf(wanted, sizeof(wanted), "%s%s", path, end);
    first = SEARCH(catalog->n, i, strcmp(catalog->item[i].folder, wanted) < 0);
    return first < catalog->n && (*end ? !strncmp(catalog->item[first].folder, wanted, len)
                                       : !strcmp(catalog->item[first].folder, wanted));
}

/* A dataset may be in the folder of another: a copy of its class folders, for example. */
static int add_datasets_below(struct builder *b, const struct catalog_item *item)
{
    char path[PATH_MAX];

    item_path(item, path, sizeof(path));
    if (!has_items_in(b->tree->catalog, path, "") && !has_items_in(b->tree->catalog, path, "/"))
        return 0;
    b->folder = path;
    return add_source_folder(b);
}

static int add_live(struct builder *b)
{
    int r = 0;

    for (unsigned i = 0; i < N_LIVES && r == 0; i++)
        r = add_fixed(b, (struct fixed){.type = NODE_LIVE, .number = i}, live_names[i]);
    return r;
}

/* A dataset before the folder of its path, which is one with it. */
static int compare_fixed(const void *a, const void *b)
{
    const struct fixed *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->type == NODE_FOLDER) - (y->type == NODE_FOLDER);
}

/* The path of a folder of the source, from the names above it. */
static int folder_path(const struct tree *tree, size_t i, char **ret)
{
    AUTO_FREE char *above = NULL;
    char *text;
    int r;

    if (i == 0) {
        *ret = strdup("");
        return *ret ? 0 : -ENOMEM;
    }
    r = folder_path(tree, tree->fixed[i].parent, &above);
    if (r < 0)
        return r;
    if (asprintf(&text, "%s%s%s", above, *above ? "/" : "", tree->fixed[i].name) < 0)
        return -ENOMEM;
    *ret = text;
    return 0;
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
    if (b->tree->catalog->source) {
        source_access(b->tree->catalog->source, path, &b->tree->fixed[i].access);
        b->tree->fixed[i].has_access = true;
    }
    if (i == 0) {
        r = add_fixed(b, (struct fixed){.type = NODE_FOLDER}, ".epochfs");
        if (r == 0)
            r = add_fixed(b, (struct fixed){.type = NODE_PAGE, .text = TAKE_PTR(b->readme)},
                          "README.txt");
    }
    return r < 0 ? r : add_source_folder(b);
}

/* Sort the children from first on, and remove duplicates: a folder was added once for every run of
 * items below it. */
static void sort_children(struct tree *tree, size_t first)
{
    size_t kept = first;

    if (tree->n_fixed == first)
        return;
    qsort(&tree->fixed[first], tree->n_fixed - first, sizeof(struct fixed), compare_fixed);
    for (size_t i = first; i < tree->n_fixed; i++) {
        if (i > first && !strcmp(tree->fixed[kept - 1].name, tree->fixed[i].name))
            free(tree->fixed[i].name);
        else
            tree->fixed[kept++] = tree->fixed[i];
    }
    tree->n_fixed = kept;
}

static int add_children(struct builder *b, size_t i)
{
    struct tree *tree = b->tree;
    const struct catalog_item *item = tree->fixed[i].item;
    size_t first = tree->n_fixed;
    int r = 0;

    switch (tree->fixed[i].type) {
    case NODE_FOLDER:
        r = add_folder_children(b, i);
        break;
    case NODE_DATASET:
        r = add_dataset_children(b, item);
        if (r == 0)
            r = add_datasets_below(b, item);
        break;
    case NODE_SAMPLES:
        r = add_sample_folders(b, item);
        break;
    case NODE_SOURCES:
        r = tree_build_add_sources(b, item);
        break;
    case NODE_BATCHES:
        r = add_plans_page(b);
        break;
    default:
        return 0;
    }
    if (r < 0)
        return r;
    sort_children(tree, first);
    tree->fixed[i].first_child = (uint32_t)first;
    tree->fixed[i].n_children = (uint32_t)(tree->n_fixed - first);
    for (size_t child = first; child < tree->n_fixed; child++)
        tree->fixed[child].parent = (uint32_t)i;
    return 0;
}

int tree_open_listed(struct tree *tree, const struct catalog_item *item)
{
    const struct tree_options *options = &tree->options;

    for (size_t i = 0; i < options->n_plans; i++) {
        struct plan_entry *entry;
        bool is_new;
        struct diag d = DIAG_INIT, said = DIAG_INIT;
        char name[PLAN_NAME_SIZE];
        int r = tree_open_plan(tree, item, &options->plan[i], TREE_OWNER, &entry, &is_new, &d);

        if (r == -EINVAL) {
            plan_name(&options->plan[i], name);
            diag_set(&said, r, "%s: plan=%s: %s", item->name, name, d.text);
            notices_say(&tree->catalog->tools->notices, said.text);
            continue;
        }
        if (r == -EAGAIN)
            continue; /* it opens once its labels exist */
        if (r < 0)
            return r;
        lock_take(&tree->lock);
        if (entry->of_options == PLAN_OTHER) {
            entry->of_options = PLAN_UNANNOUNCED;
            entry->listed_epochs = entry->plan.seeded ? options->epochs : 0;
        }
        lock_drop(&tree->lock);
    }
    return 0;
}

/* Give the item's page its text. */
static int write_page(struct tree *tree, const struct catalog_item *item)
{
    struct fixed *f = &tree->fixed[tree->page_of[item - tree->catalog->item]];

    f->text = tree->page(item);
    f->text_len = f->text ? strlen(f->text) : 0;
    return f->text ? 0 : -ENOMEM;
}

static int open_dataset(struct tree *tree, const struct catalog_item *item)
{
    struct span wanted = span_of_samples(item), span = {0};
    int r;

    lock_take(&tree->lock);
    r = spans_take(&tree->spans, &wanted, &span);
    lock_drop(&tree->lock);
    tree->sample_base[item - tree->catalog->item] = span.base;
    return r < 0 ? r : tree_open_listed(tree, item);
}

int tree_open_item(struct tree *tree, const struct catalog_item *item)
{
    int r = write_page(tree, item);

    if (r == 0 && item->ds && dataset_state(item->ds) == DATASET_READY)
        r = open_dataset(tree, item);
    atomic_store_explicit(&tree->opened[item - tree->catalog->item], r < 0 ? r : 1,
                          memory_order_release);
    return r;
}

const struct access *tree_access(const struct node *node)
{
    return node->type == NODE_FOLDER && node->fixed->has_access ? &node->fixed->access : NULL;
}

static void find_pages(struct tree *tree)
{
    for (size_t i = 0; i < tree->n_fixed; i++)
        if (tree->fixed[i].type == NODE_PAGE && tree->fixed[i].item)
            tree->page_of[tree->fixed[i].item - tree->catalog->item] = i;
}

static int open_items(struct tree *tree)
{
    int r = 0;

    for (size_t i = 0; i < tree->catalog->n && r == 0; i++) {
        const struct catalog_item *item = &tree->catalog->item[i];

        if (!item->ds || dataset_state(item->ds) != DATASET_PREPARING)
            r = tree_open_item(tree, item);
    }
    return r;
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
    struct builder b = {0};
    int r;

    if (!tree)
        return -ENOMEM;
    lock_init(&tree->lock);
    b.tree = tree;
    b.readme = TAKE_PTR(readme_owned);
    tree->catalog = catalog;
    tree->spans.max = PLANS_MAX + catalog->n;
    tree->options = *options;
    tree->page = page;
    tree->sample_base = calloc(catalog->n ? catalog->n : 1, sizeof(*tree->sample_base));
    tree->opened = calloc(catalog->n ? catalog->n : 1, sizeof(*tree->opened));
    tree->page_of = calloc(catalog->n ? catalog->n : 1, sizeof(*tree->page_of));
    tree->plans = calloc(catalog->n ? catalog->n : 1, sizeof(*tree->plans));
    r = tree->sample_base && tree->opened && tree->page_of && tree->plans
            ? add_fixed(&b, (struct fixed){.type = NODE_FOLDER}, "")
            : -ENOMEM;
    for (size_t i = 0; i < tree->n_fixed && r == 0; i++)
        r = add_children(&b, i);
    free(b.readme);
    if (r == 0) {
        find_pages(tree);
        r = open_items(tree);
    }
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
    free(tree->opened);
    free(tree->page_of);
    free(tree->spans.span);
    free(tree->user);
    lock_release(&tree->lock);
    free(tree);
}
