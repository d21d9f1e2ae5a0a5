/* Bytes as a text next to sounds, whose first byte says how it is called: whatever it is, each
 * dataset has samples whose files exist, and values for each of them. */
#include <errno.h>
#include <string.h>

#include "base/scope.h"
#include "format/files/claim/claim.h"
#include "fuzz.h"
#include "support/memory_blob.h"

static const char *const folders[] = {"", "txt", "txt/s1", "wav", "wav/s1", "wav/s2"};
static const struct fuzz_file {
    unsigned folder; /* of folders */
    const char *name;
} files[] = {{0, NULL}, /* the text */
             {2, "s1_1.txt"},
             {4, "s1_1_mic1.wav"},
             {4, "s1_1_mic2.wav"},
             {4, "s1_2_mic1.wav"},
             {5, "s2_1_mic1.wav"},
             {5, "s2_2_mic1.wav"}};
static const char *const names[] = {"all.trans.txt",    "metadata.csv",   "train.tsv", "train.txt",
                                    "testing_list.txt", "iden_split.txt", "test.csv"};

struct fuzz_claims {
    struct claims claims;
    const uint8_t *bytes;
    size_t len;
};

static int read_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                      uint8_t *bytes, int *len)
{
    const struct fuzz_claims *f = (const struct fuzz_claims *)claims;

    (void)file;
    for (unsigned i = 0; i < n; i++) {
        len[i] = (int)(f->len < size ? f->len : size);
        memcpy(bytes + i * size, f->bytes, (size_t)len[i]);
    }
    return 0;
}

static int open_file(const struct claims *claims, size_t file, struct blob **ret, struct diag *d)
{
    const struct fuzz_claims *f = (const struct fuzz_claims *)claims;

    (void)file;
    (void)d;
    *ret = memory_blob_new("a text", f->bytes, f->len, f->len, NULL);
    return *ret ? 0 : -ENOMEM;
}

static bool is_taken(const struct claims *claims, size_t file, const uint8_t *head, size_t len)
{
    (void)claims;
    (void)file;
    (void)head;
    (void)len;
    return true;
}

static void check_view(const struct files_claim *claim, const struct files_view *view)
{
    for (size_t i = 0; i < view->n && view->sample; i++)
        FUZZ_CHECK(view->sample[i] < claim->n_samples);
    FUZZ_CHECK(view->sample || view->n == claim->n_samples);
    for (unsigned i = 0; i < view->values.n; i++) {
        const struct value_column *c = &view->values.column[i];

        FUZZ_CHECK(c->rows == view->n && *c->name);
        for (uint64_t row = 0; row < c->rows; row++) {
            const uint8_t *items;

            FUZZ_CHECK(value_items(c, row, &items) <= c->len);
            fuzz_saw(items, value_items(c, row, &items) * value_item_bytes(c));
        }
    }
}

static void check_claims(const struct members *m, struct claims *claims)
{
    for (size_t i = 0; i < claims->n; i++) {
        struct collection *c = &claims->collection[i];
        const struct files_claim *claim = c->impl;

        for (size_t k = 0; k < c->n; k++)
            FUZZ_CHECK(c->file[k] < m->n);
        fuzz_saw(c->file, c->n * sizeof(*c->file));
        for (size_t k = 0; k < claim->n_views && !c->missing; k++)
            check_view(claim, &claim->view[k]);
        files_free_claim(c->impl);
        free(c->folder);
        free(c->name);
        free(c->root);
        free(c->file);
        free(c->missing);
    }
    free(claims->collection);
    fuzz_saw(claims->recipe, claims->recipe ? strlen(claims->recipe) : 0);
    free(claims->recipe);
    free(claims->unmet);
    free(claims->taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_claims f = {.bytes = data + 1, .len = len ? len - 1 : 0};
    uint32_t number[sizeof(folders) / sizeof(*folders)];
    struct members m = {0};

    if (!len)
        return 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
        FUZZ_CHECK(members_add_folder(&m, folders[i], &number[i]) == 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        FUZZ_CHECK(members_add(&m, number[files[i].folder],
                               files[i].name ? files[i].name
                                             : names[data[0] % (sizeof(names) / sizeof(*names))],
                               f.len, (const uint64_t[2]){1, 2}) == 0);
    FUZZ_CHECK(members_sort(&m) == 0);
    f.claims = (struct claims){.taken = calloc(m.n + 1, 1),
                               .heads = read_heads,
                               .open = open_file,
                               .is_taken = is_taken,
                               .shows_recipe = true};
    FUZZ_CHECK(f.claims.taken && files_claim_names(&m, &f.claims) == 0);
    check_claims(&m, &f.claims);
    members_release(&m);
    return 0;
}
