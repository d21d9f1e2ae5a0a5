/* What holds for all trees of folders, of a grammar: names of splits, roles, classes, numbers and
 * letters; pictures, texts, tables and files of other formats. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/text.h"
#include "format/files/claim/claim.h"
#include "format/files/keys.h"
#include "support/random.h"
#include "support/unit.h"

#ifdef SLOW_BUILD
#define TREES 2000
#else
#define TREES 10000
#endif

/* ---- the grammar ---- */

enum word { SPLIT, INPUT, TARGET, CLASS, NUMBER, LETTER, N_WORDS };

struct name {
    const char *name;
    char split; /* equal letters: the same split; 0: none */
};

#define NAMES 8
static const struct name names[N_WORDS][NAMES] = {
    [SPLIT] = {{"train", 'r'},
               {"val", 'v'},
               {"test", 't'},
               {"Training", 'r'},
               {"train_images", 'r'},
               {"fold0", '0'},
               {"fold1", '1'},
               {"test2017", 't'}},
    [INPUT] = {{"images", 0},
               {"JPEGImages", 0},
               {"img", 0},
               {"input", 0},
               {"LR", 0},
               {"data", 0},
               {"A", 0},
               {"blur", 0}},
    [TARGET] = {{"masks", 0},
                {"labels", 0},
                {"Annotations", 0},
                {"gt", 0},
                {"HR", 0},
                {"train_masks", 'r'},
                {"B", 0},
                {"sharp", 0}},
    [CLASS] = {{"cat", 0},
               {"dog", 0},
               {"bus", 0},
               {"car", 0},
               {"n01440764", 0},
               {"apple", 0},
               {"eel", 0},
               {"abbey", 0}},
    [NUMBER] = {{"0", 0},
                {"1", 0},
                {"00000", 0},
                {"00001", 0},
                {"part_1", 0},
                {"part_2", 0},
                {"images_001", 0},
                {"images_002", 0}},
    [LETTER] = {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"e", 0}, {"x", 0}, {"y", 0}, {"z", 0}},
};

static const struct name *find_name(const char *text)
{
    for (unsigned i = 0; i < N_WORDS; i++)
        for (unsigned k = 0; k < NAMES; k++)
            if (!strcmp(names[i][k].name, text))
                return &names[i][k];
    return NULL;
}

static bool is_word(enum word word, const char *text)
{
    const struct name *found = find_name(text);

    return found && found >= names[word] && found < names[word] + NAMES;
}

struct tree {
    struct members m;
    uint64_t random;
};

static void add_file(struct tree *tree, uint32_t folder, const char *stem, const char *ext)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%s", stem, ext);
    assert_int_equal(members_add(&tree->m, folder, name, 10, (const uint64_t[2]){1, 2}), 0);
}

static bool may(struct tree *tree, unsigned in)
{
    return !random_below(&tree->random, in);
}

/* Pictures 0 to n: equal stems in all folders, or stems of the folder's own. */
static void add_pictures(struct tree *tree, uint32_t folder)
{
    static const char *const ends[] = {"", "", "", "_mask", ".flip"};
    static const char *const exts[] = {".jpg", ".jpg", ".png", ".JPEG"};
    const char *end = ends[random_below(&tree->random, 5)];
    const char *ext = exts[random_below(&tree->random, 4)];
    unsigned n = 1 + (unsigned)random_below(&tree->random, 4);
    unsigned first = may(tree, 3) ? 10 * folder : 0;

    for (unsigned i = 0; i < n; i++) {
        char stem[32];

        snprintf(stem, sizeof(stem), "%u%s", first + i, end);
        add_file(tree, folder, stem, ext);
        if (may(tree, 6))
            add_file(tree, folder, stem, ".txt");
        if (may(tree, 12))
            add_file(tree, folder, stem, ".json");
    }
}

static void add_files(struct tree *tree, uint32_t folder, bool is_leaf)
{
    static const char *const others[] = {
        "labels.csv", "train.txt",     "data.yaml",        "README.md",
        "x.npz",      "x.h5",          "metadata.csv",     "notes.txt",
        "x.parquet",  "metadata.json", "submission_1.csv", "Thumbs.db"};

    if (is_leaf ? !may(tree, 12) : may(tree, 6))
        add_pictures(tree, folder);
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (may(tree, 40))
            add_file(tree, folder, "", others[i]);
}

