#include "cache/disk/index_files.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/disk/entry.h"
#include "cache/disk/local_file.h"

/* An entry that was cut short, or cannot be read, counts as missing. */
static int read_entry(int fd, uint64_t size, struct kept_index *ret)
{
    AUTO_FREE uint8_t *bytes = NULL;

    if (!size || size > SIZE_MAX)
        return -ENOENT;
    bytes = malloc((size_t)size);
    if (!bytes)
        return -ENOMEM;
    if (file_pread(fd, bytes, (size_t)size, 0) < 0)
        return -ENOENT;
    *ret = (struct kept_index){.bytes = TAKE_PTR(bytes), .size = (size_t)size};
    return 0;
}

static int entry_of(const struct index_store *keep, const char *kind, const char *identity,
                    const char *source, struct entry *ret, struct diag *d)
{
    return entry_init(ret, ((const struct index_files *)keep)->folder, kind, identity, source, d);
}

static int index_files_load(const struct index_store *keep, const char *kind, const char *identity,
                            struct kept_index *ret)
{
    AUTO_CLOSE int fd = -1;
    struct entry entry;
    uint64_t size = 0;
    int r = entry_of(keep, kind, identity, "", &entry, NULL);

    if (r == 0)
        r = entry_open(&entry, &fd, &size);
    return r < 0 ? r : read_entry(fd, size, ret);
}

struct saving {
    const struct iovec *pieces;
    unsigned n;
};

static int write_pieces(void *ctx, struct entry_sink *sink, struct diag *d)
{
    const struct saving *saving = ctx;
    int r = 0;

    (void)d;
    for (unsigned i = 0; i < saving->n && r == 0; i++)
        r = entry_write(sink, saving->pieces[i].iov_base, saving->pieces[i].iov_len);
    return r;
}

static int index_files_save(const struct index_store *keep, const char *kind, const char *identity,
                            const char *source, const struct iovec *pieces, unsigned n,
                            struct kept_index *ret, struct diag *d)
{
    struct saving saving = {pieces, n};
    AUTO_CLOSE int fd = -1;
    struct entry entry;
    uint64_t size = 0;
    int r = entry_of(keep, kind, identity, source, &entry, d);

    if (r == 0)
        r = entry_make(&entry, false, write_pieces, &saving, &fd, &size, d);
    return r < 0 ? r : read_entry(fd, size, ret);
}

static void index_files_remove(const struct index_store *keep, const char *kind,
                               const char *identity)
{
    struct entry entry;

    if (entry_of(keep, kind, identity, "", &entry, NULL) == 0)
        entry_remove(&entry);
}

static const struct index_store_ops index_files_ops = {index_files_load, index_files_save,
                                                       index_files_remove};

void index_files_init(struct index_files *ret, const struct cache_folder *folder)
{
    *ret = (struct index_files){.keep = {.ops = &index_files_ops}, .folder = folder};
}
