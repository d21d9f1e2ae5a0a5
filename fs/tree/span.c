/* Inode numbers.
 *
 *   1 ..             the fixed nodes, in the order of the array
 *   2^62 .. 2^63-1   spans: power-of-two ranges, each aligned to its size, each for the samples of
 *                    one dataset, or for one plan of it (or, where a plan has very many batches,
 *                    for a run of its epochs)
 *
 * Within a span:     [ epoch | slot | folder : 4 to 8 | file : 6 ]
 *
 * slot is the sample, or 1 + the batch; slot 0 of a plan is for its folders. Datasets with more
 * than 15 folders have more bits for them. The base of a span is
 * a hash of what it is for, so that the same file has the same number in every mount; where two
 * spans would overlap, the later one moves on to the next free place. */
#include "fs/tree/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/search.h"

#define FILE_BITS   6
#define FOLDER_BITS 4 /* at least */
#define BASE_BITS   62
#define SPAN_BASE   (UINT64_C(1) << BASE_BITS)
#define EPOCH_BITS  16 /* at most; fewer where the slots need the bits */
#define SPAN_BITS   52 /* what epochs may widen a span to */

_Static_assert(KINDS_MAX <= 1 << FILE_BITS, "file numbers");

/* All ones are for span_self_folder(). */
static unsigned folder_bits(const struct dataset *ds)
{
    unsigned bits = bit_width(ds->n_folders);

    return bits > FOLDER_BITS ? bits : FOLDER_BITS;
}

static unsigned low_bits_of(const struct catalog_item *item)
{
    return FILE_BITS + folder_bits(item->ds);
}

unsigned span_self_folder(const struct catalog_item *item)
{
    return (1u << folder_bits(item->ds)) - 1;
}

