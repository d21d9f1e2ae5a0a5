#include "support/one_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *kept;
static size_t kept_len;

static int load_none(const struct index_store *keep, const char *kind, const char *identity,
                     struct kept_index *ret)
{
    (void)keep;
    (void)kind;
    (void)identity;
    (void)ret;
    return -ENOENT;
}

static int save_none(const struct index_store *keep, const char *kind, const char *identity,
                     const char *source, const struct iovec *pieces, unsigned n,
                     struct kept_index *ret, struct diag *d)
{
    (void)keep;
    (void)kind;
    (void)identity;
    (void)source;
    (void)pieces;
    (void)n;
    (void)ret;
    return diag_set(d, -EROFS, "not kept here");
}

static int load_kept(const struct index_store *keep, const char *kind, const char *identity,
                     struct kept_index *ret)
{
    (void)keep;
    (void)kind;
    (void)identity;
    if (!kept)
        return -ENOENT;
    *ret = (struct kept_index){.bytes = TAKE_PTR(kept), .size = kept_len};
    kept_len = 0;
    return 0;
}

static int save_one(const struct index_store *keep, const char *kind, const char *identity,
                    const char *source, const struct iovec *pieces, unsigned n,
                    struct kept_index *ret, struct diag *d)
{
    one_store_drop();
    for (unsigned i = 0; i < n; i++) {
        kept = realloc(kept, kept_len + pieces[i].iov_len + 1);
        if (!kept)
            abort();
        if (pieces[i].iov_len)
            memcpy(kept + kept_len, pieces[i].iov_base, pieces[i].iov_len);
        kept_len += pieces[i].iov_len;
    }
    return save_none(keep, kind, identity, source, pieces, n, ret, d);
}

static void remove_damaged(const struct index_store *keep, const char *kind, const char *identity)
{
    (void)keep;
    (void)kind;
    (void)identity;
    abort();
}

void one_store_drop(void)
{
    free(kept);
    kept = NULL;
    kept_len = 0;
}

static const struct index_store_ops none = {
    .load = load_none, .save = save_none, .remove = remove_damaged};
static const struct index_store_ops one = {
    .load = load_kept, .save = save_one, .remove = remove_damaged};

const struct index_store no_store = {.ops = &none};
const struct index_store one_store = {.ops = &one};
