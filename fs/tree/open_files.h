/* The files that are being read: a large file is read in thousands of requests, and each needs the
 * selection and the layout of the file. They are made once and kept between the requests, for the
 * files that were read last.
 *
 * A request takes a file and has it for itself, so what it has needs no lock. Two requests for one
 * file at the same time have one each, and both are kept; but a file that was made whole is
 * constant, and all have the same. Nothing that is kept points into a request. Any thread. */
#ifndef EPOCHFS_FS_TREE_OPEN_FILES_H
#define EPOCHFS_FS_TREE_OPEN_FILES_H

#include "base/memory.h"
#include "format/core/layout.h"
#include "fs/tree/file_samples.h"

#define KEPT_FILES 64 /* files between two requests, at most */
#define KEPT_BYTES                                                                                 \
    (32u << 20) /* memory of these, at most: bytes made, headers, lists of samples                 \
                 */

struct open_files;

struct open_file {
    struct layout_host host;
    struct open_files *files;
    struct file_samples samples;
    struct layout layout;
    uint64_t read;  /* bytes */
    unsigned users; /* of a file that was made whole; guarded by the lock of files */
};

/* mountpoint: absolute, for the paths in scp files; "": none. 0 or -ENOMEM. */
int open_files_new(const char *mountpoint, struct open_files **ret);
void open_files_free(struct open_files *files); /* takes NULL; no file may be in use */

/* The samples of a file, without a layout: see file_samples_init(). */
int open_files_samples(const struct open_files *files, const struct node *node,
                       struct file_samples *ret);

/* Make the selection and the layout of a sample, a batch or the preview; rc and d must live as
 * long. 0, or the error of the encoder with the reason in d; release it in either case. */
int open_file_init(struct read_context *rc, struct open_file *ret, struct open_files *files,
                   const struct node *node, struct diag *d);
void open_file_release(struct open_file *f); /* takes one that is {0} */
#define AUTO_OPEN_FILE AUTO(open_file_release)

/* The same for a file that is read: one that was kept, or a new one. The caller gives it back. */
int open_files_take(struct read_context *rc, struct open_files *files, const struct node *node,
                    struct open_file **ret, struct diag *d);

/* Make all bytes of a file before it is read, and keep them: open_files_take() of another thread
 * waits meanwhile, or gives up with -EINTR when its context does. 0; or an error, and its readers
 * make it. */
int open_files_make(struct read_context *rc, struct open_files *files, const struct node *node);

/* Keep the file for the next request, unless as many bytes as it has were read: the kernel keeps
 * them, and small files that are read once must not cost more. The layout is as good as it was: a
 * request that lacked bytes has changed nothing in it. */
void open_files_give(struct open_file *f, uint64_t read);

/* What kept files take; what lists of samples take that files share. owner: the struct open_files.
 */
struct memory_held open_files_held(void *owner);
struct memory_held open_files_lists_held(void *owner);

/* The size of a file that is kept. False: it is not. */
bool open_files_size(struct open_files *files, const struct node *node, uint64_t *ret);

#endif
