/* The library: a source that is open, and its files. */
#include "fs/library/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/read_context.h"
#include "fs/tree/splits.h"

#define PREPARE_NS INT64_C(300000000) /* how long epochfs_open() waits for datasets to be ready */
#define PIECE_MOST ((size_t)1 << 30)  /* bytes of one read of the view */
#define NOTES_MOST ((size_t)1 << 16)  /* bytes of all notes */

PUBLIC const char *epochfs_version(void)
{
    return EPOCHFS_VERSION;
}

/* ---- what the engine reports ---- */

/* Keep a warning, once. */
static void library_note(void *ctx, enum log_level level, const char *text)
{
    struct epochfs *fs = ctx;
    AUTO_TEXT struct text line = {0};
    LOCK_SCOPE(&fs->lock);

    text_add(&line, "%s\n", text);
    if (level <= LOG_LEVEL_WARNING && !line.failed && fs->notes.len + line.len <= NOTES_MOST &&
        (!fs->notes.len || !strstr(fs->notes.data, line.data)))
        text_add(&fs->notes, "%s", line.data);
}

static void library_said(void *ctx, const char *text)
{
    library_note(ctx, LOG_LEVEL_WARNING, text);
}

static void library_grown(void *ctx, uint64_t ino)
{
    (void)ctx;
    (void)ino;
}

static void library_answer(void *ctx, const struct catalog_item *item, int error,
                           const struct diag *reason)
{
    struct epochfs *fs = ctx;
    LOCK_SCOPE(&fs->lock);
    struct library_answer *answer = &fs->answer[item - fs->opened.catalog.item];

    answer->turn++;
    answer->error = error;
    if (error < 0)
        answer->reason = *reason;
    pthread_cond_broadcast(&fs->wake);
}

/* ---- open and close ---- */

/* Options that only a mount has. */
static int library_check_options(const struct options *o, struct diag *d)
{
    const char *name = o->for_fuse.data;

    if (o->for_fuse.len)
        return diag_set(d, -EINVAL,
                        "option %.*s: means nothing without a mount, which `epochfs mount` makes",
                        (int)strcspn(name, "=,"), name);
    if (o->open != OPEN_AUTO)
        return diag_set(d, -EINVAL,
                        "option passthrough=: means nothing without a mount, which `epochfs mount` "
                        "makes");
    return 0;
}

static int library_open_source(struct epochfs *fs, const char *source, struct diag *d)
{
    const struct opened_for whom = {.notices = {library_said, fs}};
    int r = 0;

    if (opened_catalog(source, &fs->options, &whom, &fs->opened, &r, d) != OPENED_ALL)
        return r < 0 ? r : -EIO;
    catalog_prepare(&fs->opened.catalog, false, monotonic_ns() + PREPARE_NS);
    splits_note_all(&fs->opened.catalog);
    opened_report(&fs->opened, &(struct opened_reports){library_note, fs});
    if (source_silent(fs->opened.source, d) == UINT_MAX)
        return -EREMOTEIO;
    fs->source = source_name(fs->opened.source);
    fs->answer = calloc(fs->opened.catalog.n + 1, sizeof(*fs->answer));
    return fs->source && fs->answer ? 0 : -ENOMEM;
}

static int library_make_engine(struct epochfs *fs, struct diag *d)
{
    const struct engine_setup setup = {
        .catalog = &fs->opened.catalog,
        .options = &fs->options,
        .source = fs->source,
        .mountpoint = "",
        .stage = fs->opened.source->stage,
        .clock = &real_clock,
    };
    int r;

    fs->events = (struct engine_events){
        .note = library_note, .grown = library_grown, .answer = library_answer, .ctx = fs};
    r = engine_init(&fs->engine, &setup, &fs->events, d);
    for (size_t i = 0; i < fs->opened.catalog.n && r == 0 && !fs->has_preparer; i++)
        if (fs->opened.catalog.item[i].ds &&
            !tree_item_is_open(fs->engine.tree, &fs->opened.catalog.item[i])) {
            r = preparer_start(&fs->engine.preparer);
            fs->has_preparer = r == 0;
        }
    if (r == 0)
        stage_begin(fs->opened.source->stage);
    return r;
}

