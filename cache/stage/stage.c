#include "cache/stage/stage.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_MS      INT64_C(1000000)
#define NS_PER_S       INT64_C(1000000000)
#define OVERFLOW_BYTES ((size_t)64 << 20) /* more than readers need at a time */
#define OPEN_MOST      1024
#define REST_MS        2000 /* time for transfers that no reader waits for before a fork() */
#define RUN_BYTES      (UINT64_C(1) << 20)

#define BYTE_NS 50 /* of a connection with no measured speed yet */

#define AUTO_BLOCK_MOST (UINT32_C(128) << 10)
#define AUTO_BLOCKS     (UINT64_C(1) << 18) /* of a file */
#define BLOCKS_MOST     (UINT64_C(1) << 28) /* of a file: each takes one byte of memory, or a few */
#define STATES_SHARE    4                   /* part of memory that those of all files may take */

/* ---- life ---- */

static int compare_urls(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->key, ((const struct file *)b)->key);
}

/* Is it the URL of one of our files? */
static bool has_url(void *ctx, const char *url)
{
    struct stage *stage = ctx;
    const struct file probe = {.key = (char *)(uintptr_t)url};
    LOCK_SCOPE(&stage->lock);

    return tfind(&probe, &stage->by_key, compare_urls);
}

int stage_new(const struct stage_options *options, const struct cache_folder *cache,
              struct transport *transport, struct stage **ret, struct diag *d)
{
    struct rlimit files = {.rlim_cur = 64};
    struct stage *stage = calloc(1, sizeof(*stage));
    int r = stage ? quota_open(cache, options->limit, options->limit_percent, options->clock,
                               &stage->quota, d)
                  : -ENOMEM;

    if (r < 0) {
        transport_free(transport);
        free(stage);
        return r;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    stage->options = *options;
    stage->options.clock = clock_or_real(options->clock);
    stage->cache = cache;
    stage->transport = transport;
    transport->requests = &stage->counters.requests;
    transport->spare_bytes = &stage->counters.background_bytes;
    limiter_init(&stage->own_limiter, options->jobs, options->small_jobs, options->clock);
    stage->limiter = transport->limiter ? transport->limiter : &stage->own_limiter;
    stage->nonce = version_own_number(stage);
    stage->main = stage_main;
    stage->open_most = (unsigned)max_u64(min_u64(OPEN_MOST, (uint64_t)files.rlim_cur / 8), 4);
    stage->run_bytes = RUN_BYTES;
    stage->block_state_bytes = sizeof(*stage->files->state) +
                               (options->keep == STAGE_ONCE) * sizeof(*stage->files->last) +
                               (options->keep != STAGE_PIN) * sizeof(*stage->files->when);
    stage->blocks_most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) /
                         STATES_SHARE / stage->block_state_bytes;
    yield_init(&stage->yield);
    stage->byte_ns = BYTE_NS;
    stage->trouble = stage->untold = stage->silent_why = DIAG_INIT;
    atomic_store(&stage->progress, stage_now(stage));
    quota_set_keeps(stage->quota, has_url, stage);
    overflow_init(&stage->overflow, options->memory ? (size_t)options->memory : OVERFLOW_BYTES);
    TAILQ_INIT(&stage->open);
    TAILQ_INIT(&stage->elsewhere);
    TAILQ_INIT(&stage->active);
    TAILQ_INIT(&stage->dead);
    for (unsigned why = 0; why < RUN_BACKGROUND; why++)
        TAILQ_INIT(&stage->needs[why]);
    lock_init(&stage->lock);
    condition_init(&stage->wake);
    condition_init(&stage->gone);
    *ret = stage;
    return 0;
}

static void end_thread(struct stage *stage)
{
    bool runs;

    lock_take(&stage->lock);
    runs = stage->runs;
    pthread_cond_broadcast(&stage->wake);
    lock_drop(&stage->lock);
    if (runs)
        pthread_join(stage->thread, NULL);
    lock_take(&stage->lock);
    stage->runs = false;
    lock_drop(&stage->lock);
}

void stage_read_no_ahead(struct stage *stage)
{
    LOCK_SCOPE(&stage->lock);

    stage->options.no_ahead = true;
}

