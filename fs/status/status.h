/* What the daemon counts, and the live texts that show it: .epochfs/status.json, metrics and
 * history.json.
 *
 * The size of a live text changes all the time, and all readers of an inode share one page cache,
 * in which two versions of the text would mix. So each lookup of a live text gets an inode of its
 * own, a snapshot, with the text of that moment, which never changes. Snapshots are reused in turn.
 * Snapshot 0 is what a listing shows: nothing reads it, and its text is renewed. */
#ifndef EPOCHFS_FS_STATUS_STATUS_H
#define EPOCHFS_FS_STATUS_STATUS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/text.h"
#include "fs/status/history.h"
#include "fs/status/plans.h"
#include "fs/status/remote.h"
#include "fs/tree/tree.h"

#define STATUS_HOLDERS_MAX 12

enum request {
    REQUEST_LOOKUP,
    REQUEST_GETATTR,
    REQUEST_READLINK,
    REQUEST_OPEN,
    REQUEST_RELEASE,
    REQUEST_READ,
    REQUEST_READDIR,
    REQUEST_GETXATTR,
    REQUEST_LISTXATTR,
    REQUEST_IOCTL,
    REQUEST_OTHER,
    N_REQUESTS,
};

#define STATUS_SNAPSHOT_NS    INT64_C(2000000000) /* after this a listing shows a new size */
#define STATUS_SNAPSHOT_BYTES ((size_t)2 << 20)   /* of the snapshots of one live text, at most */

/* A text as it was at a lookup. */
struct status_snapshot {
    struct text text;
    int64_t made_ns; /* monotonic_ns(); 0: there is none */
    int64_t time_ns; /* now_ns(), the time that stat() shows */
};

/* How files of the mount that are files of this machine are opened: see fs/serve/pass.h. */
struct open_state {
    _Atomic bool passes;          /* by requests; the kernel then reads such files itself */
    _Atomic(const char *) reason; /* why not; constant texts */
    _Atomic uint64_t opens;       /* of files that the kernel reads itself */
};

struct status {
    /* Set before serving, then constant: */
    const struct catalog *catalog;
    const char *source;
    const char *mountpoint;
    struct stage *stage;                             /* NULL: the source is read in place */
    struct active_plans *active_plans;               /* NULL: none */
    int64_t started;                                 /* seconds since 1970 */
    struct memory_holder holder[STATUS_HOLDERS_MAX]; /* [n_holders] */
    unsigned n_holders;
    struct made_counts *pictures; /* NULL: there are none */
    const struct clock *clock;    /* of the history */
    /* Any thread: */
    _Atomic uint64_t request[N_REQUESTS];
    _Atomic uint64_t bytes_served; /* replies to reads */
    _Atomic uint64_t read_errors;
    struct open_state open;
    _Atomic uint64_t plans_opened;   /* plans and epochs, since the mount */
    _Atomic uint64_t read_twice;     /* utterances, against kaldi=o */
    _Atomic uint64_t read_backwards; /* against kaldi=cs */

    struct history history;

    struct lock lock;
    /* Guarded by lock: */
    char last_error[STATUS_REASON_SIZE];   /* of the last read that failed */
    char last_promise[STATUS_REASON_SIZE]; /* the last promise that a read has broken */
    char last_refused[STATUS_REASON_SIZE]; /* the last name that is not a plan or epoch, and why */
    struct status_snapshot snapshot[N_LIVES][TREE_SNAPSHOTS];
    unsigned last_snapshot[N_LIVES];
    size_t snapshot_bytes[N_LIVES]; /* capacity of the snapshots' texts */
};

/* s: all zero except what is set before serving. */
void status_init(struct status *s);
void status_release(struct status *s);

/* Remember why a read has failed. */
void status_read_error(struct status *s, const char *reason);

/* Remember a name that is not a plan or epoch, and why. False: it is the last one again. */
bool status_refused(struct status *s, const char *what);

/* Remember the promise that a read has broken, see fs/serve/promises.h. */
void status_promise(struct status *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void status_count(struct status *s, enum request request)
{
    atomic_fetch_add_explicit(&s->request[request], 1, memory_order_relaxed);
}

/* Take a sample for the history if one is due; about every second. */
void status_note(struct status *s);

void status_text(struct status *s, enum live which, struct text *ret);

/* What the snapshots take. owner: the struct status. */
struct memory_held status_snapshots_held(void *owner);

/* A lookup: make the text, in place of the oldest snapshot's. 0 or -ENOMEM. */
int status_snapshot_new(struct status *s, enum live which, unsigned *ret_snapshot);

/* The size of a snapshot's text, and its time. 0, -ENOMEM, or -ESTALE: the text was forgotten. */
int status_snapshot_stat(struct status *s, enum live which, unsigned snapshot, uint64_t *ret_size,
                         int64_t *ret_time_ns);

/* At most len bytes of a snapshot, from off on. Errors as for status_snapshot_stat(). */
int status_read(struct status *s, enum live which, unsigned snapshot, uint64_t off, size_t len,
                void *dst, size_t *ret_len);

#endif
