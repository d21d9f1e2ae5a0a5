/* What was seen of each sample: in the stored order, and in an epoch. */
#ifndef EPOCHFS_FS_AUDIT_TALLY_H
#define EPOCHFS_FS_AUDIT_TALLY_H

#include <stdbool.h>

#include "base/text.h"
#include "fs/audit/batch.h"

/* How often samples come in an epoch, as the words of a plan promise it. */
enum audit_promise {
    AUDIT_ONCE,     /* each place of the list equally often */
    AUDIT_BALANCED, /* each value of the field equally often, and its places too */
    AUDIT_WEIGHTS,  /* each place in proportion to the value of the field */
    AUDIT_MEMBERS,  /* only places of the list; how often is not said */
    AUDIT_MIXED,    /* each place of a source equally often, pass after pass */
};

/* The samples of a source of a mix: those with numbers first .. first + count - 1. The positions
 * that an epoch shows have so many of them. */
struct audit_source {
    uint64_t first, count;
    uint64_t least, most;
};

struct audit_rule {
    enum audit_promise promise;
    uint64_t places; /* samples of the list, each as often as it is in it */
    uint64_t
        promised; /* positions of an epoch that the promise is about: those of all of the list */
    uint64_t positions; /* of them, those that the epoch shows (limit=) */
    uint64_t elements;  /* of all ranks together: positions that are left out or repeated */
    uint64_t read;      /* of them, those of the ranks that are read */
    const struct audit_source *source; /* [n_sources] AUDIT_MIXED */
    unsigned n_sources;
};

struct audit_tally;

/* A tally of samples with numbers below `samples`. Memory is taken for those that are seen, some 56
 * bytes each. -ENOMEM. */
int audit_tally_new(uint64_t samples, struct audit_tally **ret);
void audit_tally_free(struct audit_tally *tally); /* takes NULL */

static inline void audit_tally_scope_end(struct audit_tally **tally)
{
    audit_tally_free(*tally);
}
#define AUTO_AUDIT_TALLY AUTO(audit_tally_scope_end)

/* Note a batch of the list in its stored order, then batches of the epoch. name: of the batch, for
 * messages. 0 or -ENOMEM; faults are counted. */
int audit_tally_list(struct audit_tally *tally, const struct audit_batch *batch, const char *name);
int audit_tally_epoch(struct audit_tally *tally, const struct audit_batch *batch, const char *name);

/* A batch of an epoch that should have so many classes, each with a run of `each` samples: compare.
 * 0 or -ENOMEM. */
int audit_tally_runs(struct audit_tally *tally, const struct audit_batch *batch, const char *name,
                     uint64_t classes, uint64_t each);

/* How many values the field has in the list, and how many places the most frequent one has. 0 or
 * -ENOMEM. */
int audit_tally_classes(const struct audit_tally *tally, uint64_t *ret_n, uint64_t *ret_most);

/* Places of the list, and elements of the epoch, that were noted. */
uint64_t audit_tally_places(const struct audit_tally *tally);
uint64_t audit_tally_elements(const struct audit_tally *tally);

/* Count a fault that was found elsewhere; line: what it is. */
void audit_tally_fault(struct audit_tally *tally, const char *line);

/* All is noted: compare how often samples came with the rule. 0 or -ENOMEM. */
int audit_tally_compare(struct audit_tally *tally, const struct audit_rule *rule);

struct audit_result {
    uint64_t faults;
    const char *first;             /* lines, the first three faults; "" */
    uint64_t seen;                 /* samples that the epoch has */
    uint64_t least, most;          /* how often a sample of the list comes */
    char sha256[DIGEST_TEXT_SIZE]; /* of the digests of the epoch's elements, in their order */
};

/* The result; lives as long as the tally. 0 or -ENOMEM. */
int audit_tally_result(struct audit_tally *tally, struct audit_result *ret);

#endif
