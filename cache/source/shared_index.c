/* See shared_index.h. The table is read when the first index is looked for that the cache folder
 * does not have: a mount whose indexes are kept does not ask for it. */
#include "cache/source/shared_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "cache/disk/local_file.h"
#include "cache/source/remote.h"

#define SUM_BLOCK  4096
#define SUM_BLOCKS 4

int shared_index_digest(const void *bytes, size_t len, char ret[static DIGEST_TEXT_SIZE])
{
    AUTO_DIGEST struct digest *digest = NULL;
    uint8_t sum[DIGEST_BYTES];
    int r = digest_new(&digest);

    if (r == 0)
        r = digest_add(digest, bytes, len);
    if (r == 0)
        r = digest_finish(digest, sum);
    if (r == 0)
        digest_text(sum, ret);
    return r;
}

int shared_index_sum(const struct blob *blob, char ret[static DIGEST_TEXT_SIZE])
{
    uint8_t bytes[8 + SUM_BLOCKS * SUM_BLOCK];
    uint64_t start[SUM_BLOCKS], last = blob->size > SUM_BLOCK ? blob->size - SUM_BLOCK : 0;
    size_t len = (size_t)min_u64(blob->size, SUM_BLOCK), at = 8;

    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(blob->size >> 8 * i);
    for (unsigned i = 0; i < SUM_BLOCKS; i++) {
        start[i] = i + 1 < SUM_BLOCKS ? last / (SUM_BLOCKS - 1) * i : last;
        blob_fetch(blob, start[i], len, NULL);
    }
    for (unsigned i = 0; i < SUM_BLOCKS && len; i++, at += len) {
        int r = blob_pread(READ_WAITS, blob, bytes + at, len, start[i]);

        if (r < 0)
            return r;
    }
    return blob_check(blob) < 0 ? -ESTALE : shared_index_digest(bytes, at, ret);
}

/* ---- the files of this mount ---- */

int shared_index_add(struct shared_index *shared, const struct blob *blob)
{
    if (strchr(blob_name(blob), '\n'))
        return 0;
    if (array_capacity(&shared->file, shared->n_files, sizeof(*shared->file)) < 0)
        return -ENOMEM;
    shared->file[shared->n_files++] = (struct shared_file){.blob = blob};
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    const struct shared_file *x = a, *y = b;
    int order = strcmp(x->identity, y->identity);

    return order ? order : strcmp(blob_name(x->blob), blob_name(y->blob));
}

int shared_index_identify(struct shared_index *shared)
{
    size_t n = 0;

    for (size_t i = 0; i < shared->n_files; i++) {
        struct shared_file file = shared->file[i];
        int r = blob_identity(file.blob, &file.identity);

        if (r < 0)
            return r;
        if (strncmp(file.identity, "joined ", 7) != 0) /* not a folder of files */
            shared->file[n++] = file;
        else
            free(file.identity);
    }
    shared->n_files = n;
    if (n)
        qsort(shared->file, n, sizeof(*shared->file), compare_files);
    return 0;
}

