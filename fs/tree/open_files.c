#include "fs/tree/open_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/read_context.h"

#define MEMO_BYTES  (8u << 20) /* of lists of samples that files share */
#define NOTES       1024
#define SPARES      16               /* buffers that wait for their next file, and */
#define SPARE_BYTES (24u << 20)      /* that many bytes of them, at most */
#define ROUND       (64u << 10)      /* bytes of buffers are multiples of that */
#define MAKERS      4                /* files that are made at a time */
#define LOOK_NS     INT64_C(2000000) /* between two looks whether a request is cancelled */

/* A number that takes a pass over a file to compute, such as a CRC, as far as it is known. */
struct note {
    uint64_t ino;
    unsigned slot;
    struct layout_sum sum;
};

struct spare {
    uint8_t *bytes; /* NULL: none */
    size_t size;
};

struct open_files {
    /* Set by open_files_new(), then constant: */
    char *mountpoint;
    struct memo *lists; /* samples of shuffled batches */
    struct lock lock;
    /* Guarded by lock: a later note replaces an earlier one with the same hash. ino 0: empty. */
    struct note note[NOTES];
    struct open_file *kept[KEPT_FILES]; /* [n_kept], the least recently read first */
    uint64_t ino[KEPT_FILES];           /* [n_kept] of these, so that a search is fast */
    unsigned n_kept;
    size_t kept_bytes; /* that kept files hold */
    struct spare spare[SPARES];
    size_t spare_bytes;
    uint64_t making[MAKERS]; /* files that open_files_make() makes; 0: none */
    pthread_cond_t made;     /* one less */
};

/* ---- checksums ---- */

static struct note *open_files_note_place(struct open_files *files, uint64_t ino, unsigned slot)
{
    uint64_t h = (ino ^ slot * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);

    return &files->note[(h >> 32) % NOTES];
}

static void open_files_host_recall(const struct layout_host *host, const struct layout_range *range,
                                   unsigned n, struct layout_sum *ret)
{
    const struct open_file *f = (const struct open_file *)host;
    uint64_t ino = f->samples.node.ino;
    LOCK_SCOPE(&f->files->lock);

    for (unsigned i = 0; i < n; i++) {
        const struct note *note = open_files_note_place(f->files, ino, range[i].slot);

        if (note->ino == ino && note->slot == range[i].slot)
            ret[i] = note->sum;
    }
}

/* For two concurrent requests for a file, the other may be further. A sum of no bytes would only
 * displace another one. */
static void open_files_host_remember(const struct layout_host *host,
                                     const struct layout_range *range, unsigned n,
                                     const struct layout_sum *sum)
{
    const struct open_file *f = (const struct open_file *)host;
    uint64_t ino = f->samples.node.ino;
    LOCK_SCOPE(&f->files->lock);

    for (unsigned i = 0; i < n; i++) {
        unsigned slot = range[i].slot;
        struct note *note = open_files_note_place(f->files, ino, slot);
        bool same = note->ino == ino && note->slot == slot;

        if (sum[i].done > (same ? note->sum.done : 0))
            *note = (struct note){.ino = ino, .slot = slot, .sum = sum[i]};
    }
}

/* ---- buffers ---- */

/* The smallest spare that is large enough, and not far too large. */
static uint8_t *take_spare(struct open_files *files, size_t size, size_t *ret_size)
{
    LOCK_SCOPE(&files->lock);
    struct spare *best = NULL, found;

    for (unsigned i = 0; i < SPARES; i++) {
        struct spare *spare = &files->spare[i];

        if (spare->bytes && spare->size >= size && spare->size / 2 <= size &&
            (!best || spare->size < best->size))
            best = spare;
    }
    if (!best)
        return NULL;
    found = *best;
    *best = (struct spare){0};
    files->spare_bytes -= found.size;
    *ret_size = found.size;
    return found.bytes;
}

static uint8_t *host_buffer(const struct layout_host *host, size_t size, size_t *ret_size)
{
    size_t rounded = (size_t)ceil_div(size, ROUND) * ROUND;
    uint8_t *spare = take_spare(((const struct open_file *)host)->files, rounded, ret_size);

    *ret_size = spare ? *ret_size : rounded;
    return spare ? spare : malloc(rounded);
}

/* Take the buffer. False: there are enough. */
static bool keep_spare(struct open_files *files, uint8_t *buffer, size_t size)
{
    LOCK_SCOPE(&files->lock);

    if (files->spare_bytes + size > SPARE_BYTES)
        return false;
    for (unsigned i = 0; i < SPARES; i++)
        if (!files->spare[i].bytes) {
            files->spare[i] = (struct spare){buffer, size};
            files->spare_bytes += size;
            return true;
        }
    return false;
}

static void host_give_back(const struct layout_host *host, uint8_t *buffer, size_t size)
{
    if (!keep_spare(((const struct open_file *)host)->files, buffer, size))
        free(buffer);
}

