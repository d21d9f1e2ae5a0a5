/* Prefix sums over the samples of a selection: where in a file does a sample begin if sizes differ,
 * and which sample has byte number n?
 *
 * They take one walk over the selection; the memo keeps the result. */
#ifndef EPOCHFS_FORMAT_CORE_PREFIX_SUMS_H
#define EPOCHFS_FORMAT_CORE_PREFIX_SUMS_H

#include "base/memo.h"
#include "format/core/sample_window.h"

/* What is summed up: size decides where a sample is; other is summed along with it. */
struct sums_pair {
    uint64_t size, other;
};

/* The numbers of one sample; before: the sums over the samples before it. 0 or -errno. */
typedef int sums_fn(void *ctx, uint64_t sample, const struct sums_pair *before,
                    struct sums_pair *ret);

/* The sums over all samples before one. */
typedef void sums_known_fn(void *ctx, uint64_t sample, struct sums_pair *ret);

struct sums {
    const struct selection *sel;
    sums_fn *number;
    sums_known_fn *known;   /* of a selection in stored order that has no table; otherwise NULL */
    struct sums_pair first; /* with known: the sums before the selection */
    bool costly;
    void *ctx;
    struct memo_thing *thing; /* NULL: of few samples, */
    void *memory;             /* the table, owned */
    const struct sums_table *table;
    struct sample_window window; /* for sums_after() */
};

/* memo, key: where the sums are kept; of few samples only if costly: number() reads and computes.
 * 0, -EINTR: cancelled, -EFBIG: a sum exceeds 2^63, -ENOMEM, or what number() returned. */
int sums_open(struct sums *ret, struct memo *memo, const struct memo_key *key,
              const struct selection *sel, sums_fn *number, bool costly, void *ctx);

/* The same where the source knows the sums in stored order: then that takes no walk. All but
 * sums_most(). */
int sums_open_known(struct sums *ret, struct memo *memo, const struct memo_key *key,
                    const struct selection *sel, sums_fn *number, sums_known_fn *known, void *ctx);
void sums_close(struct sums *s);
#define AUTO_SUMS AUTO(sums_close) /* of one that starts as {0} */

struct sums_pair sums_total(const struct sums *s);

/* The largest size of a sample. */
uint64_t sums_most(const struct sums *s);

/* The sums before place, at most sel->count. 0 or what number() returned. */
int sums_before(const struct sums *s, uint64_t place, struct sums_pair *ret);

/* The sums up to and including place, quickly, from the sums before it. */
int sums_after(struct sums *s, uint64_t place, const struct sums_pair *before,
               struct sums_pair *ret);

/* The place whose sample contains number at, which is below the total, and the sums before that
 * place. */
int sums_find(const struct sums *s, uint64_t at, uint64_t *ret_place, struct sums_pair *ret_before);

#endif
