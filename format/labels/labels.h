/* The index of labels of a list of samples: classes of an integer field, or sums of weights.
 *
 *     NEW    -> READY    an earlier mount has kept it
 *     NEW    -> MAKING   none was kept, or it is damaged; then it is removed
 *     MAKING -> READY    it is made and kept; or stays in memory, where it cannot be kept
 *     MAKING -> NEW      bytes cannot be fetched now: the next step begins again
 *     any    -> FAILED   for good: the values have no index
 *
 * A kept one is mapped, so it takes no memory of its own; one process makes it, others wait for
 * that. docs/spec/cache-format.md has the bytes. */
#ifndef EPOCHFS_FORMAT_LABELS_LABELS_H
#define EPOCHFS_FORMAT_LABELS_LABELS_H

#include <stdatomic.h>

#include "base/diag.h"
#include "base/index_store.h"
#include "base/mapped_file.h"
#include "format/labels/label_make.h"

/* How much indexes may take that cannot be kept. */
struct labels_memory {
    uint64_t limit; /* bytes */
    _Atomic uint64_t used;
};

struct labels {
    /* Set by the owner, then constant; not owned: */
    enum label_purpose type;
    const struct label_input *input;
    const struct index_store *keep;
    const char *identity; /* differs wherever the index may differ */
    const char *source;   /* for people who look at the store */
    struct labels_memory *memory;

    /* Once it is ready: */
    struct label_arrays arrays;

    /* Private: */
    enum { LABELS_NEW, LABELS_MAKING, LABELS_READY, LABELS_FAILED } state;
    struct kept_file file;
    struct mapped_file map;
    struct label_making *making;
    void *tables;    /* arrays.label and arrays.begin, owned: what they say is never changed */
    uint64_t held;   /* of memory */
    bool not_kept;   /* it cannot be kept, */
    struct diag why; /* and why not */
    int failed;      /* -errno, and: */
    struct diag reason;
    _Atomic uint64_t done; /* values that were read */
};

/* Go on for a moment. 1: ready; 0: not yet; -EAGAIN: another process is making it, so ask again in
 * a while; or -errno with the reason in d: -EREMOTEIO, -EINTR and -ENOMEM may pass, others are the
 * same from every later call. One thread at a time. */
int labels_step(struct labels *l, struct read_context *rc, struct diag *d);

/* Has it lost bytes that were used? Any thread, once it is ready. */
static inline bool labels_are_lost(const struct labels *l)
{
    return mapped_file_is_lost(&l->map);
}

/* Takes one with only the owner's part set, and the rest zero. */
void labels_release(struct labels *l);

#endif
