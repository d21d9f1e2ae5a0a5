/* When are bytes needed?
 *
 * when() asks the inverse: which samples have bytes in these ranges, and where in the epoch
 * are they? Arithmetic or an extent_map gives the samples. The inverse of the order gives their
 * places, for many samples together in some 100 ns each. An answer is a time that stays true until
 * that time has come. So answers are remembered, by a hash, in slots that any thread may overwrite.
 */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "fs/drive/needs_parts.h"

#define WAYS 4 /* slots that an answer may be in */

/* The samples for fields whose items are all alike: their neighbours in the source are all
 * neighbours in the dataset as well. For a source of a mix any of its fields may be one that is
 * read. */
static unsigned stored_samples(const struct cursor *c, const struct dataset *ds,
                               const struct blob *blob, uint64_t off, uint64_t len,
                               struct plan_samples ret[static KINDS_MAX])
{
    unsigned fields = ds == c->ds ? c->n_fields : 0;
    unsigned n = fields ? fields : (unsigned)min_u64(ds->n_fields, KINDS_MAX), got = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct field *f = fields ? c->field[i] : &ds->field[i];

        struct plan_samples s;

        if (f->base_field || !field_samples_at(f, blob, off, len, &s.first, &s.last))
            continue;
        if (s.first >= ds->samples) /* the bytes of another field behind it */
            continue;
        s.last = min_u64(s.last, ds->samples - 1);
        ret[got++] = s;
    }
    return got;
}

/* Which samples of one part have some of these bytes, by their numbers in it? */
static unsigned samples_of_part(const struct cursor *c, const struct cursor_part *part,
                                const struct blob *blob, uint64_t off, uint64_t len,
                                struct plan_samples ret[static KINDS_MAX], bool *known)
{
    struct extent_map *ready;

    if (!part->ds->ops || !part->ds->ops->extents)
        return stored_samples(c, part->ds, blob, off, len, ret);
    ready = atomic_load_explicit(&part->map->ready, memory_order_acquire);
    if (!ready) {
        if (!atomic_load_explicit(&part->map->is_wanted, memory_order_relaxed))
            atomic_store(&part->map->is_wanted, true);
        *known = false;
        return 0;
    }
    return extent_map_find(ready, blob, off, len, &ret[0].first, &ret[0].last);
}

/* Which samples that the cursor reads have some of these bytes? Returns how many ranges of them.
 * *known becomes false while a map is missing. For very many ranges the last one covers some that
 * are none. */
static unsigned samples_of(const struct needs *needs, const struct cursor *c,
                           const struct blob *blob, uint64_t off, uint64_t len,
                           struct plan_samples ret[static KINDS_MAX], bool *known)
{
    struct plan_samples found[KINDS_MAX];
    unsigned n = 0;

    for (unsigned i = 0; i < needs_parts(c); i++) {
        const struct cursor_part part = needs_part(needs, c, i);
        unsigned some = samples_of_part(c, &part, blob, off, len, found, known);

        for (unsigned k = 0; k < some; k++) {
            struct plan_samples *last = &ret[n - (n == KINDS_MAX)];
            struct plan_samples s = {part.first + found[k].first, part.first + found[k].last};

            if (n == KINDS_MAX)
                *last = (struct plan_samples){min_u64(last->first, s.first),
                                              max_u64(last->last, s.last)};
            else
                ret[n++] = s;
        }
    }
    return n;
}

/* Some bytes of which no remembered answer is known. */
struct question {
    struct stage_need *need; /* gets the time */
    uint64_t hash;
    struct answer *slot; /* for the answer */
    uint64_t distance;   /* for one cursor; UINT64_MAX: not needed */
    size_t cursor;       /* that needs them at need->when */
    bool known;          /* no map is missing */
};

#define ASKED_MOST 64 /* questions together */

/* Samples of several questions, for one cursor. */
struct asked {
    size_t n;
    struct plan_samples wanted[CURSOR_ASKED_MOST];
    struct question *question[CURSOR_ASKED_MOST];
};
static_assert(KINDS_MAX <= CURSOR_ASKED_MOST, "room for those of a question");

