/* Makes an index of labels from the values of a field, in steps, in a file.
 *
 * It takes one pass over the values, which it keeps in the file where the result will be, and one
 * or two over the file. Memory does not grow with the samples, but has 28 bytes for each class and
 * up to 32 MiB. */
#ifndef EPOCHFS_FORMAT_LABELS_LABEL_MAKE_H
#define EPOCHFS_FORMAT_LABELS_LABEL_MAKE_H

#include "base/diag.h"
#include "base/index_store.h"
#include "format/labels/label_file.h"

struct label_making;
struct read_context;

/* Where the values come from. */
struct label_input {
    uint64_t n;       /* values, < LABEL_SAMPLES_MAX */
    bool are_floats;  /* values are doubles, otherwise int64_t */
    unsigned digits;  /* of floats: binary ones that their type has */
    bool are_lengths; /* for messages */
    bool are_sums;    /* LABEL_WEIGHTS: integer weights that are taken as they are */
    /* Write the values of samples first .. first + count - 1, count <= LABEL_READ. 0 or -errno with
     * the reason in d. */
    int (*read)(const struct label_input *input, struct read_context *rc, uint64_t first,
                size_t count, void *ret, struct diag *d);
    /* Classes are numbered once all values are known: replace n of the values that read() has
     * given, by those of their classes. 0 or -ENOMEM. NULL: they are the values themselves. */
    int (*number)(const struct label_input *input, int64_t *value, uint32_t n);
    /* Name a sample in a message. */
    void (*where)(const struct label_input *input, uint64_t sample, char *ret, size_t size);
    const char *name; /* of dataset and field, for messages */
};

/* Read values that are classes: whole numbers, of whichever type. count <= LABEL_READ; as
 * input->read(), and -EBADMSG. */
int label_read_whole(const struct label_input *input, struct read_context *rc, uint64_t first,
                     size_t count, int64_t *ret, struct diag *d);

#define LABEL_READ (1u << 18) /* values of a step */

/* file: empty, for reading and writing; the caller's. input must outlive ret. 0 or -ENOMEM. */
int label_making_new(enum label_purpose type, const struct label_input *input,
                     struct kept_file *file, struct label_making **ret);
void label_making_free(struct label_making *making); /* takes NULL */

/* Go on for a moment. 1: the file has the index, and is not committed; 0: not yet; -EREMOTEIO and
 * -EINTR: the next call goes on; -ENOSPC, -EIO: the file cannot be written; or another -errno: the
 * values have no index. The reason is in d. */
int label_making_step(struct label_making *making, struct read_context *rc, struct diag *d);

/* How many values were read. */
uint64_t label_making_done(const struct label_making *making);

/* Weights as integers (docs/spec/order.md): w * 2^k to the nearest, a half to the even one, but 1
 * for less than 1; 0 for 0. most: the largest weight of n. */
int label_weight_shift(double most, uint64_t n);
uint64_t label_weight(double w, int shift);

#endif