/* Folders of one or two words in a folder; deep: how many levels there may be. */
static void add_folders(struct tree *tree, uint32_t folder, unsigned deep)
{
    enum word word = (enum word)random_below(&tree->random, N_WORDS);
    enum word second = (enum word)(may(tree, 3) ? random_below(&tree->random, N_WORDS) : word);
    unsigned begin = (unsigned)random_below(&tree->random, NAMES);
    unsigned n = 1 + (unsigned)random_below(&tree->random, 4);
    bool is_deeper = deep > 1 && may(tree, 2);

    if (word == INPUT && may(tree, 2))
        second = TARGET;
    for (unsigned i = 0; i < n; i++) {
        enum word of_this = i && 2 * i >= n ? second : word;
        const char *above = members_folder(&tree->m, folder);
        char path[256];
        uint32_t made;

        snprintf(path, sizeof(path), "%s%s%s", above, *above ? "/" : "",
                 names[of_this][(begin + i) % NAMES].name);
        assert_int_equal(members_add_folder(&tree->m, path, &made), 0);
        if (is_deeper != may(tree, 12) && deep > 1)
            add_folders(tree, made, deep - 1);
        else
            add_files(tree, made, true);
    }
    if (may(tree, 2))
        add_files(tree, folder, false);
}

static void make_tree(struct tree *tree, uint64_t number)
{
    uint32_t folder;

    *tree = (struct tree){.random = RANDOM_SEED + number * UINT64_C(0x9e3779b97f4a7c15)};
    assert_int_equal(members_add_folder(&tree->m, "", &folder), 0);
    for (unsigned i = 0; i < 4; i++)
        random_next(&tree->random);
    add_folders(tree, folder, 3);
    assert_int_equal(members_sort(&tree->m), 0);
}

/* ---- what holds ---- */

static void claims_end(struct claims *claims)
{
    for (size_t i = 0; i < claims->n; i++) {
        struct collection *c = &claims->collection[i];

        files_free_claim(c->impl);
        free(c->folder);
        free(c->name);
        free(c->root);
        free(c->file);
        free(c->missing);
    }
    free(claims->collection);
    free(claims->recipe);
    free(claims->unmet);
    free(claims->taken);
}

static void fail_tree(const struct members *m, const char *what, const char *more)
{
    for (size_t i = 0; i < m->n; i++)
        print_error("%s%s%s\n", members_folder_of(m, i), *members_folder_of(m, i) ? "/" : "",
                    members_name(m, i));
    fail_msg("%s: %s", what, more);
}

/* The folder of that name in a folder; n_folders: there is none. */
static uint32_t folder_in(const struct members *m, const char *top, const char *name)
{
    char path[256];
    uint32_t i = 0;

    snprintf(path, sizeof(path), "%s%s%s", top, *top ? "/" : "", name);
    while (i < m->n_folders && strcmp(members_folder(m, i), path) != 0)
        i++;
    return i;
}

static bool has_picture(const struct members *m, uint32_t folder, const char *stem, size_t len)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *name = members_name(m, i);

        if (m->member[i].folder == folder && name_is_picture(name) &&
            name_stem_alone(name) == len && !strncmp(name, stem, len))
            return true;
    }
    return false;
}

/* Has each file of the target a picture of the same stem, and are there no folders in it? */
static bool are_equal(const struct members *m, uint32_t input, uint32_t target)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        const char *name = members_name(m, i);

        if (members_is_below(members_folder_of(m, i), members_folder(m, target)) &&
            m->member[i].folder != target)
            return false;
        if (m->member[i].folder != target)
            continue;
        if (!has_picture(m, input, name, name_stem_alone(name)))
            return false;
        n += name_is_picture(name);
    }
    return n > 0;
}

static void check_classes(const struct members *m, const struct files_claim *claim)
{
    char split = 0;
    const struct name *top = find_name(path_base(claim->top));

    if (claim->n_classes < 2)
        fail_tree(m, "one class", claim->top);
    for (size_t i = 0; i < claim->n_classes; i++) {
        const char *name = claim->class_name[i];
        const struct name *found = find_name(name);

        if (!found)
            fail_tree(m, "no folder is called like the class", name);
        if (found->split && split && found->split != split && !(top && top->split))
            fail_tree(m, "a split is a class next to another", claim->top);
        split = found->split ? found->split : split;
        for (size_t k = 0; k < claim->n_classes && is_word(TARGET, name); k++) {
            const char *input = claim->class_name[k];

            if (is_word(INPUT, input) &&
                are_equal(m, folder_in(m, claim->top, input), folder_in(m, claim->top, name)))
                fail_tree(m, "what is learned is a class", name);
        }
    }
}

