#include "fs/engine/preparer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/read_context.h"
#include "base/thread.h"
#include "fs/tree/splits.h"

#define TROUBLE_SIZE 400
#define LABELS_NS    INT64_C(50000000) /* until labels that another process makes are looked for */

int preparer_init(struct preparer *p, const struct catalog *catalog, struct tree *tree,
                  const struct preparer_events *events)
{
    *p = (struct preparer){.catalog = catalog, .tree = tree, .events = events};
    p->wanted = calloc(catalog->n + 1, sizeof(*p->wanted));
    if (!p->wanted)
        return -ENOMEM;
    lock_init(&p->lock);
    condition_init(&p->wake);
    return 0;
}

void preparer_release(struct preparer *p)
{
    if (!p->wanted)
        return;
    pthread_cond_destroy(&p->wake);
    lock_release(&p->lock);
    free(p->wanted);
    p->wanted = NULL;
}

static struct list_labels *preparer_labels(const struct preparer *p)
{
    return &p->catalog->tools->labels;
}

static void preparer_note(const struct preparer *p, enum log_level level, const char *text)
{
    p->events->note(p->events->ctx, level, text);
}

/* The dataset to go on with: those that readers wait for in turn, otherwise the first that is not
 * ready. NULL: all are ready, or pause until *ret_until. */
static const struct catalog_item *
preparer_next(const struct preparer *p, const struct catalog_item *before, int64_t *ret_until)
{
    const struct catalog *catalog = p->catalog;
    const struct catalog_item *first = NULL;
    size_t start = before ? (size_t)(before - catalog->item) + 1 : 0;
    int64_t now = monotonic_ns();

    for (size_t k = 0; k < catalog->n; k++) {
        size_t i = (start + k) % catalog->n;
        const struct catalog_item *item = &catalog->item[i];

        if (!item->ds || tree_item_is_open(p->tree, item))
            continue;
        if (atomic_load(&p->wanted[i]))
            return item;
        if (item->ds->retry.state == RETRY_PAUSES && !retry_may(&item->ds->retry, now)) {
            *ret_until = item->ds->retry.until < *ret_until ? item->ds->retry.until : *ret_until;
            continue;
        }
        if (!first || catalog_item_is_joint(item) > catalog_item_is_joint(first) ||
            (item < first && catalog_item_is_joint(item) == catalog_item_is_joint(first)))
            first = item;
    }
    return first;
}

/* Say why a dataset is not ready yet, unless that was the last reason. */
static void preparer_note_trouble(const struct preparer *p, const struct dataset *ds,
                                  char (*reported)[TROUBLE_SIZE])
{
    AUTO_TEXT struct text t = {0};

    if (!strncmp(*reported, ds->trouble.text, sizeof(*reported) - 1))
        return;
    snprintf(*reported, sizeof(*reported), "%s", ds->trouble.text);
    text_add(&t, "%s; tried again", ds->trouble.text);
    if (!t.failed)
        preparer_note(p, LOG_LEVEL_WARNING, t.data);
}

/* Say what a user has to know of a dataset that is ready now, and of the others of its set. */
static void preparer_note_ready(const struct preparer *p, const struct catalog_item *item)
{
    AUTO_TEXT struct text notes = {0};

    splits_note(p->catalog, item, p->catalog->item + p->catalog->n, false);
    notes_show(&item->ds->notes, &notes);
    if (item->ds->missing.n)
        text_add(&notes, "%s lacks %zu of its parts; dataset.json and `epochfs info` name them\n",
                 item->name, item->ds->missing.n);
    if (notes.data)
        preparer_note(p, LOG_LEVEL_WARNING, notes.data);
}

static void preparer_answer(struct preparer *p, const struct catalog_item *item, int error,
                            const struct diag *reason)
{
    atomic_store(&p->wanted[item - p->catalog->item], false);
    p->events->answer(p->events->ctx, item, error, reason);
}

bool preparer_has(const struct preparer *p, const struct catalog_item *item)
{
    return tree_item_is_open(p->tree, item) && !list_labels_any_wanted(preparer_labels(p)) &&
           !length_plans_wanted(&p->catalog->tools->lengths, NULL);
}

/* Answer those that asked just when what they wait for became ready. */
static void preparer_answer_late(struct preparer *p)
{
    const struct catalog *catalog = p->catalog;

    for (size_t i = 0; i < catalog->n; i++)
        if (atomic_load(&p->wanted[i]) && tree_item_is_open(p->tree, &catalog->item[i]) &&
            !list_labels_wanted(preparer_labels(p), catalog->item[i].ds) &&
            !length_plans_wanted(&catalog->tools->lengths, catalog->item[i].ds))
            preparer_answer(p, &catalog->item[i], 0, NULL);
}