/* ---- one file ---- */

static int add_parts(struct layout *l, const struct node *node)
{
    extern const struct encoder encoder_png;

    if (node->type == NODE_PREVIEW)
        return encoder_png.layout(
            l, &(struct file_kind){.encoder = &encoder_png, .field = tree_preview(node->item->ds)});
    return node->file->encoder->layout(l, node->file);
}

/* The request that uses the file from now on; NULL: none does. */
static void set_request(struct open_file *f, struct read_context *rc, struct diag *d)
{
    f->samples.sel.rc = rc;
    f->samples.sel.reason = d;
}

int open_files_samples(const struct open_files *files, const struct node *node,
                       struct file_samples *ret)
{
    return file_samples_init(ret, files->lists, files->mountpoint, node);
}

int open_file_init(struct read_context *rc, struct open_file *f, struct open_files *files,
                   const struct node *node, struct diag *d)
{
    int r = open_files_samples(files, node, &f->samples);

    f->host = (struct layout_host){open_files_host_recall, open_files_host_remember, host_buffer,
                                   host_give_back};
    f->files = files;
    f->read = 0;
    f->users = 0;
    layout_init(&f->layout, node->item->ds, &f->samples.sel, &f->host);
    set_request(f, rc, d);
    if (r == -EIO)
        return diag_set(d, r,
                        "plan %s: samples have other lengths than when its batches were counted; "
                        "mount again",
                        node->plan->name);
    return r < 0 ? r : add_parts(&f->layout, node);
}

void open_file_release(struct open_file *f)
{
    layout_release(&f->layout);
    file_samples_release(&f->samples);
}

static void open_file_free(struct open_file *f)
{
    if (f)
        open_file_release(f);
    free(f);
}

/* ---- those that are kept ---- */

int open_files_new(const char *mountpoint, struct open_files **ret)
{
    struct open_files *files = calloc(1, sizeof(*files));

    if (files)
        files->mountpoint = strdup(mountpoint);
    if (!files || !files->mountpoint || memo_new(MEMO_BYTES, &files->lists) < 0) {
        if (files)
            free(files->mountpoint);
        free(files);
        return -ENOMEM;
    }
    lock_init(&files->lock);
    condition_init(&files->made);
    *ret = files;
    return 0;
}

void open_files_free(struct open_files *files)
{
    if (!files)
        return;
    for (unsigned i = 0; i < files->n_kept; i++)
        open_file_free(files->kept[i]);
    for (unsigned i = 0; i < SPARES; i++)
        free(files->spare[i].bytes);
    memo_free(files->lists);
    free(files->mountpoint);
    pthread_cond_destroy(&files->made);
    lock_release(&files->lock);
    free(files);
}

/* The memory of a file that no request uses. The layout grows with the fields of the dataset, the
 * list with the samples of the batch. */
static size_t bytes_held(const struct open_file *f)
{
    size_t list = f->samples.list ? f->samples.sel.count * sizeof(uint64_t) : 0;

    return sizeof(*f) + f->layout.held + list;
}

static struct open_file *open_files_remove_locked(struct open_files *files, unsigned i)
{
    struct open_file *f = files->kept[i];

    lock_assert_held(&files->lock);
    files->kept_bytes -= bytes_held(f);
    files->n_kept--;
    memmove(&files->kept[i], &files->kept[i + 1], (files->n_kept - i) * sizeof(f));
    memmove(&files->ino[i], &files->ino[i + 1], (files->n_kept - i) * sizeof(files->ino[0]));
    return f;
}

static void open_files_add_locked(struct open_files *files, struct open_file *f)
{
    lock_assert_held(&files->lock);
    files->ino[files->n_kept] = f->samples.node.ino;
    files->kept[files->n_kept++] = f;
    files->kept_bytes += bytes_held(f);
}

/* The place of a file that is kept behind its last; 0: it is not. */
static unsigned open_files_find_locked(const struct open_files *files, uint64_t ino)
{
    unsigned i = files->n_kept;

    lock_assert_held(&files->lock);
    while (i && files->ino[i - 1] != ino)
        i--;
    return i;
}

/* The place of ino among the files that are being made; MAKERS: it is none of them. */
static unsigned making_at_locked(const struct open_files *files, uint64_t ino)
{
    unsigned i = 0;

    lock_assert_held(&files->lock);
    while (i < MAKERS && files->making[i] != ino)
        i++;
    return i;
}

/* *ret: the file, if it is kept, or NULL. 0 or -EINTR. */
static int take_kept(struct read_context *rc, struct open_files *files, uint64_t ino,
                     struct open_file **ret)
{
    LOCK_SCOPE(&files->lock);
    unsigned found;

