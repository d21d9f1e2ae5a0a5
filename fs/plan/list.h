/* The list of only=NAME: samples of the dataset, in the order in which a plan takes them. Read-only
 * arrays that outlive the schedules that use them.
 *
 * A list takes 4 bytes per line. If samples are looked for in it, for staging, the way back takes
 * up to 1/2 more in ascending order, otherwise 5 1/2. Samples that are looked for together wait for
 * memory together. */
#ifndef EPOCHFS_FS_PLAN_LIST_H
#define EPOCHFS_FS_PLAN_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Samples have 4 bytes, so lists and the samples that they name are below this. */
#define PLAN_LIST_MOST (UINT64_C(1) << 32)

#define PLAN_ENTRY_BYTES 5
#define PLAN_ENTRY_PAD   3 /* bytes that follow the last one, so that it is read as a number */

/* A sample may be in it several times. Its entries are its places in the order of samples, those of
 * one sample by place; each bucket of neighbouring samples has some. */
struct plan_list {
    uint64_t n;             /* > 0, < PLAN_LIST_MOST */
    const uint32_t *sample; /* [n] in the list's order */
    const uint8_t *entry;   /* [n] of PLAN_ENTRY_BYTES, lowest byte first: the last bits of its
                               sample, and the place below them. NULL: the list is in ascending
                               order already, so entries are places */
    const uint32_t *start;  /* [buckets + 1] of each bucket, its first entry. NULL: there is no
                               way back, and no entries */
    uint32_t buckets;
    unsigned shift;      /* a sample is in bucket sample >> shift, and has as many last bits */
    unsigned place_bits; /* of a place */
};

/* Sample and place of an entry as one number; within a bucket they rise. */
static inline uint64_t plan_list_entry(const struct plan_list *list, uint64_t entry)
{
    const uint8_t *bytes = list->entry + entry * PLAN_ENTRY_BYTES;
    uint64_t word;

    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        memcpy(&word, bytes, sizeof(word));
        return word & ((UINT64_C(1) << 8 * PLAN_ENTRY_BYTES) - 1);
    }
    word = bytes[PLAN_ENTRY_BYTES - 1];
    for (unsigned i = PLAN_ENTRY_BYTES - 1; i--;)
        word = word << 8 | bytes[i];
    return word;
}

/* The place of an entry. */
static inline uint64_t plan_list_place(const struct plan_list *list, uint64_t entry)
{
    return list->entry ? plan_list_entry(list, entry) & ((UINT64_C(1) << list->place_bits) - 1)
                       : entry;
}

#define PLAN_LIST_AT_ONCE 64

/* Consecutive samples. */
struct plan_samples {
    uint64_t first, last;
};

/* `begin` up to, not including, `end`. */
struct plan_entries {
    uint64_t begin, end;
};

/* The entries of count ranges of samples, at most PLAN_LIST_AT_ONCE, each with first <= last. The
 * list has a way back. */
void plan_list_find(const struct plan_list *list, size_t count, const struct plan_samples *wanted,
                    struct plan_entries *ret);

#endif
