/* What the files of the transport of joined files share: joined_transport.c has joints and the
 * thread, joined_pieces.c their pieces. No other file includes this.
 *
 *   joint: a transfer of a joined file. made -> under way -> ended, as struct transfer.
 *   piece: a part of one member. WAITS -> RUNS    piece_start()  the remote's transport has it
 *                                RUNS  -> CAME    piece_end()    all its bytes are here
 *                                RUNS  -> STALE   piece_end()    its member has changed, or is gone
 *                                RUNS  -> FAILED  piece_end()    it may work later
 *                                RUNS  -> REFUSED piece_end()    the server refuses it
 *                             REFUSED  -> STALE   pieces_resolve_locked() it alone is refused
 *                             REFUSED  -> WAITS   pieces_resolve_locked() it is asked for again
 *                             REFUSED  -> FAILED  pieces_resolve_locked() others may be, too
 *                                RUNS  -> WAITS   piece_end()    the remote sends whole objects
 *                                                                only: it is asked for again
 *          A small piece that RUNS when its joint is stopped is an orphan from then on. The joint
 *          that needs it next takes it over, or waits for its end. */
#ifndef EPOCHFS_CACHE_SOURCE_JOINED_STATE_H
#define EPOCHFS_CACHE_SOURCE_JOINED_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "cache/source/joined_transport.h"

#define SMALL_MOST (UINT64_C(256) << 10) /* larger pieces fill the bandwidth: `jobs` are enough */

struct joined_file {
    struct joined_parts *parts; /* owned */
    uint64_t number;
    struct joined_file *next;
    /* Guarded by joined->lock: */
    uint8_t *wrong; /* [members->n] 0; ESTALE: the member has changed; EACCES: the server refuses
                       it; EBADMSG: it is not what its SHA-256 says */
    uint64_t asked, came_asked; /* pieces so far; the number of the latest one that came */
    bool whole_only;
};

enum piece_state { PIECE_WAITS, PIECE_RUNS, PIECE_CAME, PIECE_STALE, PIECE_FAILED, PIECE_REFUSED };

struct piece {
    struct transfer transfer; /* first */
    struct joined *joined;
    struct joined_file *file;
    uint64_t at, len; /* in the joined file */
    size_t member;
    char *url;
    struct remote_version version;
    int64_t began;
    uint8_t *bytes; /* [len]; [came, len) belongs to the thread that brings them */
    /* Guarded by joined->lock: */
    TAILQ_ENTRY(piece) link; /* in joint->pieces or joined->kept */
    enum piece_state state;
    struct joint *joint;   /* NULL: it is an orphan, or kept */
    uint64_t copied;       /* kept bytes that other pieces have copied */
    uint64_t came, handed; /* bytes of it: here, and given to data() */
    uint64_t held;         /* its bytes in joined->held */
    uint64_t passed;       /* bytes before it, of an object that comes whole, not reported yet */
    bool paused, stopped;  /* as the remote's transport was told */
    uint64_t asked;        /* its number in file->asked */
    bool refused_once;
    enum transfer_end how; /* FAILED, */
    uint64_t retry_ms;     /* with this Retry-After */
    struct diag why;
};

TAILQ_HEAD(piece_list, piece);

struct joint {
    struct transfer *transfer;
    struct joined_file *file;
    TAILQ_ENTRY(joint) link; /* in joined->joints */
    struct piece_list pieces;
    uint64_t made, handed; /* bytes of the joined file: up to where there are pieces; data() got */
    unsigned running;      /* pieces */
    uint64_t n_came;       /* pieces, so far */
    bool failed, paused, stopped;
};

TAILQ_HEAD(joint_list, joint);

struct joined {
    struct transport transport; /* first */
    struct transport *next;
    unsigned jobs; /* constant */
    struct lock lock;
    pthread_cond_t wake;
    /* Guarded by lock: */
    struct joined_file *files;
    uint64_t n_files;
    struct joint_list joints;
    struct piece_list kept; /* pieces without a joint that CAME or RUN, the oldest first */
    uint64_t held;          /* bytes of pieces with a buffer */
    unsigned running;       /* pieces of all joints */
    bool kicked, resting, runs;
    pthread_t thread;
};

/* There may be something to do for the thread. */
void joined_kick_locked(struct joined *j);

/* ---- joined_pieces.c ---- */

void piece_free_locked(struct piece *piece);

/* The next piece to start; the joint with the fewest under way has it. NULL: none. */
struct piece *piece_next_locked(struct joined *j);

/* Start the transfer of a piece, which RUNS and counts as such. The thread calls it, no lock held.
 */
void piece_start(struct joined *j, struct piece *piece, bool whole_only);

/* The SHA-256 of a piece that is a whole member; NULL: it is none, or unknown. */
const uint8_t *piece_sum(const struct piece *piece);

/* Compare a piece that CAME, and has a sum. false: it is STALE now. No lock held. */
bool piece_verify(struct joined *j, struct piece *piece);

/* None of a joint's pieces is under way: decide what becomes of those that were refused. */
void pieces_resolve_locked(struct joined *j, struct joint *joint);

/* A piece that RUNS goes on without its joint. */
void piece_orphan_locked(struct joined *j, struct piece *piece);

/* Keep what has come of the pieces of a joint, which ends, for its next try. */
void pieces_keep_locked(struct joined *j, struct joint *joint);

/* Stop the orphans. */
void pieces_stop_kept_locked(struct joined *j);

#endif
