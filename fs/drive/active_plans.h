/* Active plans: which plans are being read, how far their readers are, and what they read next.
 *
 * An epoch of a plan becomes active when one of its batches is read, or by -o plan=. Reads that
 * reach us show how far its reader is; reads that the kernel serves from its page cache do not
 * reach us. So now and then a pushed file is a mark: its last page is omitted, and the read of
 * that page shows how far the reader is. Samples that are read one after another are an active plan
 * of their own, in stored order.
 *
 * A unit is what is read at a time: a batch, or a sample. Any thread may call. No source is read,
 * and nothing waits. */
#ifndef EPOCHFS_FS_DRIVE_ACTIVE_PLANS_H
#define EPOCHFS_FS_DRIVE_ACTIVE_PLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "fs/plan/order.h"
#include "fs/tree/tree.h"

#define ACTIVE_PLANS_MAX 32 /* of a mount; a further one replaces that read longest ago */

struct active_plans;

struct active_plans_options {
    uint64_t ahead;      /* bytes that may be pushed ahead of all readers; 0: nothing is pushed */
    bool drops;          /* keep=once: what readers have passed is dropped from the page cache */
    unsigned processors; /* that this process may use */
    uint64_t last_epoch; /* later ones are staged only as they are read; UINT64_MAX: none */
    const struct clock *clock; /* must outlive the plans */
};

int active_plans_new(const struct active_plans_options *options,
                     struct active_plans **ret);           /* 0 or -ENOMEM */
void active_plans_free(struct active_plans *active_plans); /* takes NULL */

/* ---- what is reported ---- */

/* A plan of -o plan= that the dataset has; none of it has been read. */
void active_plans_announce(struct active_plans *active_plans, const struct plan_entry *plan);

/* A read, up to byte end, of the file of a batch or sample has reached us. Returns bits, or 0.
 * ACTIVE_MOVED: the reader is further on, so there is more to push and to stage. ACTIVE_JUMPED: it
 * is elsewhere, so all that was planned begins again. */
enum { ACTIVE_MOVED = 1, ACTIVE_JUMPED = 2 };
unsigned active_plans_read(struct active_plans *active_plans, const struct node *node,
                           uint64_t end);

/* Bytes [off, off + bytes) of the file were returned to its reader. size: of the file; UINT64_MAX:
 * unknown. True: its reader has read more units to the end than before. */
bool active_plans_given(struct active_plans *active_plans, const struct node *node, uint64_t off,
                        uint64_t bytes, uint64_t size);

/* A reader of that file has waited ns nanoseconds for bytes of the remote. */
void active_plans_waited(struct active_plans *active_plans, const struct node *node, int64_t ns);

/* ---- what is to be pushed ---- */

enum push_what { PUSH_NOTHING, PUSH_STORE, PUSH_DROP, PUSH_READY };

/* A file whose content is to be put into the page cache, dropped from it, or made and left in
 * memory, see push_window_may_ready(). */
struct push_file {
    struct node node;
    bool is_marked;  /* its last page stays out */
    uint64_t ticket; /* for active_plans_made() */
};

/* The next file, from the active plan with the least pushed ahead of its reader. capacity: bytes
 * that may be pushed in all, where memory is short; otherwise UINT64_MAX. */
enum push_what active_plans_next_push(struct active_plans *active_plans, uint64_t capacity,
                                      struct push_file *ret);

/* The sources exceed the memory, or no longer: then what readers have passed is dropped as if
 * options.drops said so. */
void active_plans_exceed(struct active_plans *active_plans, bool exceeds);

/* May size bytes of the file be stored? The first reads of a file do not show how large it is. */
bool active_plans_may_store(struct active_plans *active_plans, const struct push_file *file,
                            uint64_t size);

/* Is the file still to be made? Not if its reader has reached it meanwhile. */
bool active_plans_is_due(struct active_plans *active_plans, const struct push_file *file);

