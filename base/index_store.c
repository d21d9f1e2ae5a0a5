#include "base/index_store.h"

#include <stdlib.h>
#include <sys/stat.h>

void kept_index_release(struct kept_index *kept)
{
    free(kept->bytes);
    *kept = (struct kept_index){0};
}

int kept_file_commit(struct kept_file *file, struct diag *d)
{
    struct stat st;
    int r = fstat(file->fd, &st) < 0 ? -errno : 0;

    if (r == 0 && file->making)
        r = file->making->ops->commit(file->making, d);
    if (r < 0)
        return r;
    file->size = (uint64_t)st.st_size;
    if (file->making)
        file->making->ops->free(file->making);
    file->making = NULL;
    return 0;
}

void kept_file_release(struct kept_file *file)
{
    if (file->making)
        file->making->ops->free(file->making);
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct kept_file){.fd = -1};
}
