/* See shared_index.h. The table is read when the first index is looked for that the cache folder
 * does not have: a mount whose indexes are kept does not ask for it. */
#include "cache/source/shared_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "cache/source/joined.h"
#include "cache/source/remote.h"

/* An index by content is kept under its identity with these words. One byte in its place says that
 * it was found wrong. */
#define BY_CONTENT " by content"

/* ---- reading `.epochfs/` ---- */

/* Say once that something there is ignored. name: of the file that is the reason, or "". */
static void leave_aside(struct shared_index *shared, const char *what, const char *name,
                        const char *why)
{
    AUTO_TEXT struct text t = {0};
    bool is_first;

    lock_take(&shared->lock);
    is_first = !shared->has_said;
    shared->has_said = true;
    lock_drop(&shared->lock);
    if (!is_first)
        return;
    text_add(&t,
             "%s of " SHARED_INDEX_FOLDER "/ next to the data is ignored, and the mount works as "
             "without: %s%s; `epochfs index` makes it again",
             what, name, why);
    if (!t.failed)
        notices_say(&shared->source->notices, t.data);
}

static int shared_index_joined(struct shared_index *shared, const struct shared_table *table,
                               struct text *ret, struct diag *d)
{
    text_release(ret);
    return table->joined.name ? shared_read_line(shared->source, &table->joined, ret, d) : 0;
}

/* The table was read for its list of files, and is used here as well; or it is read now. Without
 * lines if there is none. */
static void shared_index_table(struct shared_index *shared, struct shared_table *ret,
                               struct text *ret_joined)
{
    struct shared_table *read = shared->source->shared;
    struct diag d = DIAG_INIT;
    int r = 0;

    if (read) {
        *ret = *read;
        *read = (struct shared_table){0};
    } else {
        r = shared_read_table(shared->source, ret, &d);
    }
    if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -EACCES)
        leave_aside(shared, SHARED_INDEX_TABLE, "", diag_text(&d, r));
    r = shared_index_joined(shared, ret, ret_joined, &d);
    if (r < 0 && read) { /* the table was read long ago, and may have been replaced since */
        shared_table_release(ret);
        d = DIAG_INIT;
        r = shared_read_table(shared->source, ret, &d);
        r = r < 0 ? r : shared_index_joined(shared, ret, ret_joined, &d);
    }
    if (r == 0)
        return;
    leave_aside(shared, ret->joined.name ? ret->joined.name : SHARED_INDEX_TABLE, "",
                diag_text(&d, r));
    ret->n_indexes = 0;
}

/* The same, by the first thread that needs it. */
static const struct shared_table *table_of(struct shared_index *shared)
{
    struct shared_table table = {0};
    struct text joined = {0};

    lock_take(&shared->lock);
    while (shared->state == SHARED_READING)
        lock_wait(&shared->lock, &shared->read);
    if (shared->state == SHARED_UNREAD) {
        shared->state = SHARED_READING;
        lock_drop(&shared->lock);
        shared_index_table(shared, &table, &joined);
        lock_take(&shared->lock);
        shared->table = table;
        shared->joined = joined;
        shared->state = SHARED_READ;
        pthread_cond_broadcast(&shared->read);
    }
    lock_drop(&shared->lock);
    return &shared->table;
}

/* ---- is an index there good? ---- */

/* Was the file written after the indexes? It may have been changed in place. */
static bool is_newer(const struct timespec *written, const struct timespec *a)
{
    return written->tv_sec && (a->tv_sec > written->tv_sec ||
                               (a->tv_sec == written->tv_sec && a->tv_nsec > written->tv_nsec));
}

struct judging {
    struct shared_index *shared;
    const struct shared_table *table;
    bool by_content; /* the version of a file does not say that it is as it was */
};

/* The blocks of the file decide. 0, -ENOENT. same_time: it has the time that it had, which can be
 * set back; then the index is good if they are the same. */
static int judge_content(struct judging *j, const struct shared_line *line, const struct blob *blob,
                         bool same_time, char ret[static DIGEST_TEXT_SIZE])
{
    int r;

    if (!same_time && is_newer(&j->table->written, &blob->mtime)) {
        leave_aside(j->shared, "an index", line->name,
                    " is newer than " SHARED_INDEX_TABLE " (of a copy, touch that)");
        return -ENOENT;
    }
    r = line->size == blob->size ? shared_index_sum(blob, ret) : -ESTALE;
    if (r == -ESTALE || (r == 0 && strcmp(ret, line->sum) != 0)) {
        leave_aside(j->shared, "an index", line->name, " has changed since");
        return -ENOENT;
    }
    j->by_content = j->by_content || !same_time;
    return r;
}

