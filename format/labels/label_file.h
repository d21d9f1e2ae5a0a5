/* The bytes of an index of labels (docs/spec/cache-format.md): of one scalar field of n samples,
 * either the classes of an integer field, or the sums of weights; or lengths.
 *
 * They are used where they are, mapped, and are hostile: label_file_check() looks at each number
 * once. Nothing of format/ is needed here but base/. */
#ifndef EPOCHFS_FORMAT_LABELS_LABEL_FILE_H
#define EPOCHFS_FORMAT_LABELS_LABEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LABEL_FILE_MAGIC   "epochlab"
#define LABEL_FILE_VERSION 1
#define LABEL_FILE_ORDER   UINT32_C(0x01020304) /* numbers are in the order of the machine */
#define LABEL_FILE_BODY    4096                 /* bytes before the numbers */
#define LABEL_CLASSES_MAX  (UINT64_C(1) << 20)
#define LABEL_SAMPLES_MAX  (UINT64_C(1) << 32) /* fewer samples than this */

/* LABEL_UNITS is in no file: they are runs of LABEL_CLASSES. */
enum label_purpose { LABEL_CLASSES = 1, LABEL_WEIGHTS = 2, LABEL_LENGTHS = 3, LABEL_UNITS };

/* The start of the file; zeros follow, up to the body. */
struct label_head {
    uint8_t magic[8];
    uint32_t version;
    uint32_t crc; /* CRC-32C of all that follows */
    uint32_t order;
    uint32_t type;
    uint64_t n;
    uint64_t classes; /* 0 for others */
};

/* What the bytes say; points into them, except label and begin. */
struct label_arrays {
    enum label_purpose type;
    uint64_t n; /* samples */

    /* For classes: the distinct values, in ascending order, none without samples. */
    uint64_t classes;
    const int64_t *label;   /* [classes] */
    const uint64_t *begin;  /* [classes + 1] where each begins in member */
    const uint32_t *member; /* [n] samples, class after class, ascending within each */
    const uint32_t *where;  /* [n] member[where[sample]] = sample */

    /* For weights: */
    const uint64_t *sum; /* [n + 1] of the weights of the samples before each */

    const uint32_t *length; /* [n] of lengths */
};

/* Bytes of the file; n < LABEL_SAMPLES_MAX, classes <= LABEL_CLASSES_MAX. */
uint64_t label_file_size(enum label_purpose type, uint64_t n, uint64_t classes);

/* Where its parts begin: where[] and member[], label[] and begin[]; sum[] and length[] begin at the
 * body. */
static inline uint64_t label_file_member(uint64_t n)
{
    return LABEL_FILE_BODY + 4 * n;
}

static inline uint64_t label_file_label(uint64_t n)
{
    return LABEL_FILE_BODY + 8 * n;
}

static inline uint64_t label_file_begin(uint64_t n, uint64_t classes)
{
    return label_file_label(n) + 8 * classes;
}

/* Take an index of that kind, of n samples, from bytes at an address that 8 divides. 0, or
 * -EBADMSG: it is damaged, or another; or -ENOMEM. Reads all of it. Others may change the bytes at
 * any time. So label[] and begin[], which lead into arrays, are in *ret_tables, which the caller
 * frees; NULL for others. Each other number must be bounded where it is used. */
int label_file_check(const uint8_t *bytes, size_t size, enum label_purpose type, uint64_t n,
                     struct label_arrays *ret, void **ret_tables);

#endif