/* The file has been made. result: its bytes, which are about to be stored; -EFBIG: it may not be
 * stored; -ENOENT and other -errno as below. After an error active_plans_stored() is not called. A
 * file that cannot be read is left to its reader. */
void active_plans_made(struct active_plans *active_plans, const struct push_file *file,
                       int64_t result);

/* The store of a file that was made has ended. result: bytes stored; -ENOENT: the kernel does not
 * know the file; or another -errno. */
void active_plans_stored(struct active_plans *active_plans, const struct push_file *file,
                         int64_t result);

/* What was to be made ready was made, or cannot be. */
void active_plans_readied(struct active_plans *active_plans, const struct push_file *file);

/* When there may be more to push although nothing was read: a time of clock_monotonic(),
 * or CLOCK_NEVER. */
int64_t active_plans_next_look(struct active_plans *active_plans);

/* ---- what is to be staged ---- */

/* An active plan as staging sees it. Elements are the samples of the rank in the order in which
 * they are read. Those from `at` on are still to be read to the end, or to be made into pushed
 * files. */
struct active_cursor {
    uint64_t id;                   /* constant while the same reader reads the same epoch */
    uint64_t jumps;                /* how often the reader has jumped */
    const struct plan_entry *plan; /* NULL: samples in stored order */
    const struct catalog_item *item;
    const struct folder *folder; /* NULL: nothing was read yet */
    uint64_t columns;            /* bits: the columns that are read */
    bool is_samples;
    bool is_last; /* nothing is planned for the next epoch */
    uint64_t epoch;
    uint64_t at; /* element; of a plan with cuts, batch, as are from and read */
    /* Its reader began, or jumped to, element `from`, and has read those before `read` for certain:
     * pushed files it may still have to read. */
    uint64_t from, read;
    double speed; /* elements per second, 0: not known */
};

/* All of them; returns how many. */
size_t active_plans_cursors(struct active_plans *active_plans,
                            struct active_cursor ret[static ACTIVE_PLANS_MAX]);

/* ---- for people ---- */

struct active_info {
    const struct plan_entry *plan; /* NULL: samples in stored order */
    const struct catalog_item *item;
    const struct folder *folder; /* NULL: nothing was read yet */
    bool is_samples;
    uint64_t epoch;
    bool was_read;        /* false: it was only announced */
    uint64_t unit, units; /* where the reader is, as far as is known; of the epoch. Equal: it has
                             read the last unit to its end */
    uint64_t pushed;      /* units before this one have been pushed, or read */
    uint64_t samples;     /* of each unit but the last */
    double units_per_s;   /* 0: not known */
    double wait_s;        /* how long readers waited for bytes of the remote, in this epoch */
    double since_s;       /* since the first read of this epoch */
    double quiet_s;       /* since the last read that reached us; INFINITY: none did */
    uint64_t at;          /* element, see struct active_cursor */
};

/* All of them, the most recently read first; returns how many. */
size_t active_plans_list(struct active_plans *active_plans,
                         struct active_info ret[static ACTIVE_PLANS_MAX]);

struct active_plans_counters {
    _Atomic uint64_t pushed_files, pushed_bytes; /* stored */
    _Atomic uint64_t unknown_files;              /* pushed files that the kernel did not know */
    _Atomic uint64_t overtaken;                  /* reads of files that were about to be pushed */
    _Atomic uint64_t lost; /* reads of pushed bytes that the kernel had dropped: memory was short */
    _Atomic uint64_t jumps;
    /* What fs/push/read_ahead.h asks the disks of this machine for: */
    _Atomic uint64_t asked_bytes;    /* as samples that come next, in whole pages; */
    _Atomic uint64_t asked_requests; /* so many ranges */
    _Atomic uint64_t sequence_bytes; /* in the order of the files */
    _Atomic uint64_t passed_bytes;   /* that readers have passed, and that it dropped */
};
struct active_plans_counters *active_plans_counters(struct active_plans *active_plans);

#endif
