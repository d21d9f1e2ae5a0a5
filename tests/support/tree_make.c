#include "support/tree_make.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "support/idx_make.h"
#include "support/unit.h"

static struct catalog_item *add_item(struct catalog *catalog, const char *folder, const char *name)
{
    struct catalog_item *item;

    catalog->item = realloc(catalog->item, (catalog->n + 1) * sizeof(*catalog->item));
    assert_non_null(catalog->item);
    item = &catalog->item[catalog->n++];
    *item = (struct catalog_item){.folder = strdup(folder), .name = strdup(name)};
    return item;
}

void catalog_add(struct catalog *catalog, const char *folder, const char *name, uint32_t samples)
{
    struct blob *blob[] = {
        idx_blob_zeros("a-images-idx3-ubyte.gz", 8, 3, (uint32_t[]){samples, 1, 2}, NULL),
        idx_blob_zeros("a-labels-idx1-ubyte", 8, 1, (uint32_t[]){samples}, NULL)};
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(blob, 2, &(struct format_options){.classes = 10}, &found), 0);
    assert_int_equal(found.n, 1);
    add_item(catalog, folder, name)->ds = TAKE_PTR(found.item[0].ds);
    catalog->n_datasets++;
}

void catalog_add_error(struct catalog *catalog, const char *folder, const char *name)
{
    add_item(catalog, folder, name)->error = strdup("is broken");
}

static char *page(const struct catalog_item *item)
{
    return strdup(item->error ? item->error : "{}");
}

struct tree *tree_make(const struct catalog *catalog, const struct tree_options *options)
{
    static const struct tree_options none;
    struct tree *tree = NULL;

    assert_int_equal(tree_new(catalog, options ? options : &none, strdup("read me"), page, &tree),
                     0);
    return tree;
}

int tree_walk(struct tree *tree, const char *path, struct node *ret)
{
    char copy[1024];
    int r = tree_node(tree, TREE_ROOT, ret);

    assert_true((size_t)snprintf(copy, sizeof(copy), "%s", path) < sizeof(copy));
    for (char *at = copy, *end; r == 0 && *at; at = end) {
        struct node parent = *ret;

        end = at + strcspn(at, "/");
        if (*end)
            *end++ = '\0';
        r = tree_lookup(tree, &parent, at, TREE_OWNER, ret, NULL, NULL);
    }
    return r;
}

struct node tree_node_at(struct tree *tree, const char *format, ...)
{
    char path[1024];
    struct node node;
    va_list args;
    int r;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    r = tree_walk(tree, path, &node);
    if (r < 0)
        fail_msg("%s: %s", path, strerror(-r));
    return node;
}
