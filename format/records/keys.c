#include "format/records/keys.h"

#include <errno.h>

#define ROWS_AT_ONCE 10000 /* about a millisecond */

int keys_step(struct keys *k, unsigned n, const struct index *(*index_of)(void *ctx, unsigned i),
              void *ctx)
{
    uint8_t key[KEY_MAX];
    int r = 0;

    if (!k->builder)
        r = index_builder_new(&(struct index_shape){.has_keys = true}, &k->builder);
    for (unsigned done = 0; done < ROWS_AT_ONCE && r == 0; done++) {
        const struct index *index;
        size_t len;

        if (k->file == n) {
            r = index_finish(k->builder, NULL, NULL, NULL, &k->index);
            return r < 0 ? r : 1;
        }
        index = index_of(ctx, k->file);
        if (k->row == index->rows) {
            k->file++;
            k->row = 0;
            continue;
        }
        len = index_key(index, k->row++, key);
        r = len ? index_add(k->builder, key, len, NULL) : -EBADMSG;
    }
    return r;
}

void keys_release(struct keys *k)
{
    index_builder_free(k->builder);
    *k = (struct keys){0};
}
