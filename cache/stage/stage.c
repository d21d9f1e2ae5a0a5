/* The life of a stage, its files, and its thread.
 *
 * Readers that wait queue their needs themselves. The thread does the rest: it ends waits that have
 * lasted too long, wakes runs, watches what other processes fetch, and calls the background. */
#include "cache/stage/stage.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cache/disk/sha256.h"
#include "cache/stage/blocks.h"
#include "cache/stage/policy.h"
#include "cache/stage/runs.h"

#define LOOK_MS        50                 /* between two looks while a reader waits */
#define OVERFLOW_BYTES ((size_t)64 << 20) /* more than readers need at a time */
#define REST_MS        2000 /* time for transfers that no reader waits for before a fork() */

#define AUTO_BLOCK_MOST (UINT32_C(128) << 10)
#define AUTO_BLOCKS     (UINT64_C(1) << 18) /* of a file */
#define BLOCKS_MOST     (UINT64_C(1) << 28) /* of a file: each takes one byte of memory, or a few */
#define STATES_SHARE    4                   /* part of memory that those of all files may take */

/* ---- the thread ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* End waits that have lasted too long, stop late runs. Returns when to look again. */
static int64_t runs_look_locked(struct stage *stage, int64_t now, struct wait **ret_over)
{
    int64_t next = waits_give_up_locked(stage, now, ret_over);

    lock_assert_held(&stage->lock);
    runs_stop_late_locked(stage, now);
    if (needs_waits_locked(stage) || runs_active_locked(stage, RUN_DEMAND) ||
        runs_active_locked(stage, RUN_AHEAD)) /* runs_flush() */
        next = earlier(next, now + LOOK_MS * NS_PER_MS);
    return earlier(next, runs_next_alarm_locked(stage, now));
}

static void *stage_main(void *arg)
{
    struct stage *stage = arg;

    lock_take(&stage->lock);
    while (!stage->ending && !stage->resting) {
        struct wait *over = NULL;
        int64_t now = stage_now(stage), next;

        stage->kicked = false;
        next = runs_look_locked(stage, now, &over);
        lock_drop(&stage->lock);
        waits_tell(stage, over, -EREMOTEIO, NULL);
        runs_free_dead(stage);
        runs_flush(stage);
        next = earlier(next, look_at_others(stage, now));
        runs_start(stage);
        next = earlier(next, passed_drop(stage, now));
        stage_in_background(stage, now);
        runs_start(stage);
        lock_take(&stage->lock);
        next = earlier(next, background_next_look_locked(stage, now));
        next = earlier(next, runs_trim_buffers_locked(stage, now));
        if (!stage->kicked && !stage->ending && !stage->resting)
            clock_wait(stage->options.clock, &stage->lock, &stage->wake, next);
    }
    lock_drop(&stage->lock);
    return NULL;
}

/* ---- life ---- */

static int compare_urls(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->blob.source, ((const struct file *)b)->blob.source);
}

/* Is it the URL of one of our files? */
static bool has_url(void *ctx, const char *url)
{
    struct stage *stage = ctx;
    const struct file probe = {.blob.source = (char *)(uintptr_t)url};
    LOCK_SCOPE(&stage->lock);

    return tfind(&probe, &stage->by_key, compare_urls);
}

static uint64_t make_nonce(const struct stage *stage)
{
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        number = (uint64_t)stage_now(stage) ^ (uint64_t)getpid() << 40;
    return number;
}

static void stage_file_free(void *arg)
{
    struct file *file = arg;

    block_store_release(file);
    free(file->blob.name);
    free(file->blob.source);
    free(file->blob.etag);
    free(file->url);
    free(file->version_text);
    free(file->trouble);
    file_free_stale(file);
    free(file->last);
    free(file->when);
    free(file->needs);
    free(file->runs);
    free(file);
}

