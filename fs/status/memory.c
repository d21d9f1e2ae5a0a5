/* What is allocated, and how much of it is kept only because it may save work. The rest must not
 * grow with what has been read: tests take the difference of both numbers. */
#include "fs/status/memory.h"

#include "fs/status/metrics.h"

static unsigned long long number(uint64_t n)
{
    return n;
}

static struct memory_held held_by(const struct memory_holder *holder)
{
    return holder->held(holder->owner);
}

/* Add the list of holders; *ret_sum: what the listed numbers add up to. */
static void add_kept(const struct memory_holder *holder, unsigned n, struct text *t,
                     struct memory_held *ret_sum)
{
    struct memory_held sum = {0};

    for (unsigned i = 0; i < n; i++) {
        struct memory_held held = held_by(&holder[i]);

        text_add(t, "%s\n      {", i ? "," : "");
        json_add_text(t, NULL, "what", holder[i].what);
        text_add(t, ", \"bytes\": %llu, \"limit_bytes\": %llu}", number(held.bytes),
                 number(held.limit));
        sum.bytes += held.bytes;
        sum.limit += held.limit;
    }
    *ret_sum = sum;
}

void status_memory_json(const struct memory_holder *holder, unsigned n, struct text *t)
{
    const struct memory_used used = memory_used();
    AUTO_TEXT struct text kept = {0};
    struct memory_held sum;

    add_kept(holder, n, &kept, &sum);
    t->failed = t->failed || kept.failed;
    text_add(t,
             "{\n    \"resident_bytes\": %llu,\n    \"allocated_bytes\": %llu,\n"
             "    \"unused_bytes\": %llu,\n",
             number(used.resident), number(used.allocated), number(used.unused));
    text_add(t, "    \"kept_bytes\": %llu,\n    \"kept_limit_bytes\": %llu,\n    \"kept\": [",
             number(sum.bytes), number(sum.limit));
    text_add(t, "%s\n    ]\n  }", kept.data ? kept.data : "");
}

void status_memory_metrics(const struct memory_holder *holder, unsigned n, struct text *t)
{
    static const char kept[] = "epochfs_memory_kept_bytes", most[] = "epochfs_memory_limit_bytes";
    const struct memory_used used = memory_used();

    metrics_add(t, "epochfs_memory_resident_bytes",
                "Bytes of the daemon that are in memory now; 0: not known.", used.resident);
    metrics_add(t, "epochfs_memory_allocated_bytes", "Bytes allocated and not freed.",
                used.allocated);
    metrics_add(t, "epochfs_memory_unused_bytes",
                "Bytes freed, which the allocator keeps for later.", used.unused);
    metrics_begin(t, kept, NULL, "Bytes that are kept up to a limit, by their use.");
    for (unsigned i = 0; i < n; i++)
        text_add(t, "%s{what=\"%s\"} %llu\n", kept, holder[i].what,
                 number(held_by(&holder[i]).bytes));
    metrics_begin(t, most, NULL, "These limits.");
    for (unsigned i = 0; i < n; i++)
        text_add(t, "%s{what=\"%s\"} %llu\n", most, holder[i].what,
                 number(held_by(&holder[i]).limit));
}
