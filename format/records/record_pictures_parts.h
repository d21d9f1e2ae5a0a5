/* What the files of pictures of records share: record_pictures.c (arrays of the size that is
 * wanted) and record_thumbnails.c. Only they include this. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_PICTURES_PARTS_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_PICTURES_PARTS_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/pool.h"
#include "format/core/plan_fields.h"
#include "format/picture/kind.h"
#include "format/records/record_pictures.h"

#define CHANNELS 3

struct record_picture {
    struct record_content content; /* first: fields have its address */
    struct record_pictures *all;
};

struct record_pictures {
    struct picture_source plan_source; /* first: for plans; of thumbnails, as is: */
    struct made_counts *plan_counts;   /* may be NULL */
    const struct record_content *mask; /* NULL: there are none */
    uint32_t height, width;
    struct memo *memo;
    struct pool *pool;
    struct made_counts *counts; /* may be NULL */
    int (*identity)(const struct dataset *ds, struct text *t);
    unsigned n;
    const struct record_content *source[RECORD_PICTURES_MOST]; /* [n] */
    const char *ext[RECORD_PICTURES_MOST];                     /* [n] of source, without a dot */
    bool fills;                                                /* batches have filled, not strict */
    struct record_picture strict;                              /* fails where the picture is bad */
    struct record_picture filled;                              /* is zeros there */
    struct record_picture ok;                                  /* false there */
    struct record_picture boxed;                               /* a crossed box there */
    struct lock lock;
    _Atomic bool keeps;               /* false: nothing is kept, or it cannot be opened */
    struct made_store *store;         /* NULL: none */
    _Atomic(struct made_file *) kept; /* opened at first use */
};

/* What the memo keeps. */
struct made {
    bool is_bad;
    enum picture_kind type; /* of a picture that is not bad */
    uint8_t bytes[];        /* the array; or why it is bad, as text */
};

static inline struct record_pictures *pictures_of(const struct record_content *c)
{
    return ((const struct record_picture *)c)->all;
}

/* Contents have these as their ops, and say where they are in messages. source(): the content that
 * has a record's picture, or NULL. get(): the caller lets go of *ret, a struct made. content(): set
 * up one of the pictures of p, whose axes are constant but for holes. */
const struct record_content *record_picture_source(const struct record_pictures *p,
                                                   const struct dataset *ds, uint64_t record);
void record_picture_where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                          char ret[static RECORD_WHERE]);
int record_picture_get(struct read_context *rc, const struct dataset *ds,
                       const struct record_content *c, uint64_t record, struct memo_thing **ret,
                       struct diag *d);
bool record_picture_has(const struct dataset *ds, const struct record_content *c, uint64_t record);
bool record_picture_extent(const struct dataset *ds, const struct record_content *c,
                           uint64_t record, struct extent *ret);
bool record_picture_is_made(const struct dataset *ds, const struct record_content *c,
                            uint64_t record);
int record_picture_make(struct read_context *rc, const struct dataset *ds,
                        const struct record_content *c, const uint64_t *record, unsigned n,
                        unsigned n_needed);
void record_picture_content(struct record_pictures *p, struct record_picture *picture,
                            bool has_holes, bool is_parsed);

#endif
