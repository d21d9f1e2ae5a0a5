/* A file of the store for each side. How long a picture is its bytes say, so each record has
 * places for the longest that is kept, and uses as many as it needs: the others are holes. */
#include "format/records/record_bases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "format/picture/augment.h"
#include "format/picture/picture.h"

#define SIDES_MOST 16 /* whose pictures are kept */
#define UNITS      8  /* of a record; each has half the pixels of a square, so 4:1 is kept */
#define HEAD       16 /* bytes before the pixels: sizes of the file's picture, and of this one */

struct record_base {
    struct record_made made; /* first */
    uint32_t side;
};

struct record_bases {
    struct format_setup setup;
    const struct record_made *like;
    int (*identity)(const struct dataset *ds, struct text *t);
    struct lock lock;
    unsigned n;                           /* guarded by lock */
    struct record_base *base[SIDES_MOST]; /* [n] freed at the end */
};

static void base_version(const struct record_made *m, struct text *t)
{
    text_add(t, "pictures base 1 %u ", ((const struct record_base *)m)->side);
    picture_add_versions(t);
}

static uint64_t base_unit(const struct record_made *m, uint64_t record)
{
    (void)m;
    return record * UNITS;
}

static const struct record_maker base_maker = {
    .one = "a picture", .many = "scaled pictures", .name = base_version, .unit = base_unit};

int record_bases_new(const struct format_setup *setup, const struct record_made *like,
                     int (*identity)(const struct dataset *ds, struct text *t),
                     struct record_bases **ret)
{
    struct record_bases *bases = calloc(1, sizeof(*bases));

    if (!bases)
        return -ENOMEM;
    bases->setup = *setup;
    bases->like = like;
    bases->identity = identity;
    lock_init(&bases->lock);
    *ret = bases;
    return 0;
}

void record_bases_free(struct record_bases *bases)
{
    if (!bases)
        return;
    for (unsigned i = 0; i < bases->n; i++) {
        record_made_release(&bases->base[i]->made);
        free(bases->base[i]);
    }
    lock_release(&bases->lock);
    free(bases);
}

/* NULL: its pictures are not kept. */
static struct record_made *bases_of(struct record_bases *bases, uint32_t side)
{
    struct record_base *base;
    LOCK_SCOPE(&bases->lock);

    for (unsigned i = 0; i < bases->n; i++)
        if (bases->base[i]->side == side)
            return &bases->base[i]->made;
    base = bases->n < SIDES_MOST ? calloc(1, sizeof(*base)) : NULL;
    if (!base)
        return NULL;
    record_made_init(&base->made, &bases->setup);
    base->side = side;
    base->made.maker = &base_maker;
    base->made.counts = bases->setup.counts;
    base->made.store = bases->setup.made;
    base->made.keeps = true;
    base->made.identity = bases->identity;
    base->made.unit_bytes = (uint64_t)side * side * 3 / 2;
    base->made.n = bases->like->n;
    memcpy(base->made.source, bases->like->source, base->made.n * sizeof(*base->made.source));
    bases->base[bases->n++] = base;
    return &base->made;
}

static uint64_t base_bytes(const struct picture_base *base)
{
    return HEAD + (uint64_t)base->height * base->width * 3;
}

/* Is it a head that record_bases_put() writes for that side? */
static bool base_head(const uint8_t *head, uint32_t side, struct picture_base *ret)
{
    *ret = (struct picture_base){.file_height = load_le32(head),
                                 .file_width = load_le32(head + 4),
                                 .height = load_le32(head + 8),
                                 .width = load_le32(head + 12)};
    return min_u64(ret->height, ret->width) == side &&
           min_u64(ret->file_height, ret->file_width) > side &&
           base_bytes(ret) <= UNITS * ((uint64_t)side * side * 3 / 2);
}

bool record_bases_get(struct record_bases *bases, struct read_context *rc, const struct dataset *ds,
                      uint64_t record, uint32_t side, struct picture_base *ret)
{
    struct record_made *m = bases_of(bases, side);
    AUTO_FREE uint8_t *bytes = NULL;
    uint64_t unit, n;

    if (!m)
        return false;
    unit = m->unit_bytes;
    bytes = malloc(UNITS * unit);
    if (!bytes || !record_made_read_unit(rc, ds, m, record, 0, bytes) ||
        !base_head(bytes, side, ret))
        return false;
    n = base_bytes(ret);
    for (uint64_t k = 1; k * unit < n; k++)
        if (!record_made_read_unit(rc, ds, m, record, k, bytes + k * unit))
            return false;
    memmove(bytes, bytes + HEAD, n - HEAD);
    ret->rgb = TAKE_PTR(bytes);
    return true;
}

void record_bases_put(struct record_bases *bases, const struct dataset *ds, uint64_t record,
                      uint32_t side, const struct picture_base *base)
{
    struct record_made *m = bases_of(bases, side);
    uint64_t n = base_bytes(base);
    AUTO_FREE uint8_t *bytes = m && n <= UNITS * m->unit_bytes ? malloc(n) : NULL;

    if (!bytes)
        return;
    store_le32(bytes, base->file_height);
    store_le32(bytes + 4, base->file_width);
    store_le32(bytes + 8, base->height);
    store_le32(bytes + 12, base->width);
    memcpy(bytes + HEAD, base->rgb, n - HEAD);
    record_made_keep(m, ds, record, bytes, n);
}
