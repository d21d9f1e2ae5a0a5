/* The table of contents of `.epochfs/`: a text that strangers may have written.
 * docs/spec/index-format.md has its lines. */
#ifndef EPOCHFS_CACHE_SOURCE_SHARED_TABLE_H
#define EPOCHFS_CACHE_SOURCE_SHARED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/diag.h"
#include "base/scope.h"
#include "cache/disk/sha256.h"

#define SHARED_INDEX_FOLDER ".epochfs"
#define SHARED_INDEX_TABLE  "index.txt" /* the table of contents */
#define SHARED_INDEX_HEAD   "epochfs-index 3\n"
#define SHARED_INDEX_HEAD_2 "epochfs-index 2\n" /* each index is a file */
#define SHARED_INDEX_HEAD_1 "epochfs-index 1\n" /* its files have no versions */
#define SHARED_INDEX_MOST   (UINT64_C(1) << 30) /* bytes of an index */
#define SHARED_JOINED_MOST  (UINT64_C(8) << 20) /* bytes of the file with all indexes */

/* A line of the table: a source file, or a file of `.epochfs/`. */
struct shared_line {
    uint64_t size;
    char sum[DIGEST_TEXT_SIZE]; /* of a source file: of its blocks */
    const char *version;        /* of a source file; "": not known. In the table's text */
    const char *name;           /* the same */
    uint64_t at;                /* of an index: byte offset in the joined file */
};

struct shared_table {
    char *text;                       /* owned */
    struct shared_line *file, *index; /* [n_files], [n_indexes]; sorted by name; owned */
    size_t n_files, n_indexes;
    struct shared_line listing; /* name NULL: there is none */
    struct shared_line joined;  /* the file with all indexes, in their order; name NULL: none */
    struct timespec written;    /* when; 0: not known */
};

/* Read the text of a table, which is taken over, on error as well. 0; -EBADMSG with the reason in
 * d; -ENOMEM. */
int shared_table_read(char *text, size_t len, struct shared_table *ret, struct diag *d);
void shared_table_release(struct shared_table *table);

/* The line of that name; NULL: there is none. */
const struct shared_line *shared_line_find(const struct shared_line *line, size_t n,
                                           const char *name);

#endif