/* The item, or its labels, are ready: r is the result of opening it in the tree. */
static void preparer_opened(struct preparer *p, const struct catalog_item *item, int r)
{
    AUTO_TEXT struct text t = {0};

    if (r < 0)
        text_add(&t, "%s: %s", item->name, strerror(-r));
    if (t.data)
        preparer_note(p, LOG_LEVEL_ERROR, t.data);
    p->events->opened(p->events->ctx, item);
    preparer_answer(p, item, 0, NULL);
}

/* Prepare a dataset a step further. 0; or -ENOENT: all are ready, or pause until *ret_until,
 * because their remote has failed for as long as a reader waits. */
static int preparer_prepare(struct preparer *p, const struct catalog_item **item,
                            char (*reported)[TROUBLE_SIZE], int64_t *ret_until)
{
    *ret_until = INT64_MAX;
    *item = preparer_next(p, *item, ret_until);
    if (!*item)
        return -ENOENT;
    if (!dataset_prepare((*item)->ds)) {
        if ((*item)->ds->retry.state != RETRY_PAUSES || p->ending)
            return 0;
        preparer_note_trouble(p, (*item)->ds, reported);
        preparer_answer(p, *item, -EREMOTEIO, &(*item)->ds->trouble);
        return 0;
    }
    if (dataset_state((*item)->ds) == DATASET_FAILED)
        preparer_note(p, LOG_LEVEL_ERROR, (*item)->ds->reason.text);
    else
        preparer_note_ready(p, *item);
    preparer_opened(p, *item, tree_open_item(p->tree, *item));
    return 0;
}

static bool preparer_is_ending(void *ctx)
{
    return ((const struct preparer *)ctx)->ending;
}

static const struct catalog_item *preparer_item(const struct preparer *p, const struct dataset *ds)
{
    const struct catalog_item *item = p->catalog->item;

    while (item->ds != ds)
        item++;
    return item;
}

/* Make labels that plans need a step further. 0; or -ENOENT, -EAGAIN: see list_labels_step(). */
static int preparer_make_labels(struct preparer *p)
{
    const struct catalog_item *item;
    const struct dataset *ds = NULL;
    struct diag d = DIAG_INIT;
    struct read_context rc;
    int r;

    read_context_init(&rc, false);
    rc.cancelled = preparer_is_ending;
    rc.ctx = p;
    r = list_labels_step(preparer_labels(p), &rc, &ds, &d);
    read_context_release(&rc);
    if (r == 0 || r == -EAGAIN || r == -ENOENT)
        return r;
    item = preparer_item(p, ds);
    if (r < 0)
        preparer_answer(p, item, r, &d);
    else
        preparer_opened(p, item, tree_open_listed(p->tree, item));
    return 0;
}

/* Count batches by length a step further. Readers that wait look whether it was far enough. 0; or
 * -ENOENT: nothing is wanted. */
static int preparer_count_batches(struct preparer *p)
{
    const struct dataset *ds = NULL;
    int r = length_plans_step(&p->catalog->tools->lengths, &ds);

    if (ds)
        preparer_answer(p, preparer_item(p, ds), 0, NULL);
    return r;
}

/* Wait until a reader waits for a dataset or for labels; at most until it is time to try again what
 * has ended with these. */
static void preparer_wait(struct preparer *p, int64_t until, int made)
{
    int64_t labels = made == -EAGAIN ? monotonic_ns() + LABELS_NS : INT64_MAX;

    until = labels < until ? labels : until;
    lock_take(&p->lock);
    while (!p->ending && !p->asked && monotonic_ns() < until)
        if (until == INT64_MAX)
            lock_wait(&p->lock, &p->wake);
        else
            lock_wait_until(&p->lock, &p->wake, until);
    p->asked = false;
    lock_drop(&p->lock);
}

static void *preparer_main(void *arg)
{
    struct preparer *p = arg;
    const struct catalog_item *item = NULL;
    char reported[TROUBLE_SIZE] = "";

    while (!p->ending) {
        int64_t until;
        int prepared = preparer_prepare(p, &item, &reported, &until);
        int made = preparer_make_labels(p), counted = preparer_count_batches(p);

        preparer_answer_late(p);
        if (prepared < 0 && made < 0 && counted < 0)
            preparer_wait(p, until, made);
    }
    return NULL;
}

int preparer_start(struct preparer *p)
{
    p->runs = thread_start(&p->thread, preparer_main, p) == 0;
    return p->runs ? 0 : -EAGAIN;
}

void preparer_ask(struct preparer *p, const struct catalog_item *item)
{
    LOCK_SCOPE(&p->lock);

    atomic_store(&p->wanted[item - p->catalog->item], true);
    p->asked = true;
    pthread_cond_broadcast(&p->wake);
}

void preparer_end(struct preparer *p)
{
    if (!p->wanted)
        return;
    lock_take(&p->lock);
    p->ending = true;
    pthread_cond_broadcast(&p->wake);
    lock_drop(&p->lock);
}

void preparer_stop(struct preparer *p)
{
    preparer_end(p);
    if (p->runs)
        pthread_join(p->thread, NULL);
    p->runs = false;
}