static uint64_t span_hash_text(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t span_hash(const struct catalog_item *item, const char *plan, uint64_t epoch_high)
{
    uint64_t h = span_hash_text(UINT64_C(0xcbf29ce484222325), item->folder);

    h = span_hash_text(h * 31 + 1, item->name);
    h = span_hash_text(h * 31 + 2, plan);
    return hash_mix(h ^ hash_mix(epoch_high));
}

struct span span_of_samples(const struct catalog_item *item)
{
    unsigned slot_bits = bit_width(item->ds->samples);

    return (struct span){
        .base = span_hash(item, "", 0),
        .bits = slot_bits + low_bits_of(item),
        .slot_bits = slot_bits,
        .item = item,
    };
}

struct span span_of_plan(struct plan_entry *entry, uint64_t epoch)
{
    unsigned slot_bits = bit_width(entry->schedule.batches);
    unsigned bits = slot_bits + low_bits_of(entry->item);
    unsigned capacity = bits < SPAN_BITS ? SPAN_BITS - bits : 0;
    unsigned epoch_bits = !entry->plan.seeded ? 0 : capacity < EPOCH_BITS ? capacity : EPOCH_BITS;
    uint64_t epoch_high = epoch >> epoch_bits;

    return (struct span){
        .base = span_hash(entry->item, entry->name, epoch_high),
        .bits = epoch_bits + bits,
        .epoch_bits = epoch_bits,
        .slot_bits = slot_bits,
        .item = entry->item,
        .plan = entry,
        .epoch_high = epoch_high,
    };
}

static uint64_t low_bits(uint64_t v, unsigned bits)
{
    return v & ((UINT64_C(1) << bits) - 1);
}

uint64_t span_ino(const struct span *s, const struct span_place *place)
{
    uint64_t epoch_low = low_bits(place->epoch, s->epoch_bits);

    return s->base + ((((epoch_low << s->slot_bits) | place->slot) << low_bits_of(s->item)) |
                      (uint64_t)place->folder << FILE_BITS | place->file);
}

void span_place_of(const struct span *s, uint64_t ino, struct span_place *ret)
{
    uint64_t local = ino - s->base, slot = local >> low_bits_of(s->item);

    ret->file = (unsigned)low_bits(local, FILE_BITS);
    ret->folder = (unsigned)low_bits(local >> FILE_BITS, folder_bits(s->item->ds));
    ret->slot = low_bits(slot, s->slot_bits);
    ret->epoch = (s->epoch_high << s->epoch_bits) | slot >> s->slot_bits;
}

uint64_t span_file_ino(const struct catalog_item *item, uint64_t folder_ino, uint64_t slot,
                       unsigned file)
{
    return folder_ino + (slot << low_bits_of(item)) + file;
}

/* The index of the first span that ends above ino. */
static size_t span_index(const struct spans *spans, uint64_t ino)
{
    const struct span *s = spans->span;

    return SEARCH(spans->n, i, s[i].base + (UINT64_C(1) << s[i].bits) <= ino);
}

static bool span_is_same(const struct span *a, const struct span *b)
{
    const char *a_name = a->plan ? a->plan->name : "", *b_name = b->plan ? b->plan->name : "";

    return a->item == b->item && a->epoch_high == b->epoch_high && !strcmp(a_name, b_name);
}

/* Find the place of wanted: the first place from its hash on that is its own or free. 0 with its
 * index and base; *ret_found: it exists. -ENFILE: no place is left. */
static int span_search(const struct spans *spans, const struct span *wanted, size_t *ret_index,
                       uint64_t *ret_base, bool *ret_found)
{
    uint64_t size, places, at;

    if (wanted->bits > BASE_BITS)
        return -ENFILE;
    size = UINT64_C(1) << wanted->bits;
    places = UINT64_C(1) << (BASE_BITS - wanted->bits);
    at = wanted->base & (places - 1);

    /* Each try meets another span, so there are no more tries than spans. */
    for (size_t tries = 0; tries <= spans->n + 1; tries++) {
        uint64_t base = SPAN_BASE + (at << wanted->bits);
        size_t i = span_index(spans, base);
        bool is_free = i == spans->n || spans->span[i].base >= base + size;

        if (is_free || span_is_same(&spans->span[i], wanted)) {
            *ret_index = i;
            *ret_base = base;
            *ret_found = !is_free;
            return 0;
        }
        /* Behind the span that is in the way, which may be much larger or much smaller. */
        at =
            ceil_div(spans->span[i].base + (UINT64_C(1) << spans->span[i].bits) - SPAN_BASE, size) &
            (places - 1);
    }
    return -ENFILE;
}

int spans_find(const struct spans *spans, const struct span *wanted, struct span *ret)
{
    uint64_t base;
    bool found;
    size_t i;

    if (span_search(spans, wanted, &i, &base, &found) < 0 || !found)
        return -ENOENT;
    *ret = spans->span[i];
    return 0;
}

static int spans_insert(struct spans *spans, size_t i, const struct span *span)
{
    if (spans->n >= spans->max)
        return -ENFILE;
    if (array_capacity(&spans->span, spans->n, sizeof(*span)) < 0)
        return -ENOMEM;
    memmove(&spans->span[i + 1], &spans->span[i], (spans->n - i) * sizeof(*span));
    spans->span[i] = *span;
    spans->n++;
    return 0;
}

int spans_take(struct spans *spans, const struct span *wanted, struct span *ret)
{
    struct span span = *wanted;
    bool found;
    size_t i;
    int r = span_search(spans, wanted, &i, &span.base, &found);

    if (r == 0 && !found)
        r = spans_insert(spans, i, &span);
    if (r == 0)
        *ret = spans->span[i];
    return r;
}

int spans_of_ino(const struct spans *spans, uint64_t ino, struct span *ret)
{
    size_t i = span_index(spans, ino);

    if (i == spans->n || spans->span[i].base > ino)
        return -ESTALE;
    *ret = spans->span[i];
    return 0;
}
