/* Slabs: numbers of many records that are costly to read one by one, such as the rows of a table,
 * are read a block of places of a selection at a time, all columns at once, and remembered: readers
 * read an array a range at a time, need its checksum first, and the other columns of the same rows
 * next. The following blocks are read ahead, in the threads of the pool. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_SLABS_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_SLABS_H

#include "format/core/format.h"
#include "format/records/record_items.h"

#define SLAB_RECORDS 256 /* at most */
#define SLABS_AHEAD  8   /* that are made at once, at most */

/* Slabs of a selection, while it is read. Starts with what is first set, and all else 0. */
struct slab_reader {
    struct read_context *rc;
    const struct selection *sel;
    struct memo *memo;
    struct pool *pool;
    const void *owner; /* first word of the memo's keys */
    const void *ctx;
    unsigned places; /* of the selection, of a slab */
    /* Make slab number block: malloc'd memory, and its size. 0 or -errno with the reason in d. Also
     * in threads of the pool. */
    int (*make)(const struct slab_reader *reader, uint64_t block, void **ret, size_t *ret_size,
                struct diag *d);
    /* How many slabs are small enough together to be made at once, from this one on. */
    uint64_t (*together)(const struct slab_reader *reader, uint64_t block);

    /* Private: slabs that were tried ahead; bit i of missing: bytes of tried + i are noted. */
    uint64_t tried, n_tried;
    unsigned missing;
};

/* Get a slab, which the caller lets go. 0, or -errno with the reason in d, -EAGAIN by the rule of
 * missing_go_on() included. */
int slab_get(struct slab_reader *reader, uint64_t block, struct memo_thing **ret, struct diag *d);

struct record_slabs {
    struct memo *memo;
    struct pool *pool;
    size_t bytes;   /* of a record: all its numbers */
    unsigned count; /* records of a slab, SLAB_RECORDS at most */
    /* Read n records into dst, a column after the other. The bytes are those of files that have not
     * changed. 0, or -errno with the reason in d, -EAGAIN by the rule of missing_go_on() included.
     */
    int (*read)(struct read_context *rc, const struct dataset *ds, const uint64_t *record,
                unsigned n, uint8_t *dst, struct diag *d);
};

/* Slabs of records of so many bytes, from which count follows; 0: none can be. */
void record_slabs_init(struct record_slabs *ret, const struct format_setup *setup, uint64_t bytes);

/* As record_items_read_even() of a content that has slabs. */
int record_slabs_read(struct record_items *items, uint64_t each, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d);

#endif
