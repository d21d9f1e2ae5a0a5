/* Splits transfers of a joined file into pieces: parts of one member each, many of them under way.
 *
 * One thread starts and stops pieces, and calls data() and end(). The threads of the remote's
 * transport only put bytes into pieces. So data() gets them in file order whatever comes first, and
 * no lock is held there.
 *
 * A joint has its pieces in file order: the first begins at the first byte that data() did not get,
 * or has some more bytes before it, and each begins where the one before it ends, up to
 * joint->made. */
#include "cache/source/joined_transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/thread.h"
#include "cache/source/joined_state.h"

#define SCHEME "joined:"

static struct joined *joined_of_transport(struct transport *transport)
{
    return (struct joined *)transport;
}

/* ---- joints ---- */

/* Tell the remote's transport which pieces are stopped or paused. Small pieces come to their end,
 * without the joint: a connection that is paused or closed costs more than they do, and their bytes
 * may have been sent already. */
static void heed_locked(struct joined *j, struct joint *joint)
{
    struct piece *piece, *next;

    lock_assert_held(&j->lock);
    for (piece = TAILQ_FIRST(&joint->pieces); piece; piece = next) {
        next = TAILQ_NEXT(piece, link);
        if (piece->state != PIECE_RUNS)
            continue;
        if (joint->stopped && piece->len <= SMALL_MOST)
            piece_orphan_locked(j, piece);
        else if (joint->stopped && !piece->stopped) {
            piece->stopped = true;
            transport_stop(j->next, &piece->transfer);
        } else if (joint->paused != piece->paused && piece->len > SMALL_MOST && !piece->stopped) {
            piece->paused = joint->paused;
            transport_pause(j->next, &piece->transfer, joint->paused);
        }
    }
}

/* What there is to do for a joint. */
enum work { WORK_NONE, WORK_GIVE, WORK_END };

static enum work work_of_locked(const struct joined *j, const struct joint *joint)
{
    const struct transfer *transfer = joint->transfer;
    const struct piece *piece = TAILQ_FIRST(&joint->pieces);

    lock_assert_held(&j->lock);
    if (piece && !joint->stopped &&
        ((piece->came > piece->handed && !piece_sum(piece)) || piece->passed ||
         piece->state == PIECE_CAME || (piece->state == PIECE_STALE && transfer->stale)))
        return WORK_GIVE;
    if (!joint->running &&
        (joint->stopped || joint->failed || (piece && piece->state == PIECE_STALE) ||
         joint->handed == transfer->off + transfer->len))
        return WORK_END;
    return WORK_NONE;
}

/* What a joint gives: bytes [from, came) of its first piece; and if that is stale, its rest. */
struct gift {
    struct piece *piece;
    uint64_t from, n, passed;
    bool whole, stale;
    int error;
};

static struct gift gift_of(struct joined *j, const struct joint *joint)
{
    struct piece *piece;
    struct gift gift;
    LOCK_SCOPE(&j->lock);

    piece = TAILQ_FIRST(&joint->pieces);
    gift = (struct gift){.piece = piece,
                         .from = piece->handed,
                         .n = piece->came - piece->handed,
                         .passed = piece->passed,
                         .whole = piece->state == PIECE_CAME,
                         .stale = piece->state == PIECE_STALE && joint->transfer->stale,
                         .error = -piece->file->wrong[piece->member]};
    piece->passed = 0;
    return gift;
}

/* Only this thread removes pieces, so the gift stays where it is. */
static void give(struct joined *j, struct joint *joint)
{
    struct gift gift = gift_of(j, joint);
    struct transfer *transfer = joint->transfer;
    struct piece *piece = gift.piece;
    bool goes_on = true;

    if (piece_sum(piece) && !gift.whole)
        gift.n = 0; /* until it can be compared */
    if (gift.n && piece_sum(piece) && !piece_verify(j, piece))
        return; /* it is stale: next time that is given */
    if (gift.passed && transfer->passed)
        transfer->passed(transfer, gift.passed);
    if (gift.n)
        goes_on = transfer->data(transfer, piece->bytes + gift.from, gift.n);
    if (gift.stale && goes_on)
        goes_on = transfer->stale(transfer, piece->len - piece->came, gift.error, &piece->why);
    LOCK_SCOPE(&j->lock);

    joint->handed += gift.stale ? piece->len - gift.from : gift.n;
    piece->handed += gift.n;
    joint->stopped = joint->stopped || !goes_on;
    if (gift.stale || (piece->state == PIECE_CAME && piece->handed == piece->came)) {
        TAILQ_REMOVE(&joint->pieces, piece, link);
        piece_free_locked(piece);
    }
}

