/* Shared indexes: indexes that `epochfs index` wrote, and that lie beside the data in `.epochfs/`.
 *
 * It is an index store in front of the cache folder's: what is not kept there is looked for in
 * SOURCE/.epochfs/, and then kept. docs/index.md has the bytes of the files.
 *
 * Identities of kept indexes contain the versions of source files, such as an ETag or an inode
 * number, which no copy has. Here each is replaced by what is the same in all copies: the name of
 * the file below SOURCE, its size, and a SHA-256 of four of its blocks. On this machine the file
 * must not be newer than the table, too.
 *
 * What is in `.epochfs/` is hostile. The table of contents is checked line by line, an index has to
 * have the size and the SHA-256 of the table, and the formats check it as they check kept ones.
 * Anything wrong leaves the index aside: the mount works as without. */
#ifndef EPOCHFS_CACHE_SOURCE_SHARED_INDEX_H
#define EPOCHFS_CACHE_SOURCE_SHARED_INDEX_H

#include "base/blob.h"
#include "base/index_store.h"
#include "base/lock.h"
#include "cache/disk/sha256.h"

struct source;

#define SHARED_INDEX_FOLDER ".epochfs"
#define SHARED_INDEX_TABLE  "index.txt" /* the table of contents */
#define SHARED_INDEX_HEAD   "epochfs-index 1\n"
#define SHARED_INDEX_MOST   (UINT64_C(1) << 30) /* bytes of an index */

/* A line of the table: a source file, or an index. */
struct shared_line {
    uint64_t size;
    char sum[DIGEST_TEXT_SIZE]; /* of a source file: of its blocks */
    const char *name;           /* in the table's text */
};

struct shared_table {
    char *text;                       /* owned */
    struct shared_line *file, *index; /* [n_files], [n_indexes]; sorted by name; owned */
    size_t n_files, n_indexes;
};

/* Read the text of a table, which is taken over, on error, too. 0; -EBADMSG with the reason in d;
 * -ENOMEM. */
int shared_table_read(char *text, size_t len, struct shared_table *ret, struct diag *d);
void shared_table_release(struct shared_table *table);

/* The line of that name; NULL: there is none. */
const struct shared_line *shared_line_find(const struct shared_line *line, size_t n,
                                           const char *name);

/* A source file of this mount. */
struct shared_file {
    const struct blob *blob;
    char *identity; /* of the blob, once it is needed; owned */
};

/* An index that was loaded or saved. */
struct shared_use {
    char *kind, *identity; /* owned */
};

struct shared_index {
    struct index_store keep;
    const struct index_store *inner; /* that of the cache folder */
    const struct source *source;     /* NULL: it can have no `.epochfs/` */
    void (*say)(const char *text);   /* what a user has to know; NULL: ignored */
    bool notes;                      /* `epochfs index`: `.epochfs/` is not used, uses are noted */
    struct shared_file *file;        /* [n_files] */
    size_t n_files;

    struct lock lock;
    pthread_cond_t read;
    /* Guarded by lock: */
    enum { SHARED_UNREAD, SHARED_READING, SHARED_READ } state; /* of the table */
    struct shared_table table;                                 /* constant once it is read, */
    struct timespec written; /* and when it was written; 0: unknown */
    bool has_said;
    struct shared_use *use; /* [n_uses] */
    size_t n_uses;
};

/* inner and source must outlive it. */
void shared_index_init(struct shared_index *ret, const struct index_store *inner,
                       const struct source *source, void (*say)(const char *text));
void shared_index_release(struct shared_index *shared);

/* Add a source file, before the first load. 0 or -ENOMEM. */
int shared_index_add(struct shared_index *shared, const struct blob *blob);

/* Find the identities of the files, and sort them: before shared_index_name(). One thread. 0 or
 * -ENOMEM. */
int shared_index_identify(struct shared_index *shared);

/* The SHA-256 of the size and of four blocks of a blob. 0 or -errno of its reads. Blocks. */
int shared_index_sum(const struct blob *blob, char ret[static DIGEST_TEXT_SIZE]);

/* The name of the index of that kind and identity in `.epochfs/`. sum_of() is called for each file
 * that it depends on, and gives the SHA-256 of its blocks; an error of it ends the call. 0;
 * -ENOENT: it depends on more than copies of these files have; or -errno. */
int shared_index_name(const struct shared_index *shared, const char *kind, const char *identity,
                      int (*sum_of)(void *ctx, const struct blob *blob,
                                    char ret[static DIGEST_TEXT_SIZE]),
                      void *ctx, char ret[static DIGEST_TEXT_SIZE]);

/* Write the indexes that were used, and their table, to the folder dir, which is replaced as a
 * whole if an earlier call made it or it is empty. Same source files, same bytes. *ret_n: how many.
 * 0; -ENODATA: there are none, and dir is as it was; -EEXIST: dir holds something else; or -errno;
 * with the reason in d. Needs `notes`. */
int shared_index_write(struct shared_index *shared, const char *dir, size_t *ret_n, struct diag *d);

/* The SHA-256 of some bytes. 0 or -ENOMEM. */
int shared_index_digest(const void *bytes, size_t len, char ret[static DIGEST_TEXT_SIZE]);

#endif
