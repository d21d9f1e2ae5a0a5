/* Splits transfers of a joined file into pieces: parts of one member each, many of them under way.
 *
 * One thread starts and stops pieces, and calls data() and end(). The threads of the remote's
 * transport only put bytes into pieces. So data() gets them in file order whatever comes first, and
 * no lock is held there.
 *
 * Pieces are made in file order from the first byte on that data() did not get. */
#include "cache/source/joined_transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "cache/source/joined_state.h"

#define SCHEME "joined:"

/* ---- joints ---- */

/* Tell the remote's transport which pieces are stopped or paused. Small pieces come to their end,
 * without the joint: a connection that is paused or closed costs more than they do, and their bytes
 * may have been sent already. */
static void heed_locked(struct joined *j, struct joint *joint)
{
    struct piece *piece;
    bool pauses;

    lock_assert_held(&j->lock);
    joint->heeds = joint->paused;
    for (EACH_PIECE_OF_JOINT(piece, j, joint)) {
        if (piece->joint != joint || piece->state != PIECE_RUNS)
            continue;
        if (joint->stopped && piece_len(piece) <= SMALL_MOST) {
            piece->joint = NULL;
            joint->running--;
        } else if (joint->stopped && !piece->stopped) {
            piece->stopped = true;
            transport_stop(j->next, &piece->transfer);
        } else if (piece_len(piece) > SMALL_MOST && !piece->stopped) {
            pauses = joint->paused && !piece_is_needed_locked(piece, true);
            if (pauses != piece->paused)
                transport_pause(j->next, &piece->transfer, pauses);
            piece->paused = pauses;
        }
    }
}

/* Give a joint the next bytes, those that are here or stale. With the lock, which is dropped
 * meanwhile: only this thread removes pieces and joints. false: there are none. */
static bool give(struct joined *j, struct joint *joint)
{
    struct piece *piece = joint->stopped ? NULL : piece_of_joint_locked(j, joint);
    struct transfer *transfer = joint->transfer;
    uint64_t from, left, passed, n = 0, stale = 0;
    bool goes_on = true, has_sum;
    int error;

    lock_assert_held(&j->lock);
    if (!piece || joint->handed == joint->end)
        return false;
    has_sum = piece_sum(piece);
    from = joint->handed - piece->place.first;
    left = min_u64(piece_len(piece) - from, joint->end - joint->handed);
    /* The last bytes wait for the end of its transfer, which comes at once. */
    if (piece->came > from &&
        (piece->state == PIECE_CAME || (!has_sum && piece->came < piece_len(piece))))
        n = min_u64(piece->came - from, left);
    if (piece->state == PIECE_STALE && transfer->stale)
        stale = left - n;
    if (!n && !stale && !piece->passed)
        return false;
    passed = piece->passed;
    piece->passed = 0;
    error = -piece->file->wrong[piece->member];
    lock_drop(&j->lock);
    if (n && has_sum && !piece_verify(j, piece))
        n = 0; /* next time it is given as stale */
    if (passed && transfer->passed)
        transfer->passed(transfer, passed);
    if (n)
        goes_on = transfer->data(transfer, piece->bytes + from, n);
    if (stale && goes_on)
        goes_on = transfer->stale(transfer, stale, error, &piece->why);
    lock_take(&j->lock);
    joint->handed += n + stale;
    joint->stopped = !goes_on || joint->stopped;
    piece->used += n;
    if (from + n + stale == piece_len(piece)) {
        piece->joint = NULL; /* it has ended */
        piece_tidy_locked(piece);
    }
    return true;
}

/* End a joint that is over, as its first piece that failed. With the lock, which is dropped
 * meanwhile. false: it goes on. */
