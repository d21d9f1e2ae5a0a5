/* Names to nodes to inode numbers and back, over catalogs made by hand. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "format/core/encoder.h"
#include "fs/tree/tree.h"
#include "support/tree_make.h"
#include "support/unit.h"

static bool nodes_equal(const struct node *a, const struct node *b)
{
    return a->type == b->type && a->ino == b->ino && a->item == b->item && a->plan == b->plan &&
           a->epoch == b->epoch && a->folder == b->folder && a->file == b->file &&
           a->number == b->number && a->fixed == b->fixed;
}

/* All inode numbers of a tree, to check that none occurs twice. */
struct inos {
    uint64_t *ino;
    size_t n, capacity;
};

static void inos_add(struct inos *all, uint64_t ino)
{
    if (all->n == all->capacity) {
        all->capacity = all->capacity * 2 + 1024;
        all->ino = realloc(all->ino, all->capacity * sizeof(*all->ino));
    }
    all->ino[all->n++] = ino;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void inos_check(struct inos *all)
{
    qsort(all->ino, all->n, sizeof(*all->ino), compare_u64);
    for (size_t i = 1; i < all->n; i++)
        if (all->ino[i] == all->ino[i - 1])
            fail_msg("inode number %llx twice", (unsigned long long)all->ino[i]);
    free(all->ino);
    *all = (struct inos){0};
}

/* Check everything listed below a folder: each name looks up to the listed node, and the node's
 * number leads back to it. */
static void check_listing(struct tree *tree, const struct node *folder, struct inos *all)
{
    inos_add(all, folder->ino);
    for (uint64_t i = 0;; i++) {
        char name[TREE_NAME_SIZE], again[TREE_NAME_SIZE];
        struct node listed, looked_up, from_ino;
        int r = tree_list(tree, folder, i, &listed, name);

        if (r == -ENOENT)
            return;
        assert_int_equal(r, 0);
        if (tree_lookup(tree, folder, name, TREE_OWNER, &looked_up, NULL, NULL) < 0)
            fail_msg("%s is listed and does not open", name);
        assert_true(nodes_equal(&listed, &looked_up));
        assert_int_equal(tree_node(tree, listed.ino, &from_ino), 0);
        if (!nodes_equal(&listed, &from_ino))
            fail_msg("%s: its number leads elsewhere", name);
        assert_int_equal(tree_list(tree, folder, i, &listed, again), 0);
        assert_string_equal(again, name);
        if (node_is_folder(&listed))
            check_listing(tree, &listed, all);
        else
            inos_add(all, listed.ino);
    }
}

static void parse_plan(const char *name, struct plan *ret)
{
    assert_int_equal(plan_parse(name, strlen(name), ',', ret, NULL), 0);
}

/* What the tree of a test shows. */
static struct catalog catalog;

static void scope_end(struct tree **tree)
{
    tree_free(*tree);
    catalog_release(&catalog);
    catalog = (struct catalog){0};
}

#define AUTO_TREE AUTO(scope_end)

static void add_small(struct catalog *c)
{
    catalog_add(c, "", "train", 7);
    catalog_add(c, "deep/er", "a", 3);
    catalog_add_error(c, "deep/er", "b");
    catalog_add(c, "other", "a", 1);
    catalog_add(c, "other", "empty", 0);
}

/* A tree of a few small datasets. */
static struct tree *small_tree(void)
{
    catalog = (struct catalog){0}; /* a test that failed has left its own */
    add_small(&catalog);
    return tree_make(&catalog, NULL);
}

UNIT_TEST(test_tree__listings__names_nodes_and_numbers_agree)
{
    struct plan plan[4];
    const struct tree_options options = {.plan = plan, .n_plans = 4, .epochs = 3};
    AUTO_TREE struct tree *tree = NULL;
    struct inos all = {0};
    struct node root;

    add_small(&catalog);
    parse_plan("batch=2", &plan[0]);
    parse_plan("batch=all,seed=1", &plan[1]);
    parse_plan("batch=3,rank=1of2,seed=18446744073709551615,shuffle=window:2,tail=wrap", &plan[2]);
    parse_plan("batch=100,tail=drop", &plan[3]);
    tree = tree_make(&catalog, &options);
    tree_node_at(tree,
                 "train/batches/batch=1,seed=5/epoch=18446744073709551615/npy/000006.image.npy");
    tree_node_at(tree, "train/batches/batch=1,seed=5/epoch=65536");
    tree_node_at(tree, "train/batches/batch=1,seed=5/epoch=65535");
    assert_int_equal(tree_node(tree, TREE_ROOT, &root), 0);
    check_listing(tree, &root, &all);
    assert_true(all.n > 500);
    inos_check(&all);
}

UNIT_TEST(test_tree__contract__paths_of_every_kind)
{
    static const struct {
        const char *path;
        enum node_type kind;
    } cases[] = {
        {"", NODE_FOLDER},
        {"README.txt", NODE_PAGE},
        {".epochfs", NODE_FOLDER},
        {".epochfs/status.json", NODE_LIVE},
        {".epochfs/metrics", NODE_LIVE},
        {"train", NODE_DATASET},
        {"train/dataset.json", NODE_PAGE},
        {"train/preview.png", NODE_PREVIEW},
        {"train/source", NODE_SOURCES},
        {"train/source/a-images-idx3-ubyte", NODE_SOURCE},
        {"train/source/a-labels-idx1-ubyte", NODE_SOURCE},
        {"train/samples", NODE_SAMPLES},
        {"train/samples/png", NODE_SAMPLE_FOLDER},
        {"train/samples/png/000006.image.png", NODE_SAMPLE},
        {"train/samples/npz/000000.npz", NODE_SAMPLE},
        {"train/batches", NODE_BATCHES},
        {"train/batches/batch=4", NODE_PLAN},
        {"train/batches/batch=4/npy", NODE_BATCH_FOLDER},
        {"train/batches/batch=4/npy/000001.index.npy", NODE_BATCH},
        {"train/batches/batch=4,part=0of1", NODE_PLAN_LINK},
        {"train/batches/batch=4,seed=0", NODE_PLAN},
        {"train/batches/batch=4,seed=0/epoch=0", NODE_EPOCH},
        {"train/batches/batch=4,seed=0/epoch=0/tar", NODE_BATCH_FOLDER},
        {"train/batches/batch=4,seed=0/epoch=0/tar/000000.tar", NODE_BATCH},
        {"deep", NODE_FOLDER},
        {"deep/er", NODE_FOLDER},
        {"deep/er/a", NODE_DATASET},
        {"deep/er/b", NODE_DATASET},
        {"deep/er/b/ERROR.txt", NODE_PAGE},
        {"other/empty/batches/batch=all/npy/000000.image.npy", NODE_BATCH},
    };
    AUTO_TREE struct tree *tree = small_tree();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node node = tree_node_at(tree, "%s", cases[i].path), again;

        if (node.type != cases[i].kind)
            fail_msg("%s: kind %d", cases[i].path, (int)node.type);
        assert_int_equal(tree_node(tree, node.ino, &again), 0);
        if (!nodes_equal(&node, &again))
            fail_msg("%s: its number leads elsewhere", cases[i].path);
    }
}

