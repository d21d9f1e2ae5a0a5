/* Writes `.epochfs/`: into a new folder next to it, which takes its place when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_io.h"
#include "base/folder.h"
#include "base/text.h"
#include "cache/disk/local_file.h"
#include "cache/source/shared_index.h"
#include "cache/source/source.h"

#define TRIES 20 /* of putting a folder in place, next to other processes */

struct writing {
    struct shared_index *shared;
    int dir; /* the new folder */
    struct shared_line *index;
    size_t n_indexes;
    struct text bytes; /* all indexes, while they have at most SHARED_JOINED_MOST bytes, */
    bool is_apart;     /* otherwise each index is a file */
    bool has_list;
};

static void writing_release(struct writing *w)
{
    free(w->index);
    text_release(&w->bytes);
    if (w->dir >= 0)
        close(w->dir);
}

static int compare_lines(const void *a, const void *b)
{
    const struct shared_line *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    order = order ? order : strcmp(x->sum, y->sum);
    return order ? order : strcmp(x->version, y->version);
}

/* Write a file of the new folder. 0 or -errno. */
static int write_file(int dir, const char *name, const void *bytes, size_t len)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    int r = fd < 0 ? -errno : file_pwrite(fd, bytes, len, 0);

    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (fd >= 0 && close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

/* Write the indexes so far as files: together they are too large for one. */
static int write_apart(struct writing *w)
{
    int r = 0;

    w->is_apart = true;
    for (size_t i = 0; i < w->n_indexes && r == 0; i++)
        r = write_file(w->dir, w->index[i].name, w->bytes.data + w->index[i].at,
                       (size_t)w->index[i].size);
    text_release(&w->bytes);
    return r;
}

static int write_index(struct writing *w, struct shared_use *use, struct diag *d)
{
    AUTO(kept_index_release) struct kept_index kept = {0};
    struct shared_line line = {.name = use->name, .version = "", .at = w->bytes.len};
    int r = index_store_load(w->shared->keep.inner, use->type, use->identity, &kept);

    if (r == -ENOENT)
        return diag_set(d, -EIO, "an index that was made is gone from the cache folder");
    line.size = kept.size;
    if (r == 0)
        r = digest_text_of(kept.bytes, kept.size, line.sum);
    if (r == 0 && !w->is_apart && kept.size > SHARED_JOINED_MOST - w->bytes.len)
        r = write_apart(w);
    if (r == 0 && w->is_apart)
        r = write_file(w->dir, use->name, kept.bytes, kept.size);
    else if (r == 0)
        text_add_bytes(&w->bytes, (const char *)kept.bytes, kept.size);
    if (r == 0)
        r = w->bytes.failed ? -ENOMEM : 0;
    if (r == 0)
        r = array_capacity(&w->index, w->n_indexes, sizeof(line));
    if (r == 0)
        w->index[w->n_indexes++] = line;
    return r;
}

/* Write a file named by the SHA-256 of its content, and its line. Without content: nothing. */
static int write_content(struct writing *w, const char *type, const struct text *content,
                         struct text *table)
{
    char sum[DIGEST_TEXT_SIZE];
    int r = content->failed ? -ENOMEM : 0;

    if (r < 0 || !content->len)
        return r;
    r = digest_text_of(content->data, content->len, sum);
    if (r == 0)
        r = write_file(w->dir, sum, content->data, content->len);
    if (r == 0)
        text_add(table, "%s %zu %s %s\n", type, content->len, sum, sum);
    return r;
}

/* Write the list of files, if there is one. */
static int write_list(struct writing *w, struct text *table)
{
    const struct source *source = w->shared->source;

    w->has_list = source && source->whole.len;
    return w->has_list ? write_content(w, "listing", &source->whole, table) : 0;
}

/* Write the indexes in the order of their lines as one file, unless each is a file of its own. A
 * mount of many shards then sends one request for all indexes. */
static int write_joined(struct writing *w, struct text *table)
{
    AUTO_TEXT struct text all = {0};

    for (size_t i = 0; i < w->n_indexes && !w->is_apart; i++)
        text_add_bytes(&all, w->bytes.data + w->index[i].at, (size_t)w->index[i].size);
    return write_content(w, "joined", &all, table);
}

/* Add the lines of a kind, sorted, and put their elements first in `line`. A name that two files
 * with different blocks have gets no line: no mount could tell which file is meant. Returns how
 * many lines. */
static size_t add_lines(struct text *t, const char *type, struct shared_line *line, size_t n)
{
    size_t added = 0;

    if (n)
        qsort(line, n, sizeof(*line), compare_lines);
    for (size_t i = 0, end; i < n; i = end) {
        struct shared_line kept;
        bool is_one = true;

        for (end = i + 1; end < n && !strcmp(line[i].name, line[end].name); end++)
            is_one = is_one && !strcmp(line[i].sum, line[end].sum);
        if (!is_one)
            continue;
        text_add(t, "%s %llu %s ", type, (unsigned long long)line[i].size, line[i].sum);
        if (!strcmp(type, "file"))
            text_add(t, "%s ", *line[i].version ? line[i].version : "-");
        text_add(t, "%s\n", line[i].name);
        kept = line[added];
        line[added++] = line[i];
        line[i] = kept;
    }
    return added;
}

static int write_table(struct writing *w)
{
    AUTO_TEXT struct text t = {0};
    int r;

    /* Earlier programs read a table without a joined file. */
    text_add(&t, "%s", w->is_apart || !w->n_indexes ? SHARED_INDEX_HEAD_2 : SHARED_INDEX_HEAD);
    add_lines(&t, "file", w->shared->file, w->shared->n_files);
    w->n_indexes = add_lines(&t, "index", w->index, w->n_indexes);
    r = write_joined(w, &t);
    if (r == 0)
        r = write_list(w, &t);
    if (r < 0)
        return r;
    return t.failed ? -ENOMEM : write_file(w->dir, SHARED_INDEX_TABLE, t.data, t.len);
}

/* Go through a folder of ours. removes: and remove it. 0; -ENOENT; -EEXIST: it holds something
 * else, and is as it was; or -errno. */
static int walk_folder(const char *path, bool removes)
{
    AUTO_DIR DIR *dir = opendir(path);
    const char *name;
    int r = dir ? 0 : -errno;

    while (r == 0 && (name = folder_next(dir))) {
        if (strcmp(name, SHARED_INDEX_TABLE) != 0 && !digest_is_text(name))
            r = -EEXIST;
        else if (removes && unlinkat(dirfd(dir), name, 0) < 0 && errno != ENOENT)
            r = -errno;
    }
    if (r == 0 && removes && rmdir(path) < 0)
        r = -errno;
    return r;
}

/* Put the complete folder in the place of dir, if that is still empty, or ours: another process may
 * do the same. One of them is there in the end. */
static int put_in_place(const char *made, const char *dir)
{
    for (unsigned i = 0; i < TRIES; i++) {
        int r;

        if (rename(made, dir) == 0)
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return -errno;
        r = walk_folder(dir, false);
        if (r < 0 && r != -ENOENT)
            return r;
        if (renameat2(AT_FDCWD, made, AT_FDCWD, dir, RENAME_EXCHANGE) == 0)
            return walk_folder(made, true);
        if (errno != EINVAL && errno != ENOSYS && errno != ENOENT)
            return -errno;
        r = walk_folder(dir,
                        true); /* the file system cannot exchange: for a moment there is none */
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return -EBUSY;
}

static int write_all(struct writing *w, struct diag *d)
{
    int r = w->shared->failed;

    for (size_t i = 0; i < w->shared->n_uses && r == 0; i++)
        r = write_index(w, &w->shared->use[i], d);
    if (r == 0 && !w->n_indexes && !(w->shared->source && w->shared->source->whole.len))
        return diag_set(d, -ENODATA,
                        "nothing to index: expected files whose samples take a pass to find, such "
                        "as text, tar or "
                        "TFRecord");
    if (r == 0)
        r = write_table(w);
    return r == 0 && fsync(w->dir) < 0 ? -errno : r;
}

int shared_index_write(struct shared_index *shared, const char *dir, size_t *ret_n, bool *ret_list,
                       struct diag *d)
{
    AUTO(writing_release) struct writing w = {.shared = shared, .dir = -1};
    AUTO_FREE char *made = NULL;
    size_t len = strlen(dir);
    int r = walk_folder(dir, false);

    if (r == -EEXIST || r == -ENOTDIR)
        return diag_set(d, r,
                        "%s: expected a new or empty folder, or one that `epochfs index` made; got "
                        "something else there",
                        dir);
    if (r < 0 && r != -ENOENT)
        return diag_set(d, r, "%s: %s", dir, strerror(-r));
    while (len > 1 && dir[len - 1] == '/')
        len--;
    if (text_print(&made, "%.*s.XXXXXX", (int)len, dir) < 0)
        return -ENOMEM;
    if (!mkdtemp(made))
        return diag_set(d, -errno, "%s: cannot be made: %s", made, strerror(errno));
    w.dir = open(made, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = w.dir < 0 || fchmod(w.dir, 0755) < 0 ? -errno : write_all(&w, d);
    if (r == 0)
        r = put_in_place(made, dir);
    if (r == 0)
        *ret_n = w.n_indexes, *ret_list = w.has_list;
    else
        walk_folder(made, true);
    return r == 0 ? 0 : diag_set(d, r, "%s: cannot be written: %s", dir, strerror(-r));
}
