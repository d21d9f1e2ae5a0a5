/* The reader of an active plan: where it is, and which reads are its own.
 *
 * Several workers of one reader read a little out of order: up to READER_SLACK units behind the
 * furthest one, or ahead of it. A read further away is a jump. A read that goes on where the reader
 * was before it jumped shows that there are two readers.
 *
 * Invariants:
 *  1. at is the furthest unit of which a read has reached us since the last jump.
 *  2. in_sequence counts reads that went on from there, up to READER_SURE. Before that a reader of
 *     samples may be one that reads at random, so nothing is known of what it reads next.
 *  3. A stray is no reader of its own: a worker of another one has read its unit very late. It is
 *     one until it goes on.
 *
 * No function blocks, and none has a lock of its own: the active plans' lock guards it. */
#ifndef EPOCHFS_FS_DRIVE_READER_H
#define EPOCHFS_FS_DRIVE_READER_H

#include <stdbool.h>
#include <stdint.h>

#define READER_SLACK 32 /* units that the workers of one reader may be apart */
#define READER_SURE  3  /* reads of samples in sequence after which the reader is known */

struct reader {
    uint64_t from; /* the unit where it began, or jumped to; an epoch is begun out of order */
    uint64_t at;
    uint64_t jumps;     /* how often it has jumped */
    bool reads_samples; /* it reads samples, perhaps at random */
    unsigned in_sequence;
    uint64_t ghost; /* the unit where it was before it jumped; UINT64_MAX: none */
    bool is_stray;
    uint64_t came;  /* bits: the columns read since the last jump, */
    uint64_t ended; /* and those of which the last unit's file was read to its end */
};

/* A reader of samples, or of batches, whose first read is of that unit. */
void reader_start(struct reader *reader, bool reads_samples, uint64_t unit);

/* May a reader at `at` read the unit now? until: the unit up to which its reads need not reach us.
 */
bool reader_is_close(uint64_t at, uint64_t until, uint64_t unit);

/* Is a read of that unit a jump? A unit that is open (fs/drive/open_units.h) is the caller's
 * exception. */
bool reader_is_jump(const struct reader *reader, uint64_t until, uint64_t unit);

/* Has it jumped often enough in sequence, or does it read batches, so that a jump counts? */
bool reader_is_sure(const struct reader *reader);

/* Does it have a place of its own, so that what it reads next is known? */
bool reader_is_live(const struct reader *reader);

/* A read that is a jump. True: it goes on where this reader was before its own jump, so the read is
 * another reader's and this one stays where it is. False: this reader is at that unit now. */
bool reader_splits(struct reader *reader, uint64_t unit);

/* A read of a unit further on. */
void reader_moves(struct reader *reader, uint64_t unit);

/* A file of that column was read. */
void reader_comes(struct reader *reader, unsigned column);

/* The last unit's file of that column was read to its end. */
void reader_ends(struct reader *reader, unsigned column);

/* Has it read the last unit's file of each column that it reads to its end? */
bool reader_is_over(const struct reader *reader);

#endif