UNIT_TEST(test_tree__wrong_names__enoent)
{
    static const char *const paths[] = {
        "nope",
        "train/samples/svm",
        "train/samples/npy/7",
        "train/samples/npy/000007.image.npy",
        "train/samples/npy/00000.image.npy",
        "train/samples/npy/0000000.image.npy",
        "train/samples/npy/-00001.image.npy",
        "train/samples/npy/000000.image.png",
        "train/samples/npy/000000.index.npy",
        "train/samples/npy/000000image.npy",
        "train/samples/npy/.image.npy",
        "train/samples/npy/000000.image.npy.",
        "train/batches/batch=0",
        "train/batches/batch=1,rank=4of4",
        "train/batches/batch=1,foo=2",
        "train/batches/batch=18446744073709551616",
        "train/batches/batch=4+seed=1",
        "train/batches/epoch=0",
        "train/batches/batch=4/epoch=0",
        "train/batches/batch=4/npy/000002.image.npy",
        "train/batches/batch=4/npy/0.image.npy",
        "train/batches/batch=4/svm",
        "train/batches/batch=100,tail=drop/npy/000000.image.npy",
        "train/batches/batch=4,seed=1/npy",
        "train/batches/batch=4,seed=1/epoch=",
        "train/batches/batch=4,seed=1/epoch=-1",
        "train/batches/batch=4,seed=1/epoch=00",
        "train/batches/batch=4,seed=1/epoch=18446744073709551616",
        "train/batches/batch=4,seed=1/Epoch=1",
        "train/batches/batch=4,seed=1/epoch=1x",
        "deep/er/b/dataset.json",
        "deep/a",
        "other/empty/samples/npy/000000.image.npy",
        "other/empty/preview.png",
        "other/empty/batches/batch=1/npy/000000.image.npy",
    };
    AUTO_TREE struct tree *tree = small_tree();
    struct node node;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (tree_walk(tree, paths[i], &node) != -ENOENT)
            fail_msg("%s opens", paths[i]);
    assert_int_equal(tree_walk(tree, "README.txt/x", &node), -ENOTDIR);
    assert_int_equal(tree_walk(tree, "train/samples/npz/000000.npz/x", &node), -ENOTDIR);
    assert_int_equal(tree_walk(tree, "train/batches/batch=4,part=0of1/npy", &node), -ENOTDIR);
}