/* No thread uses it. */
static void stage_dispose(struct stage *stage)
{
    transport_free(stage->transport); /* after this none of its threads calls us */
    tdestroy(stage->by_key, stage_file_free);
    overflow_free(stage->overflow);
    keep_release(stage);
    free(stage->open_files);
    free(stage->needs);
    free(stage->runs);
    free(stage->speed);
    free(stage->passing);
    free(stage->background);
    quota_close(stage->quota);
    limiter_release(&stage->own_limiter);
    pthread_cond_destroy(&stage->wake);
    pthread_cond_destroy(&stage->gone);
    lock_release(&stage->lock);
    free(stage);
}

int stage_new(const struct stage_options *options, const struct cache_folder *cache,
              struct transport *transport, struct stage **ret, struct diag *d)
{
    static int (*const parts[])(struct stage * stage) = {open_files_init, needs_init, runs_init,
                                                         speed_init,      keep_init,  passed_init,
                                                         background_init};
    struct stage *stage = calloc(1, sizeof(*stage));
    int r = stage ? quota_open(cache, options->limit, options->limit_percent, options->clock,
                               &stage->quota, d)
                  : -ENOMEM;

    if (r < 0) {
        transport_free(transport);
        free(stage);
        return r;
    }
    stage->options = *options;
    stage->options.clock = clock_or_real(options->clock);
    stage->cache = cache;
    stage->transport = transport;
    transport->requests = &stage->counters.requests;
    transport->spare_bytes = &stage->counters.background_bytes;
    limiter_init(&stage->own_limiter, options->jobs, options->small_jobs, options->clock);
    stage->limiter = transport->limiter ? transport->limiter : &stage->own_limiter;
    stage->nonce = make_nonce(stage);
    stage->main = stage_main;
    stage->block_state_bytes = sizeof(*stage->last_file->state) +
                               (options->keep == STAGE_ONCE) * sizeof(*stage->last_file->last) +
                               (options->keep != STAGE_PIN) * sizeof(*stage->last_file->when);
    stage->blocks_most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) /
                         STATES_SHARE / stage->block_state_bytes;
    stage->trouble = stage->untold = DIAG_INIT;
    atomic_store(&stage->progress, stage_now(stage));
    quota_set_keeps(stage->quota, has_url, stage);
    stage->overflow = overflow_new(options->memory ? (size_t)options->memory : OVERFLOW_BYTES);
    r = stage->overflow ? 0 : -ENOMEM;
    lock_init(&stage->lock);
    condition_init(&stage->wake);
    condition_init(&stage->gone);
    for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++)
        r = parts[i](stage);
    if (r < 0) {
        stage_dispose(stage);
        return r;
    }
    *ret = stage;
    return 0;
}

static void end_thread(struct stage *stage)
{
    bool runs;

    lock_take(&stage->lock);
    runs = stage->has_thread;
    pthread_cond_broadcast(&stage->wake);
    lock_drop(&stage->lock);
    if (runs)
        pthread_join(stage->thread, NULL);
    lock_take(&stage->lock);
    stage->has_thread = false;
    lock_drop(&stage->lock);
}

void stage_read_no_ahead(struct stage *stage)
{
    if (!stage)
        return;
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

    if (!stage)
        return;
    lock_take(&stage->lock);
    atomic_store(&stage->ending, true);
    runs_stop_locked(stage, &over);
    pthread_cond_broadcast(&stage->wake);
    pthread_cond_broadcast(&stage->gone);
    lock_drop(&stage->lock);
    waits_tell(stage, over, -EINTR, NULL);
    runs_free_dead(stage);
}

void stage_free(struct stage *stage)
{
    if (!stage)
        return;
    stage_end(stage);
    end_thread(stage);
    lock_take(&stage->lock);
    runs_await_gone_locked(stage);
    runs_free_buffers_locked(stage);
    lock_drop(&stage->lock);
    stage_dispose(stage);
}

