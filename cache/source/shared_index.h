/* Shared indexes: indexes that `epochfs index` wrote, and that lie next to the data in `.epochfs/`.
 *
 * It is an index store in front of the cache folder's: what is not kept there is looked for in
 * SOURCE/.epochfs/, and then kept. docs/spec/index-format.md has the bytes of the files.
 *
 * Identities of kept indexes contain the versions of source files, such as an ETag or an inode
 * number, which no copy has. Here each is replaced by what is the same in all copies: the name of
 * the file below SOURCE, its size, and a SHA-256 of four of its blocks. The table has the version
 * of each file besides. If the file here has the same one, the index is good. If not, or if it is
 * not known, the blocks decide, and the index is kept as one *by content*: its formats check what
 * it says of a record when they first use it (kept_index.by_content). If that is wrong it is
 * removed, and no shared index of these files is used again.
 *
 * A joined blob (cache/source/joined.h) has no blocks that say enough: it must have the same names,
 * sizes and versions of all its files.
 *
 * What is in `.epochfs/` is hostile. The table of contents is checked line by line, an index has to
 * have the size and the SHA-256 of the table, and the formats check it as they check kept ones.
 * Anything wrong leaves the index aside: the mount works as without. */
#ifndef EPOCHFS_CACHE_SOURCE_SHARED_INDEX_H
#define EPOCHFS_CACHE_SOURCE_SHARED_INDEX_H

#include "base/blob.h"
#include "base/index_store.h"
#include "base/lock.h"
#include "base/text.h"
#include "cache/source/shared_table.h"

struct source;

/* An index that is to be written. */
struct shared_use {
    char *type, *identity; /* owned */
    char name[DIGEST_TEXT_SIZE];
};

struct shared_index {
    struct index_store keep;     /* the inner one is that of the cache folder */
    const struct source *source; /* NULL: it can have no `.epochfs/` */
    bool far;
    bool notes; /* `epochfs index`: `.epochfs/` is not used, uses are noted */

    struct lock lock;
    pthread_cond_t read;
    /* Guarded by lock: */
    void *names;       /* a tree of the blobs that identities have in them (shared_name.c) */
    size_t names_most; /* bytes of the longest of their identities */
    enum { SHARED_UNREAD, SHARED_READING, SHARED_READ } state; /* of the table */
    struct shared_table table;                                 /* constant once it is read */
    struct text joined;                                        /* constant then: the joined file */
    bool has_said;
    /* With notes: */
    struct shared_use *use;   /* [n_uses] */
    struct shared_line *file; /* [n_files] that these depend on, some more than once; owned */
    size_t n_uses, n_files;
    int failed; /* -errno: not all uses could be noted */
};

/* inner and source must outlive it. */
void shared_index_init(struct shared_index *ret, const struct index_store *inner,
                       const struct source *source);
void shared_index_release(struct shared_index *shared);

/* Write the indexes that were used, and their table, to the folder dir, which is replaced as a
 * whole if an earlier call made it or it is empty. *ret_n: how many; *ret_list: and the list of
 * files, which is written of a remote that has many. 0; -ENODATA: there are none,
 * and dir is as it was; -EEXIST: dir holds something else; or -errno; with the reason in d. Needs
 * `notes`. */
int shared_index_write(struct shared_index *shared, const char *dir, size_t *ret_n, bool *ret_list,
                       struct diag *d);

/* ---- shared_name.c ---- */

/* names() of the store. */
int shared_name_add(struct shared_index *shared, const struct blob *blob, const char *identity);
void shared_name_free(struct shared_index *shared);

/* The SHA-256 of the size and of four blocks of a blob; of a joined one, of what its files are. 0
 * or -errno of its reads. Blocks. */
int shared_index_sum(const struct blob *blob, char ret[static DIGEST_TEXT_SIZE]);

/* Add the version of a file as the table has it; nothing: it is not known. 0 or -ENOMEM. */
int shared_index_version(bool far, const struct blob *blob, struct text *ret);

/* May two files of this version differ? A time of a server counts seconds only. */
bool shared_version_is_sure(bool far, const char *version);

/* The name of a file in the table; the caller frees it. 0; -ENOENT: it cannot have one; -ENOMEM. */
int shared_index_file(const struct blob *blob, char **ret);

/* The name of the index of that kind and identity in `.epochfs/`. sum_of() is called for each file
 * that it depends on, and gives the SHA-256 of its blocks; an error of it ends the call. 0;
 * -ENOENT: it depends on no file that is known here; or -errno. */
int shared_index_name(struct shared_index *shared, const char *type, const char *identity,
                      int (*sum_of)(void *ctx, const struct blob *blob,
                                    char ret[static DIGEST_TEXT_SIZE]),
                      void *ctx, char ret[static DIGEST_TEXT_SIZE]);

/* ---- shared_read.c ---- */

/* Read the table. 0; -ENOENT: there is none; or -errno, with a reason in d if there is more to say.
 */
int shared_read_table(const struct source *source, struct shared_table *ret, struct diag *d);

/* Read the file that a line of the table describes. The same; -EBADMSG: its bytes are others. */
int shared_read_line(const struct source *source, const struct shared_line *line, struct text *ret,
                     struct diag *d);

/* Are these the bytes that a line describes? 0; -EBADMSG with the reason in d; or -errno. */
int shared_read_check(const struct shared_line *line, const char *bytes, size_t len,
                      struct diag *d);

#endif