/* Release all but the shell. */
static void library_release(struct epochfs *fs)
{
    preparer_end(&fs->engine.preparer);
    if (fs->opened.source)
        stage_end(fs->opened.source->stage);
    preparer_stop(&fs->engine.preparer);
    if (fs->opened.source)
        stage_rest(fs->opened.source->stage);
    engine_release(&fs->engine);
    opened_release(&fs->opened);
    options_release(&fs->options);
    text_release(&fs->notes);
    free(fs->answer);
    free(fs->source);
}

PUBLIC struct epochfs *epochfs_open(const char *source, const char *options,
                                    struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    struct epochfs *fs = source ? calloc(1, sizeof(*fs)) : NULL;
    struct diag d = DIAG_INIT;
    int r;

    if (!fs) {
        library_fail(error, source ? ENOMEM : EINVAL, "%s",
                     source ? strerror(ENOMEM) : "expected a source, got NULL");
        return NULL;
    }
    fs->pid = getpid();
    fs->refs = 1;
    lock_init(&fs->lock);
    condition_init(&fs->wake);
    options_init(&fs->options);
    r = options_parse(&fs->options, options ? options : "", &d);
    if (r == 0)
        r = library_check_options(&fs->options, &d);
    if (r == 0)
        r = options_take_specifier(&fs->options, &source, &d);
    if (r == 0)
        r = library_open_source(fs, source, &d);
    if (r == 0)
        r = library_make_engine(fs, &d);
    if (r == 0)
        return fs;
    library_fail_for(error, r, &d, source);
    library_release(fs);
    handle_free(fs);
    return NULL;
}

PUBLIC int epochfs_close(struct epochfs *fs, struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    if (library_enter(fs, error) < 0)
        return -1;
    lock_take(&fs->lock);
    if (fs->closing) { /* another thread is faster */
        lock_drop(&fs->lock);
        library_leave(fs);
        return library_fail(error, ESHUTDOWN, "the source is closed");
    }
    fs->closing = true;
    fs->calls--;
    pthread_cond_broadcast(&fs->wake);
    lock_drop(&fs->lock);
    stage_end(fs->opened.source->stage); /* readers that wait for the remote go on */
    library_batches_end(fs);
    lock_take(&fs->lock);
    while (fs->calls)
        lock_wait(&fs->lock, &fs->wake);
    fs->is_closed = true;
    fs->closer = pthread_self();
    lock_drop(&fs->lock);
    library_release(fs);
    library_unref(fs);
    return 0;
}

/* ---- files ---- */

/* A stat() of a file, which may wait for bytes. */
struct library_stated {
    struct epochfs *fs;
    const struct node *node;
    struct stat *st;
};

static int library_stat_pass(struct read_context *rc, void *what, struct diag *d)
{
    struct library_stated *stated = what;

    return engine_stat(rc, &stated->fs->engine, stated->node, stated->st, d);
}

static int library_read_waiting(struct epochfs *fs,
                                int (*pass)(struct read_context *rc, void *what, struct diag *d),
                                void *what, struct diag *d)
{
    const struct engine_read read = {
        .cancelled = library_is_closing, .ctx = fs, .pass = pass, .what = what};

    return engine_read_waiting(&fs->engine, &read, d);
}

/* A live text, as it is now. */
static int library_live(struct epochfs *fs, const struct node *node, struct text *ret)
{
    status_text(&fs->engine.status, (enum live)node->number, ret);
    return ret->failed ? -ENOMEM : 0;
}

static int library_stat(struct epochfs *fs, const char *path, struct stat *st, struct diag *d)
{
    struct node node;
    struct library_stated stated = {.fs = fs, .node = &node, .st = st};
    AUTO_TEXT struct text live = {0};
    int r = library_find(fs, path, &node, d);

    if (r < 0)
        return r;
    if (node.type != NODE_LIVE)
        return library_read_waiting(fs, library_stat_pass, &stated, d);
    r = library_live(fs, &node, &live);
    *st = (struct stat){.st_ino = node.ino, .st_mode = S_IFREG | 0444, .st_size = (off_t)live.len};
    st->st_mtim.tv_sec = now_ns() / 1000000000;
    return r;
}

