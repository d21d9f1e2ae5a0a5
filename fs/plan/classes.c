/* classes=PxK: batches of P classes, K samples of each.
 *
 * An epoch has rounds. A round puts the classes in an order and cuts that into batches of P; the
 * classes that are left over rest in this round. Each class has an endless list of its samples,
 * pass after pass, each pass in another order; in round r it shows elements r K to r K + K - 1 of
 * it. An epoch has as many rounds as the largest class needs to show all its samples. */
#include "fs/plan/epoch_order.h"

#include "base/checked.h"

__extension__ typedef unsigned __int128 u128;

#define ROUNDS UINT64_MAX /* the number that rounds have among the classes of the family */

enum { CHUNK = 64 };

/* How batches and rounds follow one another. */
struct shape {
    uint64_t per_class, size; /* samples of a class in a batch; of a batch */
    uint64_t batches;         /* of a round */
    uint64_t shown;           /* classes of a round that do not rest */
    uint64_t rounds;
};

uint64_t order_classes_length(const struct order_spec *spec)
{
    const struct plan_classes *c = spec->classes;
    uint64_t batches = c->n / spec->batch_classes, rounds, length;

    rounds = ceil_div(c->most, spec->of_class);
    if (!checked_mul(batches, spec->batch_classes * spec->of_class, &length) ||
        !checked_mul(length, rounds, &length))
        return UINT64_MAX;
    return length;
}

static struct shape shape_of(const struct order_spec *spec)
{
    uint64_t size = spec->batch_classes * spec->of_class;
    uint64_t batches = spec->classes->n / spec->batch_classes;

    return (struct shape){
        .per_class = spec->of_class,
        .size = size,
        .batches = batches,
        .shown = batches * spec->batch_classes,
        .rounds = spec->length / (batches * size),
    };
}

static void plan_classes_begin(const struct order_spec *spec, uint64_t epoch,
                               struct epoch_order *ret)
{
    if (spec->seeded)
        family_init(&ret->of_kind.family, spec->seed, epoch, LANE_CLASSES);
}

/* ---- the order of the classes in a round ---- */

/* Without a seed each round begins where the one before ended, so that each class has its turn. */
static uint64_t turned(const struct shape *s, uint64_t round, uint64_t classes)
{
    return (uint64_t)((u128)round * s->shown % classes);
}

/* Replace places x[i] of rounds round[i] by classes. */
static void classes_at(const struct order_spec *spec, const struct epoch_order *e,
                       const struct shape *s, const uint64_t *round, size_t count, uint64_t *x)
{
    struct permutation_member member[CHUNK];
    uint64_t classes = spec->classes->n;

    for (size_t i = 0; i < count && !spec->seeded; i++)
        x[i] = (x[i] + turned(s, round[i], classes)) % classes;
    if (!spec->seeded)
        return;
    for (size_t i = 0; i < count; i++)
        member[i] = i && round[i] == round[i - 1] ? member[i - 1]
                                                  : family_member(ROUNDS, round[i], classes);
    family_send_each(&e->of_kind.family, member, count, x);
}

/* The way back: replace classes by their places in rounds. */
static void places_of(const struct order_spec *spec, const struct epoch_order *e,
                      const struct shape *s, const uint64_t *round, size_t count, uint64_t *x)
{
    struct permutation_member member[CHUNK];
    uint64_t classes = spec->classes->n;

    for (size_t i = 0; i < count && !spec->seeded; i++)
        x[i] = (x[i] + classes - turned(s, round[i], classes)) % classes;
    if (!spec->seeded)
        return;
    for (size_t i = 0; i < count; i++)
        member[i] = family_member(ROUNDS, round[i], classes);
    family_back_each(&e->of_kind.family, member, count, x);
}

/* ---- from positions to places ---- */

/* The elements t of its class that each position shows, and the class. */
static void elements_at(const struct order_spec *spec, const struct epoch_order *e,
                        const struct shape *s, size_t count, const uint64_t *x, uint64_t *ret_class,
                        uint64_t *ret_t)
{
    uint64_t round[CHUNK], place[CHUNK];
    uint8_t which[CHUNK];
    size_t n = 0;

    /* Neighbours are of one class: it is looked for once. */
    for (size_t i = 0; i < count; i++) {
        uint64_t batch = x[i] / s->size, slot = x[i] % s->size;
        uint64_t r = batch / s->batches;
        uint64_t at = batch % s->batches * spec->batch_classes + slot / s->per_class;

        if (!n || round[n - 1] != r || place[n - 1] != at) {
            round[n] = r;
            place[n++] = at;
        }
        which[i] = (uint8_t)(n - 1);
        ret_t[i] = r * s->per_class + slot % s->per_class;
    }
    classes_at(spec, e, s, round, n, place);
    for (size_t i = 0; i < count; i++)
        ret_class[i] = place[which[i]];
}

