#include "cache/disk/entry_sink.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file_io.h"
#include "base/thread.h"

#define SINK_BYTES  (256u << 10)        /* of a buffer: a cache of the processor still has it */
#define SINK_ALONE  (UINT64_C(1) << 20) /* bytes that a maker writes before it has a writer */
#define QUOTA_AHEAD (1u << 20)          /* bytes of quota taken at a time, not for each write */

static int sink_store(struct entry_sink *sink, const uint8_t *bytes, size_t len)
{
    int r = allowance_raise(&sink->allowance, sink->size + len + sink->tail, QUOTA_AHEAD);

    if (r == 0)
        r = file_pwrite(sink->fd, bytes, len, sink->size);
    if (r == -ENOSPC && !sink->allowance.wanted)
        sink->wanted = sink->size + len + sink->tail;
    if (r < 0)
        return r;
    if (len)
        sink->sum = libdeflate_crc32(sink->sum, bytes, len);
    sink->size += len;
    allowance_written(&sink->allowance, sink->size);
    return 0;
}

/* Wait for a full buffer, and give its number. false: none will follow. */
static bool sink_await_full(struct entry_sink *sink, unsigned *ret)
{
    LOCK_SCOPE(&sink->lock);

    while (sink->written == sink->full && !sink->is_complete)
        lock_wait(&sink->lock, &sink->moved);
    *ret = sink->written;
    return sink->written != sink->full;
}

static void *sink_main(void *arg)
{
    struct entry_sink *sink = arg;
    unsigned at;
    int r = 0;

    while (r == 0 && sink_await_full(sink, &at)) {
        r = sink_store(sink, sink->buffer[at % SINK_BUFFERS], SINK_BYTES);
        lock_take(&sink->lock);
        sink->written++;
        sink->failed = r;
        pthread_cond_signal(&sink->moved);
        lock_drop(&sink->lock);
    }
    return NULL;
}

/* The buffer is full: give it to the writer, and wait until there is another one. */
static int sink_pass_on(struct entry_sink *sink)
{
    sink->used = 0;
    if (!sink->has_writer && sink->made > SINK_ALONE)
        sink->has_writer = thread_start(&sink->writer, sink_main, sink) == 0;
    if (!sink->has_writer)
        return sink_store(sink, sink->buffer[sink->full % SINK_BUFFERS], SINK_BYTES);
    LOCK_SCOPE(&sink->lock);

    sink->full++;
    pthread_cond_signal(&sink->moved);
    while (sink->full - sink->written == SINK_BUFFERS && !sink->failed)
        lock_wait(&sink->lock, &sink->moved);
    return sink->failed;
}

int entry_room(struct entry_sink *sink, uint8_t **ret, size_t *ret_len)
{
    int r = sink->used == SINK_BYTES ? sink_pass_on(sink) : 0;
    uint8_t **buffer = &sink->buffer[sink->full % SINK_BUFFERS];

    if (r < 0)
        return r;
    if (!*buffer)
        *buffer = malloc(SINK_BYTES);
    if (!*buffer)
        return -ENOMEM;
    *ret = *buffer + sink->used;
    *ret_len = SINK_BYTES - sink->used;
    return 0;
}

void entry_made(struct entry_sink *sink, size_t len)
{
    sink->used += len;
    sink->made += len;
}

int entry_write(struct entry_sink *sink, const void *bytes, size_t len)
{
    const uint8_t *from = bytes;

    while (len) {
        uint8_t *room;
        size_t n;
        int r = entry_room(sink, &room, &n);

        if (r < 0)
            return r;
        n = (size_t)min_u64(n, len);
        memcpy(room, from, n);
        entry_made(sink, n);
        from += n;
        len -= n;
    }
    return 0;
}

int entry_expect(struct entry_sink *sink, uint64_t len)
{
    const struct quota *quota = sink->allowance.quota;
    uint64_t limit = quota ? quota_limit(quota) : UINT64_MAX;

    if (len <= limit && sink->made + sink->tail <= limit - len) {
        sink->announced = sink->made + sink->tail + len;
        return 0;
    }
    sink->expected = len > UINT64_MAX / 2 ? len : sink->made + sink->tail + len;
    return -ENOSPC;
}

int entry_sink_begin(struct entry_sink *ret, const struct entry *entry, int fd)
{
    *ret = (struct entry_sink){
        .fd = fd, .tail = entry_tail(entry), .allowance = {.quota = entry->quota}};
    lock_init(&ret->lock);
    pthread_cond_init(&ret->moved, NULL);
    return sink_store(ret, NULL, 0);
}

int entry_sink_end(struct entry_sink *sink, int r)
{
    if (sink->has_writer) {
        lock_take(&sink->lock);
        sink->is_complete = true;
        pthread_cond_signal(&sink->moved);
        lock_drop(&sink->lock);
        pthread_join(sink->writer, NULL);
        r = r < 0 ? r : sink->failed;
    }
    if (r == 0 && sink->used)
        r = sink_store(sink, sink->buffer[sink->full % SINK_BUFFERS], sink->used);
    for (unsigned i = 0; i < SINK_BUFFERS; i++)
        free(sink->buffer[i]);
    pthread_cond_destroy(&sink->moved);
    lock_release(&sink->lock);
    if (sink->wanted)
        sink->wanted = max_u64(sink->wanted, sink->announced);
    if (sink->expected)
        sink->allowance.wanted = sink->expected;
    return r;
}
