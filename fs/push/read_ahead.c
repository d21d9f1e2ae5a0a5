/* One thread asks for ranges and waits for none but the oldest of DEPTH: the disk always has that
 * many requests of ours, and no more, so that others find their place in its queue.
 *
 * What was asked for and not passed yet is a queue of turns, which is bounded by ahead_window(). A
 * turn whose ranges are all in memory already costs a few probes; after some of them in a row the
 * thread pauses, and does not even look at what comes next. */
#include "fs/push/read_ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "fs/push/ahead_rule.h"

#define DEPTH        32                  /* requests under way */
#define FLIGHT_BYTES (UINT64_C(8) << 20) /* bytes under way */
#define PIECE        (UINT64_C(1) << 20) /* of a request */
#define TURN_NEEDS   2048                /* needs of a turn */
#define TURNS        256                 /* that are remembered */
#define TURNS_AHEAD  4                   /* turns that fill the window */
#define PROBES       32                  /* ranges of a turn that are looked at */
#define STRIDE_LEAST (UINT64_C(4) << 20) /* and bytes, to measure the rate */
#define STRIDE_NS    INT64_C(250000000)  /* time in sequence between two turns, at least */
#define HERE_MOST    2                   /* turns in a row that were in memory */
#define PAUSE_NS     INT64_C(250000000)
#define MEMORY_NS    INT64_C(100000000) /* between two looks at the free memory */
#define NS_PER_S     1e9
#define RATE_WEIGHT  0.3 /* of the latest measurement */

/* What was asked for at a time. */
struct turn {
    uint64_t when;    /* the latest time of its needs */
    uint64_t bytes;   /* of its ranges, in whole pages */
    uint64_t samples; /* bytes of its needs */
    struct ahead_range *range;
    size_t n; /* ranges, to be dropped later; 0: none */
};

/* A request that is under way. */
struct flight {
    const struct blob *blob;
    uint64_t last; /* its last byte */
    uint64_t len;
};

/* How far the sources of a dataset were read in sequence. */
struct sequence {
    const struct dataset *ds;
    unsigned blob;
    uint64_t off;
};

struct read_ahead {
    /* Set by read_ahead_start(), then constant: */
    struct needs *needs;
    uint64_t option;
    const struct clock *clock;
    struct active_plans_counters *counters;
    pthread_t thread;
    bool has_ended; /* the thread; only for read_ahead_stop() */

    struct lock lock;
    pthread_cond_t wake;
    /* Guarded by lock: */
    uint64_t kicks;
    bool pauses; /* the thread waits for a time, not a kick */

    _Atomic bool ending;
    _Atomic bool exceeds;

    /* Only the thread uses: */
    struct stage_need need[TURN_NEEDS];
    struct ahead_range range[TURN_NEEDS];
    struct turn turn[TURNS]; /* a ring */
    size_t first_turn, n_turns;
    uint64_t asked, samples; /* bytes of all turns */
    struct flight flight[DEPTH];
    size_t first_flight, n_flights;
    uint64_t flying; /* bytes of all flights */
    struct sequence sequence;
    uint64_t version; /* of the times */
    uint64_t memory;
    int64_t memory_until, paused_until;
    unsigned here; /* turns in a row that were in memory */
    double scattered, sequential;
    int64_t last_ns; /* what the last scattered turn took */
};

static bool ahead_ends(const struct read_ahead *a)
{
    return atomic_load_explicit(&a->ending, memory_order_relaxed);
}

static void ahead_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void add_ahead_rate(double *rate, uint64_t bytes, int64_t ns)
{
    double now = (double)bytes * NS_PER_S / (double)(ns > 0 ? ns : 1);

    *rate = *rate > 0 ? *rate + RATE_WEIGHT * (now - *rate) : now;
}

/* ---- requests ---- */

/* Wait for the oldest request: its last byte comes last. */
static void ahead_land(struct read_ahead *a)
{
    const struct flight *oldest = &a->flight[a->first_flight];
    uint8_t byte;

    if (!ahead_ends(a))
        blob_pread(READ_WAITS, oldest->blob, &byte, 1, oldest->last);
    a->flying -= oldest->len;
    a->first_flight = (a->first_flight + 1) % DEPTH;
    a->n_flights--;
}