void stage_limit_retry(struct stage *stage, unsigned seconds)
{
    LOCK_SCOPE(&stage->lock);

    if (stage->options.retry_limit_s > seconds)
        stage->options.retry_limit_s = seconds;
    stage_kick_locked(stage);
}

void stage_end(struct stage *stage)
{
    struct wait *over = NULL;

    lock_take(&stage->lock);
    atomic_store(&stage->ending, true);
    runs_stop_locked(stage, &over);
    pthread_cond_broadcast(&stage->wake);
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
    waits_tell(stage, over, -EINTR, NULL);
    runs_free_dead(stage);
}

static void file_free(void *arg)
{
    struct file *file = arg;

    if (file->is_open)
        staged_close(&file->staged);
    version_remove(file);
    free(file->blob.name);
    free(file->blob.source);
    free(file->blob.etag);
    free(file->url);
    free(file->key);
    free(file->version_text);
    free(file->trouble);
    file_free_stale(file);
    free((void *)file->state);
    free(file->last);
    free(file->when);
    free(file);
}

void stage_free(struct stage *stage)
{
    if (!stage)
        return;
    stage_end(stage);
    end_thread(stage);
    lock_take(&stage->lock);
    while (stage->alive)
        lock_wait(&stage->lock, &stage->gone);
    runs_free_buffers_locked(stage);
    lock_drop(&stage->lock);
    transport_free(stage->transport); /* after this none of its threads calls us */
    tdestroy(stage->by_key, file_free);
    overflow_release(&stage->overflow);
    keep_release(&stage->keeping);
    quota_close(stage->quota);
    limiter_release(&stage->own_limiter);
    pthread_cond_destroy(&stage->wake);
    pthread_cond_destroy(&stage->gone);
    lock_release(&stage->lock);
    free(stage);
}

void stage_rest(struct stage *stage)
{
    int64_t until = stage_now(stage) + REST_MS * NS_PER_MS;
    struct wait *over = NULL;

    lock_take(&stage->lock);
    while ((stage->alive || stage->quiet.n) && stage_now(stage) < until)
        clock_wait(stage->options.clock, &stage->lock, &stage->gone, until);
    stage->resting = true;
    runs_stop_locked(stage, &over);
    lock_drop(&stage->lock);
    waits_tell(stage, over, -EINTR, NULL);
    runs_free_dead(stage);
    lock_take(&stage->lock);
    while (stage->alive)
        lock_wait(&stage->lock, &stage->gone);
    lock_drop(&stage->lock);
    end_thread(stage);
    transport_rest(stage->transport);
    lock_take(&stage->lock);
    stage->resting = false;
    lock_drop(&stage->lock);
}

void stage_begin(struct stage *stage)
{
    LOCK_SCOPE(&stage->lock);

    stage->begun = true;
    atomic_store(&stage->progress, stage_now(stage)); /* stage_wait() counts from now on */
    stage_kick_locked(stage);
}

/* ---- files ---- */

uint32_t stage_auto_block(uint64_t size)
{
    uint32_t block = STAGED_BLOCK_LEAST;

    while (block < AUTO_BLOCK_MOST && ceil_div(size, block) > AUTO_BLOCKS)
        block *= 2;
    return block;
}

static int say_too_large(const struct stage *stage, const struct stage_file *what, uint32_t block,
                         struct diag *d)
{
    return diag_set(
        d, -EFBIG,
        "%s: a size of %llu bytes needs too much memory: the states of the blocks of all files of "
        "a mount may take %llu MiB, a quarter of this machine's memory. Is that its size on the "
        "remote? If so, %s",
        what->name, (unsigned long long)what->version->size,
        (unsigned long long)(stage->blocks_most * stage->block_state_bytes >> 20),
        block < STAGED_BLOCK_MOST ? "use a larger block_size=" : "mount fewer files");
}

/* The size comes from a server: check it. Large files get larger blocks where those of all files
 * are many. */
static int choose_block(struct stage *stage, const struct stage_file *what, struct file *file,
                        struct diag *d)
{
    uint64_t size = what->version->size, n;
    uint32_t block = stage->options.block ? stage->options.block : stage_auto_block(size);
    LOCK_SCOPE(&stage->lock);