UNIT_TEST(test_tree__malformed_plan__reason)
{
    AUTO_TREE struct tree *tree = small_tree();
    struct node parent, node;
    struct diag d = DIAG_INIT, e = DIAG_INIT;

    parent = tree_node_at(tree, "train/batches");
    assert_int_equal(tree_lookup(tree, &parent, "batch=0", TREE_OWNER, &node, NULL, &d), -ENOENT);
    assert_diag_has(&d, "got '0'");
    parent = tree_node_at(tree, "train/batches/batch=1,seed=1");
    assert_int_equal(tree_lookup(tree, &parent, "epoch=x", TREE_OWNER, &node, NULL, &e), -ENOENT);
    assert_diag_has(&e, "'epoch=x'");
}

UNIT_TEST(test_tree__no_such_number__estale)
{
    AUTO_TREE struct tree *tree = small_tree();
    struct node node, sample, batch;
    uint64_t last;

    assert_int_equal(tree_node(tree, 0, &node), -ESTALE);
    for (last = TREE_ROOT; tree_node(tree, last, &node) == 0; last++)
        assert_int_equal(node.ino, last);
    assert_int_equal(tree_node(tree, UINT64_MAX, &node), -ESTALE);
    assert_int_equal(tree_node(tree, (UINT64_C(1) << 62) - 1, &node), -ESTALE);
    assert_int_equal(tree_node(tree, UINT64_C(1) << 63, &node), -ESTALE);
    sample = tree_node_at(tree, "train/samples/npz/000006.npz");
    assert_int_equal(tree_node(tree, sample.ino + 1, &node), -ESTALE);    /* another kind */
    assert_int_equal(tree_node(tree, sample.ino + 1024, &node), -ESTALE); /* another sample */
    batch = tree_node_at(tree, "train/batches/batch=4/npz/000001.npz");
    assert_int_equal(tree_node(tree, batch.ino + 1, &node), -ESTALE);
    assert_int_equal(tree_node(tree, batch.ino + 1024, &node), -ESTALE);
}

/* Any number inside the spans is a node with that very number, or none. */
UNIT_TEST(test_tree__numbers_nearby__honest)
{
    static const char *const paths[] = {
        "train/samples/npz/000000.npz",
        "train/batches/batch=4",
        "train/batches/batch=4,seed=0/epoch=0/tar/000000.tar",
        "train/batches/batch=4,seed=0/epoch=7/tar",
        "other/empty/batches/batch=all,seed=3/epoch=65535/npy",
    };
    AUTO_TREE struct tree *tree = small_tree();

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct node node = tree_node_at(tree, "%s", paths[i]), near;

        for (uint64_t ino = node.ino - 5000; ino < node.ino + 5000; ino++)
            if (tree_node(tree, ino, &near) == 0)
                assert_int_equal(near.ino, ino);
    }
}

