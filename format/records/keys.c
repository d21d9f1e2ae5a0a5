#include "format/records/keys.h"

#include <string.h>

#define ROWS_AT_ONCE 10000 /* about a millisecond */

/* A cut name, and the dataset in which to find its sample. */
struct cut_name {
    const struct dataset *ds;
    const char *name;
    size_t len;
};

static bool has_name(void *ctx, uint64_t row)
{
    const struct cut_name *want = ctx;
    char name[KEY_NAME_SIZE];

    return dataset_name(want->ds, row, false, name) == want->len &&
           !memcmp(name, want->name, want->len);
}

bool keys_find(const struct dataset *ds, const struct index *index, const char *name, size_t len,
               uint64_t *ret)
{
    struct cut_name want = {ds, name, len};
    uint8_t key[KEY_NAME_SIZE];
    char again[KEY_NAME_SIZE];
    size_t key_len;
    uint64_t hash;

    if (len > KEY_NAME_MAX)
        return false;
    if (key_name_is_cut(name, len, &hash))
        return index_find_hash(index, hash, has_name, &want, ret);
    return key_of_name(name, len, key, &key_len) && key_name(key, key_len, false, again) == len &&
           index_find(index, key, key_len, ret);
}

int keys_step(struct keys *k, unsigned n, const struct index *(*of)(void *ctx, unsigned i),
              void *ctx)
{
    uint8_t key[KEY_MAX];
    int r = 0;

    if (!k->builder)
        r = index_builder_new(&(struct index_shape){.has_keys = true}, &k->builder);
    for (unsigned done = 0; done < ROWS_AT_ONCE && r == 0; done++) {
        const struct index *index;

        if (k->file == n) {
            r = index_finish(k->builder, NULL, NULL, NULL, &k->index);
            return r < 0 ? r : 1;
        }
        index = of(ctx, k->file);
        if (k->row == index->rows) {
            k->file++;
            k->row = 0;
            continue;
        }
        r = index_add(k->builder, key, index_key(index, k->row++, key), NULL);
    }
    return r;
}

void keys_release(struct keys *k)
{
    index_builder_free(k->builder);
    *k = (struct keys){0};
}