void stage_rest(struct stage *stage)
{
    int64_t until = stage ? stage_now(stage) + REST_MS * NS_PER_MS : 0;
    struct wait *over = NULL;

    if (!stage)
        return;
    lock_take(&stage->lock);
    while ((runs_alive_locked(stage) || needs_waits_locked(stage)) && stage_now(stage) < until)
        clock_wait(stage->options.clock, &stage->lock, &stage->gone, until);
    stage->resting = true;
    runs_stop_locked(stage, &over);
    lock_drop(&stage->lock);
    waits_tell(stage, over, -EINTR, NULL);
    runs_free_dead(stage);
    lock_take(&stage->lock);
    runs_await_gone_locked(stage);
    lock_drop(&stage->lock);
    end_thread(stage);
    transport_rest(stage->transport);
    lock_take(&stage->lock);
    stage->resting = false;
    lock_drop(&stage->lock);
}

void stage_begin(struct stage *stage)
{
    if (!stage)
        return;
    LOCK_SCOPE(&stage->lock);

    stage->begun = true;
    atomic_store(&stage->progress, stage_now(stage)); /* stage_wait() counts from now on */
    stage_kick_locked(stage);
}

/* ---- files ---- */

/* A text that differs between two versions of a file. If the remote reports none, it has the sum
 * that the bytes must have, or the stage's own number: what is staged of such a file may be of any
 * version by the time of the next mount, so only this stage uses it. 0 or -ENOMEM. */
static int version_describe(const struct stage *stage, const struct stage_file *what, char **ret)
{
    const struct remote_version *version = what->version;
    bool has_time = !*version->etag || version->time_counts;
    char tail[DIGEST_TEXT_SIZE + 16] = "", sum[DIGEST_TEXT_SIZE] = "", *text;

    if (what->sha256)
        digest_text(what->sha256, sum);
    if (!remote_version_is_known(version) && what->sha256)
        snprintf(tail, sizeof(tail), " sha256 %s", sum);
    else if (!remote_version_is_known(version))
        snprintf(tail, sizeof(tail), " mount %016llx", (unsigned long long)stage->nonce);
    if (asprintf(&text, "%llu %s %lld.%09ld%s", (unsigned long long)version->size, version->etag,
                 has_time ? (long long)version->mtime.tv_sec : 0LL,
                 has_time ? version->mtime.tv_nsec : 0L, tail) < 0)
        return -ENOMEM;
    *ret = text;
    return 0;
}

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
    file->parts = what->parts;
    file->version = *what->version;
    file->has_sha256 = what->sha256 != NULL;
    file->trusted = what->trusted;
    if (what->sha256)
        memcpy(file->sha256, what->sha256, sizeof(file->sha256));
    if (stage->options.keep == STAGE_ONCE)
        file->last = calloc(file->blocks ? file->blocks : 1, sizeof(*file->last));
    if (stage->options.keep != STAGE_PIN)
        file->when = calloc(file->blocks ? file->blocks : 1, sizeof(*file->when));
    if (block_store_init(file) < 0 || file_needs_init(file) < 0 || file_runs_init(file) < 0 ||
        !file->blob.name || !file->blob.source || (*what->version->etag && !file->blob.etag) ||
        !file->url || (stage->options.keep == STAGE_ONCE && !file->last) ||
        (stage->options.keep != STAGE_PIN && !file->when))
        return -ENOMEM;
    return version_describe(stage, what, &file->version_text);
}

static int compare_file_keys(const void *a, const void *b)
{
    const struct file *fa = a, *fb = b;
    int r = compare_urls(a, b);

    return r ? r : strcmp(fa->version_text, fb->version_text);
}

/* Add the file; *ret is the same file if it was added before. */
static int add_locked(struct stage *stage, struct file *file, struct file **ret)
{
    struct file *const *found = tsearch(file, &stage->by_key, compare_file_keys);

    lock_assert_held(&stage->lock);
    if (!found)
        return -ENOMEM;
    *ret = *found;
    if (*found != file)
        return 0;
    atomic_store(stage->last_file ? &stage->last_file->next : &stage->files, file);
    stage->last_file = file;
    stage->n_files++;
    atomic_fetch_add(&stage->counters.total_bytes, file->blob.size);
    background_add_locked(stage);
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
        stage_file_free(file);
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
    return stage_has(blob) ? ((const struct file *)blob)->parts : NULL;
}

uint64_t stage_own_number(const struct stage *stage)
{
    return stage->nonce;
}
