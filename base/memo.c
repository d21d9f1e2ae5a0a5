/* A thing: MAKING -> READY memo_get() by its maker, wakes the waiting threads
 *           MAKING -> gone     the maker failed; waiting threads try themselves
 *           READY  -> gone     memo_evict_locked(), not while it is in use
 *
 * Things are in a hash table by key, and in a list by their last use. */
#include "base/memo.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/read_context.h"

#define BUCKETS 1024              /* at first: as many as things, or more, later */
#define LOOK_NS INT64_C(10000000) /* between two calls of cancelled() */

struct memo_thing {
    struct memo *memo; /* constant, like: */
    struct memo_key key;
    /* Guarded by memo->lock: */
    struct memo_thing *chain;         /* next in its bucket */
    struct memo_thing *older, *newer; /* by last use */
    unsigned users;
    bool ready;
    bool failed; /* out of the table; the last user frees it */
    void *bytes; /* owned; constant once ready */
    size_t size;
};

_Static_assert(sizeof(struct memo_thing) <= MEMO_OWN, "what a thing takes besides its bytes");

struct memo {
    size_t limit; /* constant */
    struct lock lock;
    pthread_cond_t made;
    /* Guarded by lock: */
    struct memo_thing **bucket; /* [n_buckets] owned; a power of two */
    size_t n_buckets, n;        /* n: things */
    struct memo_thing *oldest, *newest;
    size_t size; /* of all things, with MEMO_OWN for each */
};

int memo_new(size_t limit, struct memo **ret)
{
    struct memo *memo = calloc(1, sizeof(*memo));

    if (!memo)
        return -ENOMEM;
    memo->bucket = calloc(BUCKETS, sizeof(struct memo_thing *));
    if (!memo->bucket) {
        free(memo);
        return -ENOMEM;
    }
    memo->n_buckets = BUCKETS;
    memo->limit = limit;
    lock_init(&memo->lock);
    condition_init(&memo->made);
    *ret = memo;
    return 0;
}

static struct memo_thing **memo_bucket_of(struct memo *memo, const struct memo_key *key)
{
    uint64_t h = 0;