/* Does the table have the blob's file, as it is here? */
static int sum_by_table(void *ctx, const struct blob *blob, char ret[static DIGEST_TEXT_SIZE])
{
    struct judging *j = ctx;
    AUTO_TEXT struct text version = {0};
    AUTO_FREE char *name = NULL;
    const struct shared_line *line;
    bool far = j->shared->far, is_same;
    int r = shared_index_file(blob, &name);

    if (r < 0)
        return r;
    line = shared_line_find(j->table->file, j->table->n_files, name);
    if (!line)
        return -ENOENT;
    if (joined_is(blob)) {
        r = shared_index_sum(blob, ret);
        return r == 0 && strcmp(ret, line->sum) != 0 ? -ENOENT : r;
    }
    r = shared_index_version(far, blob, &version);
    if (r < 0)
        return r;
    is_same = line->size == blob->size && version.len && !strcmp(version.data, line->version) &&
              shared_version_is_sure(far, line->version);
    if (!is_same || !far)
        return judge_content(j, line, blob, is_same, ret);
    memcpy(ret, line->sum, DIGEST_TEXT_SIZE);
    return 0;
}

/* The bytes of an index of the table, as shared_read_line(). */
static int shared_index_read(const struct shared_index *shared, const struct shared_line *line,
                             struct text *ret, struct diag *d)
{
    if (!shared->table.joined.name)
        return shared_read_line(shared->source, line, ret, d);
    text_add_bytes(ret, shared->joined.data + line->at, (size_t)line->size);
    return ret->failed ? -ENOMEM : shared_read_check(line, ret->data, ret->len, d);
}

/* Get an index from `.epochfs/`. 0; -ENOENT: it is not there, or not good. */
static int shared_index_load_shared(struct shared_index *shared, const char *type,
                                    const char *identity, struct text *ret, bool *ret_by_content)
{
    struct judging judging = {shared, table_of(shared), false};
    const struct shared_table *table = judging.table;
    const struct shared_line *line;
    struct diag d = DIAG_INIT;
    char name[DIGEST_TEXT_SIZE];
    int r;

    if (!table->n_indexes)
        return -ENOENT;
    r = shared_index_name(shared, type, identity, sum_by_table, &judging, name);
    if (r < 0)
        return r;
    line = shared_line_find(table->index, table->n_indexes, name);
    if (!line || !line->size)
        return -ENOENT;
    r = shared_index_read(shared, line, ret, &d);
    if (r < 0)
        leave_aside(shared, name, "", diag_text(&d, r));
    *ret_by_content = judging.by_content;
    return r;
}

/* ---- `epochfs index` ---- */

static int sum_and_note(void *ctx, const struct blob *blob, char ret[static DIGEST_TEXT_SIZE])
{
    struct shared_index *shared = ctx;
    AUTO_TEXT struct text version = {0};
    AUTO_FREE char *name = NULL, *text = NULL;
    struct shared_line made = {.size = blob->size};
    int r = shared_index_sum(blob, ret);

    if (r == 0)
        r = shared_index_file(blob, &name);
    if (r == 0)
        r = shared_index_version(shared->far, blob, &version);
    if (r == 0)
        r = text_finish(&version, &text, NULL);
    if (r < 0)
        return r;
    memcpy(made.sum, ret, sizeof(made.sum));
    LOCK_SCOPE(&shared->lock);

    r = array_capacity(&shared->file, shared->n_files, sizeof(made));
    if (r < 0)
        return r;
    made.name = TAKE_PTR(name);
    made.version = TAKE_PTR(text);
    shared->file[shared->n_files++] = made;
    return 0;
}

static int add_use(struct shared_index *shared, const char *type, const char *identity)
{
    struct shared_use use = {strdup(type), strdup(identity), ""};
    int r = use.type && use.identity
                ? shared_index_name(shared, type, identity, sum_and_note, shared, use.name)
                : -ENOMEM;
    LOCK_SCOPE(&shared->lock);

    if (r == 0)
        r = array_capacity(&shared->use, shared->n_uses, sizeof(use));
    if (r == 0) {
        shared->use[shared->n_uses++] = use;
        return 0;
    }
    free(use.type);
    free(use.identity);
    return r;
}

/* Note a use while the blobs that its identity names exist. -ENOENT: it is good for this
 * machine only. */
static void note_use(struct shared_index *shared, const char *type, const char *identity)
{
    int r = add_use(shared, type, identity);
    LOCK_SCOPE(&shared->lock);

    if (r < 0 && r != -ENOENT && !shared->failed)
        shared->failed = r;
}

