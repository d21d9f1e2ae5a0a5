/* The rules of reading ahead on the disks of this machine: how much, in which order, and whether
 * to read whole sources in sequence first. No I/O and no clock here. */
#ifndef EPOCHFS_FS_PUSH_AHEAD_RULE_H
#define EPOCHFS_FS_PUSH_AHEAD_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/stage/stage.h"

#define AHEAD_PAGE UINT64_C(4096)
#define AHEAD_GAP  (UINT64_C(8) << 10) /* two ranges no further apart are one request */

/* Bytes of whole pages that may be asked for ahead of all readers. memory: bytes that are free. */
uint64_t ahead_window(uint64_t memory);

/* A range of a blob, in whole pages of it, except at its end. */
struct ahead_range {
    const struct blob *blob;
    uint64_t off, len;
};

/* Make the requests for n needs, in the order of the files: whole pages, with needs merged that are
 * at most AHEAD_GAP apart. Returns how many, at most n. */
size_t ahead_ranges(const struct stage_need *need, size_t n, struct ahead_range *ret);

/* What is known when that is decided. Rates are bytes per second, 0: not measured yet. */
struct ahead_facts {
    uint64_t bytes;    /* of the sources that are read */
    uint64_t missing;  /* bytes of them that were not read in sequence yet */
    uint64_t left;     /* bytes that readers still need in their epochs */
    uint64_t memory;   /* bytes that are free */
    double scattered;  /* bytes of samples that come in their order */
    double sequential; /* bytes that come in the order of the file */
};

/* Are the sources read in sequence now? Only if they fit half of the free memory, and if that
 * takes less than half the time of reading what readers still need sample by sample. Until the
 * first rate is known: no; until the second is: yes, to measure it. */
bool ahead_in_sequence(const struct ahead_facts *facts);

/* Do the sources exceed the memory, so that what readers have passed is better dropped? */
bool ahead_exceeds(uint64_t bytes, uint64_t memory);

#endif
