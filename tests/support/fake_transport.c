#include "tests/support/fake_transport.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/lock.h"

#define PIECE       10007 /* bytes delivered at a time: no round number */
#define THREADS_MAX 64
#define GRAIN       512 /* bytes that are counted together */

struct fake {
    struct transport transport;
    const uint8_t *content;
    uint64_t size;
    unsigned threads;
    const struct clock *clock;
    struct lock lock;
    pthread_cond_t queued;  /* a transfer for one of the threads that have none, or they rest */
    pthread_cond_t changed; /* anything else */
    /* Guarded by lock: */
    pthread_t thread[THREADS_MAX];
    unsigned running;
    struct transfer *first; /* the queue for a thread */
    struct transfer *stopped[THREADS_MAX];
    unsigned n_stopped;
    bool resting, released;
    unsigned started, at_once, most_at_once, stalled;
    unsigned ended; /* their end() has returned */
    uint64_t given;
    unsigned *count; /* [size / GRAIN + 1] */
    uint64_t stale, stale_end;
    fake_script *script;
    void *ctx;
};

static struct fake *fake_of(struct transport *transport)
{
    return (struct fake *)transport;
}

static bool is_stopped_locked(struct fake *fake, const struct transfer *transfer)
{
    lock_assert_held(&fake->lock);
    for (unsigned i = 0; i < fake->n_stopped; i++)
        if (fake->stopped[i] == transfer)
            return true;
    return false;
}