static void check_rule(const struct members *m, const struct collection *c)
{
    static const char *const rules[] = {"classes by folder", "one folder", "parts of one dataset",
                                        "scenes with the same pairs"};
    const struct files_claim *claim = c->impl;

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (claim->rule && strstr(claim->rule, rules[i]))
            return;
    fail_tree(m, "a dataset of no rule", claim->rule ? claim->rule : "NULL");
}

/* Each key names one sample. */
static void check_keys(const struct members *m, const struct collection *c, struct text *t)
{
    const struct files_claim *claim = c->impl;
    struct members files = {0};
    struct sample_keys keys = {0};
    char key[KEY_MAX];

    assert_int_equal(members_pick(m, c->root, c->file, c->n, &files), 0);
    assert_int_equal(sample_keys_init(&keys, &files, claim, claim->view), 0);
    for (size_t i = 0; i < claim->view->n; i++) {
        struct sample_files sample;
        size_t len;
        char line[KEY_MAX + 8];

        claim_sample(&files, claim, claim->view, i, &sample);
        len = sample_key(&keys, i, &sample, key);
        snprintf(line, sizeof(line), "\n %.*s\n", (int)len, key);
        if (t->data && strstr(t->data, line))
            fail_tree(m, "two samples of one key", line);
        text_add(t, "%s%zu files", line, sample.n);
    }
    sample_keys_release(&keys);
    members_release(&files);
}

static void check_collection(const struct members *m, const struct collection *c, uint8_t *seen,
                             struct text *t)
{
    const struct files_claim *claim = c->impl;
    AUTO_TEXT struct text keys = {0};

    text_add(t, "%s:%s: %s\n", c->folder, c->name, claim->rule);
    for (size_t i = 0; i < c->n; i++)
        if (seen[c->file[i]]++)
            fail_tree(m, "a file in two datasets", members_name(m, c->file[i]));
    if (c->missing) {
        text_add(t, "%s\n", c->missing);
        if (!strstr(c->missing, "epochfs.json"))
            fail_tree(m, "refused, and nothing to do about it", c->missing);
        return;
    }
    check_rule(m, c);
    if (claim->layout == LAYOUT_CLASSES)
        check_classes(m, claim);
    for (size_t i = 0; i < claim->n_views; i++)
        if (claim->view[i].label && claim->view[i].n_classes == 1)
            fail_tree(m, "a label with one class", c->name);
    if (claim->n_samples)
        check_keys(m, c, &keys);
    text_add(t, "%s\n%s\n", keys.data ? keys.data : "", claim->aside);
}

/* What is found, as text, after all that holds was checked. */
static char *check_tree(uint64_t number)
{
    struct tree tree;
    struct claims claims = {0};
    AUTO_TEXT struct text t = {0};
    uint8_t *seen;
    char *ret;

    make_tree(&tree, number);
    claims.taken = calloc(tree.m.n + 1, 1);
    seen = calloc(tree.m.n + 1, 1);
    assert_true(claims.taken && seen);
    assert_int_equal(files_claim_names(&tree.m, &claims), 0);
    for (size_t i = 0; i < claims.n; i++)
        check_collection(&tree.m, &claims.collection[i], seen, &t);
    text_add(&t, "%s\n", claims.unmet ? claims.unmet : "");
    assert_int_equal(text_finish(&t, &ret, NULL), 0);
    claims_end(&claims);
    members_release(&tree.m);
    free(seen);
    return ret;
}

UNIT_TEST(test_rules__random_trees__what_holds_for_all)
{
    unsigned classes = 0, refused = 0, pairs = 0;

    for (uint64_t i = 0; i < TREES; i++) {
        AUTO_FREE char *first = check_tree(i), *second = check_tree(i);

        assert_string_equal(first, second);
        classes += strstr(first, "classes by folder") != NULL;
        refused += strstr(first, "epochfs.json") != NULL;
        pairs += strstr(first, "2 files") != NULL;
    }
    /* The trees are of all sorts. */
    assert_in_range(classes, TREES / 10, TREES);
    assert_in_range(refused, TREES / 100, TREES / 2);
    assert_in_range(pairs, TREES / 20, TREES);
}