/* The file whose identity is at the start of text; NULL: none. */
static const struct shared_file *file_at(const struct shared_index *shared, const char *text)
{
    size_t low = 0, high = shared->n_files, len;

    while (low < high) { /* to the first file whose identity is behind text */
        size_t middle = low + (high - low) / 2;

        if (strcmp(shared->file[middle].identity, text) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return NULL;
    len = strlen(shared->file[low - 1].identity);
    while (low > 1 && !strcmp(shared->file[low - 2].identity, shared->file[low - 1].identity))
        low--; /* of names of one file, the first */
    return !strncmp(shared->file[low - 1].identity, text, len) &&
                   (text[len] == ' ' || text[len] == '\0')
               ? &shared->file[low - 1]
               : NULL;
}

int shared_index_name(const struct shared_index *shared, const char *kind, const char *identity,
                      int (*sum_of)(void *ctx, const struct blob *blob,
                                    char ret[static DIGEST_TEXT_SIZE]),
                      void *ctx, char ret[static DIGEST_TEXT_SIZE])
{
    AUTO_TEXT struct text t = {0};
    const struct shared_file *file = NULL;

    if (strcmp(kind, "rows") != 0)
        return -ENOENT;
    text_add(&t, "%s", kind);
    for (const char *at = identity, *end; at; at = *end ? end + 1 : NULL) {
        file = file_at(shared, at);
        end = file ? at + strlen(file->identity) : at + strcspn(at, " ");
        if (file) {
            char sum[DIGEST_TEXT_SIZE];
            int r = sum_of(ctx, file->blob, sum);

            if (r < 0)
                return r;
            text_add(&t, "\n%llu %s %s", (unsigned long long)file->blob->size, sum,
                     blob_name(file->blob));
        } else {
            text_add(&t, "\n%.*s", (int)(end - at), at);
        }
    }
    if (!file) /* identities end with the files */
        return -ENOENT;
    return t.failed ? -ENOMEM : shared_index_digest(t.data, t.len, ret);
}

/* ---- reading `.epochfs/` ---- */

/* *ret_time: when it was written. */
static int read_local(const struct source *source, const char *name, size_t most, struct text *ret,
                      struct timespec *ret_time)
{
    AUTO_FREE char *path = NULL, *bytes = NULL;
    AUTO_CLOSE int fd = -1;
    struct stat st;
    int r;

    if (asprintf(&path, "%s/" SHARED_INDEX_FOLDER "/%s", source->root, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    r = file_open(path, &fd, &st);
    if (r < 0)
        return r;
    if ((uint64_t)st.st_size > most)
        return -EFBIG;
    bytes = malloc((size_t)st.st_size + 1);
    if (!bytes)
        return -ENOMEM;
    r = file_pread(fd, bytes, (size_t)st.st_size, 0);
    if (r == 0)
        text_add_bytes(ret, bytes, (size_t)st.st_size);
    *ret_time = st.st_mtim;
    return r;
}

/* Read a file of `.epochfs/`. *ret_time: when it was written, if it is on this machine. 0, -ENOENT,
 * or -errno with a reason in d if there is more to say. */
static int read_file(const struct source *source, const char *name, size_t most, struct text *ret,
                     struct timespec *ret_time, struct diag *d)
{
    AUTO_FREE char *path = NULL, *url = NULL;
    int r;

    if (!source->remote->far)
        return read_local(source, name, most, ret, ret_time);
    if (asprintf(&path, SHARED_INDEX_FOLDER "/%s", name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    r = remote_url(source, path, &url);
    return r < 0 ? r
                 : http_get(source->http, &(struct http_call){.url = url, .most = most, .tries = 2},
                            ret, d);
}

/* Say once that something there is left aside. */
static void leave_aside(struct shared_index *shared, const char *what, const char *why)
{
    AUTO_TEXT struct text t = {0};
    bool is_first;

    lock_take(&shared->lock);
    is_first = !shared->has_said;
    shared->has_said = true;
    lock_drop(&shared->lock);
    if (!is_first || !shared->say)
        return;
    text_add(&t,
             "%s of " SHARED_INDEX_FOLDER "/ beside the data is left aside, and the mount works as "
             "without: %s; `epochfs index` makes it anew",
             what, why);
    if (!t.failed)
        shared->say(t.data);
}

static int read_table(struct shared_index *shared, struct shared_table *ret)
{
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    char *text;
    size_t len;
    int r =
        read_file(shared->source, SHARED_INDEX_TABLE, REMOTE_TEXT_MOST, &t, &shared->written, &d);

    if (r == 0)
        r = text_finish(&t, &text, &len);
    if (r == 0)
        r = shared_table_read(text, len, ret, &d);
    if (r == 0)
        r = shared_index_identify(shared);
    if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -EACCES)
        leave_aside(shared, SHARED_INDEX_TABLE, diag_text(&d, r));
    return r;
}

/* The table, read by the first thread that needs it; without lines if there is none. */
static const struct shared_table *table_of(struct shared_index *shared)
{
    struct shared_table table = {0};

    lock_take(&shared->lock);
    while (shared->state == SHARED_READING)
        lock_wait(&shared->lock, &shared->read);
    if (shared->state == SHARED_UNREAD) {
        shared->state = SHARED_READING;
        lock_drop(&shared->lock);
        if (read_table(shared, &table) < 0)
            shared_table_release(&table);
        lock_take(&shared->lock);
        shared->table = table;
        shared->state = SHARED_READ;
        pthread_cond_broadcast(&shared->read);
    }
    lock_drop(&shared->lock);
    return &shared->table;
}

/* ---- the store ---- */

static struct shared_index *shared_of(const struct index_store *keep)
{
    return (struct shared_index *)(uintptr_t)keep;
}

/* Was the file written after the indexes? It may have been changed in place. */
static bool is_newer(const struct shared_index *shared, const struct blob *blob)
{
    const struct timespec *a = &blob->mtime, *b = &shared->written;

    return b->tv_sec &&
           (a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec));
}

/* Does the table have the blob's file, as it is here? */
static int sum_by_table(void *ctx, const struct blob *blob, char ret[static DIGEST_TEXT_SIZE])
{
    struct shared_index *shared = ctx;
    const struct shared_line *line =
        shared_line_find(shared->table.file, shared->table.n_files, blob_name(blob));
    AUTO_TEXT struct text why = {0};
    int r;

    if (!line)
        return -ENOENT;
    if (is_newer(shared, blob)) {
        text_add(&why, "%s is newer than " SHARED_INDEX_TABLE " (of a copy, touch that)",
                 blob_name(blob));
        leave_aside(shared, "an index", why.failed ? "no memory" : why.data);
        return -ENOENT;
    }
    r = line->size == blob->size ? shared_index_sum(blob, ret) : 0;
    if (r < 0 || (line->size == blob->size && !strcmp(line->sum, ret)))
        return r;
    text_add(&why, "%s has changed: want %llu bytes with SHA-256 %.8s of some, found %llu bytes%s",
             blob_name(blob), (unsigned long long)line->size, line->sum,
             (unsigned long long)blob->size, line->size == blob->size ? " with another" : "");
    leave_aside(shared, "an index", why.failed ? "no memory" : why.data);
    return -ENOENT;
}

static int load_shared(struct shared_index *shared, const char *kind, const char *identity,
                       struct text *ret)
{
    const struct shared_table *table = table_of(shared);
    const struct shared_line *line;
    char name[DIGEST_TEXT_SIZE], sum[DIGEST_TEXT_SIZE];
    struct diag d = DIAG_INIT;
    struct timespec ignored;
    int r;

    if (!table->n_indexes)
        return -ENOENT;
    r = shared_index_name(shared, kind, identity, sum_by_table, shared, name);
    if (r < 0)
        return r;
    line = shared_line_find(table->index, table->n_indexes, name);
    if (!line || !line->size)
        return -ENOENT;
    r = read_file(shared->source, name, (size_t)line->size, ret, &ignored, &d);
    if (r == 0)
        r = ret->failed ? -ENOMEM : shared_index_digest(ret->data, ret->len, sum);
    if (r == 0 && (ret->len != line->size || strcmp(sum, line->sum) != 0))
        r = diag_set(&d, -EBADMSG, "want %llu bytes of SHA-256 %.8s..., found %zu of %.8s...",
                     (unsigned long long)line->size, line->sum, ret->len, sum);
    if (r < 0)
        leave_aside(shared, name, diag_text(&d, r));
    return r;
}

static int note_use(struct shared_index *shared, const char *kind, const char *identity)
{
    struct shared_use use = {strdup(kind), strdup(identity)};
    LOCK_SCOPE(&shared->lock);

    if (!use.kind || !use.identity ||
        array_capacity(&shared->use, shared->n_uses, sizeof(use)) < 0) {
        free(use.kind);
        free(use.identity);
        return -ENOMEM;
    }
    shared->use[shared->n_uses++] = use;
    return 0;
}

static int shared_load(const struct index_store *keep, const char *kind, const char *identity,
                       struct kept_index *ret)
{
    struct shared_index *shared = shared_of(keep);
    AUTO_TEXT struct text bytes = {0};
    struct iovec piece;
    char *owned;
    size_t len;
    int r = index_store_load(shared->inner, kind, identity, ret);

    if (shared->notes)
        return r == 0 ? note_use(shared, kind, identity) : r;
    if (r == 0 || !shared->source || load_shared(shared, kind, identity, &bytes) < 0)
        return r;
    piece = (struct iovec){bytes.data, bytes.len};
    if (index_store_save(shared->inner, kind, identity, "", &piece, 1, ret, NULL) == 0)
        return 0;
    r = text_finish(&bytes, &owned, &len);
    if (r == 0)
        *ret = (struct kept_index){(uint8_t *)owned, len};
    return r;
}

static int shared_save(const struct index_store *keep, const char *kind, const char *identity,
                       const char *source, const struct iovec *pieces, unsigned n,
                       struct kept_index *ret, struct diag *d)
{
    struct shared_index *shared = shared_of(keep);
    int r = index_store_save(shared->inner, kind, identity, source, pieces, n, ret, d);

    if (r == 0 && shared->notes)
        r = note_use(shared, kind, identity);
    return r;
}

static void shared_remove(const struct index_store *keep, const char *kind, const char *identity)
{
    index_store_remove(shared_of(keep)->inner, kind, identity);
}

/* Kept files are this node's alone: no index beside the data has them. */
static int shared_open(const struct index_store *keep, const char *kind, const char *identity,
                       struct kept_file *ret)
{
    return index_store_open(shared_of(keep)->inner, kind, identity, ret);
}

static int shared_begin(const struct index_store *keep, const char *kind, const char *identity,
                        const char *source, struct kept_file *ret, struct diag *d)
{
    return index_store_begin(shared_of(keep)->inner, kind, identity, source, ret, d);
}

static const struct index_store_ops shared_ops = {
    .load = shared_load,
    .save = shared_save,
    .remove = shared_remove,
    .open = shared_open,
    .begin = shared_begin,
};

void shared_index_init(struct shared_index *ret, const struct index_store *inner,
                       const struct source *source, void (*say)(const char *text))
{
    bool may_have = !source->only_file && !source->remote->ordered;

    *ret = (struct shared_index){
        .keep = {&shared_ops}, .inner = inner, .source = may_have ? source : NULL, .say = say};
    lock_init(&ret->lock);
    pthread_cond_init(&ret->read, NULL);
}

void shared_index_release(struct shared_index *shared)
{
    if (!shared->keep.ops)
        return;
    for (size_t i = 0; i < shared->n_files; i++)
        free(shared->file[i].identity);
    for (size_t i = 0; i < shared->n_uses; i++) {
        free(shared->use[i].kind);
        free(shared->use[i].identity);
    }
    free(shared->file);
    free(shared->use);
    shared_table_release(&shared->table);
    pthread_cond_destroy(&shared->read);
    lock_release(&shared->lock);
}
