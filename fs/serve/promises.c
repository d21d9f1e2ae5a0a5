#include "fs/serve/promises.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"

#define LISTS   64  /* epochs, and kinds of file in them, that are watched at once */
#define AT_ONCE 256 /* samples */

/* The reads of one kind of file in one epoch of one plan, or among the samples. */
struct list {
    const struct catalog_item *item;
    const struct plan_entry *plan;
    const struct file_kind *file;
    uint64_t epoch;
    uint64_t used; /* larger: used later; 0: free */
    uint8_t *seen; /* [samples / 8 + 1] bits; owned */
    uint64_t last; /* sample */
    bool has_last;
};

struct promises {
    bool once, sorted;
    struct lock lock;
    /* Guarded by lock: */
    struct list list[LISTS];
    uint64_t uses;
};

int promises_new(bool once, bool sorted, struct promises **ret)
{
    struct promises *promises = NULL;

    if (!once && !sorted) {
        *ret = NULL;
        return 0;
    }
    promises = calloc(1, sizeof(*promises));
    if (!promises)
        return -ENOMEM;
    promises->once = once;
    promises->sorted = sorted;
    lock_init(&promises->lock);
    *ret = promises;
    return 0;
}

void promises_free(struct promises *promises)
{
    if (!promises)
        return;
    for (size_t i = 0; i < LISTS; i++)
        free(promises->list[i].seen);
    lock_release(&promises->lock);
    free(promises);
}

/* The list of a file; a new one replaces the one used longest ago. NULL: no memory. */
static struct list *list_of(struct promises *promises, const struct node *node)
{
    struct list *oldest = &promises->list[0];

    for (size_t i = 0; i < LISTS; i++) {
        struct list *list = &promises->list[i];

        if (list->used && list->item == node->item && list->plan == node->plan &&
            list->file == node->file && list->epoch == node->epoch) {
            list->used = ++promises->uses;
            return list;
        }
        oldest = list->used < oldest->used ? list : oldest;
    }
    free(oldest->seen);
    *oldest = (struct list){
        .item = node->item, .plan = node->plan, .file = node->file, .epoch = node->epoch};
    oldest->seen = calloc(1, node->item->ds->samples / 8 + 1);
    if (!oldest->seen)
        return NULL;
    oldest->used = ++promises->uses;
    return oldest;
}

static bool is_behind(const struct dataset *ds, uint64_t a, uint64_t b)
{
    uint8_t x[KEY_SIZE], y[KEY_SIZE];
    size_t n = dataset_key(ds, a, x), m = dataset_key(ds, b, y);
    int order = memcmp(x, y, min_u64(n, m));

    return order ? order > 0 : n > m;
}

static void promises_report(struct status *status, const struct node *node, uint64_t sample,
                            const char *what)
{
    uint8_t key[KEY_SIZE];
    size_t len = dataset_key(node->item->ds, sample, key);

    status_promise(status, "%s: '%.*s' %s", node->item->name, (int)min_u64(len, 100),
                   (const char *)key, what);
}

static void note_sample(struct promises *promises, struct list *list, const struct node *node,
                        uint64_t sample, struct status *status)
{
    uint8_t *byte = &list->seen[sample / 8], bit = (uint8_t)(1u << sample % 8);

    if (promises->once && *byte & bit) {
        atomic_fetch_add_explicit(&status->read_twice, 1, memory_order_relaxed);
        promises_report(status, node, sample, "is read twice in an epoch (kaldi=o)");
    }
    *byte |= bit;
    if (promises->sorted && list->has_last && is_behind(node->item->ds, list->last, sample)) {
        atomic_fetch_add_explicit(&status->read_backwards, 1, memory_order_relaxed);
        promises_report(status, node, sample, "is read after a greater key (kaldi=cs)");
    }
    list->last = sample;
    list->has_last = true;
}

void promises_read(struct promises *promises, struct open_files *files, const struct node *node,
                   struct status *status)
{
    uint64_t samples[AT_ONCE], n;
    struct list *list;

    if (!promises || (node->type != NODE_SAMPLE && node->type != NODE_BATCH))
        return;
    lock_take(&promises->lock);
    list = list_of(promises, node);
    for (uint64_t first = 0; list && (n = view_samples(files, node, first, AT_ONCE, samples)) > 0;
         first += n)
        for (uint64_t i = 0; i < n; i++)
            note_sample(promises, list, node, samples[i], status);
    lock_drop(&promises->lock);
}
