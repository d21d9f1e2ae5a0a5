#include "fs/drive/extent_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/checked.h"
#include "format/core/extents.h"

struct piece {
    uint64_t low, high; /* samples that have bytes here; low > high: none */
};

/* A blob, whose pieces are consecutive. */
struct place {
    const struct blob *blob; /* NULL: the slot is free */
    size_t first;            /* piece */
};

struct extent_map {
    const struct dataset *ds;
    uint64_t done; /* samples that are in the map */
    size_t n_pieces;
    struct piece *piece; /* [n_pieces] */
    size_t n_blobs;
    size_t places;       /* a power of two, more than twice n_blobs */
    struct place *place; /* [places] by the hash of the blob's address */
    struct place last;   /* the place found last; only the thread that makes the map uses it */
};

int extent_map_new(const struct dataset *ds, struct extent_map **ret)
{
    struct extent_map *map = calloc(1, sizeof(*map));

    if (!map)
        return -ENOMEM;
    map->ds = ds;
    map->places = 16;
    map->place = calloc(map->places, sizeof(*map->place));
    if (!map->place) {
        free(map);
        return -ENOMEM;
    }
    *ret = map;
    return 0;
}

void extent_map_free(struct extent_map *map)
{
    if (!map)
        return;
    free(map->piece);
    free(map->place);
    free(map);
}

/* The slot of a blob, or the free slot for it. */
static struct place *extent_map_find_place(struct place *place, size_t places,
                                           const struct blob *blob)
{
    size_t i = (size_t)((uintptr_t)blob * UINT64_C(0x9e3779b97f4a7c15) >> 32);

    for (i &= places - 1; place[i].blob && place[i].blob != blob; i = (i + 1) & (places - 1))
        continue;
    return &place[i];
}

static int extent_map_grow(struct extent_map *map)
{
    size_t places = map->places * 2;
    struct place *place = calloc(places, sizeof(*place));

    if (!place)
        return -ENOMEM;
    for (size_t i = 0; i < map->places; i++)
        if (map->place[i].blob)
            *extent_map_find_place(place, places, map->place[i].blob) = map->place[i];
    free(map->place);
    map->place = place;
    map->places = places;
    return 0;
}

/* The first piece of a blob; a new blob is added. */
static int blob_pieces(struct extent_map *map, const struct blob *blob, size_t *ret)
{
    uint64_t pieces = ceil_div(blob->size, EXTENT_MAP_PIECE);
    struct place *place;

    if (map->last.blob != blob) {
        if (map->n_blobs * 2 >= map->places && extent_map_grow(map) < 0)
            return -ENOMEM;
        place = extent_map_find_place(map->place, map->places, blob);
        if (!place->blob) {
            size_t first = map->n_pieces;

            for (uint64_t i = 0; i < pieces; i++) {
                if (array_capacity(&map->piece, map->n_pieces, sizeof(*map->piece)) < 0)
                    return -ENOMEM;
                map->piece[map->n_pieces++] = (struct piece){UINT64_MAX, 0};
            }
            *place = (struct place){blob, first};
            map->n_blobs++;
        }
        map->last = *place;
    }
    *ret = map->last.first;
    return 0;
}

static int add_extent(struct extent_map *map, const struct extent *e, uint64_t sample)
{
    size_t first;

    if (blob_pieces(map, e->blob, &first) < 0)
        return -ENOMEM;
    for (uint64_t i = e->off / EXTENT_MAP_PIECE; i <= (e->off + e->len - 1) / EXTENT_MAP_PIECE;
         i++) {
        struct piece *piece = &map->piece[first + i];

        /* Samples come in ascending order. */
        piece->low = min_u64(piece->low, sample);
        piece->high = sample;
    }
    return 0;
}

int extent_map_step(struct extent_map *map, uint64_t samples)
{
    uint64_t end = min_u64(map->ds->samples - map->done, samples) + map->done;
    struct extent extent[EXTENTS_MOST];

    for (; map->done < end; map->done++) {
        unsigned n = dataset_extents(map->ds, map->done, NULL, extent);

        for (unsigned i = 0; i < n; i++)
            if (add_extent(map, &extent[i], map->done) < 0)
                return -ENOMEM;
    }
    return map->done == map->ds->samples;
}

bool extent_map_find(const struct extent_map *map, const struct blob *blob, uint64_t off,
                     uint64_t len, uint64_t *ret_first, uint64_t *ret_last)
{
    const struct place *place = extent_map_find_place(map->place, map->places, blob);
    struct piece all = {UINT64_MAX, 0};

    if (!place->blob || off >= blob->size || !len)
        return false;
    len = min_u64(len, blob->size - off);
    for (uint64_t i = off / EXTENT_MAP_PIECE; i <= (off + len - 1) / EXTENT_MAP_PIECE; i++) {
        const struct piece *piece = &map->piece[place->first + i];

        all.low = min_u64(all.low, piece->low);
        all.high = max_u64(all.high, piece->high);
    }
    *ret_first = all.low;
    *ret_last = all.high;
    return all.low <= all.high;
}
