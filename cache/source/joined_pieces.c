/* Pieces of joined files: which is next, its transfer, and what has come of it.
 *
 * 1. The first piece of a joint may always start. Others need space in the buffer (BUFFER_MOST of
 *    all joints, WINDOW of one), so no joint keeps another one from going on for ever.
 * 2. A joint has at most half of all requests under way, and the joint with the fewest has the next
 *    one. So one that a reader waits for begins at once next to those of the background.
 * 3. What came behind a piece that failed stays until the next try takes it, or newer bytes need
 * the space. So no byte is asked for twice, though the stage tries again from the first byte that
 * it did not get.
 * 4. A small piece of a stopped joint goes on without it: what the server has sent of it comes,
 *    however slow this machine or the server is. So it is not asked for twice either. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/disk/sha256.h"
#include "cache/source/joined_state.h"
#include "cache/source/sha256sums.h"

#define PIECE_MOST  (UINT64_C(1) << 20)
#define BUFFER_MOST (UINT64_C(16) << 20)

/* ---- their transfers ---- */

void joined_kick_locked(struct joined *j)
{
    lock_assert_held(&j->lock);
    j->kicked = true;
    pthread_cond_signal(&j->wake);
}

/* Move a piece to a list of idle pieces; NULL: to none. */
static void piece_set_idle_locked(struct piece *piece, struct piece_list *idle)
{
    lock_assert_held(&piece->joined->lock);
    if (piece->idle)
        TAILQ_REMOVE(piece->idle, piece, idle_link);
    if (idle)
        TAILQ_INSERT_TAIL(idle, piece, idle_link);
    piece->idle = idle;
}

/* Bytes that nothing got count as received all the same. */
static void piece_free_locked(struct piece *piece)
{
    struct joined *j = piece->joined;
    uint64_t spare = piece->came - min_u64(piece->used, piece->came) + piece->passed;

    lock_assert_held(&j->lock);
    if (spare && j->transport.spare_bytes)
        atomic_fetch_add_explicit(j->transport.spare_bytes, spare, memory_order_relaxed);
    piece_set_idle_locked(piece, NULL);
    TAILQ_REMOVE(&piece->file->pieces, piece, link);
    ranges_remove(&piece->file->places, &piece->place);
    j->held -= piece->held;
    free(piece->bytes);
    free(piece->url);
    free(piece);
}

const uint8_t *piece_sum(const struct piece *piece)
{
    const struct joined_parts *parts = piece->file->parts;

    return piece->place.first == parts->members->member[piece->member].place &&
                   piece_len(piece) == members_size(parts->members, piece->member)
               ? sum_at(parts->sha256, piece->member)
               : NULL;
}

bool piece_verify(struct joined *j, struct piece *piece)
{
    char expected[DIGEST_TEXT_SIZE], found[DIGEST_TEXT_SIZE];
    bool known = digest_text_of(piece->bytes, piece_len(piece), found) == 0;

    digest_text(piece_sum(piece), expected);
    if (known && !strcmp(found, expected))
        return true;
    LOCK_SCOPE(&j->lock);

    piece->file->wrong[piece->member] = EBADMSG;
    piece->state = PIECE_STALE;
    diag_set(&piece->why, 0, "%s: SHA-256: expected %s as SHA256SUMS says, got %s",
             members_name(piece->file->parts->members, piece->member), expected,
             known ? found : "no memory to compute it");
    if (j->transport.spare_bytes)
        atomic_fetch_add_explicit(j->transport.spare_bytes, piece->came, memory_order_relaxed);
    piece->came = 0;
    return false;
}

/* Does a joint wait for the piece? */
static bool is_next_locked(const struct piece *piece)
{
    const struct joint *joint;

    lock_assert_held(&piece->joined->lock);
    TAILQ_FOREACH (joint, &piece->joined->joints, link)
        if (joint->file == piece->file && joint->handed - piece->place.first < piece_len(piece))
            return true;
    return false;
}

