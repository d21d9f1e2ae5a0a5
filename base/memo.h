/* A memo: a bounded memory of things that are costly to make and may be made again.
 *
 * Things are found by a key. Whoever needs one that is not there makes it, while others who need
 * the same wait. What was used longest ago goes first when the limit is passed; what is in use
 * stays until it is let go, and what was used last stays however large it is: a file of it is read
 * in many pieces. Any thread. */
#ifndef EPOCHFS_BASE_MEMO_H
#define EPOCHFS_BASE_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

struct memo;
struct memo_thing;

#define MEMO_KEY_WORDS 6

struct memo_key {
    uint64_t word[MEMO_KEY_WORDS];
};

/* limit: bytes, of things and of what the memo needs itself for each. 0 or -ENOMEM. */
#define MEMO_OWN 160
int memo_new(size_t limit, struct memo **ret);
void memo_free(struct memo *memo); /* takes NULL; nothing may be in use */

struct memo_maker {
    /* Make the thing: malloc'd memory, and its size. 0 or -errno. No lock is held. */
    int (*make)(void *ctx, void **ret, size_t *ret_size);
    /* Shall the wait for another thread's make() end? NULL: never. Asked now and then, with the
     * memo's lock held. */
    bool (*cancelled)(void *ctx);
    void *ctx;
};

/* Get the thing of that key, made if need be; the caller lets it go. 0, -ENOMEM, -EINTR: cancelled,
 * or what make() returned; a failure is not remembered. */
int memo_get(struct memo *memo, const struct memo_key *key, const struct memo_maker *maker,
             struct memo_thing **ret);

/* Let go things that are not in use, those that were used longest ago first, until half of the
 * bytes are left: memory is short. false: there was nothing to let go. */
bool memo_halve(struct memo *memo);

/* Is it there, or being made? */
bool memo_has(struct memo *memo, const struct memo_key *key);

/* Its memory, constant. */
const void *memo_bytes(const struct memo_thing *thing);

void memo_let_go(struct memo_thing *thing); /* takes NULL */

static inline void memo_scope_end(struct memo_thing **thing)
{
    memo_let_go(*thing);
}
#define AUTO_MEMO AUTO(memo_scope_end)

#endif