    *ret = NULL;
    while (making_at_locked(files, ino) < MAKERS) {
        if (read_cancelled(rc))
            return -EINTR;
        lock_wait_until(&files->lock, &files->made, monotonic_ns() + LOOK_NS);
    }
    found = open_files_find_locked(files, ino);
    if (!found)
        return 0;
    *ret = open_files_remove_locked(files, found - 1);
    if ((*ret)->layout.is_whole) {
        (*ret)->users++;
        open_files_add_locked(files, *ret);
    }
    return 0;
}

static int new_file(struct read_context *rc, struct open_files *files, const struct node *node,
                    struct open_file **ret, struct diag *d)
{
    struct open_file *f = malloc(sizeof(*f));
    int r = f ? open_file_init(rc, f, files, node, d) : -ENOMEM;

    if (r < 0)
        open_file_free(f);
    else
        *ret = f;
    return r;
}

int open_files_take(struct read_context *rc, struct open_files *files, const struct node *node,
                    struct open_file **ret, struct diag *d)
{
    struct open_file *f;
    int r = take_kept(rc, files, node->ino, &f);

    if (r < 0)
        return r;
    if (!f)
        return new_file(rc, files, node, ret, d);
    if (!f->layout.is_whole)
        set_request(f, rc, d);
    *ret = f;
    return 0;
}

/* Keep *f, if there is room, and set it to NULL. Otherwise returns one that must go: the least
 * recently read that has no user, or *f. */
static struct open_file *open_files_try_keep(struct open_files *files, struct open_file **f)
{
    LOCK_SCOPE(&files->lock);
    unsigned i = 0;

    if (files->n_kept < KEPT_FILES && files->kept_bytes + bytes_held(*f) <= KEPT_BYTES) {
        open_files_add_locked(files, TAKE_PTR(*f));
        return NULL;
    }
    while (i < files->n_kept && files->kept[i]->users)
        i++;
    return i < files->n_kept ? open_files_remove_locked(files, i) : TAKE_PTR(*f);
}

static void open_files_keep(struct open_files *files, struct open_file *f)
{
    f->samples.has_no_list = false;
    set_request(f, NULL, NULL);
    while (f)
        open_file_free(open_files_try_keep(files, &f));
}

/* A user of a file that was made whole has read so many bytes and is done. True: free the file. */
static bool open_files_end_use(struct open_files *files, struct open_file *f, uint64_t read)
{
    LOCK_SCOPE(&files->lock);
    unsigned i = 0;

    f->read += read;
    if (--f->users || f->read < f->layout.size)
        return false;
    while (files->kept[i] != f)
        i++;
    open_files_remove_locked(files, i);
    return true;
}

void open_files_give(struct open_file *f, uint64_t read)
{
    if (f->layout.is_whole) {
        if (open_files_end_use(f->files, f, read))
            open_file_free(f);
        return;
    }
    f->read += read;
    if (f->read >= f->layout.size)
        open_file_free(f);
    else
        open_files_keep(f->files, f);
}

/* -EALREADY: it is made, or another thread makes it; -EBUSY: too many are being made. */
static int begin_making(struct open_files *files, uint64_t ino)
{
    LOCK_SCOPE(&files->lock);
    unsigned place = making_at_locked(files, 0);

    if (open_files_find_locked(files, ino) || making_at_locked(files, ino) < MAKERS)
        return -EALREADY;
    if (place == MAKERS)
        return -EBUSY;
    files->making[place] = ino;
    return 0;
}

static void end_making(struct open_files *files, uint64_t ino)
{
    LOCK_SCOPE(&files->lock);

    files->making[making_at_locked(files, ino)] = 0;
    pthread_cond_broadcast(&files->made);
}

int open_files_make(struct read_context *rc, struct open_files *files, const struct node *node)
{
    struct open_file *f = NULL;
    int r = begin_making(files, node->ino);

    if (r < 0)
        return r;
    r = new_file(rc, files, node, &f, NULL);
    if (r == 0) {
        rc->checks_late = true; /* layout_make() does */
        r = layout_make(rc, &f->layout, NULL);
        rc->checks_late = false;
        if (r < 0)
            open_file_free(f);
        else
            open_files_keep(files, f);
    }
    end_making(files, node->ino);
    return r;
}

bool open_files_size(struct open_files *files, const struct node *node, uint64_t *ret)
{
    LOCK_SCOPE(&files->lock);
    unsigned found = open_files_find_locked(files, node->ino);

    if (found)
        *ret = files->kept[found - 1]->layout.size;
    return found;
}

struct memory_held open_files_held(void *owner)
{
    struct open_files *files = owner;
    LOCK_SCOPE(&files->lock);

    return (struct memory_held){.bytes = files->kept_bytes + files->spare_bytes,
                                .limit = KEPT_BYTES + SPARE_BYTES};
}

struct memory_held open_files_lists_held(void *owner)
{
    return memo_held(((struct open_files *)owner)->lists);
}