static void ask_cursor(const struct cursor *c, struct asked *asked)
{
    uint64_t distance[CURSOR_ASKED_MOST];

    cursor_distances(c, asked->n, asked->wanted, distance);
    for (size_t i = 0; i < asked->n; i++)
        asked->question[i]->distance = min_u64(asked->question[i]->distance, distance[i]);
    asked->n = 0;
}

/* The distances of the next needs of one cursor. */
static void find_distances(const struct needs *needs, const struct cursor *c, size_t n,
                           struct question *q)
{
    struct plan_samples samples[KINDS_MAX];
    struct asked asked;

    asked.n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct stage_need *need = q[i].need;
        bool has_map = true;
        unsigned some = samples_of(needs, c, need->blob, need->off, need->len, samples, &has_map);

        q[i].known = q[i].known && has_map;
        q[i].distance = has_map ? UINT64_MAX : 0;
        if (asked.n + some > CURSOR_ASKED_MOST)
            ask_cursor(c, &asked);
        for (unsigned k = 0; k < some; k++) {
            asked.question[asked.n] = &q[i];
            asked.wanted[asked.n++] = samples[k];
        }
    }
    ask_cursor(c, &asked);
}

static void find_times(const struct needs *needs, const struct cursors *cursors, size_t n,
                       struct question *q)
{
    for (size_t i = 0; i < n; i++) {
        q[i].need->when = STAGE_NEVER;
        q[i].cursor = ACTIVE_PLANS_MAX;
        q[i].known = true;
    }
    for (size_t k = 0; k < cursors->n && n; k++) {
        const struct cursor *c = &cursors->cursor[k];

        find_distances(needs, c, n, q);
        for (size_t i = 0; i < n; i++) {
            uint64_t time =
                q[i].distance == UINT64_MAX ? STAGE_NEVER : cursor_time(c, q[i].distance);

            if (q[i].distance == UINT64_MAX || time >= q[i].need->when)
                continue;
            q[i].need->when = time;
            q[i].cursor = k;
        }
    }
}

static uint64_t needs_when_stir(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 29;
}

static uint64_t hash_of(const struct cursors *cursors, const struct blob *blob, uint64_t off,
                        uint64_t len)
{
    return needs_when_stir(
        needs_when_stir(needs_when_stir(cursors->version + 1, (uintptr_t)blob), off), len);
}

/* Does the answer still hold? It must be of these cursors, and its time must not have come: after
 * that another need may be the next. */
static bool is_true(const struct cursors *cursors, uint64_t time, uint64_t whose)
{
    uint64_t cursor = whose % CURSOR_SIZE;

    if (whose / CURSOR_SIZE != cursors->version % (UINT64_MAX / CURSOR_SIZE))
        return false;
    return cursor < cursors->n ? time >= cursors->cursor[cursor].clock : time == STAGE_NEVER;
}

/* Find a remembered answer, or else the slot for a new one: that whose time comes first. */
static bool recall(const struct needs *needs, const struct cursors *cursors, uint64_t hash,
                   uint64_t *ret, struct answer **ret_slot)
{
    struct answer *slot = &needs->answer[hash % ANSWERS / WAYS * WAYS];
    uint64_t soonest = UINT64_MAX;

    *ret_slot = slot;
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t check = atomic_load_explicit(&slot[i].check, memory_order_relaxed);
        uint64_t time = atomic_load_explicit(&slot[i].time, memory_order_relaxed);
        uint64_t whose = atomic_load_explicit(&slot[i].whose, memory_order_relaxed);
        bool is_good = is_true(cursors, time, whose);

        if (is_good && (check ^ time ^ whose) == hash) {
            *ret = time;
            return true;
        }
        time = is_good ? time : 0;
        if (time < soonest) {
            soonest = time;
            *ret_slot = &slot[i];
        }
    }
    return false;
}

