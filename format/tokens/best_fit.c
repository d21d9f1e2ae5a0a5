#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "format/tokens/packing.h"

/* Keys of bins: the free tokens, then the number of the bin, which is below 2^16. */
#define BIN_BITS 16

static int longest_first(const void *a, const void *b)
{
    const struct packed_piece *x = a, *y = b;

    if (x->tokens != y->tokens)
        return x->tokens < y->tokens ? 1 : -1;
    return (x->document > y->document) - (x->document < y->document);
}

/* The place of the first of n rising keys that is not below key, which is above 0. */
static size_t first_from(const uint64_t *keys, size_t n, uint64_t key)
{
    size_t i = search_last_up_to(keys, sizeof(*keys), n, key - 1);

    return n && keys[i] < key ? i + 1 : i;
}

/* A piece moves one key towards fuller bins, so a step costs 8 bytes a bin at most. */
static size_t fit(struct packed_piece *piece, size_t n, uint64_t space, uint64_t *keys)
{
    size_t bins = 0;

    for (size_t i = 0; i < n; i++) {
        size_t at = first_from(keys, bins, (uint64_t)piece[i].tokens << BIN_BITS), to;
        uint64_t key = at < bins ? keys[at] : space << BIN_BITS | bins;

        bins += at == bins;
        piece[i].bin = (uint32_t)(key & ((1u << BIN_BITS) - 1));
        key -= (uint64_t)piece[i].tokens << BIN_BITS;
        to = key ? first_from(keys, at, key) : 0;
        memmove(keys + to + 1, keys + to, (at - to) * sizeof(*keys));
        keys[to] = key;
    }
    return bins;
}

size_t pack_pieces(struct packed_piece *piece, size_t n, uint64_t space,
                   struct packed_piece *scratch, uint64_t *keys)
{
    size_t bins, before = 0;

    qsort(piece, n, sizeof(*piece), longest_first);
    bins = fit(piece, n, space, keys);
    memset(keys, 0, bins * sizeof(*keys));
    for (size_t i = 0; i < n; i++)
        keys[piece[i].bin]++;
    for (size_t i = 0; i < bins; i++) {
        uint64_t here = keys[i];

        keys[i] = before;
        before += here;
    }
    memcpy(scratch, piece, n * sizeof(*piece));
    for (size_t i = 0; i < n; i++)
        piece[keys[scratch[i].bin]++] = scratch[i];
    return bins;
}