    if (size / block >= BLOCKS_MOST)
        return diag_set(
            d, -EFBIG,
            "%s: expected a file of less than %llu GiB (%llu blocks of %u KiB), got a size of %llu "
            "bytes: is that its size on the remote? If so, use a larger block_size=",
            what->name, (unsigned long long)(BLOCKS_MOST * block >> 30),
            (unsigned long long)BLOCKS_MOST, block >> 10, (unsigned long long)size);
    if (!stage->options.block && stage->n_blocks + ceil_div(size, block) > stage->blocks_most / 2)
        block = STAGED_BLOCK_MOST;
    n = ceil_div(size, block);
    if (n > stage->blocks_most - stage->n_blocks)
        return say_too_large(stage, what, block, d);
    stage->n_blocks += n;
    file->block_bytes = block;
    file->blocks = n;
    return 0;
}

static int fill_file(struct stage *stage, const struct stage_file *what, struct file *file)
{
    file->stage = stage;
    file->blob = (struct blob){
        .ops = &stage_blob_ops,
        .name = strdup(what->name),
        .source = strdup(what->key),
        .etag = *what->version->etag ? strdup(what->version->etag) : NULL,
        .size = what->version->size,
        .mtime = what->version->mtime,
        .mode = what->mode,
        .uid = what->uid,
        .gid = what->gid,
    };
    file->url = strdup(what->url);
    file->key = strdup(what->key);
    file->parts = what->parts;
    file->version = *what->version;
    file->has_sha256 = what->sha256 != NULL;
    if (what->sha256)
        memcpy(file->sha256, what->sha256, sizeof(file->sha256));
    atomic_store(&file->ahead_at, UINT64_MAX);
    file->ahead.file = file;
    file->ahead.to = UINT64_MAX;
    file->ahead.why = RUN_AHEAD;
    file->state = calloc(file->blocks ? file->blocks : 1, sizeof(*file->state));
    if (stage->options.keep == STAGE_ONCE)
        file->last = calloc(file->blocks ? file->blocks : 1, sizeof(*file->last));
    if (stage->options.keep != STAGE_PIN)
        file->when = calloc(file->blocks ? file->blocks : 1, sizeof(*file->when));
    if (!file->blob.name || !file->blob.source || (*what->version->etag && !file->blob.etag) ||
        !file->url || !file->key || !file->state ||
        (stage->options.keep == STAGE_ONCE && !file->last) ||
        (stage->options.keep != STAGE_PIN && !file->when))
        return -ENOMEM;
    return version_describe(stage, what, &file->version_text);
}

static int compare_files(const void *a, const void *b)
{
    const struct file *fa = a, *fb = b;
    int r = strcmp(fa->key, fb->key);

    return r ? r : strcmp(fa->version_text, fb->version_text);
}

/* Add the file; *ret is the same file if it was added before. */
static int add_locked(struct stage *stage, struct file *file, struct file **ret)
{
    struct file *const *found = tsearch(file, &stage->by_key, compare_files);

    lock_assert_held(&stage->lock);
    if (!found)
        return -ENOMEM;
    *ret = *found;
    if (*found != file)
        return 0;
    if (stage->last_file)
        atomic_store(&stage->last_file->next, file);
    else
        stage->files = file;
    stage->last_file = file;
    stage->n_files++;
    atomic_fetch_add(&stage->counters.total_bytes, file->blob.size);
    stage->turn.look_until = 0;
    stage->turn.all_staged = stage->turn.all_here = false;
    stage->turn.added = true;
    if (stage->begun)
        stage_kick_locked(stage);
    return 0;
}

