/* The memory that the daemon keeps: what takes how much, each with a limit, and what is let go of
 * while the machine is short of memory. */
#include <malloc.h>

#include "base/memo.h"
#include "base/memory.h"
#include "fs/serve/parts.h"

#define SHORT_SHARE 16 /* memory is short if less than one part of so many is free */

static struct memory_held decoded_held(void *owner)
{
    return memo_held(owner);
}

/* Buffers of threads that serve requests: a thread has one from its first request to its end. */
static struct memory_held replies_held(void *owner)
{
    const struct server *s = owner;

    return (struct memory_held){.bytes = atomic_load(&s->n_buffers) * READ_MAX,
                                .limit = (SERVING_THREADS + SLOW_THREADS + 1) * READ_MAX};
}

void serve_show_memory(struct server *s)
{
    const struct memory_holder holders[STATUS_HOLDERS_MAX] = {
        {"decoded", decoded_held, s->setup.catalog->tools->setup.memo},
        {"lists", open_files_lists_held, s->engine.open_files},
        {"files", open_files_held, s->engine.open_files},
        {"plans", tree_plans_held, s->engine.tree},
        {"labels", list_labels_held, &s->setup.catalog->tools->labels},
        {"batches", length_plans_held, &s->setup.catalog->tools->lengths},
        {"texts", status_snapshots_held, &s->engine.status},
        {"replies", replies_held, s},
        {"blocks", stage_overflow_held, s->setup.stage},
        {"transfers", stage_buffers_held, s->setup.stage},
    };

    for (size_t i = 0; i < STATUS_HOLDERS_MAX && holders[i].what; i++)
        if (holders[i].owner)
            s->engine.status.holder[s->engine.status.n_holders++] = holders[i];
}

/* Each call frees half of what was decoded, and what the allocator keeps. */
void serve_let_memory_go(const struct server *s)
{
    if (memory_free() < memory_total() / SHORT_SHARE) {
        memo_halve(s->setup.catalog->tools->setup.memo);
        malloc_trim(0);
    }
}