UNIT_TEST(test_tree__link__leads_to_the_plan)
{
    AUTO_TREE struct tree *tree = small_tree();
    struct node link, other, plan;

    link = tree_node_at(tree, "train/batches/tail=wrap,seed=3,batch=4");
    other = tree_node_at(tree, "train/batches/seed=3,tail=wrap,batch=4,shuffle=full");
    assert_int_equal(link.type, NODE_PLAN_LINK);
    assert_false(node_is_folder(&link));
    assert_string_equal(link.plan->name, "batch=4,seed=3,tail=wrap");
    plan = tree_node_at(tree, "train/batches/batch=4,seed=3,tail=wrap");
    assert_int_equal(plan.type, NODE_PLAN);
    assert_ptr_equal(plan.plan, link.plan);
    assert_int_not_equal(plan.ino, link.ino);
    assert_int_equal(other.ino, link.ino);
}

UNIT_TEST(test_tree__opened_plans_and_epochs__listed_once)
{
    static const char *const plans[] = {"batch=9", "batch=2,seed=1", "batch=1"};
    static const char *const epochs[] = {"epoch=5", "epoch=18446744073709551615", "epoch=0"};
    AUTO_TREE struct tree *tree = small_tree();
    struct node parent, node;
    char name[TREE_NAME_SIZE];

    for (int round = 0; round < 2; round++) {
        parent = tree_node_at(tree, "train/batches");
        for (size_t i = 0; i < 3; i++) {
            uint64_t changed = 99;

            assert_int_equal(
                tree_lookup(tree, &parent, plans[i], TREE_OWNER, &node, &changed, NULL), 0);
            assert_int_equal(changed, round ? 0 : parent.ino);
        }
        parent = tree_node_at(tree, "train/batches/batch=2,seed=1");
        for (size_t i = 0; i < 3; i++) {
            uint64_t changed = 99;

            assert_int_equal(
                tree_lookup(tree, &parent, epochs[i], TREE_OWNER, &node, &changed, NULL), 0);
            assert_int_equal(changed, round ? 0 : parent.ino);
        }
    }
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(tree_list(tree, &parent, i, &node, name), 0);
        assert_string_equal(name, epochs[i]);
    }
    assert_int_equal(tree_list(tree, &parent, 3, &node, name), -ENOENT);
    parent = tree_node_at(tree, "train/batches");
    for (uint64_t i = 0; i < 4; i++) { /* after the page that says what to type */
        assert_int_equal(tree_list(tree, &parent, i, &node, name), 0);
        assert_string_equal(name, i ? plans[i - 1] : "README.txt");
    }
    assert_int_equal(tree_list(tree, &parent, 4, &node, name), -ENOENT);
    parent = tree_node_at(tree, "other/a/batches"); /* another dataset's */
    assert_int_equal(tree_list(tree, &parent, 0, &node, name), 0);
    assert_int_equal(node.type, NODE_PAGE);
    assert_int_equal(tree_list(tree, &parent, 1, &node, name), -ENOENT);
}

/* Samples, batches, plans and epochs of many plans over datasets of any size. */
static void collect(struct tree *tree, const char *dataset, const char *plan, struct inos *all)
{
    static const char *const epochs[] = {"0", "1", "65535", "65536", "18446744073709551615"};
    struct node node, again;
    bool seeded = strstr(plan, "seed=");

    for (size_t e = 0; e < (seeded ? ARRAY_LEN(epochs) : 1); e++) {
        char under[512];

        if (!e)
            inos_add(all, tree_node_at(tree, "%s/batches/%s", dataset, plan).ino);
        snprintf(under, sizeof(under), "%s/batches/%s%s%s", dataset, plan, seeded ? "/epoch=" : "",
                 seeded ? epochs[e] : "");
        if (seeded)
            inos_add(all, tree_node_at(tree, "%s", under).ino);
        node = tree_node_at(tree, "%s/npy", under);
        inos_add(all, node.ino);
        for (uint64_t i = 0;; i = node.plan->schedule.batches * 5 - 1) {
            char name[TREE_NAME_SIZE];
            struct node file;

            if (tree_list(tree, &node, i, &file, name) < 0)
                break;
            inos_add(all, file.ino);
            assert_int_equal(tree_node(tree, file.ino, &again), 0);
            assert_true(nodes_equal(&file, &again));
            if (i)
                break;
        }
    }
}