static bool piece_data(struct transfer *transfer, const void *bytes, size_t n)
{
    struct piece *piece = (struct piece *)transfer;

    if (n > piece_len(piece) - piece->came) /* only this thread changes it */
        return false;
    memcpy(piece->bytes + piece->came, bytes, n);
    LOCK_SCOPE(&piece->joined->lock);

    piece->came += n;
    if (is_next_locked(piece))
        joined_kick_locked(piece->joined);
    return !piece->stopped;
}

static void piece_passed(struct transfer *transfer, size_t n)
{
    struct piece *piece = (struct piece *)transfer;
    LOCK_SCOPE(&piece->joined->lock);

    piece->passed += n;
    joined_kick_locked(piece->joined);
}

/* The state of a piece after its transfer has ended with `how`. */
static enum piece_state settle_locked(struct piece *piece, enum transfer_end how)
{
    struct joined_file *file = piece->file;

    lock_assert_held(&piece->joined->lock);
    if (piece->came == piece_len(piece)) {
        file->came_asked = max_u64(file->came_asked, piece->asked);
        if (piece->joint)
            piece->joint->n_came++;
        return PIECE_CAME;
    }
    if (how == TRANSFER_CHANGED) {
        file->wrong[piece->member] = ESTALE;
        return PIECE_STALE;
    }
    if (how == TRANSFER_REFUSED && !piece->came && piece->joint && !piece->joint->stopped) {
        piece->how = how;
        return PIECE_REFUSED;
    }
    if (how == TRANSFER_WHOLE && !piece->version.whole_only && !piece->came) {
        file->whole_only = true;
        return PIECE_WAITS;
    }
    piece->how = how == TRANSFER_REFUSED ? TRANSFER_REFUSED : TRANSFER_AGAIN;
    return PIECE_FAILED;
}

static void piece_end(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                      const struct diag *d)
{
    struct piece *piece = (struct piece *)transfer;
    struct joined *j = piece->joined;
    struct limiter *limiter = j->next->limiter;
    LOCK_SCOPE(&j->lock);

    piece->state = settle_locked(piece, how);
    if (piece->state == PIECE_FAILED && piece->how == TRANSFER_AGAIN && !piece->stopped &&
        limiter && j->running > j->jobs) {
        limiter_refused(limiter, piece->began);
        retry_ms = min_u64(retry_ms, LIMITER_CROWDED_MS);
    }
    piece->retry_ms = retry_ms;
    if (d)
        piece->why = *d;
    j->running--;
    joined_kick_locked(j);
    if (piece->joint) {
        piece->joint->failed = piece->joint->failed || piece->state == PIECE_FAILED;
        piece->joint->running--;
    } else {
        piece_set_idle_locked(piece, &j->ended);
    }
}

/* Find out where the piece is on the remote. 0 or -errno. */
static int locate(struct piece *piece)
{
    const struct joined_parts *parts = piece->file->parts;
    int r;

    if (!piece->bytes)
        piece->bytes = malloc(piece_len(piece));
    if (!piece->bytes)
        return -ENOMEM;
    free(piece->url);
    piece->url = NULL;
    r = parts->where(parts, piece->member, &piece->url, &piece->version);
    if (r == 0 && piece->version.size != members_size(parts->members, piece->member))
        r = -ESTALE; /* the piece could not be checked */
    return r;
}

void piece_start(struct joined *j, struct piece *piece, bool whole_only)
{
    struct limiter *limiter = j->next->limiter;
    int r = locate(piece);

    if (r == 0) {
        piece->version.whole_only = piece->version.whole_only || whole_only;
        piece->began = limiter ? clock_monotonic(limiter->clock) : 0;
        piece->transfer = (struct transfer){
            .url = piece->url,
            .version = &piece->version,
            .off = piece->place.first - piece->file->parts->members->member[piece->member].place,
            .len = piece_len(piece),
            .data = piece_data,
            .end = piece_end,
            .passed = piece_passed,
        };
        if (j->transport.requests)
            atomic_fetch_add_explicit(j->transport.requests, 1, memory_order_relaxed);
        r = transport_start(j->next, &piece->transfer);
    }
    if (r < 0) {
        struct diag why = DIAG_INIT;

        diag_set(&why, r, "%s: %s", members_name(piece->file->parts->members, piece->member),
                 strerror(-r));
        piece_end(&piece->transfer, r == -ESTALE ? TRANSFER_CHANGED : TRANSFER_AGAIN, 0, &why);
    }
}

