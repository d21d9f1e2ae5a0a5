#include "cache/stage/overflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct spare_block {
    struct spare_block *next; /* in its bucket */
    struct spare_block *newer, *older;
    const void *owner;
    uint64_t block;
    size_t len;
    uint8_t bytes[];
};

void spares_init(struct spares *ret, size_t most)
{
    *ret = (struct spares){.most = most};
    lock_init(&ret->lock);
}

static struct spare_block **bucket_of(struct spares *spares, const void *owner, uint64_t block)
{
    uint64_t h = ((uint64_t)(uintptr_t)owner ^ block * UINT64_C(0x9e3779b97f4a7c15)) *
                 UINT64_C(0xbf58476d1ce4e5b9);

    return &spares->bucket[(h >> 40) % SPARE_BUCKETS];
}

static struct spare_block *find_locked(struct spares *spares, const void *owner, uint64_t block)
{
    struct spare_block *at = *bucket_of(spares, owner, block);

    lock_assert_held(&spares->lock);
    while (at && !(at->owner == owner && at->block == block))
        at = at->next;
    return at;
}

static void remove_locked(struct spares *spares, struct spare_block *spare)
{
    struct spare_block **at = bucket_of(spares, spare->owner, spare->block);

    lock_assert_held(&spares->lock);
    while (*at != spare)
        at = &(*at)->next;
    *at = spare->next;
    *(spare->newer ? &spare->newer->older : &spares->newest) = spare->older;
    *(spare->older ? &spare->older->newer : &spares->oldest) = spare->newer;
    spares->bytes -= spare->len;
    spares->n--;
    free(spare);
}

void spares_release(struct spares *spares)
{
    lock_take(&spares->lock);
    while (spares->oldest)
        remove_locked(spares, spares->oldest);
    lock_drop(&spares->lock);
    lock_release(&spares->lock);
}

int spares_add(struct spares *spares, const void *owner, uint64_t block, const void *bytes,
               size_t len)
{
    struct spare_block *spare = malloc(sizeof(*spare) + len), *old, **bucket;

    if (!spare)
        return -ENOMEM;
    *spare = (struct spare_block){.owner = owner, .block = block, .len = len};
    memcpy(spare->bytes, bytes, len);
    LOCK_SCOPE(&spares->lock);

    old = find_locked(spares, owner, block);
    if (old)
        remove_locked(spares, old);
    bucket = bucket_of(spares, owner, block);
    spare->next = *bucket;
    *bucket = spare;
    spare->older = spares->newest;
    *(spares->newest ? &spares->newest->newer : &spares->oldest) = spare;
    spares->newest = spare;
    spares->bytes += len;
    spares->n++;
    while (spares->bytes > spares->most && spares->oldest != spare)
        remove_locked(spares, spares->oldest);
    return 0;
}

size_t spares_remove(struct spares *spares, const void *owner, uint64_t block)
{
    LOCK_SCOPE(&spares->lock);
    struct spare_block *spare = find_locked(spares, owner, block);
    size_t len = spare ? spare->len : 0;

    if (spare)
        remove_locked(spares, spare);
    return len;
}

size_t spares_left(struct spares *spares)
{
    LOCK_SCOPE(&spares->lock);

    return spares->bytes < spares->most ? spares->most - spares->bytes : 0;
}

size_t spares_count(struct spares *spares)
{
    LOCK_SCOPE(&spares->lock);

    return spares->n;
}

size_t spares_list(struct spares *spares, struct spare_place **ret)
{
    size_t n = 0;
    LOCK_SCOPE(&spares->lock);

    *ret = spares->n ? calloc(spares->n, sizeof(**ret)) : NULL;
    if (!*ret)
        return 0;
    for (const struct spare_block *at = spares->oldest; at; at = at->newer)
        (*ret)[n++] = (struct spare_place){at->owner, at->block};
    return n;
}

bool spares_has(struct spares *spares, const void *owner, uint64_t block)
{
    LOCK_SCOPE(&spares->lock);

    return spares->bytes && find_locked(spares, owner, block);
}

bool spares_read(struct spares *spares, const void *owner, uint64_t block, void *buf, size_t off,
                 size_t len)
{
    LOCK_SCOPE(&spares->lock);
    const struct spare_block *spare = find_locked(spares, owner, block);

    if (!spare || off > spare->len || len > spare->len - off)
        return false;
    memcpy(buf, spare->bytes + off, len);
    return true;
}
