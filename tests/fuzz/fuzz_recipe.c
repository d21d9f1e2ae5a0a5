/* Bytes as a recipe of a small folder: whatever it is, each dataset has samples whose files exist
 * and values for each of them, or it is refused with a reason; and the recipe that is printed is
 * one. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "format/files/claim/claim.h"
#include "format/files/claim/recipe.h"
#include "fuzz.h"
#include "support/memory_blob.h"

/* Files, and what is in those that are no pictures. */
static const struct fuzz_file {
    const char *folder, *name, *text;
} files[] = {
    {"", "1.jpg", ""},
    {"", "2.png", ""},
    {"", "all.json",
     "{\"images\": [{\"id\": 1, \"file_name\": \"a/1.jpg\"}], \"annotations\": [{\"image_id\": 1, "
     "\"id\": 1, \"category_id\": 1, \"bbox\": [1, 2, 3, 4]}], \"categories\": [{\"id\": 1, "
     "\"name\": \"x\"}]}"},
    {"", "data.yaml", "names: [x, y]\n"},
    {"", "list_eval_partition.txt", "1.jpg 0\n2.jpg 1\n"},
    {"", "train.csv", "file,label,size\na/1.jpg,x,1\nb/2.jpg,y,2\n"},
    {"", "train.txt", "a/1\nb/2\n"},
    {"a", "1.jpg", ""},
    {"a", "2.jpg", ""},
    {"b", "1.jpg", ""},
    {"b", "2.jpg", ""},
    {"masks/a", "1.png", ""},
    {"masks/a", "1.txt", "0 0.5 0.5 0.5 0.5\n"},
    {"masks/b", "2.png", ""},
};

static const char *const folders[] = {"", "a", "b", "masks", "masks/a", "masks/b"};

struct fuzz_claims {
    struct claims claims;
    const struct members *m;
};

static const char *fuzz_text(const struct claims *claims, size_t file)
{
    const struct members *m = ((const struct fuzz_claims *)claims)->m;

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (!strcmp(files[i].name, members_name(m, file)) &&
            !strcmp(files[i].folder, members_folder_of(m, file)))
            return files[i].text;
    abort();
}

static int read_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                      uint8_t *bytes, int *len)
{
    for (unsigned i = 0; i < n; i++) {
        const char *text = fuzz_text(claims, file[i]);

        len[i] = (int)(strlen(text) < size ? strlen(text) : size);
        memcpy(bytes + i * size, text, (size_t)len[i]);
    }
    return 0;
}

static int open_file(const struct claims *claims, size_t file, struct blob **ret, struct diag *d)
{
    const char *text = fuzz_text(claims, file);

    (void)d;
    *ret = memory_blob_new("a file", text, strlen(text), strlen(text), NULL);
    return *ret ? 0 : -ENOMEM;
}

static bool is_taken(const struct claims *claims, size_t file, const uint8_t *head, size_t len)
{
    (void)claims;
    (void)file;
    (void)head;
    (void)len;
    return false;
}

static void make_listing(struct members *m)
{
    uint32_t number[ARRAY_LEN(folders)];

    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        FUZZ_CHECK(members_add_folder(m, folders[i], &number[i]) == 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        for (size_t k = 0; k < ARRAY_LEN(folders); k++)
            if (!strcmp(folders[k], files[i].folder))
                FUZZ_CHECK(members_add(m, number[k], files[i].name, strlen(files[i].text),
                                       (const uint64_t[2]){1, 2}) == 0);
    FUZZ_CHECK(members_sort(m) == 0);
}

static void check_view(const struct files_claim *claim, const struct files_view *view)
{
    for (size_t i = 0; i < view->n && view->sample; i++)
        FUZZ_CHECK(view->sample[i] < claim->n_samples);
    FUZZ_CHECK(view->sample || view->n == claim->n_samples);
    for (size_t i = 0; i < view->n && view->label && view->n_classes; i++)
        FUZZ_CHECK(view->label[i] >= 0 && (uint64_t)view->label[i] < view->n_classes);
    fuzz_saw(view->sample, view->sample ? view->n * sizeof(*view->sample) : 0);
    fuzz_saw(view->label, view->label ? view->n * sizeof(*view->label) : 0);
    for (size_t i = 0; i < view->n_classes; i++)
        fuzz_saw(view->class_name[i], strlen(view->class_name[i]));
    for (unsigned i = 0; i < view->values.n; i++) {
        FUZZ_CHECK(view->values.column[i].rows == view->n);
        fuzz_saw(view->values.column[i].bytes, view->values.column[i].len);
    }
}

static void check_collection(const struct members *m, const struct collection *c)
{
    const struct files_claim *claim = c->impl;

    FUZZ_CHECK(!c->missing || *c->missing);
    for (size_t i = 0; i < c->n; i++)
        FUZZ_CHECK(c->file[i] < m->n);
    FUZZ_CHECK(claim->first[claim->n_samples] == c->n);
    fuzz_saw(c->file, c->n * sizeof(*c->file));
    fuzz_saw(claim->first, claim->n_samples * sizeof(*claim->first));
    for (size_t i = 0; i < claim->n_views && !c->missing; i++)
        check_view(claim, &claim->view[i]);
}

static void end_claims(struct claims *claims)
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

static void check_printed(const char *recipe)
{
    AUTO_RECIPE struct recipe read = {0};
    struct diag d = DIAG_INIT;

    fuzz_saw(recipe, recipe ? strlen(recipe) : 0);
    FUZZ_CHECK(!recipe || recipe_read(&read, "printed", recipe, strlen(recipe), &d) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = strndup((const char *)data, len);
    AUTO_MEMBERS struct members m = {0};
    struct fuzz_claims claiming = {.m = &m};
    struct claims *claims = &claiming.claims;

    FUZZ_CHECK(text);
    make_listing(&m);
    *claims = (struct claims){.taken = calloc(m.n + 1, 1),
                              .heads = read_heads,
                              .open = open_file,
                              .is_taken = is_taken,
                              .layout = text,
                              .layout_name = "recipe.json",
                              .shows_recipe = true};
    FUZZ_CHECK(claims->taken && files_claim_names(&m, claims) == 0);
    for (size_t i = 0; i < claims->n; i++)
        check_collection(&m, &claims->collection[i]);
    check_printed(claims->recipe);
    end_claims(claims);
    return 0;
}
