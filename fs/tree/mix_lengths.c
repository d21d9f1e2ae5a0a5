#include "fs/tree/mix_lengths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/mixes.h"

/* Those of one word. */
struct mix_lengths {
    struct plan_lengths lengths; /* first */
    struct mix_lengths *next;
    const struct mixture *m;
    const struct list_label *label[MIX_SOURCES_MAX];
    const struct plan_lengths *lengths_of[]; /* [sources] */
};

/* The samples of the mix are those of all sources, one after another. */
static void get_each(const struct plan_lengths *lengths, size_t count, const uint64_t *sample,
                     uint32_t *ret)
{
    const struct mix_lengths *l = (const struct mix_lengths *)lengths;
    const struct mix_order *order = l->m->order;
    unsigned source = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t within;

        if (sample[i] < order->list[source].first)
            source = 0;
        while (source + 1 < order->n && sample[i] >= order->list[source + 1].first)
            source++;
        within = sample[i] - order->list[source].first;
        l->lengths_of[source]->ops->get(l->lengths_of[source], 1, &within, ret + i);
    }
}

static const struct plan_lengths_ops mix_lengths_ops = {.get = get_each};

static struct mix_lengths *mix_lengths_find_locked(struct mixture *m,
                                                   const struct plan_lengths *const *lengths_of,
                                                   const struct list_label *const *label)
{
    size_t size = m->spec->n_sources * sizeof(struct plan_lengths *);
    struct mix_lengths *l = m->lengths;

    lock_assert_held(&m->lock);
    while (l && memcmp(l->lengths_of, lengths_of, size) != 0)
        l = l->next;
    if (l)
        return l;
    l = malloc(sizeof(*l) + size);
    if (!l)
        return NULL;
    *l = (struct mix_lengths){.lengths = *lengths_of[0], .next = m->lengths, .m = m};
    l->lengths.ops = &mix_lengths_ops;
    memcpy(l->lengths_of, lengths_of, size);
    memcpy(l->label, label, m->spec->n_sources * sizeof(*label));
    return m->lengths = l;
}

int mix_lengths_get(struct mixture *m, const char *word, struct plan_data *data,
                    const struct list_label *const **ret_labels, struct diag *d)
{
    const struct list_label *label[MIX_SOURCES_MAX];
    const struct plan_lengths *lengths_of[MIX_SOURCES_MAX];
    struct mix_lengths *l;

    for (unsigned i = 0; i < m->spec->n_sources; i++) {
        struct plan_data source = {0};
        int r = list_labels_lengths(&m->tools->labels, m->ds[i], word, &source, &label[i], d);

        if (r < 0)
            return r;
        lengths_of[i] = source.lengths;
        if (lengths_of[i]->is_micro != lengths_of[0]->is_micro ||
            (!*word && strcmp(lengths_of[i]->word, lengths_of[0]->word) != 0))
            return diag_set(d, -EINVAL,
                            "length: expected sources that count alike, got %s of %s and %s of %s; "
                            "batch=HOW:N says how",
                            lengths_of[0]->word, m->shown[0], lengths_of[i]->word, m->shown[i]);
    }
    lock_take(&m->lock);
    l = mix_lengths_find_locked(m, lengths_of, label);
    lock_drop(&m->lock);
    if (!l)
        return -ENOMEM;
    data->lengths = &l->lengths;
    *ret_labels = l->label;
    return 0;
}

void mix_lengths_free(struct mix_lengths *first)
{
    for (struct mix_lengths *next; first; first = next) {
        next = first->next;
        free(first);
    }
}