UNIT_TEST(test_tree__many_plans__no_number_twice)
{
    AUTO_TREE struct tree *tree = NULL;
    struct inos all = {0};

    catalog_add(&catalog, "", "a", 60000);
    catalog_add(&catalog, "", "b", 1000000);
    catalog_add(&catalog, "", "c", 1);
    tree = tree_make(&catalog, NULL);
    for (int i = 0; i < 1500; i++) {
        static const char *const names[] = {"a", "b", "c"};
        char plan[PLAN_NAME_SIZE];

        snprintf(plan, sizeof(plan), "batch=%d,rank=%dof7%s", 100 + i, i % 6 + 1,
                 i % 2 ? "" : ",seed=");
        if (i % 2 == 0)
            snprintf(plan + strlen(plan), sizeof(plan) - strlen(plan), "%d", i);
        collect(tree, names[i % 3], plan, &all);
    }
    inos_check(&all);
}

UNIT_TEST(test_tree__second_tree__same_numbers)
{
    static const char *const paths[] = {
        "train",
        "train/samples/npy/000003.image01.npy",
        "deep/er/a/samples/raw/000001.label.raw",
        "train/batches/batch=2,seed=9",
        "train/batches/batch=2,seed=9/epoch=70000/png/000001.image.png",
        "other/a/batches/batch=all/npy",
        "train/batches/seed=9,batch=2"};
    AUTO_CATALOG struct catalog c = {0}, d = {0};
    struct tree *tree, *second;

    add_small(&c);
    add_small(&d);
    tree = tree_make(&c, NULL);
    second = tree_make(&d, NULL);
    for (size_t i = ARRAY_LEN(paths); i-- > 0;)
        tree_node_at(second, "%s", paths[i]); /* opened the other way round */
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(tree_node_at(tree, "%s", paths[i]).ino,
                         tree_node_at(second, "%s", paths[i]).ino);
    tree_free(tree);
    tree_free(second);
}

/* In the order of names "a" < "a-b" < "a/c": the folder a must not be made twice. */
UNIT_TEST(test_tree__sibling_between_folder_and_its_content__one_folder)
{
    AUTO_TREE struct tree *tree = NULL;
    struct inos all = {0};
    struct node root, node;
    char name[TREE_NAME_SIZE];
    unsigned seen = 0;

    catalog_add(&catalog, "a", "x", 2);
    catalog_add(&catalog, "a-b", "y", 2);
    catalog_add(&catalog, "a/c", "z", 2);
    tree = tree_make(&catalog, NULL);
    assert_int_equal(tree_node(tree, TREE_ROOT, &root), 0);
    for (uint64_t i = 0; tree_list(tree, &root, i, &node, name) == 0; i++)
        seen += !strcmp(name, "a");
    assert_int_equal(seen, 1);
    tree_node_at(tree, "a/x");
    tree_node_at(tree, "a-b/y");
    tree_node_at(tree, "a/c/z");
    check_listing(tree, &root, &all);
    inos_check(&all);
}

