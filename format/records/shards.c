#include "format/records/shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

int shards_init(struct shards *ret, const struct shard_ops *ops, unsigned n)
{
    struct shards s = {.ops = ops};

    s.shard = calloc(n, sizeof(*s.shard));
    s.byte = calloc((size_t)n + 1, sizeof(*s.byte));
    s.first = calloc((size_t)n + 1, sizeof(*s.first));
    if (!s.shard || !s.byte || !s.first) {
        shards_release(&s);
        return -ENOMEM;
    }
    *ret = s;
    return 0;
}

void shards_add(struct shards *s, const struct shard *shard)
{
    s->shard[s->n] = *shard;
    s->byte[s->n + 1] = s->byte[s->n] + shard->blob->size;
    s->n++;
}

void shards_release(struct shards *s)
{
    for (unsigned i = 0; i < s->n; i++)
        s->ops->drop(s->shard[i].file);
    free(s->shard);
    free(s->byte);
    free(s->first);
    *s = (struct shards){0};
}

int shards_prepare(struct shards *s, struct diag *d)
{
    while (s->ready < s->n) {
        const struct shard *shard = &s->shard[s->ready];
        int r =
            s->ops->prepare ? s->ops->prepare(shard->file, d) : prepared_step(shard->prepared, d);

        if (r != 1)
            return r;
        s->first[s->ready + 1] = s->first[s->ready] + shard->prepared->index.rows;
        s->ready++;
    }
    return 1;
}

void shards_progress(const struct shards *s, uint64_t *ret_done, uint64_t *ret_total)
{
    *ret_done = 0;
    for (unsigned i = 0; i < s->n; i++)
        *ret_done += atomic_load_explicit(&s->shard[i].prepared->seen, memory_order_relaxed);
    *ret_total = s->byte[s->n];
}

/* The last file that begins with number at or before; file i begins with start[i]. */
static unsigned file_of(const struct shards *s, const uint64_t *start, uint64_t at)
{
    unsigned low = 0, high = s->n;

    while (low + 1 < high) {
        unsigned middle = low + (high - low) / 2;

        if (start[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

unsigned shards_find(const struct shards *s, uint64_t record, uint64_t *ret_own)
{
    unsigned i = file_of(s, s->first, record);

    *ret_own = record - s->first[i];
    return i;
}

/* The number of records before byte at of the files in sequence. */
static uint64_t records_before(const struct shards *s, uint64_t at)
{
    unsigned i = file_of(s, s->byte, at);

    if (at >= s->byte[s->n])
        return s->first[s->n];
    return s->first[i] + s->ops->cut(s->shard[i].file, at - s->byte[i]);
}

void shards_share(const struct shards *s, uint64_t part, uint64_t parts, uint64_t *ret_start,
                  uint64_t *ret_length)
{
    uint64_t total = s->byte[s->n], step = ceil_div(total, parts), begin, end;

    if (!checked_mul(step, part, &begin) || begin > total)
        begin = total;
    end = min_u64(begin + step, total);
    *ret_start = records_before(s, begin);
    *ret_length = records_before(s, end) - *ret_start;
}

int shards_join(size_t n, struct finds *finds)
{
    int r;

    if (n + finds->n_unread < 2 || !n)
        return 0;
    if (!finds->n_unread)
        return 1;
    r = finds_incomplete(finds, SHARDS_ALL, &finds->unread[0]);
    return r < 0 ? r : 0;
}