static void remember(const struct cursors *cursors, struct answer *slot, uint64_t hash,
                     uint64_t time, size_t cursor)
{
    uint64_t whose = cursors->version % (UINT64_MAX / CURSOR_SIZE) * CURSOR_SIZE + cursor;

    atomic_store_explicit(&slot->check, hash ^ time ^ whose, memory_order_relaxed);
    atomic_store_explicit(&slot->time, time, memory_order_relaxed);
    atomic_store_explicit(&slot->whose, whose, memory_order_relaxed);
}

/* Answer at most ASKED_MOST needs from what is remembered; the rest are questions. */
static size_t recall_all(const struct needs *needs, const struct cursors *cursors, size_t n,
                         struct stage_need *need, struct question ret[static ASKED_MOST])
{
    uint64_t hash[ASKED_MOST];
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        hash[i] = hash_of(cursors, need[i].blob, need[i].off, need[i].len);
        __builtin_prefetch(&needs->answer[hash[i] % ANSWERS / WAYS * WAYS]);
    }
    for (size_t i = 0; i < n; i++) {
        struct question *q = &ret[left];

        if (!need[i].len)
            need[i].when = STAGE_NEVER;
        else if (!recall(needs, cursors, hash[i], &need[i].when, &q->slot)) {
            q->need = &need[i];
            q->hash = hash[i];
            left++;
        }
    }
    return left;
}

void needs_when(void *ctx, size_t n, struct stage_need *need)
{
    struct question question[ASKED_MOST];
    struct needs *needs = ctx;
    struct cursors *cursors;

    needs_refresh(needs, false);
    cursors = needs_hold_cursors(needs);
    for (size_t some; n; n -= some, need += some) {
        size_t left;

        some = (size_t)min_u64(n, ASKED_MOST);
        left = recall_all(needs, cursors, some, need, question);
        find_times(needs, cursors, left, question);
        for (size_t i = 0; i < left; i++)
            if (question[i].known)
                remember(cursors, question[i].slot, question[i].hash, question[i].need->when,
                         question[i].cursor);
    }
    needs_let_go_of_cursors(needs, cursors);
}

/* ---- last ---- */

/* When the cursor needs these bytes last: STAGE_NEVER: it does not; 0: its reader has read them. */
static uint64_t last_of(const struct needs *needs, const struct cursor *c, const struct blob *blob,
                        uint64_t off, uint64_t len)
{
    struct plan_samples samples[KINDS_MAX];
    bool known = true, is_read = false;
    unsigned n = samples_of(needs, c, blob, off, len, samples, &known);
    uint64_t last = 0;

    if (!known)
        return 1; /* ask again each time */
    for (unsigned i = 0; i < n; i++) {
        uint64_t element = cursor_last(c, samples[i].first, samples[i].last);

        is_read = is_read || element < c->read;
        if (element >= c->read && element != UINT64_MAX)
            last = max_u64(last, cursor_when(c, element + 1));
    }
    return last ? last : is_read ? 0 : STAGE_NEVER;
}

uint64_t needs_last(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct needs *needs = ctx;
    uint64_t result = STAGE_NEVER;
    struct cursors *cursors;

    needs_refresh(needs, false);
    cursors = needs_hold_cursors(needs);
    for (size_t i = 0; i < cursors->n; i++) {
        uint64_t last = last_of(needs, &cursors->cursor[i], blob, off, len);

        if (last != STAGE_NEVER)
            result = result == STAGE_NEVER ? last : max_u64(result, last);
    }
    needs_let_go_of_cursors(needs, cursors);
    return result;
}

/* The reader that is furthest on, in its own time: the answers for slower ones are asked for
 * sooner than they need be. */
uint64_t needs_now(void *ctx, uint64_t *ret_version)
{
    struct needs *needs = ctx;
    struct cursors *cursors;
    uint64_t now = 1;

    needs_refresh(needs, true);
    cursors = needs_hold_cursors(needs);
    for (size_t i = 0; i < cursors->n; i++)
        now = max_u64(now, cursor_when(&cursors->cursor[i], cursors->cursor[i].read));
    *ret_version = cursors->version + 1;
    needs_let_go_of_cursors(needs, cursors);
    return now;
}
