/* Pieces of joined files: which is next, its transfer, and what has come of it.
 *
 * 1. The first piece of a joint may always start. Others need space in the buffer (BUFFER_MOST of
 *    all joints, WINDOW of one), so no joint keeps another one from going on for ever.
 * 2. A joint has at most half of all requests under way, and the joint with the fewest has the next
 *    one. So one that a reader waits for begins at once next to those of the background.
 * 3. What came behind a piece that failed is kept until the next try takes it, or newer bytes need
 *    the space. So no byte is asked for twice, though the stage tries again from the first byte
 *    that it did not get.
 * 4. A small piece of a stopped joint goes on as an orphan: what the server has sent of it comes,
 *    however slow this machine or the server is. So it is not asked for twice either. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/disk/sha256.h"
#include "cache/source/joined_state.h"

#define PIECE_MOST  (UINT64_C(1) << 20)
#define WINDOW      (UINT64_C(4) << 20) /* how far behind its first missing byte a joint asks */
#define BUFFER_MOST (UINT64_C(16) << 20)

/* ---- their transfers ---- */

void joined_kick_locked(struct joined *j)
{
    lock_assert_held(&j->lock);
    j->kicked = true;
    pthread_cond_signal(&j->wake);
}

/* Bytes that nothing got count as received all the same. */
void piece_free_locked(struct piece *piece)
{
    uint64_t spare;

    lock_assert_held(&piece->joined->lock);
    spare = piece->came - piece->handed - min_u64(piece->copied, piece->came - piece->handed) +
            piece->passed;
    if (spare && piece->joined->transport.spare_bytes)
        atomic_fetch_add_explicit(piece->joined->transport.spare_bytes, spare,
                                  memory_order_relaxed);
    piece->joined->held -= piece->held;
    free(piece->bytes);
    free(piece->url);
    free(piece);
}

const uint8_t *piece_sum(const struct piece *piece)
{
    static const uint8_t unknown[DIGEST_BYTES];
    const struct joined_parts *parts = piece->file->parts;
    const uint8_t *sum = parts->sha256 ? parts->sha256 + piece->member * DIGEST_BYTES : NULL;

    return sum && piece->at == parts->members->member[piece->member].place &&
                   piece->len == members_size(parts->members, piece->member) &&
                   memcmp(sum, unknown, sizeof(unknown)) != 0
               ? sum
               : NULL;
}

bool piece_verify(struct joined *j, struct piece *piece)
{
    AUTO_DIGEST struct digest *digest = NULL;
    const uint8_t *expected = piece_sum(piece);
    char want_text[DIGEST_TEXT_SIZE], found_text[DIGEST_TEXT_SIZE];
    uint8_t found[DIGEST_BYTES] = {0};
    bool known = digest_new(&digest) == 0 && digest_add(digest, piece->bytes, piece->len) == 0 &&
                 digest_finish(digest, found) == 0;

    if (known && !memcmp(found, expected, sizeof(found)))
        return true;
    digest_text(expected, want_text);
    digest_text(found, found_text);
    LOCK_SCOPE(&j->lock);

    piece->file->wrong[piece->member] = EBADMSG;
    piece->state = PIECE_STALE;
    diag_set(&piece->why, 0, "%s: SHA-256: expected %s as SHA256SUMS says, got %s",
             members_name(piece->file->parts->members, piece->member), want_text,
             known ? found_text : "no memory to compute it");
    if (j->transport.spare_bytes)
        atomic_fetch_add_explicit(j->transport.spare_bytes, piece->came, memory_order_relaxed);
    piece->came = 0;
    return false;
}