static void ahead_land_all(struct read_ahead *a)
{
    while (a->n_flights)
        ahead_land(a);
}

static void ask_piece(struct read_ahead *a, const struct blob *blob, uint64_t off, uint64_t len)
{
    while (a->n_flights == DEPTH || (a->n_flights && a->flying + len > FLIGHT_BYTES))
        ahead_land(a);
    if (blob_memory(blob, BLOB_BRING, off, len) < 0)
        return;
    a->flight[(a->first_flight + a->n_flights++) % DEPTH] =
        (struct flight){blob, off + len - 1, len};
    a->flying += len;
}

static void ask_range(struct read_ahead *a, const struct blob *blob, uint64_t off, uint64_t len)
{
    for (uint64_t done = 0; done < len && !ahead_ends(a); done += PIECE)
        ask_piece(a, blob, off + done, min_u64(PIECE, len - done));
}

/* ---- turns ---- */

static void ahead_drop(struct read_ahead *a, const struct turn *turn)
{
    for (size_t i = 0; i < turn->n; i++)
        if (blob_memory(turn->range[i].blob, BLOB_LEAVE, turn->range[i].off, turn->range[i].len) ==
            0)
            ahead_count(&a->counters->passed_bytes, turn->range[i].len);
}

static void forget_turn(struct read_ahead *a)
{
    struct turn *turn = &a->turn[a->first_turn];

    a->asked -= turn->bytes;
    a->samples -= turn->samples;
    free(turn->range);
    a->first_turn = (a->first_turn + 1) % TURNS;
    a->n_turns--;
}

/* End the turns that readers have passed. After a jump nothing is known of any. */
static void end_turns(struct read_ahead *a, const struct needs_place *place)
{
    bool jumped = place->version != a->version;

    a->version = place->version;
    while (a->n_turns && (jumped || a->turn[a->first_turn].when < place->now)) {
        if (!jumped && a->exceeds)
            ahead_drop(a, &a->turn[a->first_turn]);
        forget_turn(a);
    }
}

/* Remember a turn; its ranges only if they are to be dropped. */
static void ahead_begin_turn(struct read_ahead *a, uint64_t when, size_t n, uint64_t bytes,
                             uint64_t samples)
{
    struct turn turn = {.when = when, .bytes = bytes, .samples = samples};

    if (a->exceeds)
        turn.range = malloc(n * sizeof(*turn.range));
    if (turn.range) {
        memcpy(turn.range, a->range, n * sizeof(*turn.range));
        turn.n = n;
    }
    a->asked += bytes;
    a->samples += samples;
    a->turn[(a->first_turn + a->n_turns++) % TURNS] = turn;
}

/* Looks at some of n ranges. 1: some are not in memory; 0: all are; -errno: that cannot be known.
 */
static int ahead_is_missing(const struct read_ahead *a, size_t n)
{
    size_t step = max_u64(n / PROBES, 1);

    for (size_t i = 0; i < n; i += step) {
        int r = blob_memory(a->range[i].blob, BLOB_PEEK, a->range[i].off, 1);

        if (r <= 0)
            return r < 0 ? r : 1;
    }
    return 0;
}

/* All was in memory, or nothing is known: pause. If something is missing afterwards, it was dropped
 * meanwhile, and sequences begin at the start again. */
static void begin_pause(struct read_ahead *a)
{
    a->paused_until = clock_monotonic(a->clock) + PAUSE_NS;
    a->sequence.ds = NULL;
}

/* Get needs of about so many bytes of pages, and of samples. How many needs; *ret_samples: bytes of
 * them. */
