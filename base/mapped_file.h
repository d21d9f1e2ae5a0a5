/* Files mapped for reading that another process may cut short, or that the disk cannot read.
 *
 * Such a page kills a process that touches it, with SIGBUS. Here the mapping becomes zeros instead,
 * as a whole, and says that it is lost. So code that computes from its bytes asks
 * mapped_file_is_lost() afterwards, and checks every number that must not leave an array. */
#ifndef EPOCHFS_BASE_MAPPED_FILE_H
#define EPOCHFS_BASE_MAPPED_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAPPED_FILES_MAX 16384 /* of a process, at a time; the kernel allows 65530 by default */

struct mapped_file {
    const uint8_t *bytes; /* [size]; NULL: none is mapped */
    size_t size;
    unsigned slot;
};

/* Map the first size bytes, size > 0, of a file; fd may be closed afterwards. 0; -EMFILE:
 * MAPPED_FILES_MAX are mapped; or -errno. Any thread. While any file is mapped
 * there is a handler of SIGBUS; a fault that is not its own goes to the handler before it, which is
 * set again in the end. */
int mapped_file_open(int fd, uint64_t size, struct mapped_file *ret);

/* Have bytes read so far, or some of them, perhaps been zeros that are not in the file? */
bool mapped_file_is_lost(const struct mapped_file *file);

/* Takes a zeroed one. No thread may read its bytes any more. */
void mapped_file_close(struct mapped_file *file);

#endif
