/* Pictures of records as arrays of one size: the field `image` of a dataset some of whose contents
 * are the bytes of files of pictures, for -o picture=; and their thumbnails. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_PICTURES_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_PICTURES_H

#include "format/core/format.h"
#include "format/records/record_made.h"

#define RECORD_PICTURES_MOST   RECORD_MADE_SOURCES
#define RECORD_PICTURES_FIELDS 10 /* that are added, at most, with that of thumbnails */
#define RECORD_THUMBNAIL       64 /* pixels along each side */

struct record_pictures;

/* Is that the extension of a picture? */
bool record_pictures_is_ext(const char *ext);

/* Are there other columns of pictures than those n_found, such as masks? */
bool record_pictures_have_pairs(const struct record_column *column, unsigned n, unsigned n_found);

/* The column of masks of the pictures in n_found columns: the first one. A note says what is not
 * used. -1: there is none. */
int record_pictures_find_mask(const struct record_column *column, unsigned n, const unsigned *found,
                              unsigned n_found, struct notes *notes);

/* Add the fields, under that name. The picture of a record is in the first of n contents that the
 * record has; has_holes: there are records that have none. The caller frees *ret with the dataset.
 * 0 or -ENOMEM. */
struct record_pictures_source {
    const struct record_content *const *content;
    unsigned n;
    bool has_holes;
    /* Add a text that differs wherever a record of the dataset may differ. 0 or -errno. */
    int (*identity)(const struct dataset *ds, struct text *t);
};
int record_pictures_add(struct dataset *ds, const struct format_setup *setup, const char *name,
                        const struct record_pictures_source *source, struct record_pictures **ret);
/* The same for thumbnails, which are a field for what is drawn, and for the check, which reports
 * pictures that cannot be decoded or are not what their extensions say. column: those of the
 * dataset, which outlive it. */
int record_thumbnails_add(struct dataset *ds, const struct format_setup *setup,
                          const struct record_content *const *source,
                          const struct record_column *column, unsigned n,
                          struct record_pictures **ret);
/* Let plans make pictures of the files that p is of, as arrays of that name. */
struct record_pictures_offered {
    const char *name;
    bool has_holes, has_pairs;
    const struct record_content *mask; /* that each record has; NULL: there are none */
    int (*identity)(const struct dataset *ds, struct text *t); /* see record_pictures_source */
};
int record_pictures_offer(struct dataset *ds, struct record_pictures *p,
                          const struct format_setup *setup,
                          const struct record_pictures_offered *offered);
void record_pictures_free(struct record_pictures *p); /* takes NULL */

/* Members of dataset.json: see describe() of struct dataset_ops. */
void record_pictures_describe(const struct record_pictures *p, const char *indent, struct text *t);

#endif
