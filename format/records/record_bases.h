/* Pictures whose short side is scaled to a number of pixels, kept by decoded_cache= for plans whose
 * recipe has `base`. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_BASES_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_BASES_H

#include "format/core/plan_fields.h"
#include "format/records/record_made.h"

struct record_bases;

/* They have the records and files of `like`, which the caller frees after *ret. 0 or -ENOMEM. */
int record_bases_new(const struct format_setup *setup, const struct record_made *like,
                     int (*identity)(const struct dataset *ds, struct text *t),
                     struct record_bases **ret);
void record_bases_free(struct record_bases *bases); /* takes NULL */

/* As kept() and keep() of struct picture_source. */
bool record_bases_get(struct record_bases *bases, struct read_context *rc, const struct dataset *ds,
                      uint64_t record, uint32_t side, struct picture_base *ret);
void record_bases_put(struct record_bases *bases, const struct dataset *ds, uint64_t record,
                      uint32_t side, const struct picture_base *base);

#endif
