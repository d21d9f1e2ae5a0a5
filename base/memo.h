/* A memo: a bounded cache of things that are costly to make and can be made again.
 *
 * Things are found by a key. A thread that needs a missing thing makes it, while other threads that
 * need it wait. Over the limit, the memo drops the least recently used things. It keeps what is in
 * use until it is let go, and the most recently used thing, however large: a file made from it is
 * read in many pieces. Any thread. */
#ifndef EPOCHFS_BASE_MEMO_H
#define EPOCHFS_BASE_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/scope.h"

struct memo;
struct memo_thing;
struct read_context;

#define MEMO_KEY_WORDS 6

struct memo_key {
    uint64_t word[MEMO_KEY_WORDS];
};

/* limit: bytes of the things, and MEMO_OWN for each. 0 or -ENOMEM. */
#define MEMO_OWN 160
int memo_new(size_t limit, struct memo **ret);
void memo_free(struct memo *memo); /* takes NULL; no thing may be in use */

struct memo_maker {
    /* Make the thing: malloc'd memory, and its size. 0 or -errno. No lock is held. */
    int (*make)(void *ctx, void **ret, size_t *ret_size);
    void *ctx;
    /* The wait for another thread's make() ends when this read is cancelled. NULL: never. */
    const struct read_context *rc;
};

/* Get the thing with that key; make it if needed. The caller lets it go. 0, -ENOMEM, -EINTR:
 * cancelled, or the error of make(); a failure is not remembered. */
int memo_get(struct memo *memo, const struct memo_key *key, const struct memo_maker *maker,
             struct memo_thing **ret);

/* When memory is short: drop things that are not in use, the least recently used first, until half
 * of the bytes are left. false: there was nothing to drop. */
bool memo_halve(struct memo *memo);

/* What the things take, see limit above; more than the limit only while they are in use. */
struct memory_held memo_held(struct memo *memo);

/* Is the thing there, or being made? */
bool memo_has(struct memo *memo, const struct memo_key *key);

/* The memory of the thing, constant. */
const void *memo_bytes(const struct memo_thing *thing);

void memo_let_go(struct memo_thing *thing); /* takes NULL */

static inline void memo_scope_end(struct memo_thing **thing)
{
    memo_let_go(*thing);
}
#define AUTO_MEMO AUTO(memo_scope_end)

#endif
