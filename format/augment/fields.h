/* The fields of a dataset that show made pictures, and normalized ones. */
#ifndef EPOCHFS_FORMAT_AUGMENT_FIELDS_H
#define EPOCHFS_FORMAT_AUGMENT_FIELDS_H

#include "format/augment/options.h"
#include "format/core/dataset.h"
#include "format/picture/augment.h"

struct memo;
struct pool;

/* What the fields work with. All of it outlives the datasets. */
struct augment_tools {
    const struct augment_options *options;
    struct memo *memo;
    struct pool *pool;
};

/* Add them to a dataset that has all other fields: plan fields if it has pictures, and image_norm
 * if the options ask for it. 0 or -ENOMEM. */
int augment_fields_add(struct dataset *ds, const struct augment_tools *tools);

/* Can the dataset's pictures be made like that? Sets the size of plans without one: that of the
 * arrays. 0, or -EINVAL with the reason in d. */
int augment_check(const struct dataset *ds, struct picture_plan *plan, struct diag *d);

/* Add members of dataset.json; each line begins with indent and ends with a comma. */
void augment_describe(const struct dataset *ds, const char *indent, struct text *t);

#endif
