/* Pictures that are made for a plan. Only this room includes it. */
#ifndef EPOCHFS_FORMAT_AUGMENT_MADE_H
#define EPOCHFS_FORMAT_AUGMENT_MADE_H

#include "base/checked.h"
#include "base/memo.h"
#include "format/augment/options.h"
#include "format/core/plan_fields.h"
#include "format/picture/augment.h"

#define MADE_AT_ONCE 64           /* pictures, at most */
#define BLOCK_BYTES  (256u << 10) /* of a block: small pictures that are read at once */
#define BLOCK_MOST   16           /* of its pictures */

/* The pictures of a block, each of so many bytes. */
static inline unsigned block_pictures(uint64_t bytes)
{
    return (unsigned)min_u64(max_u64(BLOCK_BYTES / bytes, 1), BLOCK_MOST);
}

/* How the pictures of a dataset are made; the impl of its plan fields. */
struct augment_impl {
    const struct picture_source *files; /* NULL: they are items of: */
    const struct field *array;          /* uint8, of one shape */
    unsigned channels;                  /* 3, or 1 */
    bool is_planar;                     /* [3][height][width] */
    unsigned mask_channels;             /* of masks, 1 or 3; 0: there are none */
    const struct normalize *normalize;  /* of image_norm; NULL: there is none */
    const struct augment_options *options;
    struct memo *memo;
    struct pool *pool;
    struct stored_norm {
        const struct normalize *normalize;
        bool is_planar;
    } norm; /* of the image_norm of items that are stored, or decoded without a plan */
};

/* One picture. */
struct made_picture {
    bool is_bad;
    bool is_mask; /* it is a mask that is bad, of a picture that is not */
    struct augment_done done;
    uint8_t
        bytes[]; /* the item, in the layout of the field, or a mask; or why it is bad, as text */
};

/* Where the colors of an item of that shape are, for an item at bytes. */
struct picture_array augment_layout(bool is_planar, unsigned channels, uint32_t height,
                                    uint32_t width, const uint8_t *bytes);

/* A walk over the pictures of a selection in ascending order. Those that come next are made with
 * one that is needed, in the threads of the pool. */
struct made_walk {
    struct read_context *rc;
    const struct dataset *ds;
    const struct augment_impl *impl;
    const struct selection *sel;
    bool masks;     /* it is over their masks */
    unsigned each;  /* how many pictures are one block, which is remembered as one thing */
    uint64_t first; /* of a block; places first to first + n - 1 are looked up: */
    unsigned n, n_needed;
    uint64_t sample[MADE_AT_ONCE], position[MADE_AT_ONCE];
    uint64_t missing;         /* bytes of those before this place are missing */
    struct memo_thing *thing; /* of the block from this place on; NULL: of none */
    uint64_t thing_first;
};
void made_walk_init(struct made_walk *w, struct read_context *rc, const struct dataset *ds,
                    const struct augment_impl *impl, const struct selection *sel, bool masks);
void made_walk_release(struct made_walk *w);

/* The picture at a place, until the next call; needed: how many from there on are to be read. 0, or
 * -errno with the reason in d; -EAGAIN by the rule of missing_go_on(). */
int made_walk_at(struct made_walk *w, uint64_t place, uint64_t needed,
                 const struct made_picture **ret, struct diag *d);

/* Write bytes [off, off + len) of the normalized item [channels][height][width] of the pixels.
 * done: of a made picture, whose erased box is 0; NULL. */
void norm_write(const struct normalize *n, const struct picture_array *pixels,
                const struct augment_done *done, uint64_t off, size_t len, uint8_t *dst);

/* A field of plans, as the impl of its plan fields says. */
struct shown {
    struct field_ops ops;
    /* The form of its array, without the number of items. */
    void (*form)(const struct augment_impl *impl, const struct picture_plan *plan,
                 struct form *ret);
    /* Write bytes [off, off + len) of the item of a picture that is not bad. */
    void (*write)(const struct augment_impl *impl, const struct picture_plan *plan,
                  const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst);
};
extern const struct shown made_image, made_box, made_ok, made_norm, made_mask;
extern const struct field_ops stored_norm_ops; /* without impl, which is the format's */

/* Is a field of pictures: uint8 items of one shape? */
bool augment_is_picture(const struct field *f, unsigned *ret_channels, bool *ret_planar);

#endif