PUBLIC int epochfs_stat(struct epochfs *fs, const char *path, struct epochfs_stat *ret,
                        struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    struct diag d = DIAG_INIT;
    struct epochfs_stat found = {0};
    struct stat st;
    int r;

    if (!path || !ret)
        return library_fail(error, EINVAL, "expected a path, and where to write what it is");
    if (library_enter(fs, error) < 0)
        return -1;
    r = library_stat(fs, path, &st, &d);
    library_leave(fs);
    if (r < 0)
        return library_fail_for(error, r, &d, path);
    found = (struct epochfs_stat){
        .size = (size_t)min_u64(ret->size, sizeof(found)),
        .bytes = (uint64_t)st.st_size,
        .inode = st.st_ino,
        .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .mode = st.st_mode,
    };
    memcpy(ret, &found, found.size);
    return 0;
}

/* The entries of a folder, each once. */
static int library_list(struct epochfs *fs, const struct node *folder,
                        int (*each)(void *ctx, const char *name), void *ctx, struct diag *d)
{
    char name[TREE_NAME_SIZE];
    struct read_context rc;
    struct node node;
    int r = 0;

    read_context_init(&rc, false);
    rc.cancelled = library_is_closing;
    rc.ctx = fs;
    for (uint64_t i = 0; r >= 0; i++) {
        r = tree_list(fs->engine.tree, folder, i, &node, name);
        if (r == -EAGAIN && folder->item) {
            r = handle_wait(fs, folder->item, d);
            i--;
            continue;
        }
        if (r == 0)
            r = engine_refused_in_list(&rc, &fs->engine, &node, true);
        if (r == 0 && library_is_closing(fs))
            r = -EINTR;
        if (r == 0 && strcmp(name, ".") != 0 && each(ctx, name)) /* a folder that is one source */
            break;
    }
    read_context_release(&rc);
    if (r < 0 && folder->item && folder->item->ds &&
        dataset_state(folder->item->ds) == DATASET_FAILED)
        diag_set(d, r, "%s", folder->item->ds->reason.text);
    return r == -ENOENT || r > 0 ? 0 : r;
}

PUBLIC int epochfs_list(struct epochfs *fs, const char *path,
                        int (*each)(void *ctx, const char *name), void *ctx,
                        struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    struct diag d = DIAG_INIT;
    struct node node;
    int r;

    if (!path || !each)
        return library_fail(error, EINVAL, "expected a path, and a function");
    if (library_enter(fs, error) < 0)
        return -1;
    r = library_find(fs, path, &node, &d);
    if (r == 0)
        r = node_is_folder(&node) ? library_list(fs, &node, each, ctx, &d) : -ENOTDIR;
    library_leave(fs);
    return r < 0 ? library_fail_for(error, r, &d, path) : 0;
}

struct library_read {
    struct epochfs *fs;
    struct node node;
    uint64_t off;
    size_t len, n;
    uint8_t *dst;
};

static int library_read_pass(struct read_context *rc, void *what, struct diag *d)
{
    struct library_read *read = what;

    return view_read(rc, read->fs->engine.open_files, &read->node, read->off, read->len, read->dst,
                     &read->n, d);
}

static int library_read_file(struct library_read *read, struct diag *d)
{
    struct epochfs *fs = read->fs;
    int r;

    engine_read_begins(&fs->engine, &read->node, read->off + read->len);
    r = library_read_waiting(fs, library_read_pass, read, d);
    if (r < 0)
        return r;
    atomic_fetch_add_explicit(&fs->engine.status.bytes_served, read->n, memory_order_relaxed);
    engine_read_ends(&fs->engine, &read->node, read->off, read->n, read->len);
    return 0;
}

