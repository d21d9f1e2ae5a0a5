#include "cache/disk/index_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_io.h"
#include "base/memory.h"
#include "cache/disk/entry.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"

/* An entry that was cut short, or cannot be read, counts as missing. */
static int read_entry(int fd, uint64_t size, struct kept_index *ret)
{
    AUTO_FREE uint8_t *bytes = NULL;

    if (!size || size > SIZE_MAX)
        return -ENOENT;
    bytes = memory_array(size, 1);
    if (!bytes)
        return -ENOMEM;
    if (file_pread(fd, bytes, (size_t)size, 0) < 0)
        return -ENOENT;
    *ret = (struct kept_index){.bytes = TAKE_PTR(bytes), .size = (size_t)size};
    return 0;
}

static int index_entry(const struct index_store *keep, const char *sub, const char *identity,
                       const char *source, struct entry *ret, struct diag *d)
{
    return entry_init(ret, ((const struct index_files *)keep)->folder, sub, identity, source, d);
}

static int index_files_open(const struct index_store *keep, const char *sub, const char *identity,
                            struct kept_file *ret)
{
    struct kept_file file = {.fd = -1};
    struct entry entry;
    int r = index_entry(keep, sub, identity, "", &entry, NULL);

    if (r == 0)
        r = entry_open(&entry, &file.fd, &file.size);
    if (r == 0)
        *ret = file;
    return r;
}

static int index_files_load(const struct index_store *keep, const char *sub, const char *identity,
                            struct kept_index *ret)
{
    AUTO(kept_file_release) struct kept_file file = {.fd = -1};
    int r = index_files_open(keep, sub, identity, &file);

    return r < 0 ? r : read_entry(file.fd, file.size, ret);
}

struct saving {
    const struct iovec *pieces;
    unsigned n;
};

static int write_pieces(void *ctx, struct entry_sink *sink, struct diag *d)
{
    const struct saving *saving = ctx;
    uint64_t len = 0;
    int r;

    (void)d;
    for (unsigned i = 0; i < saving->n; i++)
        len += saving->pieces[i].iov_len;
    r = entry_expect(sink, len); /* nothing is removed for an index that never fits */
    for (unsigned i = 0; i < saving->n && r == 0; i++)
        r = entry_write(sink, saving->pieces[i].iov_base, saving->pieces[i].iov_len);
    return r;
}

static int index_files_save(const struct index_store *keep, const char *sub, const char *identity,
                            const char *source, const struct iovec *pieces, unsigned n,
                            struct kept_index *ret, struct diag *d)
{
    struct saving saving = {pieces, n};
    AUTO_CLOSE int fd = -1;
    struct entry entry;
    uint64_t size = 0;
    int r = index_entry(keep, sub, identity, source, &entry, d);

    if (r == 0)
        r = entry_make(&entry, false, write_pieces, &saving, &fd, &size, d);
    return r < 0 || !ret ? r : read_entry(fd, size, ret);
}

static void index_files_remove(const struct index_store *keep, const char *sub,
                               const char *identity)
{
    struct entry entry;

    if (index_entry(keep, sub, identity, "", &entry, NULL) == 0)
        entry_remove(&entry);
}

/* ---- kept files ---- */

/* An entry that this process makes. */
struct making {
    struct kept_making head; /* first */
    struct entry entry;
    struct allowance allowance;
    int fd; /* not owned */
    bool is_done;
};

static int making_raise(struct kept_making *head, uint64_t bytes, struct diag *d)
{
    struct making *making = (struct making *)head;
    int r = allowance_raise(&making->allowance, bytes + entry_tail(&making->entry), 0);

    if (r == -ENOSPC && making->allowance.wanted)
        allowance_refused(&making->allowance, making->entry.folder, d);
    return r;
}

static void making_written(struct kept_making *head, uint64_t bytes)
{
    allowance_written(&((struct making *)head)->allowance, bytes);
}

static int making_commit(struct kept_making *head, struct diag *d)
{
    struct making *making = (struct making *)head;
    uint64_t size = 0;
    int r = entry_commit(&making->entry, making->fd, false, &making->allowance, &size);

    making->is_done = true;
    return r < 0 ? diag_set(d, r, "%s: %s", making->entry.folder, strerror(-r)) : 0;
}

static void making_free(struct kept_making *head)
{
    struct making *making = (struct making *)head;

    if (!making->is_done)
        entry_abandon(&making->entry, making->fd, &making->allowance);
    free(making);
}

static const struct kept_making_ops making_ops = {making_raise, making_written, making_commit,
                                                  making_free};

static int index_files_begin(const struct index_store *keep, const char *sub, const char *identity,
                             const char *source, struct kept_file *ret, struct diag *d)
{
    AUTO_FREE struct making *making = calloc(1, sizeof(*making));
    struct kept_file file = {.fd = -1};
    int r;

    if (!making)
        return -ENOMEM;
    making->head.ops = &making_ops;
    r = index_entry(keep, sub, identity, source, &making->entry, d);
    if (r == 0)
        r = entry_begin(&making->entry, false, &file.fd, &file.size, d);
    if (r < 0)
        return r;
    making->allowance.quota = making->entry.quota;
    making->fd = file.fd;
    if (r == 0)
        file.making = &TAKE_PTR(making)->head;
    *ret = file;
    return 0;
}

static const struct index_store_ops index_files_ops = {
    .load = index_files_load,
    .save = index_files_save,
    .remove = index_files_remove,
    .open = index_files_open,
    .begin = index_files_begin,
};

void index_files_init(struct index_files *ret, const struct cache_folder *folder)
{
    *ret = (struct index_files){.keep = {.ops = &index_files_ops}, .folder = folder};
}