static void chunk_at(const struct order_spec *spec, const struct epoch_order *e,
                     const struct shape *s, size_t count, uint64_t *x)
{
    const struct plan_classes *c = spec->classes;
    struct permutation_member member[CHUNK];
    uint64_t class[CHUNK], t[CHUNK];

    elements_at(spec, e, s, count, x, class, t);
    for (size_t i = 0; i < count; i++) {
        uint64_t n = c->ops->count(c, class[i]);

        x[i] = t[i] % n;
        if (spec->seeded)
            member[i] = family_member(class[i], t[i] / n, n);
    }
    if (spec->seeded)
        family_send_each(&e->of_kind.family, member, count, x);
    for (size_t i = 0; i < count; i++)
        x[i] = c->ops->place(c, class[i], x[i]);
}

static void plan_classes_at(const struct order_spec *spec, const struct epoch_order *e,
                            size_t count, uint64_t *x)
{
    struct shape s = shape_of(spec);

    for (size_t n; count; x += n, count -= n) {
        n = (size_t)min_u64(count, CHUNK);
        chunk_at(spec, e, &s, n, x);
    }
}

/* ---- and back ---- */

/* Elements of classes that are in the epoch, for some places and passes. */
struct elements {
    size_t n;
    uint64_t class[CHUNK], t[CHUNK];
    uint32_t whose[CHUNK]; /* the number of the walk */
    /* Until they are sent back: */
    uint64_t before[CHUNK]; /* elements of earlier passes */
    struct permutation_member member[CHUNK];
};

/* Gather the next ones of a walk; t is the place within the shuffled pass. */
static void gather_walk(const struct order_spec *spec, const struct shape *s, uint32_t number,
                        struct order_walk *walk, size_t capacity, struct elements *ret)
{
    const struct plan_classes *c = spec->classes;

    while (ret->n < capacity && walk->place <= walk->last) {
        uint64_t class, within, n;

        c->ops->find(c, walk->place, &class, &within);
        n = c->ops->count(c, class);
        if (walk->done * n >= s->rounds * s->per_class) {
            walk->place++;
            walk->done = 0;
            continue;
        }
        ret->class[ret->n] = class;
        ret->t[ret->n] = within;
        ret->whose[ret->n] = number;
        ret->before[ret->n] = walk->done * n;
        ret->member[ret->n++] = family_member(class, walk->done++, n);
    }
}

/* Gather the next elements of n walks, at most `capacity`. */
static void plan_classes_gather(const struct order_spec *spec, const struct epoch_order *e,
                                const struct shape *s, size_t n, struct order_walk *walk,
                                size_t capacity, struct elements *ret)
{
    ret->n = 0;
    for (uint32_t i = 0; i < n && ret->n < capacity; i++)
        gather_walk(spec, s, i, &walk[i], capacity, ret);
    if (spec->seeded)
        family_back_each(&e->of_kind.family, ret->member, ret->n, ret->t);
    for (size_t i = 0; i < ret->n; i++)
        ret->t[i] += ret->before[i];
}

static size_t plan_classes_positions(const struct order_spec *spec, const struct epoch_order *e,
                                     size_t n, struct order_walk *walk, size_t capacity,
                                     uint64_t *ret, uint32_t *whose)
{
    struct shape s = shape_of(spec);
    uint64_t round[CHUNK], place[CHUNK];
    struct elements found;
    size_t in = 0, kept = 0;

    plan_classes_gather(spec, e, &s, n, walk, (size_t)min_u64(capacity, CHUNK), &found);
    for (size_t i = 0; i < found.n; i++) {
        if (found.t[i] >= s.rounds * s.per_class) /* in a later epoch, as it were */
            continue;
        found.t[in] = found.t[i];
        found.whose[in] = found.whose[i];
        round[in] = found.t[i] / s.per_class;
        place[in++] = found.class[i];
    }
    places_of(spec, e, &s, round, in, place);
    for (size_t i = 0; i < in; i++) {
        uint64_t at = place[i], slot;

        if (at >= s.shown)
            continue;
        slot = at % spec->batch_classes * s.per_class + found.t[i] % s.per_class;
        whose[kept] = found.whose[i];
        ret[kept++] = (round[i] * s.batches + at / spec->batch_classes) * s.size + slot;
    }
    return kept;
}

/* ---- classes ---- */

/* Each class has as many positions as the others; by some of the places. */
uint64_t order_count_by_class(const struct order_spec *spec, uint64_t first, uint64_t last)
{
    const struct plan_classes *c = spec->classes;
    uint64_t places = last - first + 1, looked = min_u64(places, 16);
    double sum = 0;

    for (uint64_t i = 0; i < looked; i++) {
        uint64_t class, within;

        c->ops->find(c, first + places / looked * i, &class, &within);
        sum += 1 / (double)c->ops->count(c, class);
    }
    return (uint64_t)(sum / (double)looked * (double)places * (double)spec->length / (double)c->n) +
           1;
}

const struct order_ops order_classes = {
    .name = "classes",
    .version = 1,
    .begin = plan_classes_begin,
    .at = plan_classes_at,
    .positions = plan_classes_positions,
    .count = order_count_by_class,
};