static bool piece_data(struct transfer *transfer, const void *bytes, size_t n)
{
    struct piece *piece = (struct piece *)transfer;

    if (n > piece->len - piece->came) /* only this thread changes it */
        return false;
    memcpy(piece->bytes + piece->came, bytes, n);
    LOCK_SCOPE(&piece->joined->lock);

    piece->came += n;
    if (piece->joint && piece == TAILQ_FIRST(&piece->joint->pieces))
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
    if (piece->came == piece->len) {
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

/* Keep what has come of a piece without a joint. */
static void keep_locked(struct joined *j, struct piece *piece)
{
    lock_assert_held(&j->lock);
    if (piece->handed == piece->came || j->resting ||
        (piece_sum(piece) && piece->came < piece->len)) { /* it could not be compared */
        piece_free_locked(piece);
        return;
    }
    piece->joint = NULL;
    piece->state = PIECE_CAME;
    TAILQ_INSERT_TAIL(&j->kept, piece, link);
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
        TAILQ_REMOVE(&j->kept, piece, link);
        keep_locked(j, piece);
    }
}

/* Find out where the piece is on the remote. 0 or -errno. */
static int locate(struct piece *piece)
{
    const struct joined_parts *parts = piece->file->parts;
    int r;

    if (!piece->bytes)
        piece->bytes = malloc(piece->len);
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
            .off = piece->at - piece->file->parts->members->member[piece->member].place,
            .len = piece->len,
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

/* ---- which piece is next ---- */

/* Remove the oldest kept pieces until n bytes fit. */
static void make_space_locked(struct joined *j, uint64_t n)
{
    struct piece *piece, *next;

    lock_assert_held(&j->lock);
    for (piece = TAILQ_FIRST(&j->kept); piece && j->held + n > BUFFER_MOST; piece = next) {
        next = TAILQ_NEXT(piece, link);
        if (piece->state == PIECE_RUNS)
            continue;
        TAILQ_REMOVE(&j->kept, piece, link);
        piece_free_locked(piece);
    }
}

/* Where the bytes end that a kept piece has, or will have. */
static uint64_t kept_end_locked(const struct piece *piece)
{
    lock_assert_held(&piece->joined->lock);
    return piece->at + (piece->state == PIECE_RUNS ? piece->len : piece->came);
}

/* The kept piece of a file that has byte `at`; if there is none, *end is at most where the next one
 * begins. */
static struct piece *find_kept_locked(struct joined *j, const struct joined_file *file, uint64_t at,
                                      uint64_t *end)
{
    struct piece *piece;

    lock_assert_held(&j->lock);
    TAILQ_FOREACH (piece, &j->kept, link) {
        uint64_t from = piece->at + piece->handed;

        if (piece->file != file)
            continue;
        if (at >= from && at < kept_end_locked(piece))
            return piece;
        if (from > at)
            *end = min_u64(*end, from);
    }
    return NULL;
}

/* A new piece of a joint, [joint->made, end). NULL: no memory. */
static struct piece *new_piece_locked(struct joined *j, const struct joint *joint, size_t member,
                                      uint64_t end)
{
    struct piece *piece = calloc(1, sizeof(*piece));

    lock_assert_held(&j->lock);
    if (!piece)
        return NULL;
    piece->joined = j;
    piece->file = joint->file;
    piece->at = joint->made;
    piece->len = end - joint->made;
    piece->member = member;
    return piece;
}

/* A piece that has the bytes [joint->made, end) of a kept one, which another transfer may
 * also need. NULL: no memory. */
static struct piece *copy_kept_locked(struct joined *j, const struct joint *joint,
                                      struct piece *kept, uint64_t end)
{
    struct piece *piece = new_piece_locked(j, joint, kept->member, end);

    lock_assert_held(&j->lock);
    if (!piece)
        return NULL;
    piece->bytes = malloc(piece->len);
    if (!piece->bytes) {
        free(piece);
        return NULL;
    }
    memcpy(piece->bytes, kept->bytes + (piece->at - kept->at), piece->len);
    kept->copied += piece->len;
    piece->state = PIECE_CAME;
    piece->came = piece->held = piece->len;
    j->held += piece->held;
    return piece;
}

/* Make the next piece of the joint. NULL: no memory, or it needs the end of an orphan first. */
static struct piece *make_piece_locked(struct joined *j, struct joint *joint)
{
    const struct members *m = joint->file->parts->members;
    size_t member = members_find(m, joint->made);
    uint64_t end =
        min_u64(min_u64(m->member[member + 1].place, joint->transfer->off + joint->transfer->len),
                joint->made + PIECE_MOST);
    struct piece *kept = find_kept_locked(j, joint->file, joint->made, &end), *piece;
    uint8_t wrong;

    lock_assert_held(&j->lock);
    if (kept && (kept->at + kept->handed < joint->made || kept_end_locked(kept) > end)) {
        if (kept->state == PIECE_RUNS)
            return NULL;
        end = min_u64(end, kept->at + kept->came); /* it may be a part of its member */
        piece = copy_kept_locked(j, joint, kept, end);
    } else if (kept) {
        piece = kept;
        TAILQ_REMOVE(&j->kept, piece, link);
        joint->running += piece->state == PIECE_RUNS;
        end = kept_end_locked(piece);
    } else {
        piece = new_piece_locked(j, joint, member, end);
    }
    if (!piece)
        return NULL;
    wrong = kept ? 0 : joint->file->wrong[member];
    if (wrong) {
        piece->state = PIECE_STALE;
        diag_set(&piece->why, 0,
                 wrong == EACCES    ? "%s: the server refuses it"
                 : wrong == EBADMSG ? "%s: its SHA-256 is not what SHA256SUMS says"
                                    : "%s: it has changed since it was listed, or is gone",
                 members_name(m, member));
    }
    piece->joint = joint;
    joint->made = end;
    TAILQ_INSERT_TAIL(&joint->pieces, piece, link);
    return piece;
}

/* May the piece start? A transfer of the remote's transport is free for it if so. */
static bool may_start_locked(struct joined *j, const struct joint *joint, const struct piece *piece,
                             unsigned most)
{
    bool first = piece == TAILQ_FIRST(&joint->pieces);
    uint64_t more = piece->len - piece->held;

    lock_assert_held(&j->lock);
    if (first)
        return true;
    make_space_locked(j, more);
    return j->held + more <= BUFFER_MOST && piece->at + piece->len <= joint->handed + WINDOW &&
           (piece->len <= SMALL_MOST || j->running < j->jobs) &&
           joint->running < max_u64(most / 2, 1);
}

/* The next piece of a joint that may start; NULL: none. */
static struct piece *next_of_joint_locked(struct joined *j, struct joint *joint, unsigned most)
{
    uint64_t end = joint->transfer->off + joint->transfer->len;
    struct piece *piece;

    lock_assert_held(&j->lock);
    TAILQ_FOREACH (piece, &joint->pieces, link)
        if (piece->state == PIECE_WAITS)
            return may_start_locked(j, joint, piece, most) ? piece : NULL;
    while (joint->made < end && joint->made < joint->handed + WINDOW) {
        piece = make_piece_locked(j, joint);
        if (!piece || piece->state == PIECE_WAITS)
            return piece && may_start_locked(j, joint, piece, most) ? piece : NULL;
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
    struct piece *piece;
    uint64_t refused = 0;

    lock_assert_held(&j->lock);
    TAILQ_FOREACH (piece, &joint->pieces, link)
        refused += piece->state == PIECE_REFUSED;
    for (piece = refused ? TAILQ_FIRST(&joint->pieces) : NULL; piece;
         piece = TAILQ_NEXT(piece, link)) {
        struct joined_file *file = piece->file;

        if (piece->state != PIECE_REFUSED)
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

void piece_orphan_locked(struct joined *j, struct piece *piece)
{
    lock_assert_held(&j->lock);
    TAILQ_REMOVE(&piece->joint->pieces, piece, link);
    piece->joint->running--;
    piece->joint = NULL;
    TAILQ_INSERT_TAIL(&j->kept, piece, link);
}

void pieces_keep_locked(struct joined *j, struct joint *joint)
{
    struct piece *piece;

    lock_assert_held(&j->lock);
    while ((piece = TAILQ_FIRST(&joint->pieces))) {
        TAILQ_REMOVE(&joint->pieces, piece, link);
        keep_locked(j, piece);
    }
    make_space_locked(j, 0);
}

void pieces_stop_kept_locked(struct joined *j)
{
    struct piece *piece;

    lock_assert_held(&j->lock);
    TAILQ_FOREACH (piece, &j->kept, link) {
        if (piece->state != PIECE_RUNS)
            continue;
        piece->stopped = true;
        transport_stop(j->next, &piece->transfer);
    }
}