/* How a joint that is over ends: as its first piece that failed. */
static enum transfer_end end_of_locked(const struct joined *j, const struct joint *joint,
                                       uint64_t *ret_retry_ms, struct diag *ret_why)
{
    const struct piece *piece;

    lock_assert_held(&j->lock);
    if (joint->stopped) {
        diag_set(ret_why, 0, "stopped");
        return TRANSFER_STOPPED;
    }
    TAILQ_FOREACH (piece, &joint->pieces, link) {
        if (piece->state != PIECE_FAILED && piece->state != PIECE_STALE)
            continue;
        *ret_why = piece->why;
        *ret_retry_ms = piece->retry_ms;
        return piece->state == PIECE_FAILED                  ? piece->how
               : piece->file->wrong[piece->member] == EACCES ? TRANSFER_REFUSED
                                                             : TRANSFER_CHANGED;
    }
    return TRANSFER_DONE;
}

static void end(struct joined *j, struct joint *joint)
{
    struct transfer *transfer = joint->transfer;
    struct diag why = DIAG_INIT;
    uint64_t retry_ms = 0;
    enum transfer_end how;

    lock_take(&j->lock);
    how = end_of_locked(j, joint, &retry_ms, &why);
    pieces_keep_locked(j, joint);
    TAILQ_REMOVE(&j->joints, joint, link);
    lock_drop(&j->lock);
    transfer->end(transfer, how, retry_ms, &why);
    free(joint); /* not before: until then it may be stopped */
}

/* ---- the thread ---- */

/* The next joint with something to do; NULL: none. */
static struct joint *next_joint(struct joined *j, enum work *ret_work)
{
    struct joint *joint;
    LOCK_SCOPE(&j->lock);

    TAILQ_FOREACH (joint, &j->joints, link) {
        heed_locked(j, joint);
        if (!joint->running)
            pieces_resolve_locked(j, joint);
        *ret_work = work_of_locked(j, joint);
        if (*ret_work == WORK_NONE)
            continue;
        TAILQ_REMOVE(&j->joints, joint, link); /* next time the others come first */
        TAILQ_INSERT_TAIL(&j->joints, joint, link);
        return joint;
    }
    return NULL;
}

/* Do something for a joint. Returns whether there was something to do. */
static bool joined_transport_serve(struct joined *j)
{
    enum work work = WORK_NONE;
    struct joint *joint = next_joint(j, &work);

    if (work == WORK_GIVE)
        give(j, joint);
    else if (work == WORK_END)
        end(j, joint);
    return joint;
}

static bool start_next(struct joined *j)
{
    struct piece *piece;
    bool whole_only = false;

    lock_take(&j->lock);
    piece = piece_next_locked(j);
    if (piece) {
        piece->state = PIECE_RUNS;
        piece->stopped = piece->paused = false;
        piece->asked = ++piece->file->asked;
        piece->joint->running++;
        j->running++;
        j->held += piece->len - piece->held;
        piece->held = piece->len;
        whole_only = piece->file->whole_only;
    }
    lock_drop(&j->lock);
    if (piece)
        piece_start(j, piece, whole_only);
    return piece;
}

/* Wait for an event since `kicked` was unset. False: the transport rests. */
static bool await(struct joined *j)
{
    LOCK_SCOPE(&j->lock);

    while (!j->kicked && !j->resting)
        lock_wait(&j->lock, &j->wake);
    j->kicked = false;
    return !j->resting;
}

static void *joined_transport_thread_main(void *arg)
{
    struct joined *j = arg;

    while (await(j)) {
        do {
            while (start_next(j))
                continue;
        } while (joined_transport_serve(j));
    }
    return NULL;
}

/* ---- the ops ---- */

static bool is_joined(const struct transfer *transfer)
{
    return !strncmp(transfer->url, SCHEME, strlen(SCHEME));
}

static struct joined_file *find_locked(struct joined *j, const char *url)
{
    uint64_t number = strtoull(url + strlen(SCHEME), NULL, 10);
    struct joined_file *file = j->files;

    lock_assert_held(&j->lock);
    while (file && file->number != number)
        file = file->next;
    return file;
}

static int joined_transport_run_locked(struct joined *j)
{
    int r;

    lock_assert_held(&j->lock);
    if (j->runs)
        return 0;
    r = thread_start(&j->thread, joined_transport_thread_main, j);
    j->runs = r == 0;
    return r;
}