/* ---- which pieces there are ---- */

struct piece *piece_from_locked(struct joined *j, struct joined_file *file, uint64_t at)
{
    struct range *place = ranges_first(&file->places, at, UINT64_MAX);

    lock_assert_held(&j->lock);
    return place ? (struct piece *)((char *)place - offsetof(struct piece, place)) : NULL;
}

bool piece_is_needed_locked(const struct piece *piece, bool at_once)
{
    const struct joint *joint;

    lock_assert_held(&piece->joined->lock);
    TAILQ_FOREACH (joint, &piece->joined->joints, link)
        if (joint->file == piece->file && joint->handed < piece->place.end &&
            joint_reach(joint) > piece->place.first && !(at_once && joint->paused))
            return true;
    return false;
}

void piece_tidy_locked(struct piece *piece)
{
    uint64_t first = piece->place.first;

    lock_assert_held(&piece->joined->lock);
    if (piece->idle == &piece->joined->ended)
        piece_set_idle_locked(piece, NULL);
    if (piece->joint || piece->state == PIECE_RUNS)
        return;
    if (piece->state == PIECE_FAILED || piece->state == PIECE_REFUSED) {
        /* A part cannot be compared with a SHA-256, and is not kept. */
        ranges_move(&piece->file->places, &piece->place, first,
                    first + (piece_sum(piece) ? 0 : piece->came));
        piece->state = PIECE_CAME;
    }
    if (!piece_len(piece) || (!piece_is_needed_locked(piece, false) &&
                              (piece->state != PIECE_CAME || piece->used >= piece->came)))
        piece_free_locked(piece);
    else if (!piece->idle)
        piece_set_idle_locked(piece, &piece->joined->kept);
}

/* The oldest piece that no joint needs; NULL: there is none. */
static struct piece *find_spare_locked(struct joined *j)
{
    struct piece *piece = j->spare ? TAILQ_FIRST(&j->kept) : NULL;

    lock_assert_held(&j->lock);
    while (piece && (piece->state != PIECE_CAME || piece_is_needed_locked(piece, false)))
        piece = TAILQ_NEXT(piece, idle_link);
    j->spare = piece;
    return piece;
}

/* Free such pieces until n bytes fit. */
static void make_space_locked(struct joined *j, uint64_t n)
{
    struct piece *oldest;

    lock_assert_held(&j->lock);
    while (j->held + n > BUFFER_MOST && (oldest = find_spare_locked(j)))
        piece_free_locked(oldest);
}

/* Make the piece of a joint that begins at byte `at`, before the one that is next in the file.
 * NULL: no memory. */
static struct piece *make_piece_locked(struct joined *j, const struct joint *joint, uint64_t at,
                                       struct piece *next)
{
    struct joined_file *file = joint->file;
    const struct members *m = file->parts->members;
    size_t member = members_find(m, at);
    uint64_t end = min_u64(min_u64(m->member[member + 1].place, joint->end), at + PIECE_MOST);
    struct piece *piece = calloc(1, sizeof(*piece));
    uint8_t wrong = file->wrong[member];

    lock_assert_held(&j->lock);
    if (!piece)
        return NULL;
    piece->joined = j;
    piece->file = file;
    piece->place.first = at;
    piece->place.end = next ? min_u64(end, next->place.first) : end;
    piece->member = member;
    if (wrong) {
        piece->state = PIECE_STALE;
        diag_set(&piece->why, 0,
                 wrong == EACCES    ? "%s: the server refuses it"
                 : wrong == EBADMSG ? "%s: its SHA-256 is not what SHA256SUMS says"
                                    : "%s: it has changed since it was listed, or is gone",
                 members_name(m, member));
    }
    ranges_add(&file->places, &piece->place);
    if (next)
        TAILQ_INSERT_BEFORE(next, piece, link);
    else
        TAILQ_INSERT_TAIL(&file->pieces, piece, link);
    return piece;
}

