/* Opens the content of a staged file for readers that read it without the stage: passthrough.
 *
 * Nobody looks at what they read, so all of it is compared first, in this process, after drops were
 * locked out. The lock belongs to the descriptor, and stays as long as anybody, the kernel
 * included, has a copy of it open: cache/disk/staged_file.h. */
#include <errno.h>

#include "base/scope.h"
#include "cache/stage/parts.h"

#define LOOK_MOST    (UINT64_C(2) << 30) /* bytes that an open compares: half a second */
#define DIGESTS_MOST (UINT64_C(16) << 20)

/* Are all blocks good, with one number of the staged file before and after? 0, or -EAGAIN. */
static int compare_all(struct file *file)
{
    uint64_t drops = staged_drops(&file->staged), known = atomic_load(&file->drops), left;

    if (drops == UINT64_MAX)
        return -EAGAIN;
    if (known != drops)
        file_forget(file, known);
    left = file->blocks - file_count_here(file, 0, file->blocks);
    if (left > LOOK_MOST / file->block_bytes)
        return -EAGAIN;
    if (left)
        look_at_blocks(file, 0, file->blocks);
    return file_count_here(file, 0, file->blocks) == file->blocks &&
                   atomic_load(&file->drops) == drops && staged_drops(&file->staged) == drops
               ? 0
               : -EAGAIN;
}

/* Has the file the SHA-256 that it must have? 0; -EAGAIN: that is not known yet. */
static int check_digest(struct file *file)
{
    if (!file->has_sha256 || atomic_load(&file->verdict) == FILE_GOOD)
        return 0;
    if (file->blob.size > DIGESTS_MOST && !staged_is_marked(&file->staged, file->sha256))
        return -EAGAIN;
    return file_verify(file, NULL) == 0 && atomic_load(&file->verdict) == FILE_GOOD ? 0 : -EAGAIN;
}

static int open_taken(struct file *file, int *ret_fd)
{
    AUTO_CLOSE int fd = -1;
    int r = staged_seal(&file->staged, file->has_sha256 ? file->sha256 : NULL);

    if (r == 0)
        r = staged_open_sealed(&file->staged, &fd);
    if (r == 0)
        r = check_digest(file);
    if (r == 0)
        r = compare_all(file);
    if (r < 0) /* what else is wrong with the folder is reported by those who write to it */
        return r == -EMFILE || r == -ENFILE ? r : -EAGAIN;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int file_open_sealed(struct file *file, int *ret_fd)
{
    int r = file_take(file, NULL);

    if (r < 0)
        return -EAGAIN; /* a read reports why */
    r = file->staged.is_in_memory || atomic_load(&file->done) || atomic_load(&file->failed) < 0
            ? -EAGAIN
            : open_taken(file, ret_fd);
    file_put(file);
    return r;
}
