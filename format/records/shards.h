/* Shards: several files that are one dataset: the records of the first file, then those of the
 * second, and so on. What is done for all of them: preparing, progress, the file of a record,
 * shares. There may be 100,000 of them, so a step of preparing begins where the last one ended, and
 * a record's file is found in O(log n).
 *
 * Files are prepared side by side where the format allows it: far ones SHARDS_FAR at a time,
 * because a pass mostly waits for bytes; those of this machine by as many threads as there are
 * processors. The threads end before the step does, so "one thread prepares" holds for each file.
 * The result does not depend on which file is first: the error is that of the first bad file in the
 * order of files. */
#ifndef EPOCHFS_FORMAT_RECORDS_SHARDS_H
#define EPOCHFS_FORMAT_RECORDS_SHARDS_H

#include "base/clock.h"
#include "format/core/dataset.h"
#include "format/records/record_file.h"

#define SHARDS_ALL "all" /* the dataset of all files of a folder */
#define SHARDS_FAR 16    /* files that are prepared side by side, at most */

struct shards {
    unsigned n;
    struct record_file **file; /* [n] each with this as one of its users */
    uint64_t *byte;            /* [n + 1] where each file begins in the files in sequence */
    bool is_far;               /* a file is not on this machine */
    const struct clock *clock; /* of the steps; NULL: the system's */

    /* The preparing thread's: */
    unsigned ready;     /* files 0 .. ready - 1 are */
    unsigned failed_at; /* the first file that has failed for good; UINT_MAX: none has */

    /* Once all are ready: */
    uint64_t *first; /* [n + 1] the record that each file begins with */
};

/* Makes room for n files. 0 or -ENOMEM. */
int shards_init(struct shards *ret, unsigned n);

/* Become a user of one more file, which the caller has counted. */
void shards_add(struct shards *s, struct record_file *file);

void shards_release(struct shards *s); /* of one that starts as {0} */

/* Prepare the files a step further. 1: all are ready, 0: not yet, or -errno of a file with the
 * reason in d. */
int shards_prepare(struct shards *s, struct diag *d);

/* progress() of struct dataset_ops. The impl of a dataset of shards begins with them, here and
 * below. */
void shards_progress(const struct dataset *ds, uint64_t *ret_done, uint64_t *ret_total);

/* The number of the file of a record, which is below the number of records; *ret_own: the record's
 * number in that file. */
unsigned shards_find(const struct shards *s, uint64_t record, uint64_t *ret_own);

/* share() of struct dataset_ops, by bytes: dmlc's rule (input_split_base.cc, ResetPartition). */
void shards_share(const struct dataset *ds, uint64_t part, uint64_t parts, uint64_t *ret_start,
                  uint64_t *ret_length);

/* Are the n files of a folder also one dataset? 1: yes; 0: no: there is only one, or a file of the
 * folder cannot be read now, which is reported; or -ENOMEM. */
int shards_join(size_t n, struct finds *finds);

#endif