static size_t ahead_get_needs(struct read_ahead *a, uint64_t most, uint64_t most_samples,
                              uint64_t *ret_samples)
{
    const struct stage_needs *from = needs_for_stage(a->needs);
    uint64_t samples = 0, pages = 0;
    size_t n = 0, got, capacity = 1;

    do {
        got = from->next(from->ctx, a->need + n, capacity);
        for (size_t i = n; i < n + got; i++)
            samples += a->need[i].len;
        n += got;
        pages = samples + n * AHEAD_PAGE;
        if (!got || pages >= most || samples >= most_samples)
            break;
        capacity = (size_t)min_u64((most - pages) / (pages / n),
                                   (most_samples - samples) / max_u64(samples / n, 1));
        capacity = min_u64(max_u64(capacity, 1), TURN_NEEDS - n);
    } while (capacity);
    *ret_samples = samples;
    return n;
}

/* Ask for n ranges, and wait until they are in memory. samples: bytes that readers will read. */
static void ask_ranges(struct read_ahead *a, size_t n, uint64_t samples)
{
    int64_t begin = clock_monotonic(a->clock);

    for (size_t i = 0; i < n && !ahead_ends(a); i++) {
        ask_range(a, a->range[i].blob, a->range[i].off, a->range[i].len);
        ahead_count(&a->counters->asked_bytes, a->range[i].len);
    }
    ahead_land_all(a);
    a->last_ns = clock_monotonic(a->clock) - begin;
    add_ahead_rate(&a->scattered, samples, a->last_ns);
    ahead_count(&a->counters->asked_requests, n);
}

/* Ask for what comes next. False: nothing is known of it. */
static bool ask_turn(struct read_ahead *a, uint64_t most)
{
    uint64_t samples, bytes = 0, when = 0;
    size_t got = ahead_get_needs(a, most, a->option - a->samples, &samples);
    size_t n = ahead_ranges(a->need, got, a->range);

    for (size_t i = 0; i < got; i++)
        when = max_u64(when, a->need[i].when);
    for (size_t i = 0; i < n; i++)
        bytes += a->range[i].len;
    if (!n)
        return got;
    ahead_begin_turn(a, when, n, bytes, samples);
    if (ahead_is_missing(a, n) > 0) {
        a->here = 0;
        ask_ranges(a, n, samples);
    } else if (++a->here >= HERE_MOST) {
        begin_pause(a);
    }
    return true;
}

/* ---- in sequence ---- */

static uint64_t ahead_missing(const struct sequence *s)
{
    uint64_t bytes = 0;

    for (unsigned i = s->blob; s->ds && i < s->ds->n_blobs; i++)
        bytes += s->ds->blob[i] ? min_u64(s->ds->blob[i]->size, UINT64_C(1) << 50) : 0;
    return bytes - min_u64(s->off, bytes);
}

static bool ahead_has_begun(const struct sequence *s, const struct dataset *ds)
{
    return s->ds == ds && (s->blob || s->off);
}

/* Read on in sequence for STRIDE_NS, and at least as long as the last turn took. */
static void ahead_read_on(struct read_ahead *a)
{
    struct sequence *s = &a->sequence;
    int64_t begin = clock_monotonic(a->clock), ns = a->last_ns > STRIDE_NS ? a->last_ns : STRIDE_NS;
    uint64_t most = (uint64_t)(a->sequential * (double)ns / NS_PER_S), done = 0;

    most = max_u64(most, STRIDE_LEAST);
    while (done < most && s->blob < s->ds->n_blobs && !ahead_ends(a)) {
        const struct blob *blob = s->ds->blob[s->blob];
        uint64_t size = blob ? blob->size : 0,
                 len = min_u64(size - min_u64(s->off, size), most - done);

        if (len)
            ask_range(a, blob, s->off, len);
        s->off += len;
        done += len;
        if (s->off < size)
            continue;
        s->off = 0;
        s->blob++;
    }
    ahead_land_all(a);
    if (done < STRIDE_LEAST)
        return;
    add_ahead_rate(&a->sequential, done, clock_monotonic(a->clock) - begin);
    ahead_count(&a->counters->sequence_bytes, done);
}

/* ---- the thread ---- */