/* ---- which is next ---- */

/* May the piece start? A transfer of the remote's transport is free for it if so. */
static bool may_start_locked(struct joined *j, const struct joint *joint, const struct piece *piece,
                             unsigned most)
{
    uint64_t len = piece_len(piece), more = len - piece->held;

    lock_assert_held(&j->lock);
    if (piece->place.first <= joint->handed)
        return true;
    make_space_locked(j, more);
    return j->held + more <= BUFFER_MOST && piece->place.end <= joint->handed + WINDOW &&
           (len <= SMALL_MOST || j->running < j->jobs) && joint->running < max_u64(most / 2, 1);
}

/* The next piece of a joint that may start; NULL: none. */
static struct piece *next_of_joint_locked(struct joined *j, struct joint *joint, unsigned most)
{
    struct piece *piece = piece_from_locked(j, joint->file, joint->handed);
    uint64_t at = joint->handed, end = joint_reach(joint);

    lock_assert_held(&j->lock);
    for (; at < end; at = piece->place.end, piece = TAILQ_NEXT(piece, link)) {
        if (!piece || piece->place.first > at)
            piece = make_piece_locked(j, joint, at, piece);
        if (!piece)
            return NULL;
        if (piece->state != PIECE_WAITS)
            continue;
        if (!may_start_locked(j, joint, piece, most))
            return NULL;
        piece->joint = joint;
        return piece;
    }
    return NULL;
}

struct piece *piece_next_locked(struct joined *j)
{
    unsigned most = j->next->limiter ? limiter_most(j->next->limiter) : j->jobs;
    struct piece *best = NULL;
    struct joint *joint;

    lock_assert_held(&j->lock);
    if (j->running >= most)
        return NULL;
    TAILQ_FOREACH (joint, &j->joints, link) {
        struct piece *piece;

        if (joint->failed || joint->stopped || joint->paused ||
            (best && best->joint->running <= joint->running))
            continue;
        piece = next_of_joint_locked(j, joint, most);
        best = piece ? piece : best;
    }
    return best;
}

/* A server that refuses all, because credentials have expired or it has enough of us, may let us in
 * later: that is a failure of the transfer. But if something that was asked for later came, or a
 * second try is refused among more that came, then the member alone is refused. */
void pieces_resolve_locked(struct joined *j, struct joint *joint)
{
    struct joined_file *file = joint->file;
    struct piece *piece;
    uint64_t refused = 0;

    lock_assert_held(&j->lock);
    for (EACH_PIECE_OF_JOINT(piece, j, joint))
        refused += piece->joint == joint && piece->state == PIECE_REFUSED;
    for (EACH_PIECE_OF_JOINT(piece, j, joint)) {
        if (piece->joint != joint || piece->state != PIECE_REFUSED)
            continue;
        if (file->came_asked > piece->asked || (piece->refused_once && joint->n_came > refused)) {
            file->wrong[piece->member] = EACCES;
            piece->state = PIECE_STALE;
        } else if (!piece->refused_once && !joint->stopped) {
            piece->refused_once = true;
            piece->state = PIECE_WAITS;
            joined_kick_locked(j);
        } else {
            piece->state = PIECE_FAILED;
            joint->failed = true;
        }
    }
}

void pieces_stop_locked(struct joined *j, struct joined_file *file)
{
    struct piece *piece;

    lock_assert_held(&j->lock);
    TAILQ_FOREACH (piece, &file->pieces, link) {
        if (piece->state != PIECE_RUNS)
            continue;
        piece->stopped = true;
        transport_stop(j->next, &piece->transfer);
    }
}

void pieces_free_locked(struct joined *j, struct joined_file *file)
{
    lock_assert_held(&j->lock);
    while (!TAILQ_EMPTY(&file->pieces))
        piece_free_locked(TAILQ_FIRST(&file->pieces));
}
