/* The fields of plans. Those that make pictures (picture=, augment=) take the place of the
 * dataset's fields that show its pictures in another way, in npy and npz of batches alone; with
 * unit= npz says where units begin. Nothing else of the dataset knows them, so that all other files
 * stay as they are. */
#ifndef EPOCHFS_FORMAT_CORE_PLAN_FIELDS_H
#define EPOCHFS_FORMAT_CORE_PLAN_FIELDS_H

#include "format/core/dataset.h"

#define PICTURE_EXTENTS 2

struct picture_base;

/* Where pictures come from that are files; a format embeds it in what is its own. */
struct picture_source {
    char name[FIELD_NAME_SIZE]; /* of the field of their arrays */
    bool has_holes;             /* there may be samples without a picture */
    bool has_pairs;             /* samples have other pictures, such as masks */
    bool zeros_bad;             /* one that cannot be decoded is zeros */
    bool has_masks;             /* each sample has one */
    /* Read the file of a sample's picture, or of its mask: malloc'd. 0, or -errno with the reason
     * in d; -EBADMSG, -EFBIG, -EOPNOTSUPP: it is bad for good. Any thread. */
    int (*read)(struct read_context *rc, const struct dataset *ds, uint64_t sample, bool mask,
                uint8_t **ret, size_t *ret_len, struct diag *d);
    /* Add where it is, for messages. */
    void (*where)(const struct dataset *ds, uint64_t sample, bool mask, struct text *t);
    /* The bytes of a source that read() needs, of the picture and of the mask:
     * ret[PICTURE_EXTENTS]. Returns how many. */
    unsigned (*extents)(const struct dataset *ds, uint64_t sample, struct extent *ret);
    /* NULL without decoded_cache=. Get the picture whose short side is scaled to that many
     * pixels, with pixels that are the caller's. false: it is not kept. */
    bool (*kept)(struct read_context *rc, const struct dataset *ds, uint64_t sample, uint32_t side,
                 struct picture_base *ret);
    void (*keep)(const struct dataset *ds, uint64_t sample, uint32_t side,
                 const struct picture_base *base);
};

#define PLAN_FIELDS_MOST 6

struct plan_fields {
    unsigned n;
    struct field field[PLAN_FIELDS_MOST]; /* [n] image first. No dims: forms follow from the plan */
    const struct field *base;             /* of pictures that are an array; NULL: they are files */
    const char *replaced; /* the name of the dataset's field in whose place they are */
    const char *refused;  /* why no plan may have them; NULL: plans may */
    void *impl;           /* of format/augment; owned, one piece of memory */
};

void plan_fields_free(struct plan_fields *fields); /* takes NULL */

/* The fields of batches of a plan that makes pictures, or of another one, by numbers below
 * plan_fields_count(). units: of plan_fields_units(), or NULL. NULL: the dataset's field of that
 * number is not shown there. */
unsigned plan_fields_count(const struct dataset *ds, bool makes_pictures,
                           const struct field *units);
const struct field *plan_fields_at(const struct dataset *ds, bool makes_pictures,
                                   const struct field *units, unsigned i);

/* The field of a plan with unit=NAME: NAME_offsets, int64 [units + 1], has the place where each
 * unit of a batch begins. Where a field of the dataset has that name, it is unit_offsets. */
void plan_fields_units(const struct dataset *ds, const char *name, struct field *ret);

/* Is it one of them? */
bool plan_field_is(const struct dataset *ds, const struct field *f);

#endif