static int start_joint(struct joined *j, struct transfer *transfer)
{
    struct joint *joint = calloc(1, sizeof(*joint));
    uint64_t end;
    int r = joint ? 0 : -ENOMEM;
    LOCK_SCOPE(&j->lock);

    if (r == 0) {
        joint->file = find_locked(j, transfer->url);
        end = joint->file ? members_end(joint->file->parts->members) : 0;
        if (!transfer->len || transfer->off > end || transfer->len > end - transfer->off)
            r = -EINVAL;
    }
    if (r == 0)
        r = joined_transport_run_locked(j);
    if (r < 0) {
        free(joint);
        return r;
    }
    TAILQ_INIT(&joint->pieces);
    joint->transfer = transfer;
    joint->made = joint->handed = transfer->off;
    transfer->impl = joint;
    TAILQ_INSERT_TAIL(&j->joints, joint, link);
    joined_kick_locked(j);
    return 0;
}

static int joined_start(struct transport *transport, struct transfer *transfer)
{
    struct joined *j = joined_of_transport(transport);

    if (is_joined(transfer))
        return start_joint(j, transfer);
    if (transport->requests)
        atomic_fetch_add_explicit(transport->requests, 1, memory_order_relaxed);
    return transport_start(j->next, transfer);
}

static void joined_stop(struct transport *transport, struct transfer *transfer)
{
    struct joined *j = joined_of_transport(transport);

    if (!is_joined(transfer)) {
        transport_stop(j->next, transfer);
        return;
    }
    LOCK_SCOPE(&j->lock);

    ((struct joint *)transfer->impl)->stopped = true;
    joined_kick_locked(j);
}

static void joined_pause(struct transport *transport, struct transfer *transfer, bool paused)
{
    struct joined *j = joined_of_transport(transport);

    if (!is_joined(transfer)) {
        transport_pause(j->next, transfer, paused);
        return;
    }
    LOCK_SCOPE(&j->lock);

    ((struct joint *)transfer->impl)->paused = paused;
    joined_kick_locked(j);
}

static void joined_rest(struct transport *transport)
{
    struct joined *j = joined_of_transport(transport);
    bool runs;

    lock_take(&j->lock);
    runs = j->runs;
    j->resting = true;
    pthread_cond_signal(&j->wake);
    lock_drop(&j->lock);
    if (runs)
        pthread_join(j->thread, NULL);
    lock_take(&j->lock);
    pieces_stop_kept_locked(j);
    while (j->running)
        lock_wait(&j->lock, &j->wake);
    j->runs = j->resting = false;
    lock_drop(&j->lock);
    transport_rest(j->next);
}

static void file_free(struct joined_file *file)
{
    file->parts->free(file->parts);
    free(file->wrong);
    free(file);
}

static void joined_free(struct transport *transport)
{
    struct joined *j = joined_of_transport(transport);
    struct joined_file *file;
    struct piece *piece;

    joined_rest(transport);
    transport_free(j->next);
    lock_take(&j->lock);
    while ((piece = TAILQ_FIRST(&j->kept))) {
        TAILQ_REMOVE(&j->kept, piece, link);
        piece_free_locked(piece);
    }
    lock_drop(&j->lock);
    while ((file = j->files)) {
        j->files = file->next;
        file_free(file);
    }
    pthread_cond_destroy(&j->wake);
    lock_release(&j->lock);
    free(j);
}

static bool joined_peers(struct transport *transport, struct transport_peers *ret)
{
    return transport_peers(joined_of_transport(transport)->next, ret);
}

int joined_transport_new(struct transport *next, unsigned jobs, struct transport **ret)
{
    static const struct transport_ops ops = {.start = joined_start,
                                             .stop = joined_stop,
                                             .pause = joined_pause,
                                             .stop_threads = joined_rest,
                                             .peers = joined_peers,
                                             .free = joined_free};
    struct joined *j = calloc(1, sizeof(*j));

    if (!j) {
        transport_free(next);
        return -ENOMEM;
    }
    j->transport.ops = &ops;
    j->transport.limiter = next->limiter;
    j->transport.gave_up = next->gave_up;
    j->transport.counts_requests = true;
    j->next = next;
    j->jobs = next->limiter ? next->limiter->jobs : jobs;
    TAILQ_INIT(&j->joints);
    TAILQ_INIT(&j->kept);
    lock_init(&j->lock);
    condition_init(&j->wake);
    *ret = &j->transport;
    return 0;
}

int joined_transport_add(struct transport *transport, struct joined_parts *parts,
                         char ret_url[static JOINED_URL_SIZE])
{
    struct joined *j = joined_of_transport(transport);
    struct joined_file *file = calloc(1, sizeof(*file));

    if (!file) {
        parts->free(parts);
        return -ENOMEM;
    }
    file->parts = parts;
    file->wrong = calloc(parts->members->n + 1, 1);
    if (!file->wrong) {
        file_free(file);
        return -ENOMEM;
    }
    LOCK_SCOPE(&j->lock);

    file->number = j->n_files++;
    file->next = j->files;
    j->files = file;
    snprintf(ret_url, JOINED_URL_SIZE, SCHEME "%llu", (unsigned long long)file->number);
    return 0;
}