/* ---- the store ---- */

static struct shared_index *shared_of(const struct index_store *keep)
{
    return (struct shared_index *)(uintptr_t)keep;
}

static int shared_names(const struct index_store *keep, const struct blob *blob,
                        const char *identity)
{
    struct shared_index *shared = shared_of(keep);

    return shared->source || shared->notes ? shared_name_add(shared, blob, identity) : 0;
}

/* The identity under which an index by content is kept. NULL: no memory. */
static char *content_identity(const char *identity)
{
    char *ret;

    text_print(&ret, "%s" BY_CONTENT, identity);
    return ret;
}

/* Keep the bytes of a shared index, and return them. */
static int shared_index_use_shared(struct shared_index *shared, const char *type,
                                   const char *identity, struct text *bytes, bool by_content,
                                   struct kept_index *ret)
{
    const struct iovec piece = {bytes->data, bytes->len};
    char *owned;
    size_t len;
    int r = index_store_save(shared->keep.inner, type, identity, "", &piece, 1, ret, NULL);

    if (r < 0) {
        r = text_finish(bytes, &owned, &len);
        if (r == 0)
            *ret = (struct kept_index){(uint8_t *)owned, len, false};
    }
    ret->by_content = by_content;
    return r;
}

static int shared_load(const struct index_store *keep, const char *type, const char *identity,
                       struct kept_index *ret)
{
    struct shared_index *shared = shared_of(keep);
    AUTO_FREE char *content = NULL;
    AUTO_TEXT struct text bytes = {0};
    bool by_content = false;
    int r = index_store_load(shared->keep.inner, type, identity, ret);

    if (shared->notes && r == 0)
        note_use(shared, type, identity);
    if (r == 0 || shared->notes || !shared->source)
        return r;
    content = content_identity(identity);
    if (!content)
        return -ENOMEM;
    if (index_store_load(shared->keep.inner, type, content, ret) == 0) {
        ret->by_content = true;
        if (ret->size > 1)
            return 0;
        kept_index_release(ret);
        return -ENOENT;
    }
    if (shared_index_load_shared(shared, type, identity, &bytes, &by_content) < 0)
        return r;
    return shared_index_use_shared(shared, type, by_content ? content : identity, &bytes,
                                   by_content, ret);
}

static int shared_save(const struct index_store *keep, const char *type, const char *identity,
                       const char *source, const struct iovec *pieces, unsigned n,
                       struct kept_index *ret, struct diag *d)
{
    struct shared_index *shared = shared_of(keep);
    int r = index_store_save(shared->keep.inner, type, identity, source, pieces, n, ret, d);

    if (r == 0 && shared->notes)
        note_use(shared, type, identity);
    return r;
}

static void shared_remove(const struct index_store *keep, const char *type, const char *identity)
{
    const struct shared_index *shared = shared_of(keep);
    AUTO_FREE char *content = content_identity(identity);
    AUTO(kept_index_release) struct kept_index kept = {0};
    char mark[] = "-";

    index_store_remove(shared->keep.inner, type, identity);
    if (!content || index_store_load(shared->keep.inner, type, content, &kept) < 0)
        return;
    index_store_remove(shared->keep.inner, type, content);
    index_store_save(shared->keep.inner, type, content, "", &(struct iovec){mark, 1}, 1, NULL,
                     NULL);
}

/* Kept files are this node's alone: no index next to the data has them. */
static const struct index_store_ops shared_ops = {
    .load = shared_load,
    .save = shared_save,
    .remove = shared_remove,
    .names = shared_names,
};

void shared_index_init(struct shared_index *ret, const struct index_store *inner,
                       const struct source *source)
{
    bool may_have = !source->only_file && !source->remote->ordered;

    *ret = (struct shared_index){.keep = {&shared_ops, inner},
                                 .source = may_have ? source : NULL,
                                 .far = source->remote->far};
    lock_init(&ret->lock);
    pthread_cond_init(&ret->read, NULL);
}

void shared_index_release(struct shared_index *shared)
{
    if (!shared->keep.ops)
        return;
    for (size_t i = 0; i < shared->n_uses; i++) {
        free(shared->use[i].type);
        free(shared->use[i].identity);
    }
    for (size_t i = 0; i < shared->n_files; i++) {
        free((char *)(uintptr_t)shared->file[i].name);
        free((char *)(uintptr_t)shared->file[i].version);
    }
    text_release(&shared->joined);
    free(shared->file);
    free(shared->use);
    shared_name_free(shared);
    shared_table_release(&shared->table);
    pthread_cond_destroy(&shared->read);
    lock_release(&shared->lock);
}