static bool end(struct joined *j, struct joint *joint)
{
    struct piece *next = piece_of_joint_locked(j, joint), *piece, *after;
    bool all = joint->handed == joint->end, is_stale = next && next->state == PIECE_STALE && !all;
    enum transfer_end how = TRANSFER_DONE;
    struct diag why = DIAG_INIT;
    uint64_t retry_ms = 0;

    lock_assert_held(&j->lock);
    if (joint->running || !(joint->stopped || joint->failed || is_stale || all))
        return false;
    if (is_stale) {
        how = joint->file->wrong[next->member] == EACCES ? TRANSFER_REFUSED : TRANSFER_CHANGED;
        why = next->why;
    }
    piece = piece_from_locked(j, joint->file, joint->handed);
    TAILQ_REMOVE(&j->joints, joint, link);
    for (; piece && piece->place.first < joint_reach(joint); piece = after) {
        after = TAILQ_NEXT(piece, link);
        if (piece->joint == joint && piece->state == PIECE_FAILED && how == TRANSFER_DONE) {
            how = piece->how;
            why = piece->why;
            retry_ms = piece->retry_ms;
        }
        piece->joint = piece->joint == joint ? NULL : piece->joint;
        piece_tidy_locked(piece);
    }
    if (joint->stopped) {
        how = TRANSFER_STOPPED;
        why = (struct diag){.set = true, .text = "stopped"};
    }
    j->spare = true;
    lock_drop(&j->lock);
    joint->transfer->end(joint->transfer, how, retry_ms, &why);
    free(joint); /* not before: until then it may be stopped */
    lock_take(&j->lock);
    return true;
}

/* ---- the thread ---- */

/* Do something for a joint. Returns whether there was something to do. */
static bool joined_transport_serve(struct joined *j)
{
    struct joint *joint;
    LOCK_SCOPE(&j->lock);

    TAILQ_FOREACH (joint, &j->joints, link) {
        if (joint->stopped || joint->paused || joint->heeds)
            heed_locked(j, joint);
        if (!joint->running)
            pieces_resolve_locked(j, joint);
        if (give(j, joint)) {
            TAILQ_REMOVE(&j->joints, joint, link); /* next time the others come first */
            TAILQ_INSERT_TAIL(&j->joints, joint, link);
            return true;
        }
        if (end(j, joint))
            return true;
    }
    return false;
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
        piece->asked = ++j->asked;
        piece->joint->running++;
        j->running++;
        j->held += piece_len(piece) - piece->held;
        piece->held = piece_len(piece);
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
    struct piece *piece;
    LOCK_SCOPE(&j->lock);

    while (!j->kicked && !j->resting)
        lock_wait(&j->lock, &j->wake);
    j->kicked = false;
    for (; (piece = TAILQ_FIRST(&j->ended)); j->spare = true)
        piece_tidy_locked(piece);
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
    joint->transfer = transfer;
    joint->handed = transfer->off;
    joint->end = transfer->off + transfer->len;
    transfer->impl = joint;
    TAILQ_INSERT_TAIL(&j->joints, joint, link);
    joined_kick_locked(j);
    return 0;
}

static int joined_start(struct transport *transport, struct transfer *transfer)
{
    struct joined *j = (struct joined *)transport;

    if (is_joined(transfer))
        return start_joint(j, transfer);
    if (transport->requests)
        atomic_fetch_add_explicit(transport->requests, 1, memory_order_relaxed);
    return transport_start(j->next, transfer);
}

static void joined_stop(struct transport *transport, struct transfer *transfer)
{
    struct joined *j = (struct joined *)transport;

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
    struct joined *j = (struct joined *)transport;

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
    struct joined *j = (struct joined *)transport;
    bool runs;

    lock_take(&j->lock);
    runs = j->runs;
    j->resting = true;
    pthread_cond_signal(&j->wake);
    lock_drop(&j->lock);
    if (runs)
        pthread_join(j->thread, NULL);
    lock_take(&j->lock);
    for (struct joined_file *file = j->files; file; file = file->next)
        pieces_stop_locked(j, file);
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
    struct joined *j = (struct joined *)transport;
    struct joined_file *file;

    joined_rest(transport);
    transport_free(j->next);
    lock_take(&j->lock);
    for (file = j->files; file; file = file->next)
        pieces_free_locked(j, file);
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
    return transport_peers(((struct joined *)transport)->next, ret);
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
    TAILQ_INIT(&j->ended);
    TAILQ_INIT(&j->kept);
    lock_init(&j->lock);
    condition_init(&j->wake);
    *ret = &j->transport;
    return 0;
}

int joined_transport_add(struct transport *transport, struct joined_parts *parts,
                         char ret_url[static JOINED_URL_SIZE])
{
    struct joined *j = (struct joined *)transport;
    struct joined_file *file = calloc(1, sizeof(*file));

    if (!file) {
        parts->free(parts);
        return -ENOMEM;
    }
    file->parts = parts;
    TAILQ_INIT(&file->pieces);
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