/* A folder for each extension of a dataset whose samples have 200: inode numbers hold them. */
UNIT_TEST(test_tree__two_hundred_folders__names_nodes_and_numbers_agree)
{
    enum { EXTENSIONS = 200 };
    struct plan plan;
    const struct tree_options options = {.plan = &plan, .n_plans = 1, .epochs = 2};
    const struct encoder *const none[] = {NULL};
    struct dataset *ds;
    AUTO_TREE struct tree *tree = NULL;
    struct inos all = {0};
    struct node root;

    catalog_add(&catalog, "", "small", 5);
    catalog_add(&catalog, "", "many", 3);
    ds = catalog.item[1].ds;
    ds->field = realloc(ds->field, (ds->n_fields + EXTENSIONS) * sizeof(*ds->field));
    for (unsigned i = 0; i < EXTENSIONS; i++) {
        struct field *f = &ds->field[ds->n_fields++];
        char ext[EXT_SIZE];

        *f = (struct field){.name = "member", .ops = &field_as_stored, .unnamed = true};
        snprintf(ext, sizeof(ext), "ext%u", i);
        field_offer_bytes(f, ext, ext, IN_FILES);
    }
    dataset_free_folders(ds);
    assert_int_equal(dataset_fill_folders(ds, none, 0), 0);
    assert_int_equal(ds->n_folders, EXTENSIONS);
    parse_plan("batch=2,seed=1", &plan);
    tree = tree_make(&catalog, &options);
    tree_node_at(tree, "many/samples/ext0/000000.ext0");
    tree_node_at(tree, "many/batches/batch=1,seed=5/epoch=70000/ext199/000002.ext199");
    assert_int_equal(tree_node(tree, TREE_ROOT, &root), 0);
    check_listing(tree, &root, &all);
    assert_true(all.n > EXTENSIONS * (1 + 3 + 2 * (1 + 2)));
    inos_check(&all);
}

#define THREADS 8

struct worker {
    pthread_t thread;
    struct tree *tree;
    unsigned number;
    uint64_t sum;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    for (unsigned i = 0; i < 300; i++) {
        char path[256], name[TREE_NAME_SIZE];
        struct node node, again;

        snprintf(path, sizeof(path), "train/batches/batch=%u,seed=%u/epoch=%u/npy/000000.image.npy",
                 i % 7 + 1, i % 11, i * 997 % 100000);
        if (tree_walk(w->tree, path, &node) < 0 || tree_node(w->tree, node.ino, &again) < 0 ||
            !nodes_equal(&node, &again))
            return NULL;
        w->sum += node.ino;
        if (tree_walk(w->tree, "train/batches", &node) < 0)
            return NULL;
        for (uint64_t k = 0; tree_list(w->tree, &node, k, &again, name) == 0; k++)
            ;
        if (tree_walk(w->tree, "train/batches/batch=1,seed=0", &node) < 0)
            return NULL;
        for (uint64_t k = 0; k < 20 && tree_list(w->tree, &node, k, &again, name) == 0; k++)
            ;
    }
    return w;
}

UNIT_TEST(test_tree__eight_threads__same_answers)
{
    struct worker worker[THREADS];
    AUTO_TREE struct tree *tree = small_tree();
    struct inos all = {0};
    struct node root;

    for (unsigned i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.tree = tree, .number = i};
        assert_int_equal(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *done;

        pthread_join(worker[i].thread, &done);
        assert_non_null(done);
        assert_int_equal(worker[i].sum, worker[0].sum);
    }
    assert_int_equal(tree_node(tree, tree_node_at(tree, "other/empty").ino, &root), 0);
    check_listing(tree, &root, &all);
    inos_check(&all);
}

