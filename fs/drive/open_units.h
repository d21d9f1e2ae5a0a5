/* The open units of an active plan: those that are being read and were not pushed.
 *
 * The kernel asks for a large file in pieces, and a read of missing bytes is made again when they
 * came. So a unit is needed until all of it has been returned to its reader. For the stage the
 * reader's cursor begins at the first open unit; otherwise the blocks of that very unit would be
 * those that are needed last.
 *
 * Invariants:
 *  1. Unit u has the place u % OPEN_UNITS_MAX, so two open units are less than OPEN_UNITS_MAX
 * apart, or the earlier one is forgotten.
 *  2. A unit opens when its reader has reached it before the push; so do up to READER_SLACK units
 *     before it that were skipped: other workers read them. It closes when all bytes of all
 *     columns that are read were returned, or when it was stored in the page cache. It does not
 * open again but by a read of itself.
 *  3. The reported place only grows, except units that are pushed again and for a jump.
 *
 * The active plans' lock guards them. */
#ifndef EPOCHFS_FS_DRIVE_OPEN_UNITS_H
#define EPOCHFS_FS_DRIVE_OPEN_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define OPEN_UNITS_MAX 128

struct open_unit {
    bool is_open;
    bool was_open; /* some of it was returned to the reader */
    uint64_t unit;
    uint64_t columns;  /* bits: the columns whose sizes are known, */
    uint64_t bytes;    /* and the sum of these sizes */
    uint64_t returned; /* bytes returned, of all columns */
};

struct open_units {
    struct open_unit at[OPEN_UNITS_MAX];
    uint64_t reported; /* the unit where the cursor was last reported to begin */
};

/* The reader begins, or has jumped: only the units near the start of the epoch up to that one, or
 * that one alone, are open. */
void open_units_start(struct open_units *open, uint64_t unit);

/* The reader reads the unit. It and those from `from` on that were not read yet are open. */
void open_units_reach(struct open_units *open, uint64_t from, uint64_t unit);

bool open_units_has(const struct open_units *open, uint64_t unit);

/* Bytes of a file of that unit and column were returned. size: of the file; UINT64_MAX: unknown.
 * columns: bits, all that are read. True: that closes the unit. */
bool open_units_given(struct open_units *open, uint64_t unit, unsigned column, uint64_t columns,
                      uint64_t bytes, uint64_t size);

/* The unit is in the page cache: its reader gets the rest from there. */
void open_units_stored(struct open_units *open, uint64_t unit);

/* The unit and those after it are needed again: they are to be pushed again. */
void open_units_back(struct open_units *open, uint64_t unit);

/* The first unit that is open, or else front: what is before front and not open has been read, or
 * pushed. */
uint64_t open_units_oldest(const struct open_units *open, uint64_t front);

/* Where the cursor begins: the same, but it only grows. */
uint64_t open_units_first(struct open_units *open, uint64_t front);

#endif