static void look_at_memory(struct read_ahead *a, const struct needs_place *place)
{
    int64_t now = clock_monotonic(a->clock);

    if (now < a->memory_until)
        return;
    a->memory = memory_free();
    a->memory_until = now + MEMORY_NS;
    atomic_store(&a->exceeds, ahead_exceeds(place->bytes, a->memory));
}

/* False: there is nothing to do until something moves. */
static bool read_ahead_step(struct read_ahead *a)
{
    struct needs_place place;
    struct ahead_facts facts;
    uint64_t window;
    bool worked;

    if (clock_monotonic(a->clock) < a->paused_until)
        return false;
    place = needs_place(a->needs);
    look_at_memory(a, &place);
    end_turns(a, &place);
    window = ahead_window(a->memory);
    worked = place.ds && a->n_turns < TURNS && a->asked < window && a->samples < a->option &&
             ask_turn(a, window / TURNS_AHEAD);
    if (!place.ds || (a->here && !ahead_has_begun(&a->sequence, place.ds)))
        return worked;
    if (a->sequence.ds != place.ds)
        a->sequence = (struct sequence){.ds = place.ds};
    do { /* a stride that measured the rate is short, so the next follows at once */
        facts = (struct ahead_facts){place.bytes,  ahead_missing(&a->sequence),
                                     place.left,   a->memory,
                                     a->scattered, a->sequential};
        if (!ahead_in_sequence(&facts))
            return worked;
        ahead_read_on(a);
        worked = true;
    } while (facts.sequential <= 0 && a->sequential > 0);
    return true;
}

static uint64_t read_ahead_kicks(struct read_ahead *a)
{
    LOCK_SCOPE(&a->lock);

    return a->kicks;
}

static void read_ahead_wait(struct read_ahead *a, uint64_t kicks)
{
    bool pauses = a->paused_until > clock_monotonic(a->clock);
    LOCK_SCOPE(&a->lock);

    a->pauses = pauses;
    if ((a->kicks == kicks || pauses) && !a->ending)
        clock_wait(a->clock, &a->lock, &a->wake, pauses ? a->paused_until : CLOCK_NEVER);
}

static void *read_ahead_main(void *arg)
{
    struct read_ahead *a = arg;

    while (!ahead_ends(a)) {
        uint64_t kicks = read_ahead_kicks(a);

        if (!read_ahead_step(a))
            read_ahead_wait(a, kicks);
    }
    return NULL;
}

int read_ahead_start(struct needs *needs, uint64_t ahead, const struct clock *clock,
                     struct active_plans_counters *counters, struct read_ahead **ret)
{
    struct read_ahead *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return -ENOMEM;
    a->needs = needs;
    a->option = ahead;
    a->clock = clock;
    a->counters = counters;
    lock_init(&a->lock);
    condition_init(&a->wake);
    r = thread_start(&a->thread, read_ahead_main, a);
    if (r == 0) {
        *ret = a;
        return 0;
    }
    pthread_cond_destroy(&a->wake);
    lock_release(&a->lock);
    free(a);
    return r;
}

void read_ahead_kick(struct read_ahead *a)
{
    if (!a)
        return;
    LOCK_SCOPE(&a->lock);

    a->kicks++;
    if (!a->pauses || ahead_ends(a))
        pthread_cond_broadcast(&a->wake);
}

bool read_ahead_exceeds(const struct read_ahead *a)
{
    return a && atomic_load_explicit(&a->exceeds, memory_order_relaxed);
}

void read_ahead_quit(struct read_ahead *a)
{
    if (!a)
        return;
    atomic_store(&a->ending, true);
    read_ahead_kick(a);
}

void read_ahead_stop(struct read_ahead *a)
{
    if (!a)
        return;
    read_ahead_quit(a);
    if (!a->has_ended)
        pthread_join(a->thread, NULL);
    a->has_ended = true;
}

void read_ahead_free(struct read_ahead *a)
{
    if (!a)
        return;
    while (a->n_turns)
        forget_turn(a);
    pthread_cond_destroy(&a->wake);
    lock_release(&a->lock);
    free(a);
}