static int library_read(struct library_read *read, const char *path, struct diag *d)
{
    AUTO_TEXT struct text live = {0};
    int r = library_find(read->fs, path, &read->node, d);

    if (r < 0)
        return r;
    if (node_is_folder(&read->node))
        return -EISDIR;
    if (read->node.type != NODE_LIVE)
        return library_read_file(read, d);
    r = library_live(read->fs, &read->node, &live);
    read->n = r == 0 && read->off < live.len ? (size_t)min_u64(read->len, live.len - read->off) : 0;
    if (read->n)
        memcpy(read->dst, live.data + read->off, read->n);
    return r;
}

PUBLIC int64_t epochfs_read(struct epochfs *fs, const char *path, uint64_t offset, void *memory,
                            size_t size, struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    struct diag d = DIAG_INIT;
    struct library_read read = {.fs = fs, .off = offset, .len = size, .dst = memory};
    int r;

    if (!path || (!memory && size))
        return library_fail(error, EINVAL, "expected a path, and memory");
    read.len = (size_t)min_u64(size, PIECE_MOST);
    read.off = min_u64(offset, INT64_MAX - PIECE_MOST);
    if (library_enter(fs, error) < 0)
        return -1;
    r = library_read(&read, path, &d);
    if (r < 0 && r != -EINTR)
        status_read_error(&fs->engine.status, diag_text(&d, r));
    library_leave(fs);
    return r < 0 ? library_fail_for(error, r, &d, path) : (int64_t)read.n;
}

/* ---- notes ---- */

PUBLIC int epochfs_notes(struct epochfs *fs, int (*each)(void *ctx, const char *line), void *ctx,
                         struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    AUTO_FREE char *copy = NULL;
    char *next, *line;

    if (!each)
        return library_fail(error, EINVAL, "expected a function, got NULL");
    if (library_enter(fs, error) < 0)
        return -1;
    lock_take(&fs->lock);
    next = copy = strdup(fs->notes.len ? fs->notes.data : "");
    lock_drop(&fs->lock);
    library_leave(fs);
    if (!copy)
        return library_fail(error, ENOMEM, "%s", strerror(ENOMEM));
    while ((line = strsep(&next, "\n")) && next && !each(ctx, line)) {
    }
    return 0;
}

/* ---- attributes ---- */

struct library_attribute {
    struct epochfs *fs;
    struct node node;
    enum attribute attribute;
    struct text text;
};

static int library_attribute_pass(struct read_context *rc, void *what, struct diag *d)
{
    struct library_attribute *a = what;

    (void)d;
    text_release(&a->text);
    a->text = (struct text){0};
    return view_attribute(rc, a->fs->engine.open_files, &a->node, a->attribute, &a->text);
}

static int library_attribute(struct library_attribute *a, const char *path, const char *name,
                             struct diag *d)
{
    int r = library_find(a->fs, path, &a->node, d);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < N_ATTRIBUTES; i++)
        if (!strcmp(name, attribute_names[i])) {
            a->attribute = (enum attribute)i;
            r = library_read_waiting(a->fs, library_attribute_pass, a, d);
            return r == 0 && a->text.failed ? -ENOMEM : r;
        }
    return -ENODATA;
}

PUBLIC int64_t epochfs_attribute(struct epochfs *fs, const char *path, const char *name,
                                 void *memory, size_t size, struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    struct library_attribute a = {.fs = fs};
    struct diag d = DIAG_INIT;
    int64_t len = 0;
    int r;

    if (!path || !name || (!memory && size))
        return library_fail(error, EINVAL, "expected a path, a name, and memory");
    if (library_enter(fs, error) < 0)
        return -1;
    r = library_attribute(&a, path, name, &d);
    library_leave(fs);
    if (r == 0 && a.text.len > size)
        r = diag_set(&d, -ERANGE, "%s of %s: it has %zu bytes, expected at most %zu", name, path,
                     a.text.len, size);
    if (r == 0 && a.text.len)
        memcpy(memory, a.text.data, a.text.len);
    len = (int64_t)a.text.len;
    text_release(&a.text);
    return r < 0 ? library_fail_for(error, r, &d, path) : len;
}