UNIT_TEST(test_tree__plans_max__enfile_and_the_rest_works)
{
    AUTO_TREE struct tree *tree = NULL;
    struct node plan = {0}, node;
    unsigned opened = 0;
    int r = 0;

#ifdef SLOW_BUILD
    skip(); /* 65536 places in one sorted array: minutes under a sanitizer */
#endif
    tree = small_tree();
    /* Each epoch that is 65536 from the others takes a span of its own. */
    for (uint64_t i = 0; r == 0 && i < PLANS_MAX + 100; i++) {
        char name[128];

        if (i % 1024 == 0) {
            snprintf(name, sizeof(name), "train/batches/batch=1,seed=%llu",
                     (unsigned long long)i / 1024);
            r = tree_walk(tree, name, &plan);
        }
        snprintf(name, sizeof(name), "epoch=%llu", (unsigned long long)(i % 1024) << 16);
        if (r == 0)
            r = tree_lookup(tree, &plan, name, TREE_OWNER, &node, NULL, NULL);
        opened += r == 0;
    }
    assert_int_equal(r, -ENFILE);
    assert_in_range(opened, PLANS_MAX - 100, PLANS_MAX + 10);
    assert_int_equal(tree_walk(tree, "train/batches/batch=5", &node), -ENFILE);
    tree_node_at(tree, "train/batches/batch=1,seed=0/epoch=0/npy/000001.index.npy");
    tree_node_at(tree, "train/batches/batch=1,seed=7/epoch=65536/npy/000001.index.npy");
    tree_node_at(tree, "train/samples/npz/000001.npz");
}

/* Look up plans batch=1, batch=2 ... for a user, until one is refused. Returns how many are opened,
 * and why. */
static unsigned open_all(struct tree *tree, uid_t user, unsigned first, struct diag *d)
{
    struct node batches, node;
    unsigned n = 0;
    int r = tree_walk(tree, "train/batches", &batches);

    assert_int_equal(r, 0);
    while (r == 0 && n < PLANS_MAX + 100) {
        char name[32];

        snprintf(name, sizeof(name), "batch=%u", first + n);
        r = tree_lookup(tree, &batches, name, user, &node, NULL, d);
        n += r == 0;
    }
    assert_int_equal(r, -ENFILE);
    return n;
}

/* However many plans users open, each of many others can open some, and the owner the rest. */
UNIT_TEST(test_tree__many_plans_of_users__left_for_others)
{
    const unsigned rest = PLANS_MAX / 4 * 3 - PLANS_USERS * PLANS_USER;
    AUTO_TREE struct tree *tree = NULL;
    struct diag d = DIAG_INIT, none = DIAG_INIT;
    struct node node;
    unsigned n, first;

#ifdef SLOW_BUILD
    skip(); /* as above */
#endif
    tree = small_tree();
    n = first = open_all(tree, 1001, 1, &d);
    assert_in_range(first, PLANS_USER + rest / 2 - 10, PLANS_USER + rest / 2 + 10);
    assert_non_null(strstr(d.text, "user 1001 has opened "));
    for (unsigned user = 1002; user < 1001 + PLANS_USERS; user++) {
        struct diag e = DIAG_INIT;
        unsigned own = open_all(tree, user, n + 1, &e);

        assert_in_range(own, PLANS_USER, first);
        n += own;
    }
    for (unsigned user = 2000; user < 2100; user++) { /* there are no parts left */
        struct diag e = DIAG_INIT;

        assert_int_equal(open_all(tree, user, n + 1, &e), 0);
    }
    assert_in_range(n, 1, PLANS_MAX / 4 * 3);
    assert_int_equal(tree_walk(tree, "train/batches/batch=1", &node), 0); /* is known */
    n += open_all(tree, TREE_OWNER, n + 1, &none);
    assert_in_range(n, PLANS_MAX - 10, PLANS_MAX + 10);
    assert_false(none.set);
}

/* A plan with very many batches takes 1/1024 of all numbers. A plan with few, whose hash falls
 * inside that span, must find its place after it at once, not by steps of its own size. */
UNIT_TEST(test_tree__small_span_inside_large__quick)
{
    AUTO_TREE struct tree *tree = NULL;
    struct inos all = {0};

    catalog_add(&catalog, "", "huge", UINT32_MAX);
    tree = tree_make(&catalog, NULL);
    alarm(200); /* by steps it takes hours */
    for (int seed = 0; seed < 100; seed++)
        inos_add(&all, tree_node_at(tree, "huge/batches/batch=1,seed=%d/epoch=0", seed).ino);
    for (int part = 0; part < 300; part++)
        inos_add(&all, tree_node_at(tree, "huge/batches/batch=all,part=%dof1000/npy", part).ino);
    alarm(0);
    inos_check(&all);
}