int stage_add(struct stage *stage, const struct stage_file *what, struct blob **ret, struct diag *d)
{
    struct file *file = calloc(1, sizeof(*file)), *added = NULL;
    int r = file ? choose_block(stage, what, file, d) : -ENOMEM;
    bool is_first = false;

    if (r < 0) {
        free(file);
        return r;
    }
    r = fill_file(stage, what, file);
    if (r == 0) {
        lock_take(&stage->lock);
        is_first = !stage->n_files;
        r = add_locked(stage, file, &added);
        lock_drop(&stage->lock);
    }
    if (added != file) {
        lock_take(&stage->lock);
        stage->n_blocks -= file->blocks;
        lock_drop(&stage->lock);
        file_free(file);
    }
    if (r == 0 && added->blocks && is_first) { /* report now a folder that cannot be used */
        r = file_take(added, d);
        if (r == 0)
            file_put(added);
    }
    if (r < 0)
        return diag_set(d, r, "%s: %s", what->name, strerror(-r));
    *ret = &added->blob;
    return 0;
}

const void *stage_parts(const struct blob *blob)
{
    return blob->ops == &stage_blob_ops ? ((const struct file *)blob)->parts : NULL;
}

/* ---- staging all ---- */

/* Why the file cannot be staged. */
static int file_trouble(const struct file *file, struct diag *d)
{
    int failed = atomic_load(&file->failed);

    return failed == -ESTALE
               ? diag_set(d, failed, "%s: it was changed or removed%s%.600s", file->blob.name,
                          file->trouble ? ": " : "", file->trouble ? file->trouble : "")
               : diag_set(d, failed, "%s: its SHA-256 is not what SHA256SUMS says",
                          file->blob.name);
}

/* Why what has come cannot be kept. 0: the reason may end soon. */
static int full_trouble_locked(const struct stage *stage, bool is_blocked, struct diag *d)
{
    int r = stage->full_error;

    lock_assert_held(&stage->lock);
    if (r == -EAGAIN)
        return is_blocked ? 0
                          : diag_set(d, -EBUSY,
                                     "the cache folder %s: another process drops blocks from a "
                                     "staged file, and does not finish",
                                     stage->cache->path);
    if (r != -ENOSPC && r != -EDQUOT)
        return diag_set(d, r, "the cache folder %s: a staged file cannot be written: %s",
                        stage->cache->path, strerror(-r));
    if (stage->untold_error) /* a lock, in most cases */
        return diag_set(d, -EBUSY, "%s", stage->untold.text);
    if (quota_is_kept(stage->quota))
        return diag_set(d, -EBUSY,
                        "the cache folder %s: another process keeps its file room locked",
                        stage->cache->path);
    return diag_set(
        d, -ENOSPC, "the cache folder %s is full: %llu of %llu bytes of the source are staged",
        stage->cache->path, (unsigned long long)atomic_load(&stage->counters.staged_bytes),
        (unsigned long long)atomic_load(&stage->counters.total_bytes));
}

/* Descriptors or memory may be free later. */
static bool is_momentary(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EAGAIN || r == -EINTR;
}

/* Nothing more can be staged. 1: that is all; -ESTALE: the rest is stale. */
static int stale_trouble_locked(const struct stage *stage, struct diag *d)
{
    lock_assert_held(&stage->lock);
    for (const struct file *file = stage->files; file; file = file->next)
        if (file->stale.n)
            return diag_set(d, -ESTALE, "%s: %.300s; the rest is staged", file->blob.name,
                            file->stale_why ? file->stale_why : strerror(ESTALE));
    return 1;
}

/* Transfers are under way, and bring nothing. */
static int silence_locked(const struct stage *stage, struct diag *d)
{
    const struct run *run;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->active, link)
        if (run->state == RUN_RUNNING && !run->paused)
            return diag_set(d, -EREMOTEIO, "%s: the remote sends nothing; waited %u s",
                            run->file->blob.name, stage->options.retry_limit_s);
    return 0;
}

static int progress_locked(struct stage *stage, struct diag *d)
{
    int64_t idle = stage_now(stage) - atomic_load(&stage->progress);
    bool is_blocked = idle <= stage->options.retry_limit_s * NS_PER_S;
    int r;

    lock_assert_held(&stage->lock);
    for (struct file *file = stage->files; file; file = file->next) {
        if (atomic_load(&file->failed) < 0)
            return file_trouble(file, d);
        if (file->open_error < 0 && !is_momentary(file->open_error))
            return diag_set(d, file->open_error, "%s: %s", file->blob.name,
                            file->trouble ? file->trouble : strerror(-file->open_error));
    }
    if (stage->turn.all_staged)
        return stale_trouble_locked(stage, d);
    r = stage->full_error ? full_trouble_locked(stage, is_blocked, d) : 0;
    if (r < 0)
        return r;
    if (stage->trouble_error && !is_blocked)
        return diag_set(d, stage->trouble_error, "%s; waited %u s", stage->trouble.text,
                        stage->options.retry_limit_s);
    return is_blocked ? 0 : silence_locked(stage, d);
}

