/* What the files of the transport of joined files share: joined_transport.c has joints and the
 * thread, joined_pieces.c the pieces. No other file includes this.
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
 *                              FAILED  -> CAME    piece_tidy_locked()     with the bytes that came
 *                                RUNS  -> WAITS   piece_end()    the remote sends whole objects
 *                                                                only: it is asked for again
 *
 * Pieces are their file's, in file order, and no two overlap. A joint goes through them: any piece
 * is good for it, whichever joint has asked for that. One that no joint needs is freed, unless it
 * has bytes that none has got. */
#ifndef EPOCHFS_CACHE_SOURCE_JOINED_STATE_H
#define EPOCHFS_CACHE_SOURCE_JOINED_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/checked.h"
#include "base/lock.h"
#include "base/ranges.h"
#include "cache/source/joined_transport.h"

#define SMALL_MOST (UINT64_C(256) << 10) /* larger pieces fill the bandwidth: `jobs` are enough */
#define WINDOW     (UINT64_C(4) << 20)   /* how far after its first missing byte a joint asks */

struct piece;
TAILQ_HEAD(piece_list, piece);

struct joined_file {
    struct joined_parts *parts; /* owned */
    uint64_t number;
    struct joined_file *next;
    /* Guarded by joined->lock: */
    struct piece_list pieces; /* in file order, */
    struct ranges places;     /* and by their bytes */
    uint8_t *wrong;           /* [members->n] 0; ESTALE: the member has changed; EACCES: the server
                                 refuses it; EBADMSG: it is not what its SHA-256 says */
    uint64_t came_asked;      /* the number of the latest piece that came */
    bool whole_only;
};

enum piece_state { PIECE_WAITS, PIECE_RUNS, PIECE_CAME, PIECE_STALE, PIECE_FAILED, PIECE_REFUSED };

struct piece {
    struct transfer transfer; /* first */
    struct joined *joined;
    struct joined_file *file;
    struct range place; /* in the joined file, and in file->places */
    size_t member;
    char *url;
    struct remote_version version;
    int64_t began;
    uint8_t *bytes; /* [came, len) belongs to the thread that brings them */
    /* Guarded by joined->lock: */
    TAILQ_ENTRY(piece) link; /* in file->pieces; only the thread of joined removes it */
    TAILQ_ENTRY(piece) idle_link;
    struct piece_list *idle; /* the list that it is in, joined->ended or ->kept; NULL: in none */
    enum piece_state state;
    struct joint *joint;  /* that has asked for it; NULL: none, or it has ended */
    uint64_t came, used;  /* bytes of it: here; given to data() of joints */
    uint64_t held;        /* its bytes in joined->held */
    uint64_t passed;      /* bytes before it, of an object that comes whole, not reported yet */
    bool paused, stopped; /* as the remote's transport was told */
    uint64_t asked;       /* its number in joined->asked */
    bool refused_once;
    enum transfer_end how; /* FAILED, */
    uint64_t retry_ms;     /* with this Retry-After */
    struct diag why;
};

struct joint {
    struct transfer *transfer;
    struct joined_file *file;
    TAILQ_ENTRY(joint) link; /* in joined->joints */
    uint64_t handed, end;    /* in the joined file: up to where data() has got it, and gets it */
    unsigned running;        /* pieces that it has asked for */
    uint64_t n_came;         /* of these, so far */
    bool failed, paused, stopped;
    bool heeds; /* it was paused: pieces may be */
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
    uint64_t held;           /* bytes of pieces with a buffer */
    unsigned running;        /* pieces */
    uint64_t asked;          /* pieces, so far */
    struct piece_list ended; /* without a joint; to be tidied */
    struct piece_list kept;  /* by piece_tidy_locked(), the oldest first */
    bool spare;              /* there may be kept pieces that no joint needs */
    bool kicked, resting, runs;
    pthread_t thread;
};

/* There may be something to do for the thread. */
void joined_kick_locked(struct joined *j);

/* Up to where a joint asks for pieces now. */
static inline uint64_t joint_reach(const struct joint *joint)
{
    return min_u64(joint->end, joint->handed + WINDOW);
}

static inline uint64_t piece_len(const struct piece *piece)
{
    return piece->place.end - piece->place.first;
}

/* ---- joined_pieces.c ---- */

/* The next piece to start, for its joint, which is the one with the fewest under way. NULL: none.
 */
struct piece *piece_next_locked(struct joined *j);

/* Start the transfer of a piece, which RUNS and counts as such. The thread calls it, no lock held.
 */
void piece_start(struct joined *j, struct piece *piece, bool whole_only);

/* The SHA-256 of a piece that is a whole member; NULL: it is none, or unknown. */
const uint8_t *piece_sum(const struct piece *piece);

/* Compare a piece that CAME, and has a sum. false: it is STALE now. No lock held. */
bool piece_verify(struct joined *j, struct piece *piece);

/* The first piece of a file that ends behind byte `at`; NULL: none. */
struct piece *piece_from_locked(struct joined *j, struct joined_file *file, uint64_t at);

/* The piece that has the next byte of a joint; NULL: there is none yet. */
static inline struct piece *piece_of_joint_locked(struct joined *j, const struct joint *joint)
{
    struct piece *piece = piece_from_locked(j, joint->file, joint->handed);

    lock_assert_held(&j->lock);
    return piece && piece->place.first <= joint->handed ? piece : NULL;
}

/* Each piece that a joint goes through soon, from the first to the last. */
#define EACH_PIECE_OF_JOINT(piece, j, joint)                                                       \
    piece = piece_from_locked(j, (joint)->file, (joint)->handed);                                  \
    piece && piece->place.first < joint_reach(joint);                                              \
    piece = TAILQ_NEXT(piece, link)

/* None of the pieces that a joint has asked for is under way: decide what becomes of those that
 * were refused. */
void pieces_resolve_locked(struct joined *j, struct joint *joint);

/* Does a joint go through it soon? at_once: one that is not paused. */
bool piece_is_needed_locked(const struct piece *piece, bool at_once);

/* Free a piece that no joint needs, and that is not under way; what has come and was not given is
 * kept. Afterwards it is not in joined->ended. */
void piece_tidy_locked(struct piece *piece);

/* Stop those that no joint has asked for; free all. */
void pieces_stop_locked(struct joined *j, struct joined_file *file);
void pieces_free_locked(struct joined *j, struct joined_file *file);

#endif
