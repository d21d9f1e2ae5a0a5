/* A prepared index: one that takes a pass over its source to make, and is kept for the next mount.
 *
 *     NEW    -> READY   an earlier mount kept the index, and the format accepts it
 *     NEW    -> MAKING  none was kept; or it is damaged, or of something that has changed, and is
 *                       removed
 *     MAKING -> READY   the pass has finished; the index is kept, or stays in memory
 *     any    -> FAILED  for good
 *
 * Files of records have one each (format/records/record_file.h). Another user embeds a `struct
 * prepared`, fills in its first part and a table of functions, and calls prepared_step() until it
 * is ready. One thread prepares; once it is ready, it is constant, and any thread may read it. */
#ifndef EPOCHFS_FORMAT_INDEX_PREPARED_H
#define EPOCHFS_FORMAT_INDEX_PREPARED_H

#include <stdatomic.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/index_store.h"
#include "base/text.h"
#include "format/index/index.h"
#include "format/index/kept.h"

/* What a format does in its own way. -EREMOTEIO and -EINTR of identity(), load(), step() and
 * ready() say nothing about the source: they are called again. Any other error is for good. */
struct prepared_ops {
    /* The name of the format and a version: "csv 3". The identity of an index begins with it; then
     * comes what the index depends on, and at last the identities of the second source and of
     * the blob, if there are any. */
    const char *version;
    /* Add what the index depends on, where that is not known before it is prepared: see depends. 0
     * or -errno. NULL: nothing. */
    int (*identity)(void *impl, struct text *ret);
    /* Write, read or forget what is kept besides the rows, all of `about`: see struct kept. They
     * start forgotten. NULL: see about(). */
    void (*keep)(void *impl, struct kept *k);
    /* Take what a kept index says: it has the shape that was asked for, but its numbers and its
     * `about`, which keep() has read, are hostile. 0; or -errno with nothing taken: it is damaged,
     * or its sources have changed. NULL: there is nothing to take. */
    int (*load)(void *impl, const struct index *index);
    /* No index was kept: begin the pass. Called once, so it reads nothing that the index depends
     * on. 0 or -errno, for good. NULL: nothing to do. */
    int (*begin)(void *impl);
    /* Go on with the pass for a moment, and add the rows to builder. 1: the rows are complete; 0:
     * not yet; or -errno with the reason in d. The core checks whether `blob` has changed, the
     * format whether other sources have. */
    int (*step)(void *impl, struct diag *d);
    /* A row repeats the key of row first. NULL: ignored. */
    void (*renamed)(void *impl, uint64_t row, uint64_t first);
    /* The pass has finished: release it, and, without keep(), add what is kept besides the rows to
     * ret. 0 or -errno with the reason in d. NULL: nothing to do. */
    int (*about)(void *impl, const struct index *index, struct text *ret, struct diag *d);
    /* The index was loaded or made: complete what is made from it. 0, or -errno with the reason in
     * d. NULL: nothing to do. */
    int (*ready)(void *impl, struct diag *d);
};

struct prepared {
    /* Set by the owner, then constant: */
    const struct prepared_ops *ops;
    void *impl;                     /* the owner */
    const struct index_store *keep; /* not owned, nor are the blob and the texts */
    const struct blob *blob;        /* the source; NULL: identity() adds all sources */
    const struct blob *second;      /* another source, or NULL */
    char *depends;      /* what else the index depends on, such as how the source is read:
                         * " skip=1"; owned here, until the identity has it; NULL: nothing */
    const char *type;   /* of indexes in the store: "rows" */
    const char *name;   /* of the source, in messages */
    const char *source; /* for people who look at the store */
    uint64_t size;      /* bytes that the pass goes through */
    struct index_shape shape;
    bool is_cheap;   /* to make it takes less than to keep and load it: it is neither */
    bool has_places; /* rows are runs of bytes of the blob: see struct record_file_ops, */
    unsigned bytes;  /* and for these */
    uint64_t least;
    bool checks_rows; /* an index by content may be used (base/index_store.h): the format compares
                         what it says of a row with the file, where prepared_doubts() says so */

    /* step() works with these: */
    struct index_builder *builder;
    uint64_t end[INDEX_COLUMNS]; /* it sets the numbers of rising columns after the last row, */
    bool may_differ;             /* that the next mount may find more, so this index is not kept, */
    _Atomic uint64_t seen; /* and the bytes that it has gone through; any thread may read it */

    /* Once it is ready: */
    struct index index;
    char *identity;
    char *unkept; /* why the index stays in memory, for people; NULL: it is kept, or never is */

    /* Private: */
    _Atomic uint8_t *proven; /* of an index by content: a bit for each row; NULL: it is no such */
    struct kept_index kept;  /* the index's bytes; or builder has them */
    enum { PREPARED_NEW, PREPARED_MAKING, PREPARED_INDEXED, PREPARED_READY } state;
    int failed; /* -errno */
    struct diag reason;
};

/* Prepare it a step further. 1: ready, 0: not yet, or -errno with the reason in d, and the same
 * from every later call. After -EREMOTEIO and -EINTR the next call goes on. */
int prepared_step(struct prepared *p, struct diag *d);

static inline bool prepared_is_ready(const struct prepared *p)
{
    return p->state == PREPARED_READY;
}

/* ---- an index by content; any thread, once it is ready ---- */

/* Is what the index says of a row to be compared with the file? */
static inline bool prepared_doubts(const struct prepared *p, uint64_t row)
{
    return p->proven &&
           !(atomic_load_explicit(&p->proven[row / 8], memory_order_relaxed) & 1u << row % 8);
}

/* It is what the file has. */
void prepared_prove(const struct prepared *p, uint64_t row);

/* It is not: the index is not used by any later mount. -ESTALE with the reason in d. */
int prepared_disprove(const struct prepared *p, uint64_t row, const char *why, struct diag *d);

/* Forget what is kept besides the rows. Takes a zeroed one. */
void prepared_forget(struct prepared *p);

/* Takes a zeroed one. */
void prepared_release(struct prepared *p);

/* For identity(): add a space and the identity of a file. 0 or -ENOMEM. */
int prepared_add_identity(const struct prepared *p, struct text *t, const struct blob *blob);

#endif