int stage_wait(struct stage *stage, int ms, struct diag *d)
{
    int64_t until = stage_now(stage) + ms * NS_PER_MS;
    int r;

    lock_take(&stage->lock);
    while ((r = progress_locked(stage, d)) == 0 && stage_now(stage) < until)
        clock_wait(stage->options.clock, &stage->lock, &stage->gone, until);
    lock_drop(&stage->lock);
    return r;
}

static int verify_blocks(struct stage *stage, struct file *file,
                         void (*progress)(void *ctx, uint64_t bytes), void *ctx, uint64_t *done,
                         struct diag *d)
{
    for (uint64_t b = 0; b < file->blocks; b++) {
        if (atomic_load(&stage->ending))
            return -EINTR;
        look_at_blocks(file, b, b + 1);
        if (file_state(file, b) != BLOCK_HERE && stage->untold_error)
            return diag_set(d, -EBUSY, "%s", stage->untold.text);
        if (file_state(file, b) != BLOCK_HERE)
            return diag_set(
                d, -ENODATA, "%s: bytes %llu to %llu are not in the cache, or damaged",
                file->blob.name, (unsigned long long)(b * file->block_bytes),
                (unsigned long long)(b * file->block_bytes + file_block_len(file, b) - 1));
        *done += file_block_len(file, b);
        if (progress && b % 64 == 0)
            progress(ctx, *done);
    }
    return file->has_sha256 ? file_verify(file, d) : 0;
}

int stage_verify(struct stage *stage, void (*progress)(void *ctx, uint64_t bytes), void *ctx,
                 struct diag *d)
{
    uint64_t done = 0;
    int result = 0;

    for (struct file *file = stage->files; file; file = file->next) {
        bool is_needed = file->blocks && !atomic_load(&file->done);
        int r = is_needed ? file_take(file, d) : 0;

        if (r == 0 && is_needed) {
            r = verify_blocks(stage, file, progress, ctx, &done, d);
            file_put(file);
        }
        if (r < 0 && (!result || r == -EBADMSG))
            result = r;
    }
    if (progress)
        progress(ctx, done);
    return result;
}

/* ---- what is reported ---- */

struct stage_counters *stage_counters(struct stage *stage)
{
    return &stage->counters;
}

bool stage_is_shared(const struct stage *stage)
{
    return stage->cache->group.is_shared;
}

void stage_space(struct stage *stage, struct stage_space *ret)
{
    uint64_t staged = atomic_load(&stage->counters.staged_bytes), used = quota_used(stage->quota);
    uint64_t limit = quota_limit(stage->quota), own = stage->options.own_limit;

    *ret = (struct stage_space){
        .total = atomic_load(&stage->counters.total_bytes),
        .limit = own ? min_u64(own, limit) : limit,
        .staged = staged,
        .others = used > staged ? used - staged : 0,
        .keep = stage->options.keep,
        .folder = stage->cache->path,
        .is_refused = atomic_load(&stage->counters.refused) > 0,
    };
}

struct quota *stage_quota(struct stage *stage)
{
    return stage->quota;
}

struct memory_held stage_overflow_held(void *owner)
{
    return overflow_held(&((struct stage *)owner)->overflow);
}

uint64_t stage_quota_used(struct stage *stage)
{
    return quota_used(stage->quota);
}

uint64_t stage_quota_limit(struct stage *stage)
{
    return quota_limit(stage->quota);
}

bool stage_peers(struct stage *stage, struct transport_peers *ret)
{
    return transport_peers(stage->transport, ret);
}

void stage_trouble(struct stage *stage, char *ret, size_t capacity)
{
    LOCK_SCOPE(&stage->lock);

    snprintf(ret, capacity, "%s", stage->trouble_error ? stage->trouble.text : "");
}
