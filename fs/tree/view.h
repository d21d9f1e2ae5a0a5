/* The view: the contents of the files of the tree.
 *
 * Contents are made on demand from the node alone; fs/tree/open_files.h says what is kept of the
 * files that are being read. Any thread. */
#ifndef EPOCHFS_FS_TREE_VIEW_H
#define EPOCHFS_FS_TREE_VIEW_H

#include <stdbool.h>

#include "base/text.h"
#include "fs/tree/open_files.h"

/* Bytes of a file's content; not for live texts. 0; -EFBIG: no file can be that large; -EINTR;
 * -ENOMEM; -EBADMSG and others with the reason in d: a sample of the file cannot be read. A file of
 * very many samples may take a walk over all of them, whose result is remembered. */
int view_size(struct read_context *rc, struct open_files *files, const struct node *node,
              uint64_t *ret, struct diag *d);

/* The samples of a file at places first .. first + n - 1, fewer where it ends. Returns how many. */
uint64_t view_samples(struct open_files *files, const struct node *node, uint64_t first, uint64_t n,
                      uint64_t *ret);

/* Is the size known without a walk over the samples, and without reading them? */
bool view_size_is_near(const struct node *node);

/* Is it known that the file cannot be made because its samples differ in shape? 1 with the reason
 * in d, 0, or -EINTR. May take the walk of view_size(), for datasets of mixed shapes only. */
int view_is_mixed(struct read_context *rc, struct open_files *files, const struct node *node,
                  struct diag *d);

/* Write bytes [off, off + len), clipped to the file, to dst and their number to *ret_len.
 * 0; -ESTALE where a source has changed, -EIO, -EINTR, -ENOMEM, with the reason in d. Reads the
 * sources: may block; or, if the read context collects, returns -EAGAIN and has noted there
 * what the read misses, as far as there is space. */
int view_read(struct read_context *rc, struct open_files *files, const struct node *node,
              uint64_t off, size_t len, uint8_t *dst, size_t *ret_len, struct diag *d);

/* The same, but bytes that are made already are not copied: ret->bytes is dst, or where they are
 * until view_give_back(). */
struct view_loan {
    const uint8_t *bytes;
    size_t len;
    struct open_file *file; /* private; NULL: nothing was lent */
};
int view_lend(struct read_context *rc, struct open_files *files, const struct node *node,
              uint64_t off, size_t len, uint8_t *dst, struct view_loan *ret, struct diag *d);
void view_give_back(const struct view_loan *loan);

/* For who reads samples of the node without view_read(). Has no source changed since it was opened?
 * Was the order of the batch computed from whole labels? 0, or -errno with the reason in d. */
int view_check_sources(const struct node *node, struct diag *d);
int view_check_labels(const struct node *node, struct diag *d);

/* Open the file of this machine that has all bytes of the node's file, and no others: see
 * blob_open_file(). -EOPNOTSUPP: there is none, the file is made of other bytes. */
int view_open_file(const struct node *node, int *ret_fd, struct diag *d);

/* Would view_open_file() open the same again? -ESTALE: no; other errors say nothing of that. */
int view_verify_file(const struct node *node, struct diag *d);

/* The extended attributes of samples and batches. */
enum attribute {
    ATTRIBUTE_DTYPE,
    ATTRIBUTE_INDEX,
    ATTRIBUTE_KEY,
    ATTRIBUTE_SHAPE,
    ATTRIBUTE_SOURCE,
    N_ATTRIBUTES,
};
extern const char *const attribute_names[N_ATTRIBUTES];

/* With the name of a plan, or of an epoch, behind it, an attribute of the folder that should have
 * it: why it is refused. Not listed. */
#define ATTRIBUTE_WHY "user.epochfs.why."

/* Does the node have that attribute? dtype and shape belong to files that hold one array; index is
 * omitted if the list of a batch exceeds the kernel's limit of 64 KiB. */
bool view_has_attribute(const struct node *node, enum attribute attribute);

/* The text of an attribute. 0, -ENODATA, -ENOMEM or the error of a field's form. */
int view_attribute(struct read_context *rc, struct open_files *files, const struct node *node,
                   enum attribute attribute, struct text *ret);

#endif