/* Where the object of a URL begins in the content. */
static uint64_t base_of(const struct transfer *transfer)
{
    const char *at = strrchr(transfer->url, '@');

    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* Report stale bytes if the byte at `off` is one. *ret_n becomes their number, or at most the
 * number of bytes before them. 1: they were; 0: it is none; -1: the transfer must stop. */
static int give_stale(struct fake *fake, struct transfer *transfer, uint64_t off, size_t *ret_n)
{
    struct diag why = DIAG_INIT;
    uint64_t from, end;

    lock_take(&fake->lock);
    from = fake->stale;
    end = fake->stale_end;
    lock_drop(&fake->lock);
    if (off >= end)
        return 0;
    if (off < from) {
        *ret_n = (size_t)min_u64(*ret_n, from - off);
        return 0;
    }
    *ret_n = (size_t)min_u64(*ret_n, end - off);
    diag_set(&why, -ESTALE, "%s: the fake has changed", transfer->url);
    return transfer->stale(transfer, *ret_n, -ESTALE, &why) ? 1 : -1;
}

/* Deliver bytes from the one at `at` on. False: the transfer must stop. */
static bool give(struct fake *fake, struct transfer *transfer, uint64_t at, uint64_t end)
{
    uint64_t len = min_u64(transfer->len, end);

    while (at < len) {
        size_t n = (size_t)min_u64(PIECE, len - at);
        uint64_t off = base_of(transfer) + transfer->off + at;
        int stale = give_stale(fake, transfer, off, &n);
        bool stopped;

        if (stale) {
            if (stale < 0)
                return false;
            at += n;
            continue;
        }
        lock_take(&fake->lock);
        stopped = is_stopped_locked(fake, transfer);
        fake->given += stopped ? 0 : n;
        for (uint64_t g = ceil_div(off, GRAIN) * GRAIN; g < off + n && !stopped; g += GRAIN)
            fake->count[g / GRAIN]++;
        pthread_cond_broadcast(&fake->changed);
        lock_drop(&fake->lock);
        if (stopped || !transfer->data(transfer, fake->content + off, n))
            return false;
        at += n;
    }
    return true;
}

static enum transfer_end run(struct fake *fake, struct transfer *transfer,
                             const struct fake_answer *answer)
{
    int64_t until = answer->stall_ms
                        ? clock_monotonic(fake->clock) + (int64_t)answer->stall_ms * 1000000
                        : CLOCK_NEVER;
    bool stopped;

    if (answer->whole && !transfer->version->whole_only && transfer->len < fake->size)
        return TRANSFER_WHOLE;
    if (transfer->version->whole_only && transfer->off)
        transfer->passed(transfer, transfer->off);
    if (!give(fake, transfer, 0, answer->bytes))
        return TRANSFER_STOPPED;
    lock_take(&fake->lock);
    fake->stalled++;
    pthread_cond_broadcast(&fake->changed);
    while (answer->stalls && !fake->released && !is_stopped_locked(fake, transfer)) {
        if (clock_monotonic(fake->clock) >= until)
            break;
        clock_wait(fake->clock, &fake->lock, &fake->changed, until);
    }
    fake->stalled--;
    stopped = is_stopped_locked(fake, transfer);
    lock_drop(&fake->lock);
    if (!stopped && answer->goes_on)
        stopped = !give(fake, transfer, answer->bytes, UINT64_MAX);
    return stopped ? TRANSFER_STOPPED : answer->end;
}

static void forget_stopped_locked(struct fake *fake, const struct transfer *transfer)
{
    lock_assert_held(&fake->lock);
    for (unsigned i = 0; i < fake->n_stopped; i++)
        if (fake->stopped[i] == transfer)
            fake->stopped[i--] = fake->stopped[--fake->n_stopped];
}

/* A transfer that a thread has taken from the queue, and the script as it was then. */
struct taken {
    struct transfer *transfer;
    unsigned number;
    fake_script *script;
    void *ctx;
};

/* Wait for a transfer and take it from the queue. False: the transport rests, and none is left. */
static bool take_transfer(struct fake *fake, struct taken *ret)
{
    LOCK_SCOPE(&fake->lock);

    while (!fake->first && !fake->resting)
        lock_wait(&fake->lock, &fake->queued);
    if (!fake->first)
        return false;
    *ret = (struct taken){fake->first, fake->started++, fake->script, fake->ctx};
    fake->first = fake->first->next;
    fake->at_once++;
    fake->most_at_once = (unsigned)max_u64(fake->most_at_once, fake->at_once);
    pthread_cond_broadcast(&fake->changed);
    return true;
}

static void serve(struct fake *fake, const struct taken *taken)
{
    struct transfer *transfer = taken->transfer;
    struct fake_answer answer = {.end = TRANSFER_DONE, .bytes = UINT64_MAX};
    struct diag reason = DIAG_INIT;
    enum transfer_end end;

    if (taken->script)
        answer = taken->script(taken->ctx, transfer, taken->number);
    end = run(fake, transfer, &answer);
    if (end != TRANSFER_DONE)
        diag_set(&reason, -EREMOTEIO, "%s: the fake fails", transfer->url);
    lock_take(&fake->lock);
    forget_stopped_locked(fake, transfer);
    fake->at_once--;
    pthread_cond_broadcast(&fake->changed);
    lock_drop(&fake->lock);
    transfer->end(transfer, end, answer.retry_ms, &reason);
    lock_take(&fake->lock);
    fake->ended++;
    pthread_cond_broadcast(&fake->changed);
    lock_drop(&fake->lock);
}

static void *fake_main(void *arg)
{
    struct fake *fake = arg;
    struct taken taken;

    while (take_transfer(fake, &taken))
        serve(fake, &taken);
    return NULL;
}

static int fake_start(struct transport *transport, struct transfer *transfer)
{
    struct fake *fake = fake_of(transport);
    struct transfer **at = &fake->first;
    LOCK_SCOPE(&fake->lock);

    while (fake->running < fake->threads &&
           pthread_create(&fake->thread[fake->running], NULL, fake_main, fake) == 0)
        fake->running++;
    transfer->next = NULL;
    while (*at)
        at = &(*at)->next;
    *at = transfer;
    pthread_cond_signal(&fake->queued);
    return 0;
}

static void fake_stop(struct transport *transport, struct transfer *transfer)
{
    struct fake *fake = fake_of(transport);
    LOCK_SCOPE(&fake->lock);

    if (!is_stopped_locked(fake, transfer))
        fake->stopped[fake->n_stopped++] = transfer;
    pthread_cond_broadcast(&fake->changed);
}

static void fake_rest(struct transport *transport)
{
    struct fake *fake = fake_of(transport);

    lock_take(&fake->lock);
    fake->resting = true;
    pthread_cond_broadcast(&fake->queued);
    lock_drop(&fake->lock);
    for (unsigned i = 0; i < fake->running; i++)
        pthread_join(fake->thread[i], NULL);
    fake->running = 0;
    fake->resting = false;
}

static void fake_free(struct transport *transport)
{
    struct fake *fake = fake_of(transport);

    fake_rest(transport);
    pthread_cond_destroy(&fake->queued);
    pthread_cond_destroy(&fake->changed);
    lock_release(&fake->lock);
    free(fake->count);
    free(fake);
}

static const struct transport_ops fake_ops = {
    .start = fake_start, .stop = fake_stop, .stop_threads = fake_rest, .free = fake_free};

int fake_new(const uint8_t *content, uint64_t size, unsigned threads, const struct clock *clock,
             struct fake **ret)
{
    struct fake *fake = calloc(1, sizeof(*fake));

    if (!fake)
        return -ENOMEM;
    fake->transport.ops = &fake_ops;
    fake->content = content;
    fake->size = size;
    fake->clock = clock_or_real(clock);
    fake->threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    fake->count = calloc(size / GRAIN + 1, sizeof(*fake->count));
    lock_init(&fake->lock);
    condition_init(&fake->queued);
    condition_init(&fake->changed);
    *ret = fake;
    return fake->count ? 0 : -ENOMEM;
}

struct transport *fake_transport(struct fake *fake)
{
    return &fake->transport;
}

void fake_set_script(struct fake *fake, fake_script *script, void *ctx)
{
    LOCK_SCOPE(&fake->lock);

    fake->script = script;
    fake->ctx = ctx;
}

void fake_set_stale(struct fake *fake, uint64_t off, uint64_t len)
{
    LOCK_SCOPE(&fake->lock);

    fake->stale = off;
    fake->stale_end = off + len;
}

void fake_release(struct fake *fake)
{
    LOCK_SCOPE(&fake->lock);

    fake->released = true;
    pthread_cond_broadcast(&fake->changed);
}

void fake_hold(struct fake *fake)
{
    LOCK_SCOPE(&fake->lock);

    fake->released = false;
    fake->most_at_once = fake->at_once;
}

void fake_wait_started(struct fake *fake, unsigned n)
{
    LOCK_SCOPE(&fake->lock);

    while (fake->started < n)
        lock_wait(&fake->lock, &fake->changed);
}

void fake_wait_stalled(struct fake *fake, unsigned n)
{
    LOCK_SCOPE(&fake->lock);

    while (fake->stalled < n || fake->stalled < fake->at_once || fake->first)
        lock_wait(&fake->lock, &fake->changed);
}

unsigned fake_wait_idle(struct fake *fake)
{
    LOCK_SCOPE(&fake->lock);

    while (fake->ended < fake->started || fake->first)
        lock_wait(&fake->lock, &fake->changed);
    return fake->started;
}

void fake_wait_given(struct fake *fake, uint64_t n)
{
    LOCK_SCOPE(&fake->lock);

    while (fake->given < n)
        lock_wait(&fake->lock, &fake->changed);
}

uint64_t fake_given(struct fake *fake)
{
    LOCK_SCOPE(&fake->lock);

    return fake->given;
}

unsigned fake_given_at(struct fake *fake, uint64_t off)
{
    LOCK_SCOPE(&fake->lock);

    return fake->count[off / GRAIN];
}

unsigned fake_started(struct fake *fake)
{
    LOCK_SCOPE(&fake->lock);

    return fake->started;
}

unsigned fake_at_once(struct fake *fake)
{
    LOCK_SCOPE(&fake->lock);

    return fake->at_once;
}

unsigned fake_most_at_once(struct fake *fake)
{
    LOCK_SCOPE(&fake->lock);

    return fake->most_at_once;
}
