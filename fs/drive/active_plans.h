/* Active plans: which plans are being read, how far their readers are, and what they read next.
 *
 * An epoch of a plan becomes active when one of its batches is read, or by -o plan=. Its reader is
 * known by the reads that reach us; those that the kernel serves from its page cache do not, so of
 * what is pushed there a mark is left out now and then, whose read tells how far the reader is.
 * Samples that are read one after another are an active plan of their own, the stored order.
 *
 * Units are what is read at a time: batches, or samples. Any thread. No source is read, nothing is
 * waited for. */
#ifndef EPOCHFS_FS_DRIVE_ACTIVE_PLANS_H
#define EPOCHFS_FS_DRIVE_ACTIVE_PLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/plan/order.h"
#include "fs/tree/tree.h"

#define ACTIVE_PLANS_MAX 32 /* of a mount; another one takes the place of that read longest ago */

struct active_plans;

struct active_plans_options {
    uint64_t ahead;      /* bytes that may be pushed ahead of all readers; 0: nothing is pushed */
    bool drops;          /* keep=once: what was passed is dropped from the page cache */
    uint64_t last_epoch; /* behind this one nothing is staged before it is read; UINT64_MAX: none */
    int64_t (*now)(void); /* monotonic_ns(), or a test's */
};

int active_plans_new(const struct active_plans_options *options,
                     struct active_plans **ret);           /* 0 or -ENOMEM */
void active_plans_free(struct active_plans *active_plans); /* takes NULL */

/* ---- what is told ---- */

/* A plan of -o plan= that the dataset has; nothing of it has been read. */
void active_plans_announce(struct active_plans *active_plans, const struct plan_entry *plan);

/* A read of the file of a batch or sample, up to byte end, has reached us. Returns what follows
 * from it: there is more to push and to stage; or all that was planned begins anew. */
enum { ACTIVE_MOVED = 1, ACTIVE_JUMPED = 2 };
unsigned active_plans_read(struct active_plans *active_plans, const struct node *node,
                           uint64_t end);

/* Bytes [off, off + bytes) of the file were given to its reader. size: of the file; UINT64_MAX: not
 * known. */
void active_plans_given(struct active_plans *active_plans, const struct node *node, uint64_t off,
                        uint64_t bytes, uint64_t size);

/* A reader of that file has waited so long for bytes of the remote. */
void active_plans_waited(struct active_plans *active_plans, const struct node *node, int64_t ns);

/* ---- what is to be pushed ---- */

enum push_what { PUSH_NOTHING, PUSH_STORE, PUSH_DROP };

/* A file whose content is to be put into the page cache, or dropped from it. */
struct push_file {
    struct node node;
    bool is_marked;  /* its last page stays out */
    uint64_t ticket; /* for active_plans_made() */
};

/* The next one, of the active plan whose reader is closest to what was pushed. room: bytes that may
 * be pushed at all where memory is short; else UINT64_MAX. */
enum push_what active_plans_next_push(struct active_plans *active_plans, uint64_t capacity,
                                      struct push_file *ret);

/* May so much of it be stored? The first reads of a file do not tell how large it is. */
bool active_plans_may_store(struct active_plans *active_plans, const struct push_file *file,
                            uint64_t size);

/* Is it still to be made? Not if its reader has come there meanwhile. */
bool active_plans_is_due(struct active_plans *active_plans, const struct push_file *file);

/* Bytes [off, off + len) of it have been made. Are they used with that? Not if its reader has come
 * there meanwhile: he uses them. */
bool active_plans_push_uses(struct active_plans *active_plans, const struct push_file *file,
                            uint64_t off, uint64_t len);

/* Bytes [off, off + len) of a file were read. Had they been used with being made? */
bool active_plans_push_used(struct active_plans *active_plans, const struct node *node,
                            uint64_t off, uint64_t len);

/* It has been made: its bytes, and it is about to be stored. Or: -EFBIG, it may not be stored;
 * -ENOENT and other -errno as below; then that was all. What cannot be read is left to its reader.
 */
void active_plans_made(struct active_plans *active_plans, const struct push_file *file,
                       int64_t result);

/* What became of one that was made: bytes that were stored; -ENOENT: the kernel does not know the
 * file; or another -errno. */
void active_plans_stored(struct active_plans *active_plans, const struct push_file *file,
                         int64_t result);

/* When there may be something more to push though nothing was read; active_plans_options.now()'s
 * time, or INT64_MAX. */
int64_t active_plans_next_look(struct active_plans *active_plans);

/* ---- what is to be staged ---- */

/* A plan as those see it who stage: elements are the samples of the rank, in the order in which
 * they are read; from `at` on they are still to be read to the end, or to be made into what is
 * pushed. */
struct active_cursor {
    uint64_t id;                   /* the same as long as it is the same reader at the same epoch */
    uint64_t jumps;                /* how often the reader has jumped */
    const struct plan_entry *plan; /* NULL: samples in stored order */
    const struct catalog_item *item;
    const struct folder *folder; /* NULL: nothing was read yet */
    uint64_t kinds;              /* bits: of its files, those that are read */
    bool is_samples;
    bool is_last; /* the next epoch is not planned for */
    uint64_t epoch;
    uint64_t at;    /* element */
    uint64_t speed; /* elements per second, 0: not known */
};

/* All of them; returns how many. */
size_t actives_cursors(struct active_plans *active_plans,
                       struct active_cursor ret[static ACTIVE_PLANS_MAX]);

/* ---- for people ---- */

struct active_info {
    const struct plan_entry *plan; /* NULL: samples in stored order */
    const struct catalog_item *item;
    const struct folder *folder; /* NULL: nothing was read yet */
    bool is_samples;
    uint64_t epoch;
    bool was_read;        /* false: it was announced only */
    uint64_t unit, units; /* the reader is at, as far as is known; of the epoch. Equal: it has read
                             the last unit to its end */
    uint64_t pushed;      /* units before this one have been pushed, or read */
    uint64_t samples;     /* of a unit but the last */
    double units_per_s;   /* 0: not known */
    double wait_s;        /* that readers waited for bytes of the remote, in this epoch */
    double since_s;       /* since the first read of this epoch */
    double quiet_s;       /* since the last read that reached us; INFINITY: none did */
    uint64_t at;          /* element, see struct active_cursor */
};

/* All of them, the one read last first; returns how many. */
size_t active_plans_list(struct active_plans *active_plans,
                         struct active_info ret[static ACTIVE_PLANS_MAX]);

struct active_plans_counters {
    _Atomic uint64_t pushed_files, pushed_bytes; /* stored */
    _Atomic uint64_t unknown_files;              /* that the kernel did not know */
    _Atomic uint64_t overtaken;                  /* reads of what was just to be pushed */
    _Atomic uint64_t lost; /* reads of what had been pushed: memory was short */
    _Atomic uint64_t jumps;
};
struct active_plans_counters *active_plans_counters(struct active_plans *active_plans);

#endif
