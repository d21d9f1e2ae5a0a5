/* When are bytes needed?
 *
 * when() asks the inverse: which samples have bytes in this range, and where in the epoch are these
 * samples? Arithmetic or an extent_map gives the samples. The inverse of the order gives their
 * places, in some 100 ns per sample. The answer is a time that stays true until that time has come.
 * So answers are remembered, by a hash, in slots that any thread may overwrite. */
#include <string.h>

#include "base/checked.h"
#include "fs/drive/needs_parts.h"

#define WAYS 4 /* slots that an answer may be in */

/* Samples whose neighbours in the source are all neighbours in the dataset, too. */
struct samples {
    uint64_t first, last;
};

/* The samples for fields whose items are all alike. Of a source of a mix, any of its fields may be
 * one that is read. */
static unsigned stored_samples(const struct cursor *c, const struct dataset *ds,
                               const struct blob *blob, uint64_t off, uint64_t len,
                               struct samples ret[static KINDS_MAX])
{
    unsigned fields = ds == c->ds ? c->n_fields : 0;
    unsigned n = fields ? fields : (unsigned)min_u64(ds->n_fields, KINDS_MAX), got = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct field *f = fields ? c->field[i] : &ds->field[i];

        struct samples s;

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
                                struct samples ret[static KINDS_MAX], bool *known)
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
 * *known becomes false while a map is missing. Of very many ranges the last one covers some that
 * are none. */
static unsigned samples_of(const struct needs *needs, const struct cursor *c,
                           const struct blob *blob, uint64_t off, uint64_t len,
                           struct samples ret[static KINDS_MAX], bool *known)
{
    struct samples own[KINDS_MAX];
    unsigned n = 0;

    for (unsigned i = 0; i < needs_parts(c); i++) {
        const struct cursor_part part = needs_part(needs, c, i);
        unsigned some = samples_of_part(c, &part, blob, off, len, own, known);

        for (unsigned k = 0; k < some; k++) {
            struct samples *last = &ret[n - (n == KINDS_MAX)];
            struct samples s = {part.first + own[k].first, part.first + own[k].last};

            if (n == KINDS_MAX)
                *last =
                    (struct samples){min_u64(last->first, s.first), max_u64(last->last, s.last)};
            else
                ret[n++] = s;
        }
    }
    return n;
}

/* The distance of the next need of these bytes; UINT64_MAX: not needed. */
static uint64_t distance_of(const struct needs *needs, const struct cursor *c,
                            const struct blob *blob, uint64_t off, uint64_t len, bool *known)
{
    struct samples samples[KINDS_MAX];
    bool has_map = true;
    unsigned n = samples_of(needs, c, blob, off, len, samples, &has_map);
    uint64_t best = has_map ? UINT64_MAX : 0;

    *known = *known && has_map;
    for (unsigned i = 0; i < n; i++)
        best = min_u64(best, cursor_distance(c, samples[i].first, samples[i].last));
    return best;
}

static uint64_t find_time(const struct needs *needs, const struct cursors *cursors,
                          const struct blob *blob, uint64_t off, uint64_t len, size_t *ret_cursor,
                          bool *ret_known)
{
    uint64_t best = STAGE_NEVER;

    *ret_cursor = ACTIVE_PLANS_MAX;
    *ret_known = true;
    for (size_t i = 0; i < cursors->n; i++) {
        const struct cursor *c = &cursors->cursor[i];
        uint64_t distance = distance_of(needs, c, blob, off, len, ret_known), time;

        if (distance == UINT64_MAX)
            continue;
        time = cursor_time(c, distance);
        if (time < best) {
            best = time;
            *ret_cursor = i;
        }
    }
    return best;
}

static uint64_t stir(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 29;
}

static uint64_t hash_of(const struct cursors *cursors, const struct blob *blob, uint64_t off,
                        uint64_t len)
{
    return stir(stir(stir(cursors->version + 1, (uintptr_t)blob), off), len);
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

uint64_t needs_when(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct needs *needs = ctx;
    struct cursors *cursors;
    struct answer *slot;
    uint64_t hash, time;
    size_t cursor;
    bool known;

    if (!len)
        return STAGE_NEVER;
    needs_refresh(needs, false);
    cursors = needs_hold_cursors(needs);
    hash = hash_of(cursors, blob, off, len);
    if (!recall(needs, cursors, hash, &time, &slot)) {
        time = find_time(needs, cursors, blob, off, len, &cursor, &known);
        if (known)
            remember(cursors, slot, hash, time, cursor);
    }
    needs_let_go_of_cursors(needs, cursors);
    return time;
}

/* ---- last ---- */

/* When the cursor needs these bytes last: STAGE_NEVER: it does not; 0: its reader has read them. */
static uint64_t last_of(const struct needs *needs, const struct cursor *c, const struct blob *blob,
                        uint64_t off, uint64_t len)
{
    struct samples samples[KINDS_MAX];
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