    for (unsigned i = 0; i < MEMO_KEY_WORDS; i++) {
        h = (h ^ key->word[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return &memo->bucket[h & (memo->n_buckets - 1)];
}

/* Grow the table to keep chains short. Without memory they get longer. */
static void memo_grow_locked(struct memo *memo)
{
    struct memo_thing **grown;

    lock_assert_held(&memo->lock);
    if (memo->n < memo->n_buckets)
        return;
    grown = calloc(memo->n_buckets * 2, sizeof(struct memo_thing *));
    if (!grown)
        return;
    free(memo->bucket);
    memo->bucket = grown;
    memo->n_buckets *= 2;
    for (struct memo_thing *thing = memo->oldest; thing; thing = thing->newer) {
        struct memo_thing **bucket = memo_bucket_of(memo, &thing->key);

        thing->chain = *bucket;
        *bucket = thing;
    }
}

static void memo_list_remove_locked(struct memo_thing *thing)
{
    struct memo *memo = thing->memo;

    lock_assert_held(&thing->memo->lock);
    *(thing->older ? &thing->older->newer : &memo->oldest) = thing->newer;
    *(thing->newer ? &thing->newer->older : &memo->newest) = thing->older;
}

static void memo_list_add_locked(struct memo_thing *thing)
{
    struct memo *memo = thing->memo;

    lock_assert_held(&thing->memo->lock);
    thing->older = memo->newest;
    thing->newer = NULL;
    *(memo->newest ? &memo->newest->newer : &memo->oldest) = thing;
    memo->newest = thing;
}

static struct memo_thing *memo_find_locked(struct memo *memo, const struct memo_key *key)
{
    struct memo_thing *thing = *memo_bucket_of(memo, key);

    lock_assert_held(&memo->lock);
    while (thing && memcmp(&thing->key, key, sizeof(*key)) != 0)
        thing = thing->chain;
    return thing;
}

/* Remove a thing from the table and the list. */
static void memo_unlink_locked(struct memo_thing *thing)
{
    struct memo_thing **at = memo_bucket_of(thing->memo, &thing->key);

    lock_assert_held(&thing->memo->lock);
    while (*at != thing)
        at = &(*at)->chain;
    *at = thing->chain;
    memo_list_remove_locked(thing);
    thing->memo->size -= thing->size + MEMO_OWN;
    thing->memo->n--;
}

static void thing_free(struct memo_thing *thing)
{
    free(thing->bytes);
    free(thing);
}

/* Drop things down to `limit` bytes if possible; last remains. */
static void memo_evict_locked(struct memo *memo, size_t limit, const struct memo_thing *last)
{
    struct memo_thing *thing = memo->oldest;

    lock_assert_held(&memo->lock);
    while (thing && thing != last && memo->size > limit) {
        struct memo_thing *newer = thing->newer;

        if (!thing->users) {
            memo_unlink_locked(thing);
            thing_free(thing);
        }
        thing = newer;
    }
}

bool memo_halve(struct memo *memo)
{
    LOCK_SCOPE(&memo->lock);
    size_t before = memo->size;

    memo_evict_locked(memo, before / 2, NULL);
    return memo->size < before;
}

struct memory_held memo_held(struct memo *memo)
{
    LOCK_SCOPE(&memo->lock);

    return (struct memory_held){.bytes = memo->size, .limit = memo->limit};
}

void memo_free(struct memo *memo)
{
    if (!memo)
        return;
    for (struct memo_thing *thing = memo->oldest, *newer; thing; thing = newer) {
        newer = thing->newer;
        thing_free(thing);
    }
    free(memo->bucket);
    pthread_cond_destroy(&memo->made);
    lock_release(&memo->lock);
    free(memo);
}

static void memo_let_go_locked(struct memo_thing *thing)
{
    lock_assert_held(&thing->memo->lock);
    if (--thing->users)
        return;
    if (thing->failed)
        thing_free(thing);
    else
        memo_evict_locked(thing->memo, thing->memo->limit, thing->memo->newest);
}

void memo_let_go(struct memo_thing *thing)
{
    struct memo *memo;

    if (!thing)
        return;
    memo = thing->memo;
    lock_take(&memo->lock);
    memo_let_go_locked(thing);
    lock_drop(&memo->lock);
}

bool memo_has(struct memo *memo, const struct memo_key *key)
{
    LOCK_SCOPE(&memo->lock);

    return memo_find_locked(memo, key) != NULL;
}

/* Wait until a thing that another thread makes is ready, and use it. 0, -EINTR, or -EAGAIN: the
 * other thread has failed. */
static int memo_wait_locked(struct memo_thing *thing, const struct memo_maker *maker)
{
    const struct clock *clock = clock_or_real(read_clock(maker->rc));
    bool may_end = maker->rc && maker->rc->cancelled;
    struct memo *memo = thing->memo;
    int r = 0;

    lock_assert_held(&thing->memo->lock);
    thing->users++;
    while (!thing->ready && !thing->failed && r == 0) {
        if (read_cancelled(maker->rc))
            r = -EINTR;
        else
            clock_wait(clock, &memo->lock, &memo->made,
                       may_end ? clock_monotonic(clock) + LOOK_NS : CLOCK_NEVER);
    }
    if (r == 0 && thing->failed)
        r = -EAGAIN;
    if (r < 0) {
        memo_let_go_locked(thing);
        return r;
    }
    memo_list_remove_locked(thing);
    memo_list_add_locked(thing);
    return 0;
}

/* Find the thing, or enter a new one that the caller must make: *ret_new. 0, -ENOMEM, -EINTR. */
static int find_or_enter(struct memo *memo, const struct memo_key *key,
                         const struct memo_maker *maker, struct memo_thing **ret, bool *ret_new)
{
    struct memo_thing *thing, **bucket;
    LOCK_SCOPE(&memo->lock);

    while ((thing = memo_find_locked(memo, key))) {
        int r = memo_wait_locked(thing, maker);

        if (r == 0) {
            *ret = thing;
            *ret_new = false;
        }
        if (r != -EAGAIN)
            return r;
    }
    thing = calloc(1, sizeof(*thing));
    if (!thing)
        return -ENOMEM;
    thing->memo = memo;
    thing->key = *key;
    thing->users = 1;
    memo_grow_locked(memo);
    bucket = memo_bucket_of(memo, key);
    thing->chain = *bucket;
    *bucket = thing;
    memo_list_add_locked(thing);
    memo->n++;
    memo->size += MEMO_OWN;
    *ret = thing;
    *ret_new = true;
    return 0;
}

/* The maker is done: wake the waiting threads. */
static int memo_publish(struct memo_thing *thing, void *bytes, size_t size, int r)
{
    struct memo *memo = thing->memo;
    LOCK_SCOPE(&memo->lock);

    pthread_cond_broadcast(&memo->made);
    if (r < 0) {
        memo_unlink_locked(thing);
        thing->failed = true;
        memo_let_go_locked(thing);
        return r;
    }
    thing->bytes = bytes;
    thing->size = size;
    thing->ready = true;
    memo->size += size;
    memo_evict_locked(memo, memo->limit, memo->newest);
    return 0;
}

int memo_get(struct memo *memo, const struct memo_key *key, const struct memo_maker *maker,
             struct memo_thing **ret)
{
    struct memo_thing *thing = NULL;
    bool is_new;
    void *bytes = NULL;
    size_t size = 0;
    int r = find_or_enter(memo, key, maker, &thing, &is_new);

    if (r == 0 && is_new) {
        r = maker->make(maker->ctx, &bytes, &size);
        r = memo_publish(thing, bytes, size, r);
    }
    if (r == 0)
        *ret = thing;
    return r;
}

const void *memo_bytes(const struct memo_thing *thing)
{
    return thing->bytes;
}
